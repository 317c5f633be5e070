#!/bin/bash
# A sum of f32 that Numba compiles is a plain loop in f32, where numpy's adds up in a tree: twenty million ones are 16777216, their mean
# is 0.84, and their variance is not 0.
#
# What is done: sum, mean, var, std, nansum and sum(0) of twenty million ones and of a million times 0.1, in f32, by numpy, and by the
# same functions under numba.njit; the same in f64.
# Seen (numba 0.68.1, numpy 2.4.6): numpy gives 2e7, 1, 0 and 0 for ones, and 100000.01 and 0.10000001 for 0.1. Compiled, sums are
# 16777216 = 2^24, where adding one changes nothing any more, mean 0.8389, var 0.026, std 0.161; of 0.1 the sum is 100958.34, a hundredth
# too much. In f64 all agree.
# What one would expect: the function's own result, which the compiled one is said to be: numpy adds up f32 in blocks, whose error grows
# with the logarithm of the length. A metric or a normalisation of a larger batch moves when a decorator is added.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q numba==0.68.1 numpy==2.4.6; then
    echo "skipped: pip could not install numba and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numba
import numpy as np


def measure(x):
    return x.sum(), x.mean(), x.var(), x.std(), np.nansum(x), x.reshape(-1, 1).sum(0)[0]


compiled = numba.njit(measure)
print("numba", numba.__version__, "numpy", np.__version__)
results = {}
for name, x in (("ones", np.ones(20_000_000, np.float32)), ("tenths", np.full(1_000_000, 0.1, np.float32))):
    for kind in (np.float32, np.float64):
        for runner, function in (("numpy", measure), ("numba", compiled)):
            row = [float(number) for number in function(x.astype(kind))]
            results[name, kind, runner] = row
            print(f"{name} {kind.__name__} {runner}: sum, mean, var, std, nansum, sum(0):", " ".join(f"{number:.8g}" for number in row))
ones, tenths = results["ones", np.float32, "numba"], results["tenths", np.float32, "numba"]
is_as_before = ones[0] == ones[4] == ones[5] == 2**24 and abs(ones[1] - 0.8388608) < 1e-6
is_as_before &= abs(ones[2] - 0.026) < 0.001 and abs(ones[3] - 0.161) < 0.001
is_as_before &= abs(tenths[0] - 100958) < 2 and abs(tenths[1] - 0.100958) < 1e-5
is_as_before &= np.allclose(results["ones", np.float32, "numpy"][:4], [2e7, 1, 0, 0], atol=1e-6)
is_as_before &= abs(results["tenths", np.float32, "numpy"][0] - 100000) < 1
for name in ("ones", "tenths"):
    is_as_before &= np.allclose(results[name, np.float64, "numba"], results[name, np.float64, "numpy"], atol=1e-9)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
