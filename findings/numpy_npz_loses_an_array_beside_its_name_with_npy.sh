#!/bin/bash
# numpy.load of an .npz file with the arrays "w" and "w.npy" gives "w" for both: what was saved as "w.npy" cannot be read any more.
#
# What is done: numpy.savez and savez_compressed of two different arrays as "w.npy" and "w", and of one as "w.npy" alone; numpy.load, its
# list of names, items and values; the archive's own list.
# Seen (numpy 2.4.6): the archive has "w.npy.npy" and "w.npy", both right. numpy.load lists "w.npy" and "w", and gives the array of "w" by
# either name, in items() and by values(), too. By "w.npy.npy", which is in no list, the other one comes back. Alone, "w.npy" is itself.
# What one would expect: the array of that name: an entry is looked up by its name in the archive first and by the array's name only then.
# Names of files as keys, as scripts that pack folders make them, lose an array without an error.
# Exit status: 0 the same, 1 something differs, 77 the package cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q numpy==2.4.6; then
    echo "skipped: pip could not install numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import io
import sys
import zipfile

import numpy as np

print("numpy", np.__version__)
is_as_before = True
for save in (np.savez, np.savez_compressed):
    file = io.BytesIO()
    save(file, **{"w.npy": np.array([1, 2]), "w": np.array([3, 4])})
    file.seek(0)
    archive = np.load(file)
    items = {name: array.tolist() for name, array in archive.items()}
    hidden = archive["w.npy.npy"].tolist()
    entries = zipfile.ZipFile(file).namelist()
    print(f"{save.__name__}: entries {entries}, listed {archive.files}, items {items}, by 'w.npy.npy' {hidden}")
    is_as_before &= entries == ["w.npy.npy", "w.npy"] and archive.files == ["w.npy", "w"]
    is_as_before &= items == {"w.npy": [3, 4], "w": [3, 4]} and archive["w.npy"].tolist() == [3, 4] and hidden == [1, 2]
    is_as_before &= [array.tolist() for array in archive.values()] == [[3, 4], [3, 4]]
    file = io.BytesIO()
    save(file, **{"w.npy": np.array([1, 2])})
    file.seek(0)
    archive = np.load(file)
    print(f"{save.__name__}, alone: listed {archive.files}, 'w.npy' is {archive['w.npy'].tolist()}")
    is_as_before &= archive.files == ["w.npy"] and archive["w.npy"].tolist() == [1, 2]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
