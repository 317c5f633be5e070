#!/bin/bash
# LpNormalization with p = 1 divides by the sum of the numbers in the reference of ONNX, not by that of their magnitudes: signs turn, and
# numbers that cancel out become zeros.
#
# What is done: LpNormalization (1 and 22), p = 1, of 3 -4 0, of 2 -2 1 -1 and of 1 2 5, in the reference and in ONNX Runtime.
# Seen (onnx 1.23.2, onnxruntime 1.32.0): 3 -4 0 is -3 4 0 in the reference and 3/7 -4/7 0 in ONNX Runtime; of 2 -2 1 -1, whose sum is 0,
# the reference makes zeros, as it does of a vector of zeros. Without negative numbers they agree, and the cases that come with
# the package have none. With p = 2 both are right.
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


def norm(opset, p, numbers):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": {opset}]> g (float[{len(numbers)}] x) => (float[{len(numbers)}] y) {{
        y = LpNormalization <p = {p}> (x)
    }}""")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.array(numbers, np.float32)
    seen = session.run(None, {"x": x})[0], ReferenceEvaluator(model).run(None, {"x": x})[0]
    print(f"opset {opset} p = {p} {numbers}: ONNX Runtime {seen[0].tolist()}, reference {seen[1].tolist()}")
    return seen


print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
is_as_before = True
for opset in (21, 22):
    for numbers, told in (([3, -4, 0], [-3, 4, 0]), ([2, -2, 1, -1], [0, 0, 0, 0]), ([1, 2, 5], [1 / 8, 2 / 8, 5 / 8])):
        runtime, reference = norm(opset, 1, numbers)
        is_as_before &= np.allclose(runtime, np.array(numbers) / np.abs(numbers).sum()) and np.allclose(reference, told)
        runtime, reference = norm(opset, 2, numbers)
        is_as_before &= np.allclose(runtime, reference) and np.allclose(runtime, np.array(numbers) / np.linalg.norm(numbers))
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
