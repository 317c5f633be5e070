#!/bin/bash
# ONNX's version converter raises Resize from opset 10 to 11 without its coordinates: every sample moves by half an element.
# Softmax lowered from 13 to 12 and Hardmax raised to 13 keep their axis, whose meaning is another one there.
#
# What is done: version_converter.convert_version of three models, before and after run in ONNX Runtime without optimisations: Resize
# (10, linear, by two) of 0 1 2 3 to 11; Softmax (13, axis 1 of 2 x 3 x 4) to 12; Hardmax (12, no axis) to 13. By the operators'
# texts Resize of 10 takes output i at i / 2 (which 11 calls asymmetric), 11 by default at (i + 0.5) / 2 - 0.5; up to 12
# Softmax and Hardmax are over all axes from `axis` (1 by default) on, from 13 on over that one axis (the last by default).
# Seen (onnx 1.23.2, onnxruntime 1.32.0): Resize 0 .5 1 1.5 2 2.5 3 3 becomes 0 .25 .75 1.25 1.75 2.25 2.75 3, also on the way from
# Upsample of 9; the sum over all axes from 1 on becomes 1 instead of 4, and Hardmax has a one in each row instead of one in
# all. No error, no warning. Softmax raised from 12 to 13 is right: it becomes Flatten, Softmax and Reshape.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6; then
    echo "skipped: pip could not install onnxruntime 1.32.0, onnx 1.23.2 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import parser, version_converter


def model(opset, body):
    return parser.parse_model(f'<ir_version: 7, opset_import: ["": {opset}]> g {body}')


def run(proto, x):
    onnx.checker.check_model(proto)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def both(opset, to, body, x):
    proto = model(opset, body)
    return run(proto, x), run(version_converter.convert_version(proto, to), x)


print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
four, places = np.arange(4, dtype=np.float32), np.arange(8)
asymmetric, half_pixel = np.interp(places / 2, four, four), np.interp((places + 0.5) / 2 - 0.5, four, four)
scaled = "(float[1,1,1,4] x) => (float[1,1,1,8] y) <float[4] s = {1.0, 1.0, 1.0, 2.0}>"
is_as_before = True
for opset, op in ((10, "Resize"), (9, "Upsample")):
    before, after = both(opset, 11, f'{scaled} {{ y = {op} <mode = "linear"> (x, s) }}', four.reshape(1, 1, 1, 4))
    print(op, opset, before.ravel().tolist(), "11:", after.ravel().tolist())
    is_as_before &= np.allclose(before.ravel(), asymmetric) and np.allclose(after.ravel(), half_pixel)

x = np.sin(np.arange(24, dtype=np.float32) * 7).reshape(2, 3, 4)
cube = "(float[2,3,4] x) => (float[2,3,4] y)"
e = np.exp(x.astype(np.float64))
over_one, over_all = e / e.sum(1, keepdims=True), e / e.sum((1, 2), keepdims=True)
before, after = both(13, 12, f"{cube} {{ y = Softmax <axis = 1> (x) }}", x)
raised = both(12, 13, f"{cube} {{ y = Softmax <axis = 1> (x) }}", x)
print("Softmax 13, sum:", before.sum((1, 2)).tolist(), "12:", after.sum((1, 2)).tolist())
is_as_before &= np.allclose(before, over_one, atol=1e-6) and np.allclose(after, over_all, atol=1e-6)
is_as_before &= all(np.allclose(values, over_all, atol=1e-6) for values in raised)

before, after = both(12, 13, f"{cube} {{ y = Hardmax (x) }}", x)
print("Hardmax 12, ones:", before.sum((1, 2)).tolist(), "13:", after.sum((1, 2)).tolist())
first = (np.arange(12) == x.reshape(2, 12).argmax(1)[:, None]).reshape(2, 3, 4)
is_as_before &= np.array_equal(before, first) and np.array_equal(after, np.arange(4) == x.argmax(2)[..., None])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
