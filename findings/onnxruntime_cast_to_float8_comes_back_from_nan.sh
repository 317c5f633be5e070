#!/bin/bash
# Cast to float8_e4m3fn without saturation goes 448, NaN, 448, NaN in ONNX Runtime as its operand grows: 470 is NaN, 480 is 448, 500 is
# NaN.
#
# What is done: Cast (19, saturate 0) of 440, 441, ... 520 and 1000 to float8_e4m3fn, and of 57344 to 70000 by steps of 512 to
# float8_e5m2, and back, in ONNX Runtime and in the reference; the same with saturate 1. The greatest number of e4m3fn is 448 and the
# next would be 480, so up to the middle, 464, the nearest is 448, and by ONNX's table all above is NaN; of e5m2 61440 is the middle,
# from which on it is infinity.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): the reference is as the table says. In ONNX Runtime 465 to 479 are NaN, 480 to 495 are
# 448, and from 496 on all is NaN again; of e5m2 61440 to 65535 are NaN and 65536 is infinity. With saturate 1 both agree.
# What one would expect: NaN or infinity that stays one as the operand grows. A check "no NaN, so nothing overflowed" passes a scaled 490
# and fails a 470; and what is an infinity for others is a NaN, which no clip behind it brings back.
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
from onnx import TensorProto, parser
from onnx.reference import ReferenceEvaluator


def run(x, kind, saturate):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 19]> g (float[n] x) => (float[n] y) {{
        small = Cast <to = {kind}, saturate = {saturate}> (x)
        y = Cast <to = 1> (small)
    }}""")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0], ReferenceEvaluator(model).run(None, {"x": x})[0]


def ranges(x, y):
    """Where y is the same for neighbours."""
    starts = [i for i in range(len(x)) if i == 0 or not np.array_equal(y[i - 1:i], y[i:i + 1], equal_nan=True)]
    return [f"{x[i]:g}: {y[i]:g}" for i in starts]


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
x = np.append(np.arange(440, 521, dtype=np.float32), np.float32(1000))
runtime, reference = run(x, TensorProto.FLOAT8E4M3FN, 0)
print("e4m3fn from", *ranges(x, runtime), "reference from", *ranges(x, reference))
is_as_before = np.array_equal(reference, np.where(x <= 464, 448, np.nan), equal_nan=True)
is_as_before &= np.array_equal(runtime, np.where((x <= 464) | (x >= 480) & (x < 496), 448, np.nan), equal_nan=True)
is_as_before &= all((y == 448).all() for y in run(x, TensorProto.FLOAT8E4M3FN, 1))
x = np.arange(57344, 70001, 512, dtype=np.float32)
runtime, reference = run(x, TensorProto.FLOAT8E5M2, 0)
print("e5m2 from", *ranges(x, runtime), "reference from", *ranges(x, reference))
is_as_before &= np.array_equal(reference, np.where(x < 61440, 57344, np.inf))
is_as_before &= np.array_equal(runtime, np.where(x < 61440, 57344, np.where(x < 65536, np.nan, np.inf)), equal_nan=True)
is_as_before &= all((y == 57344).all() for y in run(x, TensorProto.FLOAT8E5M2, 1))
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
