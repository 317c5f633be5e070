#!/bin/bash
# An infinity is 448 in torch's float8_e4m3fn, and so is 1000; in ml_dtypes' type of the same name, which JAX has, both are NaN. With
# float8_e5m2 both libraries keep the infinity.
#
# What is done: 448, 464, 465, 1000, inf, -inf and NaN, converted from float, by torch and by ml_dtypes, to float8_e4m3fn and
# float8_e5m2.
# Seen (torch 2.15.0, CPU, ml_dtypes 0.6.0): e4m3fn has no infinity. torch makes 448 of all that is too large, infinities too, and keeps
# NaN alone; ml_dtypes makes NaN of all above 464, half a step beyond the largest. In e5m2 1000 is 1024 and inf is inf in both.
# What one would expect: one conversion for one type, and two types of one library that treat overflow alike. A loss that overflowed is a
# plain 448 in torch, and no check for infinities behind the conversion finds it; weights moved from torch to JAX by way of their floats
# have a NaN for each. ONNX's Cast has both, by its attribute saturate.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 ml_dtypes==0.6.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch, ml_dtypes and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys

import ml_dtypes
import numpy as np
import torch

X = np.array([448, 464, 465, 1000, np.inf, -np.inf, np.nan], np.float32)
NAN = np.nan
print("torch", torch.__version__, "ml_dtypes", importlib.metadata.version("ml_dtypes"))
is_as_before = True
for name, by_torch, by_ml_dtypes in (
        ("float8_e4m3fn", [448, 448, 448, 448, 448, -448, NAN], [448, 448, NAN, NAN, NAN, NAN, NAN]),
        ("float8_e5m2", [448, 448, 448, 1024, np.inf, -np.inf, NAN], [448, 448, 448, 1024, np.inf, -np.inf, NAN])):
    seen = torch.from_numpy(X).to(getattr(torch, name)).float().numpy()
    other = X.astype(getattr(ml_dtypes, name)).astype(np.float32)
    print(name, "torch:", seen.tolist(), "ml_dtypes:", other.tolist())
    is_as_before &= np.array_equal(seen, np.array(by_torch, np.float32), equal_nan=True)
    is_as_before &= np.array_equal(other, np.array(by_ml_dtypes, np.float32), equal_nan=True)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
