#!/bin/bash
# NonMaxSuppression drops boxes in OpenVINO whose overlap is the threshold itself: with a threshold of 0 one box of each class is left,
# be the others ever so far away.
#
# What is done: NonMaxSuppression (11) of the boxes 0 0 2 2, its half 0 0 2 1 (overlap 0.5) and 5 5 6 6 (overlap 0), with thresholds 0,
# 0.49, 0.5 and 0.51 and without one (0 by default), in OpenVINO, ONNX Runtime and the reference. The text: a box goes if its overlap
# with one that is kept is above the threshold.
# Seen (openvino 2026.4.1, CPU, onnx 1.23.2, onnxruntime 1.32.0): at 0.5 ONNX Runtime and the reference keep all three, OpenVINO two; at
# 0, and without a threshold, they keep the two boxes that do not touch, and OpenVINO the first alone. At 0.49 and 0.51 all agree.
# What one would expect: a choice at equality that no photograph shows. But a threshold of 0, the default ("no overlap at all"), is
# equality for all boxes that do not touch: a detector finds one object of each class, which looks like a threshold of scores too high.
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

FEEDS = {"boxes": np.array([[[0, 0, 2, 2], [0, 0, 2, 1], [5, 5, 6, 6]]], np.float32),
         "scores": np.array([[[0.9, 0.8, 0.7]]], np.float32)}
print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
for threshold, kept, kept_by_openvino in ((None, [0, 2], [0]), (0.0, [0, 2], [0]), (0.49, [0, 2], [0, 2]), (0.5, [0, 1, 2], [0, 2]),
                                          (0.51, [0, 1, 2], [0, 1, 2])):
    operand = "" if threshold is None else ", threshold"
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float[1, 3, 4] boxes, float[1, 1, 3] scores)
        => (int64[n, 3] y) {{
        count = Constant <value_ints = [9]> ()
        threshold = Constant <value_floats = [{threshold or 0.0}]> ()
        y = NonMaxSuppression (boxes, scores, count{operand})
    }}""")
    data = model.SerializeToString()
    core = openvino.Core()
    vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(FEEDS)[0]
    onnxruntime.set_default_logger_severity(3)
    runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, FEEDS)[0]
    print("threshold", threshold, "kept by OpenVINO:", vino[:, 2].tolist(), "by ONNX Runtime:", runtime[:, 2].tolist())
    is_as_before &= vino[:, 2].tolist() == kept_by_openvino and runtime[:, 2].tolist() == kept
    if threshold is not None:  # the reference has no default
        is_as_before &= ReferenceEvaluator(model).run(None, FEEDS)[0][:, 2].tolist() == kept
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
