#!/bin/bash
# A number of f16 between two ops is an f32 in ONNX Runtime on the processor: 30000 * 4 / 4 is 30000, though 30000 * 4 is infinity in f16,
# and in the same run, as an output of the graph, it is.
#
# What is done: Mul and Div, Add and Sub, and Exp and Log (opset 21) of f16, with and without the number between them as an output, with
# an Identity between, and with Casts to f32 and back between; without optimisations and with all; in ONNX Runtime and in the reference of
# ONNX.
# Seen (onnxruntime 1.32.0, CPU, x86-64, onnx 1.23.2): x * 4 / 4 of 30000 is 30000, (1 + 3e-4) - 1 is 2.9993e-4 and log(exp(12)) is 12,
# where the reference, with numpy's f16, has infinity, 0 and infinity. With the product as an output too, that output is infinity and the
# quotient is 30000 still, of one and the same value in the file. The optimisations make no difference, nor does Identity, nor do Casts to
# float and back that the file has between the two ops.
# What one would expect: that the type in the file is the type of the value, at least where an explicit Cast says so. A model that
# overflows on every device with real f16 looks sound on the processor; printing the value between shows an infinity that nothing behind
# it sees.
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

onnxruntime.set_default_logger_severity(3)
LEVELS = onnxruntime.GraphOptimizationLevel
np.seterr(over="ignore")


def run(body, x, k, outputs="float16[n] y"):
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 21]> g (float16[n] x, float16[n] k) => ({outputs}) {{ {body} }}')
    feeds = {"x": np.array([x], np.float16), "k": np.array([k], np.float16)}
    results = []
    for level in (LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results.append([float(value[0]) for value in session.run(None, feeds)])
    results.append([float(value[0]) for value in ReferenceEvaluator(model).run(None, feeds)])
    print(body, outputs, "without optimisations:", results[0], "with all:", results[1], "reference:", results[2])
    return results


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
INF = float("inf")
THREE = float(np.float16(3e-4))
is_as_before = run("a = Mul (x, k) y = Div (a, k)", 3e4, 4) == [[30000], [30000], [INF]]
is_as_before &= run("a = Mul (x, k) y = Div (a, k)", 3e4, 4, "float16[n] y, float16[n] a") == [[30000, INF], [30000, INF], [INF, INF]]
is_as_before &= run("a = Mul (x, k) b = Identity (a) y = Div (b, k)", 3e4, 4) == [[30000], [30000], [INF]]
is_as_before &= run("a = Mul (x, k) b = Cast <to = 1> (a) c = Cast <to = 10> (b) y = Div (c, k)", 3e4, 4) == [[30000], [30000], [INF]]
plain, optimised, reference = run("a = Add (x, k) y = Sub (a, x)", 1, 3e-4)
is_as_before &= plain == optimised and abs(plain[0] - THREE) < 2e-7 and reference == [0]
is_as_before &= run("a = Exp (x) y = Log (a)", 12, 1) == [[12], [12], [INF]]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
