#!/bin/bash
# numpy's draws of whole numbers of 8 and 16 bits and of booleans depend on how they are cut into calls: six at once are other numbers
# than three and three. Those of 32 and 64 bits and reals do not.
#
# What is done: six numbers of default_rng(1) by integers and random, at once, in two calls of three, and one by one.
# Seen (numpy 2.4.6): uint8 at once gives 255 228 34 121 243 189, in two calls 255 228 34 243 189 6, one by one 255 243 102 187 205 246:
# each call begins with new 32 random bits and throws away what is left of them at its end. The same for uint16 and bool; int32, int64,
# float32 and float64 are the same in all three ways. Generator.bytes cuts alike: 3 and 5 bytes are not the 8.
# What one would expect: a stream of numbers that does not know of the calls. Random pictures, masks and augmentations that are drawn by
# batch change with the size of the batch, though seed and data do not, and the last, smaller batch moves all that follows.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
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
import sys

import numpy as np


def draws(draw, *cuts):
    generator = np.random.default_rng(1)
    return np.concatenate([np.atleast_1d(draw(generator, cut)) for cut in cuts]).tolist()


print("numpy", np.__version__)
is_as_before = True
for kind, end in (("uint8", 256), ("uint16", 65536), ("bool", 2), ("int32", 100), ("int64", 100),
                  ("float32", None), ("float64", None)):
    def draw(generator, cut):
        return generator.random(cut, kind) if end is None else generator.integers(0, end, cut, kind)
    seen = draws(draw, 6), draws(draw, 3, 3), draws(draw, *[None] * 6 if end else [1] * 6)
    print(kind, "at once:", *seen[0], "in two:", *seen[1], "one by one:", *seen[2])
    depends = kind in ("uint8", "uint16", "bool")
    is_as_before &= (seen[0] != seen[1]) == depends and (seen[0] != seen[2]) == depends
    if kind == "uint8":
        is_as_before &= seen == ([255, 228, 34, 121, 243, 189], [255, 228, 34, 243, 189, 6], [255, 243, 102, 187, 205, 246])
whole, generator = np.random.default_rng(1).bytes(8), np.random.default_rng(1)
cut = generator.bytes(3) + generator.bytes(5)
print("bytes at once:", whole.hex(), "in two:", cut.hex())
is_as_before &= cut != whole and cut[:3] == whole[:3] and cut[3:] != whole[3:]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
