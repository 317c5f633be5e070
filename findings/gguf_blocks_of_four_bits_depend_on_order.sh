#!/bin/bash
# GGUF's Q4_0 stores 1 and -1 as 1 and -0.875, but -1 and 1 as -1 and 0.875: whichever comes first in its block is exact. Turned signs
# turn the result, another order of the same numbers makes it other numbers. Q5_0 is the same with 15/16.
#
# What is done: blocks of 32 with 1 and -1 among zeros, in both orders; sixteen times 1 and -1 in some order and reversed; 4096 random
# numbers and the same with their signs turned; each quantised and read back by the gguf package, as Q4_0 and Q5_0, the first as Q8_0
# and Q4_1, too.
# Seen (gguf 0.19.0, numpy 2.4.6): the scale is the number of the greatest magnitude, with its sign, by -8 (-16), so that number is exact,
# and one near it of the other sign stops at 7/8; of equal magnitudes the first counts. Of weights of equal magnitudes (signs, a
# filter that subtracts) one half is 12.5 % too small, and which half the first one decides: their sum is 2 or -2 instead of 0. So a
# model whose columns are put in another order may be another one once quantised. Q8_0 is symmetric, Q4_1 keeps both ends.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q gguf==0.19.0 numpy==2.4.6; then
    echo "skipped: pip could not install gguf and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys

import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf import quants


def stored(numbers, kind):
    return quants.dequantize(quants.quantize(np.asarray(numbers, np.float32), kind), kind)


print("gguf", importlib.metadata.version("gguf"), "numpy", np.__version__)
is_as_before = True
for kind, steps in ((Kind.Q4_0, 8), (Kind.Q5_0, 16)):
    for first in (1, -1):
        seen = stored([first, -first] + [0] * 30, kind)
        print(kind.name, [first, -first], "is read back as", seen[:2].tolist())
        is_as_before &= seen[:2].tolist() == [first, -first * (1 - 1 / steps)] and not seen[2:].any()
    signs = np.random.default_rng(0).permutation([1, -1] * 16)
    seen, back = stored(signs, kind), stored(signs[::-1], kind)[::-1]
    print(kind.name, "of 16 times 1 and -1: sum", seen.sum(), "reversed", back.sum())
    is_as_before &= abs(seen.sum()) == abs(back.sum()) == 16 / steps
    random = np.random.default_rng(1).standard_normal(4096, np.float32)
    plain, turned = stored(random, kind), stored(-random, kind)
    is_as_before &= np.array_equal(plain, -turned)
    largest = np.abs(random.reshape(-1, 32)).argmax(1)
    error = np.abs(plain - random).reshape(-1, 32)
    print(kind.name, "random: error of the greatest of each block at most", error[np.arange(128), largest].max(), "of all", error.max())
for kind in (Kind.Q8_0, Kind.Q4_1):
    one, two = stored([1, -1] + [0] * 30, kind)[:2], stored([-1, 1] + [0] * 30, kind)[:2]
    print(kind.name, "1 and -1 are read back as", one.tolist(), "-1 and 1 as", two.tolist())
    is_as_before &= np.array_equal(one, two[::-1]) and np.abs(one - [1, -1]).max() < 0.001
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
