#!/bin/bash
# JAX on the processor takes subnormal numbers for zero when it computes, compares too; its arrays hold and hand them on.
#
# What is done: x = 1e-39 (f32) as a JAX array: x itself, x * 2^20, x > 0, x == 0, log(x) and sqrt(x) with and without jit; 1e-20 *
# 1e-20, whose factors are normal numbers; the same by numpy.
# Seen (jax and jaxlib 0.10.2, numpy 2.4.6, x86-64): np.asarray gives x back as 1e-39; but x * 2^20 is 0 (numpy: 1.05e-33, a normal
# number), x > 0 False and x == 0 True, sqrt(x) 0 (3.16e-20), log(x) -103.97 (-89.80), 1e-20 * 1e-20 0 (1e-40); the same with and
# without jit. So a guard such as where(x == 0, ...) in numpy and what JAX does behind it disagree about which elements are
# zero, and values below 1.2e-38 vanish or have another logarithm than in numpy.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6; then
    echo "skipped: pip could not install jax 0.10.2, jaxlib 0.10.2 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import jax
import jax.numpy as jnp
import numpy as np


def forms(m, x, small):
    return {"x * 2^20": x * m.float32(2 ** 20), "x > 0": x > 0, "x == 0": x == 0, "log": m.log(x), "sqrt": m.sqrt(x),
            "1e-20 squared": small * small}


print("jax", jax.__version__, "numpy", np.__version__, "on", jax.devices()[0].platform)
x, small = np.full(3, 1e-39, np.float32), np.full(3, 1e-20, np.float32)
array = jnp.asarray(x)
is_held = np.array_equal(np.asarray(array), x) and np.asarray(array)[0] > 0
exact = forms(np, x, small)
eager = forms(jnp, array, jnp.asarray(small))
jitted = jax.jit(lambda a, b: forms(jnp, a, b))(x, small)
print("held:", bool(is_held))
is_as_before = bool(is_held) and jax.devices()[0].platform == "cpu"
zeros = {"x * 2^20": 0, "x > 0": False, "x == 0": True, "log": -103.97, "sqrt": 0, "1e-20 squared": 0}
for name, value in zeros.items():
    seen = [np.asarray(result[name])[0].item() for result in (exact, eager, jitted)]
    print(name, "numpy, jax, jax with jit:", seen)
    is_as_before &= seen[1] == seen[2] and abs(seen[1] - value) < 0.01 and seen[0] != seen[1]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/finding.py"
