#!/bin/bash
# ONNX Runtime computes (1 / a) * b of whole numbers as b / a: 9 times the quotient 1 / 3, which is 0, becomes 3.
#
# What is done: Div (14) of a constant 1 by a, Mul of the quotient and b, for int32 and int64, with a = 3 2 1 5 -4 and b = 9 9 9 4 9; the
# same with a constant 2, and (1 / a) * b of floats with a = 1e-39 and b = 1e-10. With and without optimisations, in the reference of
# ONNX and by numpy. A quotient of whole numbers drops its fraction, by the operator's text.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): without optimisations, and in the reference, 0 0 9 0 0; by default 3 4 9 0 -2, and nothing
# is said. With the constant 2 it is left as written (0 9 18 0 0). The floats' reciprocal overflows, so that the product is inf as
# written and 9.999998e+28 by default.
# What one would expect: the rewriting is one of real numbers, and is made for floats. Whole numbers divide so in masks and counts ("1 /
# n is 1 only for n = 1"), in sizes computed beside a graph, and in every model whose author forgot a Cast; all those get the real
# quotient's whole part by default, and what was written without optimisations.
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


def run(kind, number, a, b):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g ({kind}[n] a, {kind}[n] b) => ({kind}[n] y)
        <{kind} c = {{{number}}}> {{
        q = Div (c, a)
        y = Mul (q, b)
    }}""")
    results = []
    for level in (onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results.append(session.run(None, {"a": a, "b": b})[0].tolist())
    with np.errstate(over="ignore"):
        results.append(ReferenceEvaluator(model).run(None, {"a": a, "b": b})[0].tolist())
    print(kind, f"({number} / a) * b by default, without optimisations, reference:", *results)
    return results


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
for kind in (np.int32, np.int64):
    a, b = np.array([3, 2, 1, 5, -4], kind), np.array([9, 9, 9, 4, 9], kind)
    as_written = (np.trunc(1 / a) * b).astype(kind).tolist()
    as_divided = np.trunc(b / a).astype(kind).tolist()
    is_as_before &= as_written == [0, 0, 9, 0, 0] and as_divided == [3, 4, 9, 0, -2]
    by_default, plain, reference = run(np.dtype(kind).name, 1, a, b)
    is_as_before &= by_default == as_divided and plain == as_written
    is_as_before &= run(np.dtype(kind).name, 2, a, b)[:2] == [[0, 9, 18, 0, 0]] * 2
by_default, plain, reference = run("float", 1, np.array([1e-39], np.float32), np.array([1e-10], np.float32))
is_as_before &= 9.9e28 < by_default[0] < 1.1e29 and plain == reference == [np.inf]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
