#!/bin/bash
# ONNX Runtime makes a LayerNormalization of nine ops in a row without a look at their order of operands or at the
# exponent: mean - x, deviation / difference and a cube are taken for x - mean, difference / deviation and a square.
#
# What is done: Div(x - mean, sqrt(mean of (x - mean)^2 + 1)) * w + b (opset 17) over rows of four, as exporters write a layer
# norm, and three like it: Sub has its operands the other way round, or Div, or Pow has the exponent 3. Each is computed by ONNX
# Runtime without optimisations and with the first level, by the reference of ONNX, and by numpy in f64.
# Seen (onnxruntime 1.32.0, onnx 1.23.2): without optimisations all equal numpy, as does the reference. With the first level (and so
# by default) all four are one LayerNormalization and give what the first should: (mean - x) has its signs turned, the
# other two are other numbers by more than 0.3. Nothing is said. A "not" of a layer norm (mean - x in a contrast or a loss), or a
# norm of another power, is computed wrongly by default.
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
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import parser
from onnx.reference import ReferenceEvaluator

LEVELS = onnxruntime.GraphOptimizationLevel
w = np.array([1, 2, 3, 4], np.float32)
b = np.array([4, 3, 2, 1], np.float32)


def model(sub, div, exponent):
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[2,3,4] x) => (float[2,3,4] y)
        <float power = {{{exponent}}}, float eps = {{1.0}}, float[4] w = {{1, 2, 3, 4}}, float[4] b = {{4, 3, 2, 1}}> {{
            m = ReduceMean <axes = [-1]> (x)
            d = Sub ({sub})
            p = Pow (d, power)
            v = ReduceMean <axes = [-1]> (p)
            e = Add (v, eps)
            s = Sqrt (e)
            n = Div ({div})
            k = Mul (n, w)
            y = Add (k, b)
        }}""")


def by_numpy(x, sub, div, exponent):
    m = x.mean(-1, keepdims=True)
    d = x - m if sub == "x, m" else m - x
    s = np.sqrt((d ** exponent).mean(-1, keepdims=True) + 1)
    return (d / s if div == "d, s" else s / d) * w + b


def run(proto, x, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = os.path.join(os.path.dirname(__file__), "optimised.onnx")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    ops = [node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node]
    return session.run(None, {"x": x})[0], ops


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
row = np.array([-2, -1, 1, 5], np.float32)  # mean 0.75; the mean of the cubes is positive
x = np.stack([row * k for k in (0.25, 0.5, 1, 1.5, 2, 0.3)]).reshape(2, 3, 4).astype(np.float32)
base = by_numpy(x.astype(np.float64), "x, m", "d, s", 2)
is_as_before = True
for name, form in (("as it is", ("x, m", "d, s", 2)), ("mean - x", ("m, x", "d, s", 2)),
                   ("s / d", ("x, m", "s, d", 2)), ("cube", ("x, m", "d, s", 3))):
    proto = model(*form)
    onnx.checker.check_model(proto, full_check=True)
    exact = by_numpy(x.astype(np.float64), *form)
    plain, _ = run(proto, x, LEVELS.ORT_DISABLE_ALL)
    fused, ops = run(proto, x, LEVELS.ORT_ENABLE_BASIC)
    reference = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    wrong = np.abs(fused - exact).max()
    print(f"{name}: off by {np.abs(plain - exact).max():.1e} plain, {np.abs(reference - exact).max():.1e} in the reference,",
          f"{wrong:.1e} with the first level, whose graph is {ops}")
    is_as_before &= np.allclose(plain, exact, atol=1e-4) and np.allclose(reference, exact, atol=1e-4)
    is_as_before &= ops == ["LayerNormalization"] and np.allclose(fused, base, atol=1e-4)
    is_as_before &= bool(wrong < 1e-4) if name == "as it is" else bool(wrong > 0.3)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
