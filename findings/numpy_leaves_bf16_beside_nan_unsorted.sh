#!/bin/bash
# numpy does not sort an array of bf16 or float8 that has a NaN in it: it comes back unsorted, unique keeps the same number twice, and the
# median is another number. With f16 the NaNs go to the end.
#
# What is done: sort, argsort, partition, unique and median of 3 NaN 1 5 NaN 2 (unique: 3 NaN 1 3 NaN 1) in bf16, float8_e4m3fn and
# float8_e5m2 of ml_dtypes, in which JAX and ONNX hand out such arrays, and in f16; and how many neighbours go down in a sort of 1000
# numbers with every seventh a NaN.
# Seen (numpy 2.4.6, ml_dtypes 0.6.0): sort and partition give 3 NaN 1 5 NaN 2 back as it was, argsort 0 1 2 3 4 5; unique of 3 NaN 1 3
# NaN 1 gives all six; the median is 3, the mean of the two that stand in the middle. Of the 1000 numbers 21 to 52 neighbours go down.
# f16: 1 2 3 5 NaN NaN, 1 3 NaN, and a median of NaN. The types' own comparison is false beside a NaN, and numpy sorts by it.
# What one would expect: numpy's rule that NaN sorts last, which its documentation states for reals, or an error. A percentile, a
# threshold of pruning or a top-k over bf16 weights is wrong by any amount because of one NaN, and is no NaN itself; astype(np.float32)
# before the sort helps.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q ml_dtypes==0.6.0 numpy==2.4.6; then
    echo "skipped: pip could not install ml_dtypes and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import ml_dtypes
import numpy as np

NAN = np.nan
print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)


def same(array, *expected):
    return np.array_equal(array.astype(np.float32), np.array(expected, np.float32), equal_nan=True)


def downs(kind):
    numbers = np.random.default_rng(0).standard_normal(1000).astype(kind)
    numbers[::7] = NAN
    ordered = np.sort(numbers).astype(np.float32)
    return int((np.diff(ordered[~np.isnan(ordered)]) < 0).sum())


is_as_before = True
for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float16):
    x = np.array([3, NAN, 1, 5, NAN, 2], kind)
    twice = np.array([3, NAN, 1, 3, NAN, 1], kind)
    print(kind.__name__, "sort", np.sort(x), "argsort", np.argsort(x), "unique", np.unique(twice), "median", np.median(x),
          "neighbours that go down of 1000:", downs(kind))
    if kind is np.float16:
        is_as_before &= same(np.sort(x), 1, 2, 3, 5, NAN, NAN) and same(np.unique(twice), 1, 3, NAN) and downs(kind) == 0
        is_as_before &= bool(np.isnan(np.median(x)))
    else:
        is_as_before &= same(np.sort(x), *x) and same(np.partition(x, 2), *x) and same(np.unique(twice), *twice) and downs(kind) > 15
        is_as_before &= np.argsort(x).tolist() == list(range(6)) and float(np.median(x)) == 3
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
