#!/bin/bash
# OpenVINO gives the slopes of PRelu to the channels where their number is that of the channels, though by ONNX they belong to the last
# axis: the same file is another network when its picture is as wide as it has channels.
#
# What is done: PRelu (16) of minus ones with slopes 1, 2, ... of one axis, for x of 2 x 4 x 4, 1 x 3 x 3 x 3, 1 x 3 x 2 x 3 and 1 x 2 x
# 2 x 2 x 2 (as many slopes as channels and as columns), and of 2 x 4 x 5 and 2 x 3 x 4 (5 and 4 slopes, one for each column); in
# OpenVINO, ONNX Runtime and the reference. By the op's text the slope is broadcast in one direction, as numpy does it: from the last
# axis.
# Seen (openvino 2026.4.1, CPU, onnx 1.23.2, onnxruntime 1.32.0): ONNX Runtime and the reference multiply each column by its slope in all
# six. OpenVINO multiplies each channel (axis 1) by its slope in the first four, and each column in the other two.
# What one would expect: one rule, whatever the sizes. torch's PReLU has its slopes on axis 1 and is exported as C x 1 x 1, which is
# right everywhere; a slope for each column or feature is right in a test of 4 x 5 and wrong for squares.
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

print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
for shape in ((2, 4, 4), (1, 3, 3, 3), (1, 3, 2, 3), (1, 2, 2, 2, 2), (2, 4, 5), (2, 3, 4)):
    feeds = {"x": -np.ones(shape, np.float32), "s": np.arange(1, 1 + shape[-1], dtype=np.float32)}
    axes = ", ".join(map(str, shape))
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]>
        g (float[{axes}] x, float[{shape[-1]}] s) => (float[{axes}] y) {{ y = PRelu (x, s) }}""")
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString()
    core = openvino.Core()
    vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]
    runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    reference = ReferenceEvaluator(model).run(None, feeds)[0]
    by_column = feeds["x"] * feeds["s"]
    by_channel = feeds["x"] * feeds["s"].reshape((-1,) + (1,) * (len(shape) - 2)) if shape[1] == shape[-1] else by_column
    print(shape, "first row of OpenVINO:", vino.reshape(-1, shape[-1])[0].tolist(), "ONNX Runtime:",
          runtime.reshape(-1, shape[-1])[0].tolist())
    is_as_before &= np.array_equal(runtime, by_column) and np.array_equal(reference, by_column) and np.array_equal(vino, by_channel)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
