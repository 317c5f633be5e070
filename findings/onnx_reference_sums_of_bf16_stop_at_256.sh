#!/bin/bash
# The sum of 1000 ones in bf16 is 256 in the reference of ONNX and in numpy with ml_dtypes: the mean of ones is a quarter, a softmax of
# equal numbers adds up to 3.9, and a layer norm is off by one. MatMul is right.
#
# What is done: ReduceSum, ReduceMean (18), Softmax (13), GlobalAveragePool (22) and LayerNormalization (17) of 1000 numbers in bf16 by
# the reference; MatMul of the same; sum, mean, @ and cumsum of ml_dtypes' bfloat16 and float8_e4m3fn in numpy; the sum of 5000 ones
# in f16 of numpy along its last axis and along another one. All exact results are numbers of the type.
# Seen (onnx 1.23.2, ml_dtypes 0.6.0, numpy 2.4.6): each partial sum is rounded to the type, so a sum of ones ends where 1 is half a step,
# at 256 in bf16 and at 16 in float8_e4m3fn; ReduceMean of ones is 0.2559, Softmax of 1000 equal numbers 1/256 each, and
# LayerNormalization of 1 3 1 3 ... is -0.023 1.95 ... for -1 1. Products are added up in f32. numpy adds its own f16 in pairs
# along the last axis, 5000, and one by one along others: 2048. So a bf16 model that is checked by the reference fails where it is right.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 ml_dtypes==0.6.0 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, ml_dtypes and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import parser
from onnx.reference import ReferenceEvaluator

COUNT = 1000


def reference(op, x, opset=22):
    """What the op makes of the numbers in bf16."""
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["": {opset}]> g (float[1,1,{COUNT}] given, float[{COUNT},1] ones)
        => (float[a,b,c] y) {{
        x = Cast <to = 16> (given)
        w = Cast <to = 16> (ones)
        flat_shape = Constant <value_ints = [{COUNT}]> ()
        scale = Reshape (w, flat_shape)
        last = Constant <value_ints = [2]> ()
        z = {op}
        y = Cast <to = 1> (z)
    }}""")
    feeds = {"given": np.asarray(x, np.float32).reshape(1, 1, COUNT), "ones": np.ones((COUNT, 1), np.float32)}
    seen = ReferenceEvaluator(model).run(None, feeds)[0].ravel()
    print(f"reference, {op}:", seen[:4].tolist(), "sum", seen.sum())
    return seen


print("onnx", onnx.__version__, "ml_dtypes", ml_dtypes.__version__, "numpy", np.__version__)
ones, turns = np.ones(COUNT), np.tile([1, 3], COUNT // 2)
is_as_before = reference("ReduceSum (x, last)", ones).tolist() == [256]
is_as_before &= reference("ReduceMean (x, last)", ones).tolist() == [0.255859375]
is_as_before &= reference("GlobalAveragePool (x)", ones).tolist() == [0.255859375]
is_as_before &= set(reference("Softmax (x)", ones).tolist()) == {1 / 256}
norm = reference("LayerNormalization (x, scale)", turns)
is_as_before &= np.abs(norm - (turns - 2)).max() > 0.9
is_as_before &= reference("MatMul (x, w)", ones).tolist() == [1000]

for kind, limit, count in ((ml_dtypes.bfloat16, 256, 1000), (ml_dtypes.float8_e4m3fn, 16, 256)):
    x = np.ones(count, kind)
    in_f32 = x.sum(dtype=np.float32)
    print(kind.__name__, f"{count} ones: sum", x.sum(), "cumsum", x.cumsum()[-1], "mean", x.mean(), "@", x @ x, "sum in f32", in_f32)
    is_as_before &= float(x.sum()) == float(x.cumsum()[-1]) == limit and float(x.mean()) < limit / count * 1.1
    is_as_before &= float(x @ x) == float(kind(count)) and in_f32 == count
rows = np.ones((5000, 2), np.float16)
print("f16, 5000 ones: last axis", rows.T.copy().sum(1).tolist(), "first axis", rows.sum(0).tolist())
is_as_before &= rows.T.copy().sum(1).tolist() == [5000] * 2 and rows.sum(0).tolist() == [2048] * 2
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
