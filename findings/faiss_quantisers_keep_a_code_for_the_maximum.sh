#!/bin/bash
# Faiss' scalar quantisers cut instead of rounding, and read back the middle of the step: neither end of the range they learned comes back,
# 0 is never 0, 1 in four bits is 1.033, and the last code stands for the maximum alone.
#
# What is done: quantisers of 4, 6 and 8 bits learn from numbers between 0 and 1; 0, 0.5, 1, and 100001 numbers in between are encoded and
# decoded; how often each code occurs is counted. Ties as bf16.
# Seen (faiss 1.15.1, numpy 2.4.6): with 4 bits 0 is 0.0333 and 1 is 1.0333, beyond the range; 8 bits: 0.00196 and 1.00196. Fifteen of
# the sixteen codes share all numbers below 1, the last one has 1 alone. The greatest error, half a step of a fifteenth, is what
# rounding has, too, which would keep 0 and both ends. Ties of bf16 go up, not to even.
# What one would expect: the nearest of 2^bits levels from the least to the greatest number (or 2^bits equal steps with their middles,
# whose error is smaller), so that sparse vectors, of which most numbers are 0, and vectors at the limits stay what they are.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q faiss-cpu==1.15.1 numpy==2.4.6; then
    echo "skipped: pip could not install faiss and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import faiss
import numpy as np

print("faiss", faiss.__version__, "numpy", np.__version__)


def quantise(kind, learned, numbers):
    quantiser = faiss.ScalarQuantizer(1, kind)
    quantiser.train(np.array(learned, np.float32).reshape(-1, 1))
    codes = quantiser.compute_codes(np.array(numbers, np.float32).reshape(-1, 1))
    return codes, quantiser.decode(codes).ravel()


is_as_before = True
between = np.linspace(0, 1, 100001)
for bits, kind in ((4, "QT_4bit"), (6, "QT_6bit"), (8, "QT_8bit")):
    kind = getattr(faiss.ScalarQuantizer, kind)
    levels = 2**bits
    _, ends = quantise(kind, [0, 1], [0, 0.5, 1])
    codes, back = quantise(kind, [0, 1], between)
    which, counts = np.unique(back, return_counts=True)
    print(f"{bits} bits: 0, 0.5 and 1 are {ends.tolist()}; {len(which)} codes, the last for {counts[-1]} of {len(between)} numbers,")
    print(f"    the others for {counts[:-1].min()} to {counts[:-1].max()}; greatest error {np.abs(back - between).max():.5f}")
    half = 0.5 / (levels - 1)
    is_as_before &= abs(ends[0] - half) < 1e-6 and abs(ends[2] - 1 - half) < 1e-6 and abs(ends[1] - 0.5) < 1e-6
    is_as_before &= len(which) == levels and counts[-1] == 1 and counts[:-1].min() > 0.98 * len(between) / (levels - 1)
    is_as_before &= abs(np.abs(back - between).max() - half) < 1e-3 * half
_, ties = quantise(faiss.ScalarQuantizer.QT_bf16, [0, 1], [1 + 1 / 256, 1 + 3 / 256, 1 + 5 / 256])
print(f"bf16: 1 and 1, 3, 5 halves of a unit are {((ties - 1) * 128).tolist()} units")
is_as_before &= ((ties - 1) * 128).tolist() == [1, 2, 3]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
