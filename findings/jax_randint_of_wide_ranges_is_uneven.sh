#!/bin/bash
# jax.random.randint of a wide range prefers small numbers: of 0 to 3 * 2^30 half of the draws are in the first third, of 0 to 1e9 the
# first 294967296 are a quarter more frequent than the rest.
#
# What is done: a million draws of uint32 below 3 * 2^30, of int32 below 1e9 and below 100, and of uint8 below 192, and the share of the
# draws below the part that is preferred; numpy's integers for the same ranges.
# Seen (jax 0.10.2, numpy 2.4.6, processor): 0.500 of the first third of 3 * 2^30, where 0.333 are right; 0.3434 below 294967296 of 1e9,
# where 0.2950 are right; both are what 32 random bits modulo the range give. Of 100 and of uint8 the shares are right, and so are all of
# numpy's. JAX draws 64 bits and folds them by 2^32 modulo the range, which it computes as (2^16 modulo the range) squared in 32 bits:
# above a range of 65536 that product is 2^32, in 32 bits 0, and the upper half of the bits has no effect.
# What one would expect: the second word is drawn to make the shares even to a part in 2^32. Splits of data by random keys, hashes and
# random seeds lean to one side; ranges below a million are off by less than a part in 4000.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6; then
    echo "skipped: pip could not install jax and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import jax
import jax.numpy as jnp
import numpy as np

N = 1_000_000
print("jax", jax.__version__, "numpy", np.__version__)
is_as_before = True
for kind, span, part, seen in (("uint32", 3 * 2**30, 2**30, 2 / 4), ("int32", 10**9, 2**32 % 10**9, 5 * (2**32 % 10**9) / 2**32),
                               ("int32", 100, 50, 0.5), ("uint8", 192, 64, 1 / 3)):
    bounds = (np.array(v, kind) for v in (0, span))
    draws = np.asarray(jax.random.randint(jax.random.key(0), (N,), *map(jnp.asarray, bounds), dtype=kind))
    share = float((draws < part).mean())
    by_numpy = float((np.random.default_rng(0).integers(0, span, N, dtype=kind) < part).mean())
    print(f"{kind} below {span}: share below {part} {share:.4f}, numpy {by_numpy:.4f}, even {part / span:.4f}")
    is_as_before &= abs(share - seen) < 0.002 and abs(by_numpy - part / span) < 0.002
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
