#!/bin/bash
# Unique takes NaN for equal to whatever it meets in ONNX Runtime: with a NaN in front a whole tensor has one value, elsewhere the NaN is
# counted as some other number.
#
# What is done: Unique (11), sorted and not, of three to five numbers with a NaN among them, with indices, inverse and counts, in ONNX
# Runtime, in the reference of ONNX and by numpy.unique.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2, numpy 2.4.6): NaN 1 2 is NaN alone, three times; of 1 NaN 2 the values are 1 and 2, 1
# counts twice, and the inverse says that the NaN is 1; of 1 2 NaN 3 1 it is 1, too. The reference and numpy have the NaN as a
# value of its own, behind the others. (The numbers are kept in an ordered map, whose comparison finds NaN neither less
# nor greater.) So counts and codes of a column with a missing value are those of another column, and depend on where it is missing.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import parser
from onnx.reference import ReferenceEvaluator

NAN = float("nan")


def unique(numbers, is_sorted):
    """Values, inverse and counts, in ONNX Runtime and in the reference."""
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float[{len(numbers)}] x)
        => (float[n] y, int64[n] first, int64[{len(numbers)}] inverse, int64[n] counts) {{
        y, first, inverse, counts = Unique <sorted = {is_sorted}> (x)
    }}""")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.array(numbers, np.float32)
    results = session.run(None, {"x": x}), ReferenceEvaluator(model).run(None, {"x": x})
    seen = [tuple(r[i].tolist() for i in (0, 2, 3)) for r in results]
    print(f"sorted = {is_sorted} {numbers}: ONNX Runtime", *seen[0], "reference", *seen[1])
    return seen


def same(a, b):
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b))


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
for numbers, values, inverse, counts in (
        ([NAN, 1, 2], [NAN], [0, 0, 0], [3]),
        ([1, NAN, 2], [1, 2], [0, 0, 1], [2, 1]),
        ([1, 2, NAN, 3, 1], [1, 2, 3], [0, 1, 0, 2, 0], [3, 1, 1])):
    for is_sorted in (1, 0):
        runtime, reference = unique(numbers, is_sorted)
        is_as_before &= same(runtime, (values, inverse, counts))
        if is_sorted:
            best = np.unique(np.array(numbers, np.float32), return_inverse=True, return_counts=True)
            is_as_before &= same(reference, best)
        is_as_before &= np.isnan(reference[0]).sum() == 1
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
