#!/bin/bash
# Resize with align_corners and scales does not align the last corner in the reference of ONNX and in a case of its own suite, where the
# scale gives no whole number; ONNX Runtime and OpenVINO align it.
#
# What is done: Resize (19, linear, align_corners) of 0 10 20 30 by the scale 0.6 (two outputs), by 1.9 (seven) and by the sizes 2 and 7,
# in the reference, ONNX Runtime and OpenVINO. The text: x = i * (length_original - 1) / (length_resized - 1), with the lengths of the
# two tensors; so the last output is the last input. Then the package's own case resize_downsample_scales_linear_align_corners.
# Seen (onnx 1.23.2, onnxruntime 1.32.0, openvino 2026.4.1): by the scale the last of two is 21.43 in the reference, which divides by 4 *
# 0.6 - 1 = 1.4 instead of 1, and 30 in the others; the last of seven 27.27 (4 * 1.9 - 1 = 6.6) and 30; by sizes all give 30. The suite's
# case has the reference's number, 3.142857 where the last input is 4, and ONNX Runtime does not pass it.
# What one would expect: corners that are aligned, and scales and sizes that give the same where the shapes are equal. So one of the
# suite and ONNX Runtime is failed by every implementation, and a model by scales differs between them by whole pixels at its edge.
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
import warnings

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import parser
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator


warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(3)


def run(model, feeds):
    data = model.SerializeToString()
    core = openvino.Core()
    vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]
    return (ReferenceEvaluator(model).run(None, feeds)[0],
            onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)[0], vino)


print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
x = np.array([[[[0, 10, 20, 30]]]], np.float32)
is_as_before = True
for text, count, last in (("value_floats = [1.0, 1.0, 1.0, 0.6]", 2, 30 / 1.4), ("value_floats = [1.0, 1.0, 1.0, 1.9]", 7, 180 / 6.6),
                          ("value_ints = [1, 1, 1, 2]", 2, 30), ("value_ints = [1, 1, 1, 7]", 7, 30)):
    operands = "x, , s" if "floats" in text else "x, , , s"
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 19]> g (float[1, 1, 1, 4] x) => (float y) {{
        s = Constant <{text}> ()
        y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> ({operands})
    }}""")
    results = [result.ravel() for result in run(model, {"x": x})]
    print(text, "last of", count, "in the reference, ONNX Runtime, OpenVINO:", *(float(result[-1].round(4)) for result in results))
    is_as_before &= all(len(result) == count for result in results)
    is_as_before &= np.allclose([result[-1] for result in results], [last, 30, 30], atol=1e-4)
name = "test_resize_downsample_scales_linear_align_corners"
case = next(case for case in collect_testcases(None) if case.name == name)
(image, scales), (expected,) = case.data_sets[0]
session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
seen = session.run(None, {node.name: value for node, value in zip(case.model.graph.input, (image, scales), strict=True)})[0]
print("the case's input, scales, result, ONNX Runtime's:", image.tolist(), scales.tolist(), expected.tolist(), seen.tolist())
is_as_before &= np.allclose(expected.ravel(), [1, 1 + 3 / 1.4]) and np.allclose(seen.ravel(), [1, 4])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
