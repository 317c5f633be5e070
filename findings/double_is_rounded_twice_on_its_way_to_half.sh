#!/bin/bash
# A double becomes f16, bf16 or float8 by way of a float in PyTorch, ONNX Runtime and ml_dtypes: it is rounded twice, and the result is
# not the nearest one. numpy rounds f16 once.
#
# What is done: numbers a little above the middle between two neighbours of the small type are converted by torch, by ONNX Runtime's
# Cast (19) and by the reference of ONNX (numpy for f16, ml_dtypes for the others). The nearest is found with fractions.
# Seen (torch 2.15.0, onnxruntime 1.32.0, onnx 1.23.2, ml_dtypes 0.6.0, numpy 2.4.6): the float on the way is the middle itself, whose
# tie goes to the even neighbour: 2049 + 2^-20 becomes 2048 in f16 (nearest: 2050), 257 + 2^-20 256 in bf16 (258), 17 + 2^-30
# 16 in float8_e4m3fn (18). numpy gives 2050. The reference of ONNX is right for f16 and wrong, by way of ml_dtypes' arrays, for
# the others; a scalar constructor of ml_dtypes' float8 is right. int64 to bf16 is the same: 2^30 + 2^22 + 1 becomes
# 2^30 (nearest: 2^30 + 2^23) in all three. So "the same" conversion of f64 weights differs by one unit in some elements.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 onnx==1.23.2 onnxruntime==1.32.0 ml_dtypes==0.6.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch 2.15.0, onnx, onnxruntime, ml_dtypes and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import torch
from onnx import parser
from onnx.reference import ReferenceEvaluator


def nearest(number, bits):
    """The nearest number with so many bits of precision; no ties are given."""
    step = Fraction(2) ** (Fraction(number).numerator.bit_length() - Fraction(number).denominator.bit_length() - bits + 1)
    while number / step >= 2 ** bits:
        step *= 2
    while number / step < 2 ** (bits - 1):
        step /= 2
    assert (number / step * 2).denominator != 1
    return float(round(number / step) * step)


def convert(number, kind, to, to_torch, to_numpy):
    x = np.array([number], np.float64 if kind == "double" else np.int64)
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 19]> g ({kind}[1] x) => (float[1] y) {{
        z = Cast <to = {to}> (x)
        y = Cast <to = 1> (z)
    }}""")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [torch.from_numpy(x).to(to_torch).item(), session.run(None, {"x": x})[0].item(),
            ReferenceEvaluator(model).run(None, {"x": x})[0].item(), float(x.astype(to_numpy).item())]


print("torch", torch.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "ml_dtypes", ml_dtypes.__version__)
F16, BF16, E4M3 = ((10, torch.float16, np.float16), (16, torch.bfloat16, ml_dtypes.bfloat16),
                   (17, torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn))
is_as_before = True
for number, kind, types, bits, best, even in (
        (2049 + 2.0 ** -20, "double", F16, 11, 2050, 2048), (257 + 2.0 ** -20, "double", BF16, 8, 258, 256),
        (17 + 2.0 ** -30, "double", E4M3, 4, 18, 16), (2 ** 30 + 2 ** 22 + 1, "int64", BF16, 8, 2 ** 30 + 2 ** 23, 2 ** 30)):
    seen = convert(number, kind, *types)
    print(kind, number, "to", types[1], "nearest:", nearest(Fraction(number), bits), "torch, ONNX Runtime, reference, numpy:", seen)
    is_as_before &= nearest(Fraction(number), bits) == best
    is_as_before &= seen == [even, even, best, best] if types is F16 else seen == [even] * 4
is_as_before &= float(ml_dtypes.float8_e4m3fn(17 + 2.0 ** -30)) == 18
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
