#!/bin/bash
# With gradient accumulation Keras' average of weights moves, and its schedule of the rate goes on, at each micro-batch, while Adam counts
# steps: the average forgets as many times as fast, a decay is over as many times as early.
#
# What is done: SGD(1) on a weight of 0 with a gradient of 1, use_ema with a momentum of 0.5, sixteen calls of apply: with and without
# gradient_accumulation_steps=4, and both with ema_overwrite_frequency=2; SGD with the rates 1 for two steps, 0.5 for one and 0.25 from
# there on, and Adam(0.1) with gradients of 1 1 0 0 0 0, with and without accumulation over two.
# Seen (keras 3.15.1 on jax 0.10.2): four steps without accumulation end at an average of -3.125. With it sixteen calls make the same four
# steps of the weight, and the average behind the third step goes -2.469 -2.734 -2.867 -2.934, though the weight rests. With the
# overwriting call 13, at which no gradient is applied, makes -2.25 of a weight of -2.5. Steps of SGD are 1 1 0.5 0.25, and with
# accumulation 1 0.25 0.25. Adam's steps are those of 1 0 0 without accumulation.
# What one would expect: accumulation that is a larger batch in smaller parts: an average and a rate per step, and weights that
# rest in between. Code that adds accumulation later has to multiply its schedules and take the root of its momentum.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q keras==3.15.1 jax==0.10.2 numpy==2.4.6; then
    echo "skipped: pip could not install keras and jax"
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

print("keras", keras.__version__, "jax", jax.__version__)


def run(calls, **settings):
    weight = keras.Variable(np.zeros(1, np.float32))
    rule = keras.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5, **settings)
    rule.build([weight])
    weights, averages = [], []
    for _ in range(calls):
        rule.apply([jnp.ones(1)], [weight])
        weights.append(float(weight.value[0]))
        averages.append(float(rule._model_variables_moving_average[0].value[0]))
    return weights, averages


plain = run(4)
gathered = run(16, gradient_accumulation_steps=4)
replaced = run(6, ema_overwrite_frequency=2)
both = run(16, gradient_accumulation_steps=4, ema_overwrite_frequency=2)
for name, (weights, averages) in (
    ("no accumulation", plain),
    ("4 micro-batches", gathered),
    ("overwritten every 2", replaced),
    ("both", both),
):
    print(f"{name}: weights {weights}")
    print(f"    averages {averages}")


def places(rule, gradients):
    weight = keras.Variable(np.zeros(1, np.float32))
    rule.build([weight])
    seen = [0.0]
    for gradient in gradients:
        rule.apply([jnp.full(1, float(gradient))], [weight])
        seen.append(float(weight.value[0]))
    return np.diff(seen)


schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1, 2], [1.0, 0.5, 0.25])
rates = -places(keras.optimizers.SGD(schedule), 4 * [1])
gathered_rates = -places(keras.optimizers.SGD(schedule, gradient_accumulation_steps=2), 6 * [1])
print("steps of SGD with a schedule:", rates.tolist(), "with 2 micro-batches:", gathered_rates.tolist())
adam = places(keras.optimizers.Adam(0.1), [1, 0, 0])
gathered_adam = places(keras.optimizers.Adam(0.1, gradient_accumulation_steps=2), [1, 1, 0, 0, 0, 0])
print("steps of Adam:", adam.tolist(), "with 2 micro-batches:", gathered_adam.tolist())
is_as_before = rates.tolist() == [1, 1, 0.5, 0.25] and gathered_rates.tolist() == [0, 1, 0, 0.25, 0, 0.25]
is_as_before &= np.allclose(gathered_adam[1::2], adam, atol=1e-6) and not gathered_adam[::2].any()
is_as_before &= plain == ([-1, -2, -3, -4], [-1, -1.5, -2.25, -3.125])
is_as_before &= gathered[0] == [0, 0, 0, -1, -1, -1, -1, -2, -2, -2, -2, -3, -3, -3, -3, -4]
is_as_before &= gathered[1][11:] == [-2.46875, -2.734375, -2.8671875, -2.93359375, -3.466796875]
is_as_before &= replaced[0] == [-1, -1.5, -2.5, -2.75, -3.75, -4]
is_as_before &= both[0][11:13] == [-2.5, -2.25] and both[0][6:8] == [-1, -1.5]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
