#!/bin/bash
# safetensors.numpy stores an array of Fortran's order, such as a transposed one, as its memory lies, under its own shape: what is
# read back are other numbers. 0.7.0 stored it in the order of C.
#
# What is done: save of a matrix and of its transpose, load, and a look at the bytes in the file; with 0.8.0 and with 0.7.0. The format
# knows no strides: data are in the order of C. torch's half of the package refuses such tensors.
# Seen (safetensors 0.8.0, numpy 2.4.6): [[0 1 2] [3 4 5]] transposed comes back as [[0 1] [2 3] [4 5]], the right shape and no
# error; the same for asfortranarray, which is what linear algebra of scipy and scikit-learn hands out. With 0.7.0 both
# are right. Known there as issue 825, open when this was written. np.ascontiguousarray before save helps.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for version in 0.8.0 0.7.0; do
    python3 -m venv "$folder/$version"
    if ! "$folder/$version/bin/pip" install -q safetensors==$version numpy==2.4.6; then
        echo "skipped: pip could not install safetensors $version and numpy 2.4.6"
        exit 77
    fi
done
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import json
import sys

import numpy as np
from safetensors.numpy import load, save


def stored(array):
    """The array as any reader of the format has it, by its header and bytes."""
    data = save({"a": array})
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])["a"]
    first, last = header["data_offsets"]
    by_hand = np.frombuffer(data[begin + first:begin + last], "<f4").reshape(header["shape"])
    assert np.array_equal(load(data)["a"], by_hand)
    return by_hand


is_new = sys.argv[1] == "0.8.0"
print("safetensors", importlib.metadata.version("safetensors"), "numpy", np.__version__)
matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
is_as_before = np.array_equal(stored(matrix), matrix)
for name, array in (("transposed", matrix.T), ("Fortran", np.asfortranarray(matrix))):
    seen = stored(array)
    print(name, array.tolist(), "is stored as", seen.tolist())
    memory = array.ravel("K").reshape(array.shape)
    is_as_before &= not np.array_equal(memory, array) and np.array_equal(seen, memory if is_new else array)
    is_as_before &= np.array_equal(stored(np.ascontiguousarray(array)), array)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/0.8.0/bin/python" "$folder/finding.py" 0.8.0
"$folder/0.7.0/bin/python" "$folder/finding.py" 0.7.0
