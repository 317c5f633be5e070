#!/bin/bash
# MNN's exponentials stop at an exponent of 87: ReduceLogSumExp of 100 and 100 is 87.69, Softplus of 100 is 87, and that of infinity too;
# Exp of 88 is less than half of what it is, and never infinite.
#
# What is done: ONNX files with one op (opset 18), converted by MNN's converter without options and run by MNN on the processor, beside
# the reference of ONNX: Exp, Softplus, ReduceLogSumExp.
# Seen (mnn 3.6.1, onnx 1.23.2, numpy 2.4.6, x86-64): ReduceLogSumExp of 100 100 is 87.693, of 1e30 1e30 the same; the reference has
# 100.693 and 1e30. Softplus of 100 and infinity is 87. Exp of 88 and 100 is 6.08e37, where 1.65e38 and infinity are right, and Exp of -90
# and -100 1.65e-38, where 8.2e-40 and 3.8e-44 are right. Below 87 all agree to four digits. The largest number is not subtracted before
# the sum of exponentials, and the exponential clips its operand.
# What one would expect: infinity, which is seen, or the largest number subtracted first, as in ONNX's definition of a stable
# ReduceLogSumExp. A score of 87 looks like a score; losses and attention by their own formulas are silently flat above.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q MNN==3.6.1 onnx==1.23.2 numpy==2.4.6; then
    echo "skipped: pip could not install MNN, onnx and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import pathlib
import sys

import _tools  # MNN's own, what its mnnconvert calls
import MNN.expr
import MNN.nn
import numpy as np
import onnx
from onnx import parser
from onnx.reference import ReferenceEvaluator

np.seterr(all="ignore")
FOLDER = pathlib.Path(__file__).parent


def run(op, *numbers):
    shape = "" if op.startswith("Reduce") else "n"
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> g (float[{len(numbers)}] x) => (float[{shape}] y) {{ y = {op} (x) }}')
    onnx.save(model, FOLDER / "model.onnx")
    _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", str(FOLDER / "model.onnx"), "--MNNModel", str(FOLDER / "model.mnn"),
                       "--bizCode", "finding"])
    net = MNN.nn.load_module_from_file(str(FOLDER / "model.mnn"), ["x"], ["y"])
    x = np.array(numbers, np.float32)
    y = net.forward([MNN.expr.const(x, list(x.shape), MNN.expr.NCHW, MNN.expr.float)])
    y = np.array((y[0] if isinstance(y, list) else y).read()).ravel()
    reference = ReferenceEvaluator(model).run(None, {"x": x})[0].ravel()
    print(op, *numbers, "MNN:", *y.tolist(), "reference:", *reference.tolist(), flush=True)
    return y, reference


print("mnn", importlib.metadata.version("mnn"), "onnx", onnx.__version__, "numpy", np.__version__, flush=True)
SUM = "ReduceLogSumExp <keepdims = 0>"
TOP = 87 + np.log(2)
y, reference = run(SUM, 1, 2)
is_as_before = np.allclose(y, reference, rtol=1e-4)
y, reference = run(SUM, 100, 100)
is_as_before &= np.allclose(y, TOP, rtol=1e-4) and np.allclose(reference, 100.693, rtol=1e-4)
y, reference = run(SUM, 1e30, 1e30)
is_as_before &= np.allclose(y, TOP, rtol=1e-4) and np.allclose(reference, 1e30)
y, reference = run("Softplus", -1, 20, 86, 100, 1e30, np.inf)
is_as_before &= np.allclose(y[:3], reference[:3], rtol=1e-4) and np.allclose(y[3:], 87, rtol=1e-4)
y, reference = run("Exp", -80, 1, 86, 88, 100, -90, -100)
is_as_before &= np.allclose(y[:3], reference[:3], rtol=1e-4, atol=0)
is_as_before &= np.allclose(y[3:5], 6.076e37, rtol=1e-3) and np.allclose(y[5:], 1.6458e-38, rtol=1e-3, atol=0) and reference[3] > 1.6e38
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
