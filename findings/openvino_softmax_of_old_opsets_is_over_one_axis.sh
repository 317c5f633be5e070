#!/bin/bash
# Softmax of opsets 11 and 12 is over one axis in OpenVINO and in the reference of ONNX, where it is over all axes from the given one on;
# LogSoftmax is right in OpenVINO, and wrong in the reference.
#
# What is done: Softmax, LogSoftmax and Hardmax (11, in files of opset 12; and 13) of equal numbers, 2 x 3 x 4, for each axis and without
# one, in OpenVINO, ONNX Runtime and the reference: the reciprocal of a result is how many numbers it was shared among (Hardmax: the sum
# over all). Up to 12 the text flattens the tensor before the axis (1 by default); from 13 on it is one axis (the last by default).
# Seen (openvino 2026.4.1, CPU, onnx 1.23.2, onnxruntime 1.32.0): in opset 12 ONNX Runtime shares among 24, 12 and 4 for the axes 0, 1
# and 2. The reference has the rule of 13 for all three ops, 2, 3 and 4, and without an axis 4 for 12, too; OpenVINO has 2, 3 and 4 for
# Softmax, 3 without an axis, and is right with LogSoftmax and Hardmax. In 13 all agree.
# What one would expect: softmax to be exp of log softmax in one library, and an op to be that of the file's opset. Exports for opsets up
# to 12 with three axes or more (attention by Softmax of axis 1, segmentation) have probabilities that add up to 4 there.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, openvino and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import parser
from onnx.reference import ReferenceEvaluator

X = np.zeros((2, 3, 4), np.float32)


def shared(op, y):
    """Among how many numbers one was shared."""
    if op == "Hardmax":
        return round(24 / y.sum())
    return round(1 / (np.exp(y) if op == "LogSoftmax" else y).ravel()[0])


print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
for opset in (12, 13):
    for axis in (None, 0, 1, 2):
        flattened, one = {None: (12, 4), 0: (24, 2), 1: (12, 3), 2: (4, 4)}[axis]
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            text = "" if axis is None else f"<axis = {axis}>"
            model = parser.parse_model(f"""<ir_version: 7, opset_import: ["": {opset}]> g (float[2, 3, 4] x) => (float[2, 3, 4] y) {{
                y = {op} {text} (x)
            }}""")
            data = model.SerializeToString()
            core = openvino.Core()
            vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"x": X})[0]
            runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]
            seen = [shared(op, y) for y in (vino, runtime, ReferenceEvaluator(model).run(None, {"x": X})[0])]
            print("opset", opset, op, "axis", axis, "shared in OpenVINO, ONNX Runtime, the reference among:", *seen)
            right = flattened if opset == 12 else one
            wrong = {None: 3, 0: 2, 1: 3, 2: 4}[axis]
            is_as_before &= seen == [wrong if op == "Softmax" and opset == 12 else right, right, one]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
