#!/bin/bash
# jax.random.categorical of bf16 logits takes the first of equal classes: of 1000 equal ones the first half gets 98 of 100 draws, the last
# tenth one in 1500; of 50000 none behind the first 1300 is ever drawn.
#
# What is done: draws from n equal logits (zeros) in bf16, f16 and f32, n = 2, 100, 1000 and 50000, and for bf16 with mode="high", too.
# Seen (jax 0.10.2, numpy 2.4.6, processor): the share of the first half in bf16 is 0.50, 0.59, 0.98 and 1; in f16 0.50, 0.52, 0.62 and 1;
# in f32 0.50 for all. Of 2000 draws from 50000 classes of bf16 the greatest is number 1265. The noise that is added to the logits is
# drawn in their own type, where uniform numbers have 128 values (f16: 1024), so the largest is often shared, and the greatest of equals
# is the first. With mode="high" the shares are 0.51; logits.astype(float32) gives those of f32.
# What one would expect: logits of a language model come in bf16, and a rounding of them moves probabilities by a part in 256, not a
# token's place in the vocabulary. A top-k or a sharp distribution hides it; a flat one (high temperature, exploration) shows it.
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

# The share of the first half in the draws, from and to.
EXPECTED = {
    ("bfloat16", None): {2: (0.49, 0.52), 100: (0.57, 0.62), 1000: (0.97, 0.99), 50000: (1, 1)},
    ("float16", None): {2: (0.49, 0.52), 100: (0.50, 0.53), 1000: (0.60, 0.64), 50000: (0.999, 1)},
    ("float32", None): {2: (0.49, 0.52), 100: (0.48, 0.52), 1000: (0.48, 0.52), 50000: (0.46, 0.54)},
    ("bfloat16", "high"): {1000: (0.49, 0.53)},
}
print("jax", jax.__version__, "numpy", np.__version__)
is_as_before = True
for (kind, mode), shares in EXPECTED.items():
    for classes, (least, most) in shares.items():
        count = 2000 if classes == 50000 else 20000
        draws = np.asarray(jax.random.categorical(jax.random.key(0), jnp.zeros(classes, kind), shape=(count,), mode=mode))
        share = float((draws < classes / 2).mean())
        print(f"{kind} mode {mode}: {classes} equal classes, share of the first half {share:.4f}, greatest drawn {draws.max()}")
        is_as_before &= least <= share <= most
        if (kind, mode, classes) == ("bfloat16", None, 1000):
            is_as_before &= (draws >= 900).mean() < 0.002
        if (kind, mode, classes) == ("bfloat16", None, 50000):
            is_as_before &= draws.max() < 2000
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
