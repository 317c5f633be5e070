#!/bin/bash
# In OpenVINO a NaN becomes 0 by Relu, infinity by Exp, 1 by HardSigmoid and the lower limit by Clip; and infinity becomes NaN by
# ThresholdedRelu and Shrink.
#
# What is done: ops of one operand (opset 20) on 0.5, NaN, inf and -inf, in OpenVINO on the processor, in ONNX Runtime and by the
# operators' texts; each with the instruction sets that oneDNN allows and with SSE 4.1 alone.
# Seen (openvino 2026.4.1, x86-64, onnx 1.23.2, onnxruntime 1.32.0): NaN is 0 by Relu, Celu and Max(x, 0), inf by Exp, 1 by HardSigmoid
# and -2 by Clip to -2 and 1; Max(0, x), Sigmoid, Tanh, Elu, Sqrt and LeakyRelu keep it. -inf is NaN by ThresholdedRelu and inf by
# Shrink, which multiply by 0. The same for all instruction sets. ONNX Runtime has NaN for NaN in the first six, and 0 and inf for
# infinities.
# What one would expect: a NaN that stays one to the end, by which one finds out that something is wrong. A network with Relu hides it
# behind its first layer there; a score of 1 (HardSigmoid) or the result of an Exp looks like an answer.
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
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import parser

X = np.array([0.5, np.nan, np.inf, -np.inf], np.float32)
NAN = float("nan")
# op: NaN and the infinities in OpenVINO, in ONNX Runtime
EXPECTED = {
    "Relu (x)": ([0, np.inf, 0], [NAN, np.inf, 0]),
    "Celu (x)": ([0, np.inf, -1], [NAN, np.inf, -1]),
    "Max (x, zero)": ([0, np.inf, 0], [NAN, np.inf, 0]),
    "Exp (x)": ([np.inf, np.inf, 0], [NAN, np.inf, 0]),
    "HardSigmoid (x)": ([1, 1, 0], [NAN, 1, 0]),
    "Clip (x, low, high)": ([-2, 1, -2], [NAN, 1, -2]),
    "ThresholdedRelu (x)": ([NAN, np.inf, NAN], [0, np.inf, 0]),
    "Shrink (x)": ([NAN, NAN, NAN], [0, np.inf, -np.inf]),
    "Max (zero, x)": ([NAN, np.inf, 0],) * 2,
    "Sigmoid (x)": ([NAN, 1, 0],) * 2,
    "Tanh (x)": ([NAN, 1, -1],) * 2,
    "Elu (x)": ([NAN, np.inf, -1],) * 2,
    "Sqrt (x)": ([NAN, np.inf, NAN],) * 2,
    "LeakyRelu (x)": ([NAN, np.inf, -np.inf],) * 2,
}
onnxruntime.set_default_logger_severity(3)
print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__,
      "instructions:", os.environ.get("ONEDNN_MAX_CPU_ISA", "all"))
is_as_before = True
for text, expected in EXPECTED.items():
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 20]> g (float[4] x) => (float[4] y)
        <float zero = {{0}}, float low = {{-2}}, float high = {{1}}> {{ y = {text} }}""")
    data = model.SerializeToString()
    core = openvino.Core()
    vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"x": X})[0]
    runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]
    print(text, "of NaN, inf, -inf: OpenVINO:", vino[1:].tolist(), "ONNX Runtime:", runtime[1:].tolist())
    is_as_before &= all(np.allclose(seen[1:], numbers, equal_nan=True) for seen, numbers in zip((vino, runtime), expected, strict=True))
    is_as_before &= bool(np.allclose(vino[0], runtime[0], atol=1e-5))
if "ONEDNN_MAX_CPU_ISA" not in os.environ:
    is_as_before &= subprocess.run([sys.executable, __file__], env={**os.environ, "ONEDNN_MAX_CPU_ISA": "SSE41"}).returncode == 0
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
