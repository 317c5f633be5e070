#!/bin/bash
# In a function that Numba compiles an element is wider than its array: the difference of the bytes 1 and 2 is 18446744073709551615, that
# of the arrays which hold them 255. A uint64 beside an int64 wraps to a negative number, where numpy makes a float of both.
#
# What is done: a - b, a + b, a * b, a // 3 and a << 4 of elements and of whole arrays of int8, uint8, uint32 and uint64, by numpy and
# under numba.njit; the mean of differences of bytes, added up in a loop as floats.
# Seen (numba 0.68.1, numpy 2.4.6): elements of uint8 1 - 2 are 255 in numpy and 18446744073709551615 in Numba, int8 100 + 100 is -56 and
# 200, uint32 2^31 * 2^31 is 0 and 2^62; arrays give 255, -56 and 0 in both. Of uint64 2^63 + 1 and int64 1 the sum is 9.22e18, a float,
# in numpy and -9223372036854775806 in Numba, and a third of the first is -3074457345618258603. The mean of the differences of two
# pictures, 10 and 20 throughout, is 246 by numpy's elements and 1.8e19 by Numba's.
# What one would expect: one answer of a loop and of the expression that it spells out, or numpy's, whose functions Numba compiles.
# Neither raises an error, numpy warns of overflows of elements; the first line that turns the difference into a float decides which
# number comes out.
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
import warnings

import numba
import numpy as np

warnings.simplefilter("ignore")


def subtract(a, b):
    return a[0] - b[0]


def add(a, b):
    return a[0] + b[0]


def multiply(a, b):
    return a[0] * b[0]


def third(a, b):
    return a[0] // b[0]


def subtract_arrays(a, b):
    return (a - b)[0]


def add_arrays(a, b):
    return (a + b)[0]


def multiply_arrays(a, b):
    return (a * b)[0]


def mean_difference(a, b):
    total = 0.0
    for i in range(len(a)):
        total += float(a[i] - b[i])
    return total / len(a)


print("numba", numba.__version__, "numpy", np.__version__)
is_as_before = True
byte, small, word, wide, signed = np.uint8, np.int8, np.uint32, np.uint64, np.int64
for function, (left, a), (right, b), by_numpy, by_numba in (
        (subtract, (byte, 1), (byte, 2), 255, 2**64 - 1), (subtract_arrays, (byte, 1), (byte, 2), 255, 255),
        (add, (small, 100), (small, 100), -56, 200), (add_arrays, (small, 100), (small, 100), -56, -56),
        (multiply, (word, 2**31), (word, 2**31), 0, 2**62), (multiply_arrays, (word, 2**31), (word, 2**31), 0, 0),
        (add, (wide, 2**63 + 1), (signed, 1), 2.0**63, 2 - 2**63),
        (third, (wide, 2**63 + 1), (signed, 3), 2.0**63 // 3, -((2**63 - 1) // 3) - 1)):
    x, y = np.array([a], left), np.array([b], right)
    seen = function(x, y), numba.njit(function)(x, y)
    print(f"{function.__name__} of {left.__name__} {a} and {right.__name__} {b}: numpy {seen[0]} numba {seen[1]}")
    is_as_before &= seen[0] == by_numpy and int(seen[1]) == by_numba
x, y = np.full(100, 10, byte), np.full(100, 20, byte)
means = mean_difference(x, y), numba.njit(mean_difference)(x, y)
print("mean difference of two pictures of bytes: numpy", means[0], "numba", means[1])
is_as_before &= means[0] == 246 and abs(means[1] / 2**64 - 1) < 1e-9
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
