#!/bin/bash
# Layer, group and batch norms of Flax take the mean of squares less the square of the mean by default: around 4096 deviations of 1 become
# 997 behind a LayerNorm, 315 behind a BatchNorm, and the average of variances learns 0. jax.nn.standardize does the same.
#
# What is done: flax.linen's LayerNorm, GroupNorm (one group), InstanceNorm and BatchNorm (training), and flax.nnx's LayerNorm and
# BatchNorm, of 4096 normal numbers of a seed with deviation 1 around 0, 100, 1000 and 4096, with defaults and with
# use_fast_variance=False; jax.nn.standardize of the same.
# Seen (flax 0.12.8, jax 0.10.2, processor): the spread of the result, which should be 1, is 1 around 0 and 100, 0.9976 around 1000, and
# 997.55 around 4096, which is the deviation times 1 / sqrt(epsilon) for the default epsilon of 1e-6: the variance comes out negative, is
# cut off at 0, and nothing is normalised. BatchNorm and standardize, whose epsilon is 1e-5, give 315.5; the average of variances that
# BatchNorm keeps goes from 1 to 0.99. With use_fast_variance=False all are 1; standardize has no such argument.
# What one would expect: a norm that does not depend on what it takes away, as PyTorch's. Nothing is NaN or infinite, so that a model
# whose activations have drifted trains on, with numbers that are a thousand times as large.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q flax==0.12.8 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6; then
    echo "skipped: pip could not install flax, jax, jaxlib and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys
import warnings

warnings.simplefilter("ignore")

import flax.linen
import flax.nnx
import jax
import numpy as np


def spread(module, x):
    """The deviation of what a module of linen makes of x."""
    variables = module.init(jax.random.key(0), x)
    return float(np.std(module.apply(variables, x)))


print("flax", importlib.metadata.version("flax"), "jax", jax.__version__)
normal = np.random.default_rng(0).standard_normal((1, 4096))
is_as_before = True
rows = {}
for mean in (0, 100, 1000, 4096):
    x = (mean + normal).astype(np.float32)
    column = x.T
    batch = flax.linen.BatchNorm(use_running_average=False)
    y, state = batch.apply(batch.init(jax.random.key(0), column), column, mutable=["batch_stats"])
    slow = flax.linen.BatchNorm(use_running_average=False, use_fast_variance=False)
    rngs = flax.nnx.Rngs(0)
    rows[mean] = {
        "LayerNorm": spread(flax.linen.LayerNorm(), x),
        "GroupNorm": spread(flax.linen.GroupNorm(num_groups=1), x),
        "InstanceNorm": spread(flax.linen.InstanceNorm(), column[None]),
        "BatchNorm": float(np.std(y)),
        "its average": float(state["batch_stats"]["var"][0]),
        "nnx.LayerNorm": float(np.std(flax.nnx.LayerNorm(4096, rngs=rngs)(x))),
        "nnx.BatchNorm": float(np.std(flax.nnx.BatchNorm(1, use_running_average=False, rngs=rngs)(column))),
        "standardize": float(np.std(jax.nn.standardize(x))),
        "slow LayerNorm": spread(flax.linen.LayerNorm(use_fast_variance=False), x),
        "slow BatchNorm": float(np.std(slow.apply(slow.init(jax.random.key(0), column), column, mutable=["batch_stats"])[0])),
    }
    print(f"around {mean:4}:", ", ".join(f"{name} {value:.4f}" for name, value in rows[mean].items()))
for name, value in rows[4096].items():
    if name.startswith("slow"):
        is_as_before &= abs(value - 1) < 1e-3
    elif name == "its average":
        is_as_before &= abs(value - 0.99) < 1e-4
    else:
        is_as_before &= any(abs(value / wanted - 1) < 0.01 for wanted in (997.55, 315.45))
    is_as_before &= name == "its average" or (abs(rows[0][name] - 1) < 1e-4 and abs(rows[100][name] - 1) < 2e-3)
is_as_before &= abs(rows[0]["its average"] - 0.99995) < 1e-3
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
