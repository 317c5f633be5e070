#!/bin/bash
# jax.device_put and jax.dlpack.from_dlpack of a numpy array share its memory on the processor or copy it, depending on its address: at a
# multiple of 64 a later write to the numpy array changes the "immutable" JAX array, 16 bytes further it does not.
#
# What is done: numpy arrays of 4, 1000 and 100000 f32 ones that begin 0, 4, 16 and 32 bytes behind a multiple of 64 go to JAX by
# device_put (also with may_alias=False), jax.dlpack.from_dlpack, jnp.asarray and jnp.array; then twos are written to the numpy array and
# the JAX array is read.
# Seen (jax 0.10.2, numpy 2.4.6, processor): device_put and from_dlpack give 2 at a multiple of 64 and 1 elsewhere, at each size;
# jnp.asarray and jnp.array give 1 always. numpy gives most arrays an address that is a multiple of 16, large ones 16 behind a page, so
# that the same line copies today and shares tomorrow; views of a pinned or aligned buffer always share. device_put(x, may_alias=False)
# does the same, though by its documentation it copies; jnp.array(x) or x.copy() helps.
# What one would expect: one of both. A loop that fills one buffer for each batch and hands it over by device_put trains on later batches,
# or not, from one run to the next.
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


def ones(count, offset):
    """Ones at an address that is `offset` above a multiple of 64."""
    memory = np.zeros(count * 4 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    array = memory[start:start + 4 * count].view(np.float32)
    array[:] = 1
    return array


print("jax", jax.__version__, "numpy", np.__version__)
is_as_before = True
for name, shared, hand_over in (("jax.device_put", {0}, jax.device_put), ("jax.dlpack.from_dlpack", {0}, jax.dlpack.from_dlpack),
                                ("jax.device_put, may_alias=False", {0}, lambda x: jax.device_put(x, may_alias=False)),
                                ("jnp.asarray", set(), jnp.asarray), ("jnp.array", set(), jnp.array)):
    seen = {}
    for offset in (0, 4, 16, 32):
        for count in (4, 1000, 100000):
            x = ones(count, offset)
            y = jax.block_until_ready(hand_over(x))
            x[:] = 2
            seen[offset, count] = np.asarray(y).mean().item()
    print(name, {f"{offset} bytes, {count} elements": value for (offset, count), value in seen.items()})
    is_as_before &= all(value == (2 if offset in shared else 1) for (offset, _), value in seen.items())
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
