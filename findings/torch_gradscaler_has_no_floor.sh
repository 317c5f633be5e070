#!/bin/bash
# The loss scale of torch's GradScaler falls without a limit, and then lets infinities pass.
#
# What is done: a weight of 1 with a gradient of 1 is trained by SGD (rate 0.5) at a scale of 2^-126 and of
# 2^-128; then 130 steps overflow from a scale of 1.
# Seen (torch 2.15.0, CPU): at 2^-128 the reciprocal of the scale is infinite in f32, the check for infinities
# looks at the gradient before it is multiplied, and the weight becomes -inf; 130 overflows lead there.
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
import warnings

import torch

warnings.simplefilter("ignore")
print("torch", torch.__version__)


def train(exponent):
    x = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**exponent)
    scaler.scale(x.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return x.item()


fine, bad = train(-126), train(-128)
print("a weight of 1 with a gradient of 1: scale 2^-126 gives", fine, "2^-128 gives", bad)
overflows = torch.ones(1, requires_grad=True)
scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
for _ in range(130):
    optimizer = torch.optim.SGD([overflows], lr=0.5)
    overflows.grad = torch.full((1,), math.inf)
    scaler.scale(torch.zeros(()))
    scaler.step(optimizer)
    scaler.update()
print("130 overflows halve the scale from 1 to", scaler.get_scale())
is_as_before = fine == 0.5 and bad == -math.inf and scaler.get_scale() == 2.0**-130
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
