#!/bin/bash
# HDF5's filter scale-offset, which keeps so many decimals, writes NaN as the least number of its chunk; with a NaN in front f32 cannot be
# read back at all. As long as the file is open all is as it was.
#
# What is done: f32 and f64 datasets of a few numbers with a NaN in front, in the middle and at the end, with infinities, with -0 and
# without any, written with scaleoffset=3; read before the file is closed, and after it was opened again. Whole numbers with
# scaleoffset=4, one of which needs more bits.
# Seen (h5py 3.16.0 with HDF5 2.0.0, numpy 2.4.6): 1 NaN 2.5 -3 comes back as 1 -3 2.5 -3, with three decimals for the others; NaN 1 2 of
# f32 is an OSError ("filter returned failure during read"), of f64 itself. With an infinity the chunk is kept exactly. -0 is 0.
# 0 15 3 100 7 in four bits is 0 15 3 4 7. Before the file is closed all are read exactly, from the cache of chunks, so a check behind
# the write sees nothing.
# What one would expect: NaN kept, or a chunk stored unfiltered, as with infinity, or an error when it is written.
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

import h5py
import numpy as np

print("h5py", h5py.__version__, "HDF5", h5py.version.hdf5_version, "numpy", np.__version__)
path = os.path.join(os.path.dirname(__file__), "a.h5")
nan, infinity = float("nan"), float("inf")
cases = {}
for kind in ("f4", "f8"):
    cases[kind, "nan within"] = (3, np.array([1, nan, 2.5, -3], kind), [1, -3, 2.5, -3])
    cases[kind, "nan at the end"] = (3, np.array([1, 2, nan], kind), [1, 2, 1])
    cases[kind, "nan in front"] = (3, np.array([nan, 1, 2], kind), None if kind == "f4" else [nan, 1, 2])
    cases[kind, "infinity"] = (3, np.array([1.23456, infinity, 2], kind), np.array([1.23456, infinity, 2], kind))
    cases[kind, "minus zero"] = (3, np.array([-0.0, 1, 2], kind), [0.0, 1, 2])
    cases[kind, "numbers"] = (3, np.array([1.5, 2.0004, 3], kind), [1.5, 2, 3])
cases["i4", "four bits"] = (4, np.array([0, 15, 3, 100, 7], "i4"), [0, 15, 3, 4, 7])
is_as_before = True
with h5py.File(path, "w") as file:
    for number, (decimals, array, _) in enumerate(cases.values()):
        dataset = file.create_dataset(str(number), data=array, scaleoffset=decimals)
        is_as_before &= np.array_equal(dataset[...], array, equal_nan=array.dtype.kind == "f")
with h5py.File(path) as file:
    for number, ((kind, name), (_, array, expected)) in enumerate(cases.items()):
        try:
            back = file[str(number)][...]
            print(f"{kind}, {name}: {array.tolist()} is {back.tolist()}")
            is_as_before &= expected is not None and np.allclose(back, expected, rtol=0, atol=1e-6, equal_nan=True)
            if name == "minus zero":
                is_as_before &= not np.signbit(back[0])
            if name == "infinity":
                is_as_before &= np.array_equal(back, array)
        except OSError as error:
            print(f"{kind}, {name}: {array.tolist()} cannot be read: {error}")
            is_as_before &= expected is None
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
