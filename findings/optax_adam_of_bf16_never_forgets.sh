#!/bin/bash
# Adam of optax keeps its averages in the type of the weights, and in bf16 the second one never falls: one large gradient holds a weight's
# step down for good, and under a constant gradient of 1 the average stops at 0.5.
#
# What is done: optax.adam(1e-3) on weights of bf16 and f32, one gradient of 1 and then 3000 of 0; 3000 gradients of 1; and one gradient
# of 1 and then 3000 of 0.01, of which the last step is looked at. The same with optax.adamw.
# Seen (optax 0.2.8, jax 0.10.2, processor): 3000 steps behind the gradient of 1 the second average is 0.000999 in bf16, what it was after
# the first step, and 5.0e-5 in f32: 0.999 times a number of 8 digits rounds to the number itself. Under gradients of 1 it stops at 0.5
# (f32: 0.95, on its way to 1), and the first one at 0.984, so that steps are 1.35 times the rate. Behind one large gradient the small
# ones move the weight by 0.38 of f32's step. The argument mu_dtype is for the first average alone.
# What one would expect: averages in f32 where weights are bf16, or a warning: eight bits cannot hold an average over a thousand steps.
# Training in pure bf16 runs, without errors, with rates of its own for each weight that depend on its first gradients.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q optax==0.2.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6; then
    echo "skipped: pip could not install optax, jax and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax


def train(maker, kind, gradients):
    """The averages behind the gradients (number, gradient) and the last update, as floats."""
    optimiser = maker(1e-3)
    weight = jnp.zeros(1, kind)
    state = optimiser.init(weight)
    update = jax.jit(optimiser.update)
    for count, gradient in gradients:
        for _ in range(count):
            change, state = update(jnp.full(1, gradient, kind), state, weight)
    adam = state[0]
    assert adam.nu.dtype == kind
    return float(adam.mu[0]), float(adam.nu[0]), float(change[0])


print("optax", importlib.metadata.version("optax"), "jax", jax.__version__)
is_as_before = True
for maker in (optax.adam, optax.adamw):
    for kind in (jnp.bfloat16, jnp.float32):
        first = train(maker, kind, [(1, 1)])
        decayed = train(maker, kind, [(1, 1), (3000, 0)])
        constant = train(maker, kind, [(3000, 1)])
        small = train(maker, kind, [(1, 1), (3000, 0.01)])
        for name, seen in (("1 once", first), ("1 once, then 3000 of 0", decayed), ("3000 of 1", constant),
                           ("1 once, then 3000 of 0.01", small)):
            print(maker.__name__, kind.__name__, name + ":", "averages {:.6g} and {:.6g}, last step {:.6g}".format(*seen))
        if kind is jnp.bfloat16:
            is_as_before &= first[1] == decayed[1] and abs(decayed[1] - 1e-3) < 1e-5 and constant[1] == 0.5 and constant[0] == 0.984375
            is_as_before &= 1.35e-3 < -constant[2] < 1.45e-3 and 2e-4 < -small[2] < 4e-4
        else:
            is_as_before &= abs(decayed[1] / (1e-3 * 0.999**3000) - 1) < 1e-3 and abs(constant[1] - (1 - 0.999**3000)) < 1e-4
            is_as_before &= abs(constant[2] + 1e-3) < 1e-6 and 7e-4 < -small[2] < 1.1e-3
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
