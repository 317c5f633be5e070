#!/bin/bash
# Keras' cross-entropies of probabilities have a gradient of exactly 0 where the model is surest and wrong: the loss stops at 16, and what
# made the mistake learns nothing. Rows of the categorical one are divided by their sum first.
#
# What is done: binary, categorical and sparse categorical cross-entropy of the probabilities 0, 1e-8, 1e-6 and 0.1 for the true class,
# and the gradient by the probability, in Keras with JAX; the same by from_logits=True for the logits of those probabilities; and of rows
# 0.1 0.1 and 5 5.
# Seen (keras 3.15.1, jax 0.10.2, processor): the loss of the true class at 1e-8 and at 0 is 16.12 in all three, with gradients of 0; at
# 1e-6 it is 13.8 with a gradient of -1e6. With from_logits=True the gradient by the logit is -1 for the surest mistake, and the loss
# grows without a limit. Probabilities are clipped to 1e-7 ... 1 - 1e-7, and the clip passes no gradient. A row 0.1 0.1 has the loss of
# 0.5 0.5, and 5 5 too: 0.6931.
# What one would expect: a clip that keeps logarithms finite, and a gradient. A softmax or sigmoid in f32 gives probabilities below 1e-7
# at a logit of -16 already; such rows are the ones that should move most. Outputs that do not add up to one pass as if they did.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6; then
    echo "skipped: pip could not install keras, jax and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import jax
import jax.numpy as jnp
import keras
import numpy as np

LOSSES = keras.losses


def binary(p, from_logits=False):
    return LOSSES.binary_crossentropy(jnp.array([[1.0]]), jnp.reshape(p, (1, 1)), from_logits=from_logits)[0]


def categorical(p):
    return LOSSES.categorical_crossentropy(jnp.array([[1.0, 0.0]]), jnp.stack([p, 1 - p])[None])[0]


def sparse(p):
    return LOSSES.sparse_categorical_crossentropy(jnp.array([0]), jnp.stack([p, 1 - p])[None])[0]


print("keras", keras.__version__, "backend", keras.backend.backend(), "jax", jax.__version__)
is_as_before = True
for name, loss, limit in (("binary", binary, 16.12), ("categorical", categorical, 16.12), ("sparse", sparse, 16.12)):
    for p in (0.0, 1e-8, 1e-6, 0.1):
        value, gradient = (float(v) for v in jax.value_and_grad(loss)(jnp.float32(p)))
        print(f"{name} at {p}: loss {value:.4f} gradient {gradient:g}")
        if p < 1e-7:
            is_as_before &= abs(value - limit) < 0.01 and gradient == 0
        else:
            is_as_before &= abs(value + np.log(p)) < 0.12 and gradient < -0.4 / p
for logit in (-16.0, -30.0, -100.0):
    value, gradient = (float(v) for v in jax.value_and_grad(lambda x: binary(x, True))(jnp.float32(logit)))
    print(f"binary from the logit {logit}: loss {value:.4f} gradient {gradient:g}")
    is_as_before &= abs(value + logit) < 1e-4 and abs(gradient + 1) < 1e-4
for row in ([0.1, 0.1], [5.0, 5.0], [0.5, 0.5]):
    value = float(LOSSES.categorical_crossentropy(jnp.array([[1.0, 0.0]]), jnp.array([row]))[0])
    print("categorical of", row, f"is {value:.4f}")
    is_as_before &= abs(value - np.log(2)) < 1e-5
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/finding.py"
