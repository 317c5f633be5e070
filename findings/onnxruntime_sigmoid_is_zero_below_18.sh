#!/bin/bash
# ONNX Runtime's Sigmoid of f32 is exactly 0 from -18 down, and at -17 more than twice too large: the logarithm of a probability of one in
# a hundred million is minus infinity.
#
# What is done: Sigmoid (13) of f32 numbers between -30 and 20, of the same numbers as f64, Log behind it, and 1 / (1 + Exp(-x)) by ops of
# their own; vectors of 1 to 20 elements.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): -18, -20 and -30 are 0, where 1.5e-8, 2.1e-9 and 9.4e-14 are right; -17 is 8.94e-8 instead
# of 4.14e-8, -16 half of the true 1.13e-7, -10 off by a part in 5000; from -5 on the error is below 1e-5 of the value. The absolute error
# is below 1e-7 throughout. The formula by ops gives each to six digits, 9.36e-14 at -30; f64 is within 1e-16, a part in 1000 at -30. Log
# of Sigmoid is -16.23 at -17 and minus infinity at -18; Softplus(-x) with a minus sign in front is right everywhere. x * Sigmoid(x) is -0
# from -18 down.
# What one would expect: relative accuracy, as of Exp, or a bound that is told. Losses, entropies and scores that multiply many small
# probabilities become infinite or NaN in one runtime, and thresholds below 1e-7 find nothing.
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

onnxruntime.set_default_logger_severity(3)


def run(kind, body, x):
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> g ({kind}[n] x) => ({kind}[n] y) {{ {body} }}')
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
x = np.array([-30, -20, -18, -17, -16, -10, -5, 0, 20], np.float32)
true = 1 / (1 + np.exp(-x.astype(np.float64)))
y = run("float", "y = Sigmoid (x)", x)
by_ops = run("float", "a = Neg (x) e = Exp (a) o = Constant <value = float {1.0}> () s = Add (e, o) y = Reciprocal (s)", x)
wide = run("double", "y = Sigmoid (x)", x.astype(np.float64))
logs = run("float", "s = Sigmoid (x) y = Log (s)", x)
stable = run("float", "a = Neg (x) s = Softplus (a) y = Neg (s)", x)
product = run("float", "s = Sigmoid (x) y = Mul (x, s)", x)
for row in zip(x, true, y, by_ops, wide, logs, stable, strict=True):
    print("x {:g}: true {:.4e} f32 {:.4e} by ops {:.4e} f64 {:.4e} Log {:.4f} -Softplus(-x) {:.4f}".format(*row))
error = y / true
is_as_before = (y[:3] == 0).all() and 2 < error[3] < 2.4 and 0.4 < error[4] < 0.7 and 1e-4 < abs(error[5] - 1) < 1e-3
is_as_before &= (abs(error[6:] - 1) < 1e-5).all()
is_as_before &= (abs(y - true) < 1e-7).all() and np.allclose(by_ops, true, rtol=1e-5, atol=0) and (abs(wide - true) < 2.5e-16).all()
is_as_before &= np.isneginf(logs[:3]).all() and -16.5 < logs[3] < -16 and (product[:3] == 0).all()
is_as_before &= np.allclose(stable, np.log(true), rtol=1e-5, atol=1e-8)
for count in (1, 3, 4, 8, 20):
    is_as_before &= (run("float", "y = Sigmoid (x)", np.full(count, -18, np.float32)) == 0).all()
    is_as_before &= (run("float", "y = Sigmoid (x)", np.full(count, -17, np.float32)) > 8e-8).all()
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
