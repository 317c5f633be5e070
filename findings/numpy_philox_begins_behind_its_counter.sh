#!/bin/bash
# numpy's Philox(counter=c) begins with block c + 1 of the generator, and advance(1) leaves out four numbers.
#
# What is done: blocks of Philox 4x64-10 computed by hand (checked by the known answer for zeros that the authors' Random123 gives),
# beside the first raw numbers of numpy.random.Philox(key=7, counter=5), and what follows advance(n), at once and behind a first number.
# Seen (numpy 2.4.6): the first four numbers are block 6, not 5; Philox(counter=2**256 - 1) begins with block 0. advance(1) goes on with
# the fifth number, advance(2) with the ninth; behind one number, advance(1) goes on with the ninth: the three that were left of the block
# are gone. numpy has 4x64 where CUDA's libraries, PyTorch and JAX have 4x32, so the same seed gives other numbers anyway.
# What one would expect: that the block with the counter is the first one, as with the authors' code, cuRAND's and a counter of one's own,
# and that advance counts numbers, "as if draws were made". Two programs that share work by counters, one of them with numpy, have one
# block twice and one not at all.
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

MASK = 2**64 - 1


def block(counter, key, rounds=10):
    """Philox 4x64 (Salmon et al., 2011): four words of a counter and a key, words from low to high."""
    c, k = [counter >> 64 * i & MASK for i in range(4)], [key >> 64 * i & MASK for i in range(2)]
    for _ in range(rounds):
        a, b = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
        c = [b >> 64 ^ c[1] ^ k[0], b & MASK, a >> 64 ^ c[3] ^ k[1], a & MASK]
        k = [k[0] + 0x9E3779B97F4A7C15 & MASK, k[1] + 0xBB67AE8584CAA73B & MASK]
    return c


print("numpy", np.__version__)
assert block(0, 0) == [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
first = np.random.Philox(key=7, counter=5).random_raw(4).tolist()
begins = [n for n in range(10) if block(n, 7) == first]
print("counter 5 begins with block", begins)
wrapped = np.random.Philox(key=7, counter=2**256 - 1).random_raw(4).tolist() == block(0, 7)
numbers = np.random.Philox(key=7).random_raw(40).tolist()
goes_on = {}
for before, count in ((0, 1), (0, 2), (1, 1), (4, 1)):
    generator = np.random.Philox(key=7)
    generator.random_raw(before)
    generator.advance(count)
    goes_on[before, count] = numbers.index(int(generator.random_raw()))
    print(f"behind {before} numbers, advance({count}) goes on with number {goes_on[before, count]} (counted from 0)")
is_as_before = begins == [6] and wrapped and goes_on == {(0, 1): 4, (0, 2): 8, (1, 1): 8, (4, 1): 8}
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
