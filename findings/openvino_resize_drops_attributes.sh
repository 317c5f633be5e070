#!/bin/bash
# OpenVINO reads Resize of opset 18 and later without antialias, exclude_outside and keep_aspect_ratio_policy: pictures are made smaller
# without a filter, and their proportions are lost.
#
# What is done: Resize (18) of 0 1 4 9 16 25 36 49 to three (linear and cubic, antialias 1) and to sixteen (cubic, exclude_outside 1),
# and of 4 x 8 to 3 x 3 with keep_aspect_ratio_policy not_larger, in OpenVINO, ONNX Runtime and the reference, with each attribute and
# without.
# Seen (openvino 2026.4.1, CPU, onnx 1.23.2, onnxruntime 1.32.0): in ONNX Runtime and the reference each attribute changes the result
# (the last one the shape, to 2 x 3). In OpenVINO none changes anything; without them all three agree. Modes that it does not have
# (half_pixel_symmetric, wrap of Pad) it refuses by name.
# What one would expect: a refusal, as for the modes. Exports of torch's interpolate(antialias=True), and files whose preprocessing is in
# the graph, give aliased images there, near enough to the right ones to pass for a loss of quantisation.
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

onnxruntime.set_default_logger_severity(3)
LINE = (np.arange(8, dtype=np.float32) ** 2).reshape(1, 1, 1, 8)
AREA = (np.arange(32, dtype=np.float32) ** 2).reshape(1, 1, 4, 8)


def run(x, operands, attributes):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float[1, 1, {x.shape[2]}, 8] x) => (float y) {{
        third = Constant <value_ints = [1, 1, 1, 3]> ()
        twice = Constant <value_floats = [1.0, 1.0, 1.0, 2.0]> ()
        square = Constant <value_ints = [3, 3]> ()
        y = Resize <{attributes}> ({operands})
    }}""")
    data = model.SerializeToString()
    core = openvino.Core()
    vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"x": x})[0]
    runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    return runtime, ReferenceEvaluator(model).run(None, {"x": x})[0], vino


def alike(one, other):
    return one.shape == other.shape and bool(np.allclose(one, other, atol=1e-3))


print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
for x, operands, plain, attribute in (
        (LINE, "x, , , third", 'mode = "linear"', "antialias = 1"), (LINE, "x, , , third", 'mode = "cubic"', "antialias = 1"),
        (LINE, "x, , twice", 'mode = "cubic"', "exclude_outside = 1"),
        (AREA, "x, , , square", 'mode = "linear", axes = [2, 3]', 'keep_aspect_ratio_policy = "not_larger"')):
    without, with_it = run(x, operands, plain), run(x, operands, plain + ", " + attribute)
    changes = [not alike(one, other) for one, other in zip(without, with_it, strict=True)]
    print(plain, attribute, "changes the result of ONNX Runtime, the reference, OpenVINO:", *changes, *(y.shape[2:] for y in with_it))
    is_as_before &= changes == [True, True, False]
    is_as_before &= all(alike(without[0], other) for other in without) and alike(with_it[0], with_it[1])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
