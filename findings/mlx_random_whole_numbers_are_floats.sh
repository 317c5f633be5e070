#!/bin/bash
# MLX and tinygrad draw whole numbers by way of a float: randint from 1e9 to 1e9 + 10 is 1e9 in MLX every time, and no number above 2^30
# is odd.
#
# What is done: randint from 0 to 2^31 - 1, from 1e9 to 1e9 + 10, and from 0 to 100 of int32, and in MLX from 0 to 2^40 of int64: 20000 draws
# each; which values there are, and the greatest common divisor of those in the upper half.
# Seen (mlx 0.32.4 with mlx-cpu, tinygrad 0.14.0, processor): from 0 to 2^31 - 1 all that MLX draws in the upper half are multiples of 128,
# tinygrad's of 256; of int64 up to 2^40 MLX's are multiples of 65536. From 1e9 to 1e9 + 10 MLX gives 1000000000 alone, tinygrad all
# ten. From 0 to 100 both give all hundred.
# What one would expect: each whole number of the range, as numpy, torch and JAX have it. Seeds, ids and keys for hashing, which are drawn
# from wide ranges, have seven or eight low bits of zero; a shuffle or a sample of rows by index in a table of a billion rows sees one row.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q "mlx[cpu]==0.32.4" tinygrad==0.14.0 numpy==2.4.6; then
    echo "skipped: pip could not install mlx, tinygrad and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import os
import sys

os.environ.update(CPU="1", DEV="CPU", CACHELEVEL="0")
import mlx.core as mx
import numpy as np
import tinygrad

mx.set_default_device(mx.cpu)
mx.random.seed(1)
tinygrad.Tensor.manual_seed(1)


def mlx(low, high, dtype=mx.int32):
    return np.array(mx.random.randint(low, high, (20000,), dtype=dtype))


def tiny(low, high):
    return tinygrad.Tensor.randint(20000, low=low, high=high).numpy()


def divisor(draws, half):
    return int(np.gcd.reduce(draws[draws > half]))


print("mlx", importlib.metadata.version("mlx"), "tinygrad", importlib.metadata.version("tinygrad"))
is_as_before = True
for name, draw, expected, count in (("mlx", mlx, 128, 1), ("tinygrad", tiny, 256, 10)):
    wide, narrow, small = draw(0, 2**31 - 1), draw(10**9, 10**9 + 10), draw(0, 100)
    print(name, "upper half is of multiples of", divisor(wide, 2**30), "1e9 and up:", np.unique(narrow).tolist(), "0 to 99:",
          len(np.unique(small)), "values")
    is_as_before &= divisor(wide, 2**30) == expected and len(np.unique(narrow)) == count and len(np.unique(small)) == 100
longs = divisor(mlx(0, 2**40, mx.int64), 2**39)
print("mlx int64: multiples of", longs)
is_as_before &= longs == 65536
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
