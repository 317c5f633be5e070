#!/bin/bash
# ONNX Runtime sums, multiplies and raises whole numbers of 64 bits by way of a double: above 2^53 results are rounded. The sum of one
# element is another number.
#
# What is done: ReduceSum, ReduceProd, ReduceL1 and ReduceSumSquare (18), Einsum (12) and Pow (15) of int64, beside Python's whole
# numbers; CumSum and MatMul of the same numbers; ReduceSum of int32 beyond 2^31. In ONNX Runtime with and without
# optimisations, and in the reference of ONNX.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): ReduceSum of the one element 1764390000123456789 (a time in nanoseconds) is
# 1764390000123456768; the sum of three 2^53 + 1, also by Einsum, is 3 too small; 3^17 * 3^17, which is odd, is even by ReduceProd and
# by Pow; L1 and sums of squares are rounded, too. CumSum and MatMul are exact, and so is Pow of several numbers by one
# scalar exponent 2. A sum of int32 that overflows stops at 2147483647. The reference is exact, and wraps.
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


def both(op, kind, result, feeds, opset=18):
    """What ONNX Runtime and the reference make of the feeds; with and without optimisations must be one."""
    inputs = ", ".join(f"{kind}{list(x.shape) or ''} {name}" for name, x in feeds.items())
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": {opset}]> g ({inputs}) => ({kind}{result} z) {{
        first = Constant <value_ints = [0]> ()
        zero = Constant <value_int = 0> ()
        z = {op}
    }}""")
    seen = []
    for level in (onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        seen.append(session.run(None, feeds)[0].ravel().tolist())
    assert seen[0] == seen[1]
    reference = np.asarray(ReferenceEvaluator(model).run(None, feeds)[0]).ravel().tolist()
    print(f"{op}: {seen[0]}, reference {reference}")
    return seen[0], reference


def whole(*numbers):
    return np.array(numbers, np.int64)


onnxruntime.set_default_logger_severity(3)  # of constants that a case does not use
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
time, odd = 1764390000123456789, 2 ** 53 + 1
three = np.full((2, 3), odd, np.int64)
checks = [
    (both("ReduceSum(x, first)", "int64", "[1]", {"x": whole(time)}), 1764390000123456768, time),
    (both("ReduceSum <keepdims = 0> (x)", "int64", "", {"x": whole(odd, odd, odd)}), 3 * odd - 3, 3 * odd),
    (both("ReduceProd <keepdims = 0> (x)", "int64", "", {"x": whole(3 ** 17, 3 ** 17)}), 3 ** 34 - 1, 3 ** 34),
    (both("ReduceL1 <keepdims = 0> (x)", "int64", "", {"x": whole(-odd, 2)}), odd + 1, odd + 2),
    (both("ReduceSumSquare <keepdims = 0> (x)", "int64", "", {"x": whole(3037000499, 1)}), 9223372030926248960, 3037000499 ** 2 + 1),
    (both('Einsum <equation = "ij->i"> (x)', "int64", "[2]", {"x": three}), [3 * odd - 3] * 2, [3 * odd] * 2),
    (both("Pow(x, y)", "int64", "[2]", {"x": whole(odd, 3), "y": whole(1, 34)}), [odd - 1, 3 ** 34 + 1], [odd, 3 ** 34]),
]
is_as_before = True
for (seen, reference), runtime, exact in checks:
    is_as_before &= seen == (runtime if isinstance(runtime, list) else [runtime])
    is_as_before &= reference == (exact if isinstance(exact, list) else [exact])
for (seen, reference), exact in (
        (both("CumSum(x, zero)", "int64", "[3]", {"x": whole(odd, odd, odd)}), [odd, 2 * odd, 3 * odd]),
        (both("MatMul(x, y)", "int64", "[2,2]", {"x": three, "y": np.ones((3, 2), np.int64)}), [3 * odd] * 4),
        (both("Pow(x, y)", "int64", "[2]", {"x": whole(94906267, 3), "y": np.array(2, np.int64)}), [94906267 ** 2, 9])):
    is_as_before &= seen == reference == exact
seen, reference = both("ReduceSum <keepdims = 0> (x)", "int32", "", {"x": np.array([2 ** 31 - 1, 1, 1], np.int32)})
is_as_before &= seen == [2 ** 31 - 1] and reference == [-2 ** 31 + 1]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
