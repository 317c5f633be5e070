#!/bin/bash
# HDF5 rounds a number by the order of its bytes: 511.9 units of f16 become 256 in a big-endian dataset and 512 in a little-endian one,
# ties go up in the one and to even in the other. bf16 and float8 are written as the big-endian ones are.
#
# What is done: f64 numbers between neighbours of f16 and f32, among them subnormal ones, are written to datasets of type <f2, >f2, <f4
# and >f4, and read back; f32 numbers to types made for bf16 and float8_e4m3 (their bits as in ml_dtypes' types, given by
# set_fields); numbers around the type's greatest; beside numpy's cast.
# Seen (h5py 3.16.0 with HDF5 2.0.0, numpy 2.4.6): the machine's own types are as numpy's, but that all above the greatest number is
# infinity, 65505 too, which is nearest to 65504. HDF5's own conversion, for the others, rounds normal numbers to the nearest with ties
# away from zero, and 65520 is 65504 by it. A subnormal one that is to be rounded up gets only its lowest clear bit set and those below
# cleared, or stays: 1.75 units become 1, 3.75 become 2, 7.75 become 4, 511.9 become 256, so that up to half of a number is lost,
# and what is written for 3.75 is less than what is for 3.25.
# What one would expect: one rounding for one type, whose error is half a unit, and which keeps numbers in order.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q h5py==3.16.0 numpy==2.4.6; then
    echo "skipped: pip could not install h5py and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import os
import sys
import tempfile
import warnings

import h5py
import numpy as np

warnings.simplefilter("ignore")
print("h5py", h5py.__version__, "HDF5", h5py.version.hdf5_version, "numpy", np.__version__)
folder = tempfile.mkdtemp(dir=os.path.dirname(__file__))


def through(numbers, kind):
    path = os.path.join(folder, "a.h5")
    back = np.zeros(numbers.shape, np.float64)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(numbers.shape)
        h5py.h5d.create(file.id, b"a", kind, space).write(h5py.h5s.ALL, h5py.h5s.ALL, numbers)
    with h5py.File(path) as file:
        h5py.h5d.open(file.id, b"a").read(h5py.h5s.ALL, h5py.h5s.ALL, back)
    return back


def small_type(size, exponent_bits, mantissa_bits, bias):
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(exponent_bits + mantissa_bits, mantissa_bits, exponent_bits, 0, mantissa_bits)
    kind.set_size(size)
    kind.set_ebias(bias)
    return kind


counts = [1.25, 1.5, 1.75, 2.5, 3.25, 3.5, 3.75, 7.75]
own = [1, 1, 1, 3, 3, 2, 2, 4]
rounded = [1, 2, 2, 2, 3, 4, 4, 8]
is_as_before = True
for name, kind, unit, step, largest, is_own in (
    ("<f2", h5py.h5t.py_create(np.dtype("<f2")), 2.0**-24, 2.0**-10, 65504.0, False),
    (">f2", h5py.h5t.py_create(np.dtype(">f2")), 2.0**-24, 2.0**-10, 65504.0, True),
    ("<f4", h5py.h5t.py_create(np.dtype("<f4")), 2.0**-149, 2.0**-23, float(np.finfo(np.float32).max), False),
    (">f4", h5py.h5t.py_create(np.dtype(">f4")), 2.0**-149, 2.0**-23, float(np.finfo(np.float32).max), True),
    ("bf16", small_type(2, 8, 7, 127), 2.0**-133, 2.0**-7, (2 - 2.0**-7) * 2.0**127, True),
    ("e4m3", small_type(1, 4, 3, 7), 2.0**-9, 2.0**-3, 240.0, True),
):
    small = through(np.array(counts) * unit, kind) / unit
    ties = (through(1 + np.array([0.5, 1.5, 2.5, 0.49, 0.51]) * step, kind) - 1) / step
    half_unit_above = largest * (1 + step / (2 * (2 - step)))
    top = through(np.array([largest, largest + (half_unit_above - largest) / 4, half_unit_above]), kind) / largest
    print(f"{name}: {counts} least units are {small.tolist()}; 1 and 0.5 1.5 2.5 0.49 0.51 units are 1 and {ties.tolist()};")
    print(f"    the greatest number, an eighth of a unit more, half a unit more: {top.tolist()} times the greatest")
    is_as_before &= small.tolist() == (own if is_own else rounded)
    is_as_before &= ties.tolist() == ([1, 2, 3, 0, 1] if is_own else [0, 2, 2, 0, 1])
    is_as_before &= top.tolist() == ([1, 1, 1] if is_own else [1, np.inf, np.inf])
    numbers = np.array([511.9 * unit])
    if name in ("<f2", ">f2"):
        lost = through(numbers, kind)[0] / unit
        print(f"    511.9 least units are {lost}, by numpy {float(numbers.astype('f2')[0]) / unit}")
        is_as_before &= lost == (256 if is_own else 512)
print("numpy: 65505 as f16 is", float(np.float64(65505).astype("f2")))
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
