#!/bin/bash
# Adam with f16 weights divides by zero with its default epsilon, but for the fused form.
#
# What is done: one step of torch.optim.Adam (rate 0.1) on a weight of 1 with a gradient of 0 and of 1e-4,
# in f16 (plain and fused) and in bf16.
# Seen (torch 2.15.0, CPU): the epsilon of 1e-8 is 0 in f16, so the weight becomes NaN and -inf; the fused
# form, which computes in f32, and bf16 stay finite.
# Exit status: 0 the same, 1 something differs, 77 the package cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch 2.15.0 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import math
import sys

import torch

print("torch", torch.__version__)


def step(gradient, dtype, **options):
    x = torch.ones(1, dtype=dtype, requires_grad=True)
    x.grad = torch.full((1,), gradient, dtype=dtype)
    torch.optim.Adam([x], lr=0.1, **options).step()
    return x.item()


half = [step(g, torch.float16, foreach=False) for g in (0.0, 1e-4)]
fused = [step(g, torch.float16, fused=True) for g in (0.0, 1e-4)]
brain = [step(g, torch.bfloat16, foreach=False) for g in (0.0, 1e-4)]
print("a weight of 1 after a gradient of 0 and of 1e-4: f16", half, "f16 fused", fused, "bf16", brain)
is_as_before = (math.isnan(half[0]) and half[1] == -math.inf
                and all(math.isfinite(v) for v in fused + brain))
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
