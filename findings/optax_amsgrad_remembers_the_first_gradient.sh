#!/bin/bash
# amsgrad of optax remembers the first gradients as if they were a thousand: it takes the maximum of the corrected averages, where Keras,
# PyTorch and the paper take that of the averages. Behind one gradient of 10 its steps are an eighth of theirs.
#
# What is done: 200 steps with a gradient of 10 and then 1 by optax.amsgrad(0.1), optax.adam(0.1), Keras' Adam with amsgrad=True, and by
# AMSGrad written out as PyTorch has it, which torch.optim.Adam(amsgrad=True) of 2.15.0 agrees with (not run here).
# Seen (optax 0.2.8, jax 0.10.2, keras 3.15.1): step 200 is 0.0100 by optax and 0.0831 by the others, step 10 is 0.0154 and 0.0466.
# The second average, divided by 1 - 0.999^step, is 100 after the first step and stays the maximum for good; undivided it is 0.1,
# and what follows passes it within 100 steps. Thus what the first batches look like sets the rate of the whole training.
# What one would expect: the published rule, whose maximum forgets the first step as Adam does: amsgrad and Adam are equal here in the
# other libraries.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q optax==0.2.8 jax==0.10.2 numpy==2.4.6 keras==3.15.1; then
    echo "skipped: pip could not install optax, jax and keras"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
import jax
import jax.numpy as jnp
import keras
import numpy as np
import optax

print("optax", optax.__version__, "jax", jax.__version__, "keras", keras.__version__)
gradients = [10.0] + [1.0] * 199


def steps_of_optax(rule):
    weight = jnp.zeros(1)
    state = rule.init(weight)
    steps = []
    for gradient in gradients:
        update, state = rule.update(jnp.full(1, gradient), state, weight)
        weight = optax.apply_updates(weight, update)
        steps.append(-float(update[0]))
    return np.array(steps)


def steps_of_keras():
    weight = keras.Variable(np.zeros(1, np.float32))
    rule = keras.optimizers.Adam(0.1, amsgrad=True)
    rule.build([weight])
    places = [0.0]
    for gradient in gradients:
        rule.apply([jnp.full(1, gradient)], [weight])
        places.append(float(weight.value[0]))
    return -np.diff(places)


def steps_written_out():
    first = second = greatest = 0.0
    steps = []
    for step, gradient in enumerate(gradients, 1):
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient * gradient
        greatest = max(greatest, second)
        steps.append(0.1 * first / (1 - 0.9**step) / ((greatest / (1 - 0.999**step)) ** 0.5 + 1e-8))
    return np.array(steps)


rows = {
    "optax.amsgrad": steps_of_optax(optax.amsgrad(0.1)),
    "optax.adam": steps_of_optax(optax.adam(0.1)),
    "keras, amsgrad": steps_of_keras(),
    "written out": steps_written_out(),
}
for name, steps in rows.items():
    print(f"{name}: steps 1, 2, 10, 100, 200 are", " ".join(f"{steps[step - 1]:.4f}" for step in (1, 2, 10, 100, 200)))
is_as_before = np.allclose(rows["optax.amsgrad"][[0, 1, 9, 199]], [0.1, 0.05263, 0.01535, 0.01], atol=1e-4)
for name in ("optax.adam", "keras, amsgrad"):
    is_as_before &= np.allclose(rows[name], rows["written out"], atol=2e-4)
is_as_before &= abs(rows["written out"][199] - 0.0831) < 1e-4
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
