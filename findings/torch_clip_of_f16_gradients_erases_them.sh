#!/bin/bash
# Clipping by the norm of f16 gradients can make all of them 0, and moves gradients within the limit.
#
# What is done: torch.nn.utils.clip_grad_norm_ of two gradients of 60000 (limit 1) in f16 and f32, of (3, 4)
# with a limit of 5, and of (3e-7, 4e-7) with a limit of 5e-7.
# Seen (torch 2.15.0, CPU): the norm is formed in f16 and is infinite, so both gradients become 0, without an
# error; 1e-6 is added to the norm, so (3, 4) is changed and the small pair is cut to a third.
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
import sys

import torch

print("torch", torch.__version__)


def clip(values, dtype, limit):
    x = torch.zeros(len(values), dtype=dtype, requires_grad=True)
    x.grad = torch.tensor(values, dtype=dtype)
    norm = torch.nn.utils.clip_grad_norm_([x], limit)
    return norm.item(), x.grad.tolist()


half = clip([60000.0, 60000.0], torch.float16, 1.0)
full = clip([60000.0, 60000.0], torch.float32, 1.0)
exact = clip([3.0, 4.0], torch.float32, 5.0)
tiny = clip([3e-7, 4e-7], torch.float32, 5e-7)
print("two gradients of 60000, limit 1: f16", half, "f32", full)
print("(3, 4), limit 5:", exact, "; (3e-7, 4e-7), limit 5e-7:", tiny)
is_as_before = (half[1] == [0.0, 0.0] and 0.7 < full[1][0] < 0.71 and exact[1] != [3.0, 4.0]
                and 0.9e-7 < tiny[1][0] < 1.1e-7)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
