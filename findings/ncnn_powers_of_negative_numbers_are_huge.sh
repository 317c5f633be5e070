#!/bin/bash
# ncnn's power of a negative number or of 0 is 2.4e38 where four numbers lie side by side, and right in what is left at the end of a row:
# of seven times (-2)^2 four are 2.4e38 and three are 4.
#
# What is done: BinaryOp with the operation pow and exponents 1, 2, 3 and 0.5 on rows of 1, 3, 4, 7 and 8 numbers, by a parameter file of
# two layers; and the layers that square: Power, and UnaryOp with square.
# Seen (ncnn 1.0.20261020, numpy 2.4.6, x86-64): of seven numbers -2 to the power 2 four are 2.406e38 and three are 4; of one or three all
# are 4, of eight none. 0 to any power and negative numbers to the powers 1 and 3 are the same 2.406e38; 3 to the power 3 is 27.000002.
# The square root of -2, in this way, is 2.406e38 in fours and NaN alone. UnaryOp's square and Power with 2 are right. No infinity and no
# NaN comes out in fours, so no check for them helps.
# What one would expect: what C's pow says of whole exponents, the same for each element of a row, or NaN. Squares of differences
# (variances, distances, norms) are written as pow(x, 2) in many models.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q ncnn==1.0.20261020 numpy==2.4.6; then
    echo "skipped: pip could not install ncnn and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import pathlib
import sys

import ncnn
import numpy as np

FILE = pathlib.Path(__file__).parent / "model.param"


def run(layer, x):
    FILE.write_text(f"7767517\n2 2\nInput x 0 1 x\n{layer}\n")
    FILE.with_suffix(".bin").write_bytes(b"")
    net = ncnn.Net()
    assert net.load_param(str(FILE)) == 0 and net.load_model(str(FILE.with_suffix(".bin"))) == 0
    extractor = net.create_extractor()
    extractor.input("x", ncnn.Mat(np.array(x, np.float32)).clone())
    status, y = extractor.extract("y")
    assert status == 0
    return np.array(y).ravel()


def power(x, exponent):
    y = run(f"BinaryOp pow 1 1 x y 0=6 1=1 2={float(exponent)}", x)
    print(f"{x} to the power {exponent}:", y.tolist())
    return y


print("ncnn", importlib.metadata.version("ncnn"), "numpy", np.__version__)
is_as_before = True
for count in (1, 3, 4, 7, 8):
    y = power([-2] * count, 2)
    huge = count // 4 * 4
    is_as_before &= (abs(y[:huge] / 2.406e38 - 1) < 1e-3).all() and (y[huge:] == 4).all()
for exponent in (1, 2, 3, 0.5):
    y = power([-2, -1, 0, 3], exponent)
    is_as_before &= (abs(y[:3] / 2.406e38 - 1) < 1e-3).all() and abs(y[3] / 3**exponent - 1) < 1e-6
is_as_before &= power([0], 2)[0] == 0 and power([-2], 3)[0] == -8 and np.isnan(power([-2], 0.5)[0])
for layer in ("Power p 1 1 x y 0=2.0 1=1.0 2=0.0", "UnaryOp u 1 1 x y 0=4"):
    y = run(layer, [-2, -1, 0, 3])
    print(layer, y.tolist())
    is_as_before &= y.tolist() == [4, 1, 0, 9]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
