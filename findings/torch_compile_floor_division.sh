#!/bin/bash
# torch.compile takes x // y of floats as the floor of the rounded quotient, eager torch and numpy as that of the true one.
#
# What is done: x // y and x % y for x = 0, 0.1, ... 6.3 and y = 0.1 (f32), eagerly, by torch.compile (inductor, processor) and by numpy;
# the floor of the true quotient and the true remainder with fractions.
# Seen (torch 2.15.0, numpy 2.4.6): 0.1 in f32 is a little above a tenth, so 0.5 // 0.1 is 4 and 0.5 % 0.1 just below 0.1: eager torch and
# numpy have all 64 of both right. Compiled, the quotient is 5, since 0.5 / 0.1 rounds to 5, and 28 of 64 are one too large; but the
# remainder is still just below 0.1, so that (x // y) * y + x % y is 0.6. Of the remainders 54 are not the true ones (which f32
# holds exactly), two of them as large as y. So a bucket or an index computed by // is another one in compiled code.
# torch.div(rounding_mode="floor") does the same; torch.fmod stays right.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here, or there is no C++ compiler.
# SPDX-License-Identifier: Apache-2.0
set -eu
if ! command -v g++ >/dev/null; then
    echo "skipped: torch.compile needs g++ on the processor"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch 2.15.0 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys
from fractions import Fraction
from math import floor

import numpy as np
import torch


def divide(x, y):
    return x // y, torch.div(x, y, rounding_mode="floor"), x % y, torch.fmod(x, y)


print("torch", torch.__version__, "numpy", np.__version__)
x, y = torch.arange(64) / 10, torch.full((64,), 0.1)
pairs = [(Fraction(a), Fraction(b)) for a, b in zip(x.tolist(), y.tolist())]
floors = [floor(a / b) for a, b in pairs]
rests = [float(np.float32(float(a - floor(a / b) * b))) for a, b in pairs]
exact = [floors, floors, rests, rests]
results = {"eager": divide(x, y), "compiled": torch.compile(divide)(x, y),
           "numpy": [torch.from_numpy(values) for values in
                     (x.numpy() // y.numpy(), np.floor_divide(x.numpy(), y.numpy()), x.numpy() % y.numpy(), np.fmod(x.numpy(), y.numpy()))]}
wrong = {name: [sum(a != b for a, b in zip(values.tolist(), right)) for values, right in zip(result, exact)]
         for name, result in results.items()}
print("wrong of 64 (//, div, %, fmod):", wrong)
q, _, r, _ = results["compiled"]
whole = q * y + r
print("compiled 0.5 // 0.1 =", q[5].item(), "and 0.5 % 0.1 =", r[5].item(), "put together:", whole[5].item(), "remainders from y on:",
      int((r >= y).sum()))
is_as_before = wrong["eager"] == wrong["numpy"] == [0, 0, 0, 0] and wrong["compiled"] == [28, 28, 54, 0]
is_as_before &= floors[5] == 4 and q[5].item() == 5 and abs(whole[5].item() - 0.6) < 1e-6 and bool((r >= y).any())
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
TORCHINDUCTOR_CACHE_DIR="$folder/cache" "$folder/venv/bin/python" "$folder/finding.py"
