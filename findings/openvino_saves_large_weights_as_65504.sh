#!/bin/bash
# OpenVINO's save_model writes weights as f16 by default, makes 65504 of larger ones and 0 of tiny ones, and says nothing: 1e6 and an
# infinity come back as 65504. Where three quarters of a tensor do not fit it stays f32.
#
# What is done: x * w with w of f32, read from ONNX, run, saved by openvino.save_model without options and with compress_to_fp16=False,
# read from the files and run again (device CPU, INFERENCE_PRECISION_HINT f32).
# Seen (openvino 2026.4.1, onnx 1.23.2, numpy 2.4.6): 1e6 1 2 3 becomes 65504 1 2 3; 1e6 1e6 2 3 becomes 65504 65504 2 3, and 1e6 1e6 1e6
# 3 stays as it is. 70000 -1e38 and infinity beside six ones become 65504 -65504 65504. 1e-9 1e-6 1e-5 beside five ones become 0,
# 1.0133e-6 and 1.00136e-5. With compress_to_fp16=False all comes back. The model that was read from ONNX, before it is saved, is right.
# What one would expect: the documented halving of the file costs three digits, and what f16 does not hold stays f32 or is refused.
# Normalisations by large means, tables of times or counts and masks of -1e9 change in value; the same numbers in a tensor that is large
# throughout do not.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 openvino==2026.4.1 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, openvino and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import openvino
from onnx import numpy_helper, parser

INF = np.inf
CORE = openvino.Core()
FOLDER = pathlib.Path(tempfile.mkdtemp(dir=pathlib.Path(__file__).parent))


def run(model, count):
    return CORE.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(np.ones(count, np.float32))[0]


def saved(w, **options):
    model = parser.parse_model('<ir_version: 9, opset_import: ["": 18]> g (float[n] x) => (float[n] y) { y = Mul (x, w) }')
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    read = CORE.read_model(model.SerializeToString(), b"")
    assert np.array_equal(run(read, len(w)), w)
    openvino.save_model(read, FOLDER / "model.xml", **options)
    return run(FOLDER / "model.xml", len(w))


print("openvino", openvino.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
is_as_before = True
for w, expected in (([1e6, 1, 2, 3], [65504, 1, 2, 3]), ([1e6, 1e6, 2, 3], [65504, 65504, 2, 3]), ([1e6, 1e6, 1e6, 3],) * 2,
                    ([70000, -1e38, INF, 1, 1, 1, 1, 1, 1], [65504, -65504, 65504, 1, 1, 1, 1, 1, 1]),
                    ([1e-9, 1e-6, 1e-5, 1, 1, 1, 1, 1], [0, 17 * 2**-24, 168 * 2**-24, 1, 1, 1, 1, 1])):
    w = np.array(w, np.float32)
    by_default, whole = saved(w), saved(w, compress_to_fp16=False)
    print(w.tolist(), "by default:", by_default.tolist(), "compress_to_fp16=False:", whole.tolist())
    is_as_before &= np.array_equal(by_default, np.array(expected, np.float32)) and np.array_equal(whole, w)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
