#!/bin/bash
# OpenVINO's AveragePool with ceil_mode and count_include_pad divides the last window by its whole size, also by cells beyond the
# padding: the mean of sixes without any padding at that end is 3.
#
# What is done: AveragePool (19, ceil_mode 1, count_include_pad 1) of six sixes, with windows of 3 by steps of 2 and a padding of 1, and
# windows of 2 by steps of 3 and a padding of 1 in front alone, in OpenVINO, ONNX Runtime and the reference.
# Seen (openvino 2026.4.1, CPU, onnx 1.23.2, onnxruntime 1.32.0): the last window of the first holds a cell of padding and one that is
# neither input nor padding, and there is a 6 and one cell beyond the input in the last of the second. ONNX Runtime and the reference
# divide by what lies within input and padding: 4 6 6 3 (3 = 6 / 2) and 3 6 6; OpenVINO by 3 and by 2: 4 6 6 2 and 3 6 3. With
# count_include_pad 0 all agree.
# What one would expect: an "include" of the padding, and of no more; ONNX's text says so since opset 19. A mean over edges that is too
# small by a third or a half makes the last row and column of features darker, and only where ceil_mode has made room.
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

X = np.full((1, 1, 6), 6, np.float32)


def run(window, step, pads, is_counted):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 19]> g (float[1, 1, 6] x) => (float[1, 1, m] y) {{
        y = AveragePool <kernel_shape = [{window}], strides = [{step}], pads = [{pads}], ceil_mode = 1,
                         count_include_pad = {is_counted}> (x)
    }}""")
    data = model.SerializeToString()
    core = openvino.Core()
    vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"x": X})[0]
    results = {"OpenVINO": vino, "reference": ReferenceEvaluator(model).run(None, {"x": X})[0],
               "ONNX Runtime": onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]}
    seen = {name: y.ravel().tolist() for name, y in results.items()}
    print(f"windows of {window} by {step}, padding {pads}, counted {is_counted}:", seen)
    return results


print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
for window, step, pads, right, seen in ((3, 2, "1, 1", [4, 6, 6, 3], [4, 6, 6, 2]), (2, 3, "1, 0", [3, 6, 6], [3, 6, 3])):
    for name, y in run(window, step, pads, 1).items():
        is_as_before &= np.allclose(y.ravel(), seen if name == "OpenVINO" else right)
    is_as_before &= all(np.allclose(y, 6) for y in run(window, step, pads, 0).values())
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
