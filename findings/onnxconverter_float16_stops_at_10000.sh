#!/bin/bash
# The usual converter to float16 makes 10000 of every weight above, though float16 goes to 65504, and 1.2e-7 of every smaller one: what
# fits is changed, too.
#
# What is done: convert_float_to_float16 of onnxconverter-common, with its defaults, of x * w + b with weights 20000, -65000, 1e5, 6e-8,
# -1e-9 and 0 and an infinity in b; the weights in the new file; and the same with max_finite_val=65504 and min_positive_val=5.97e-8.
# Seen (onnxconverter-common 1.16.0, numpy 2.4.6): 20000 and -65000, which float16 holds exactly or nearly, become 10000 and -10000, as
# does 1e5; 6e-8, a number of float16, becomes 1.19e-7 (its default limit, 1e-7, rounded), and -1e-9, whose nearest is 0, -1.19e-7. 0 and
# inf stay. A warning names numbers that were cut. With the arguments all that float16 has stays, and 1e5 becomes 65504.
# What one would expect: limits that are those of the type. A scale of 255 * 255, an offset, a mask of -20000, a sum of counts is half of
# what it was, and a pruned model whose weights are nearly zeros gets a million small ones.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxconverter-common==1.16.0 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxconverter-common and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys
import warnings

import numpy as np
from onnx import numpy_helper, parser
from onnxconverter_common import float16

WEIGHTS = np.array([20000, -65000, 1e5, 6e-8, -1e-9, 0], np.float32)
BIAS = np.array([np.inf], np.float32)


def converted(**limits):
    model = parser.parse_model("""<ir_version: 9, opset_import: ["": 17]> g (float[6] x) => (float[6] y) {
        p = Mul (x, w)
        y = Add (p, b)
    }""")
    model.graph.initializer.extend([numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(BIAS, "b")])
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        halved = float16.convert_float_to_float16(model, **limits)
    weights, bias = (numpy_helper.to_array(tensor) for tensor in halved.graph.initializer)
    print(limits or "defaults", weights.tolist(), bias.tolist(), f"{len(messages)} warnings")
    assert weights.dtype == np.float16
    return weights, bias, len(messages)


print("onnxconverter-common", importlib.metadata.version("onnxconverter-common"), "numpy", np.__version__)
weights, bias, warned = converted()
small = np.float16(1e-7)
is_as_before = weights.tolist() == [10000, -10000, 10000, small, -small, 0] and np.isinf(bias[0]) and warned > 0
is_as_before &= np.float16(20000) == 20000 and 0 < np.float16(6e-8) < small and np.float16(-1e-9) == 0
weights, bias, warned = converted(max_finite_val=65504.0, min_positive_val=5.97e-8)
is_as_before &= weights[:4].tolist() == [20000, np.float16(-65000), 65504, np.float16(6e-8)] and np.isinf(bias[0])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
