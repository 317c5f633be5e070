#!/bin/bash
# The gradient of torch.clamp at its limits depends on what the limits are.
#
# What is done: clamp to [-1, 1] of -1, -0.5 and 1, once with limits that are numbers and once with
# tensors of the same numbers; hardtanh of the same.
# Seen (torch 2.15.0, CPU): at a limit that is a number the gradient is 0, at one that is a tensor 0.5
# (releases before gave 1 for numbers). Rondo's gradient of Clip is 0 there.
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


def slopes(limits):
    x = torch.tensor([-1.0, -0.5, 1.0], requires_grad=True)
    torch.clamp(x, *limits).sum().backward()
    return x.grad.tolist()


numbers = slopes((-1.0, 1.0))
tensors = slopes((torch.tensor(-1.0), torch.tensor(1.0)))
hard_tanh = torch.tensor([-1.0, -0.5, 1.0], requires_grad=True)
torch.nn.functional.hardtanh(hard_tanh).sum().backward()
print("gradient at -1, inside, at 1: limits that are numbers", numbers, "tensors", tensors,
      "hardtanh", hard_tanh.grad.tolist())
is_as_before = (numbers == [0.0, 1.0, 0.0] and tensors == [0.5, 1.0, 0.5]
                and hard_tanh.grad.tolist() == [0.0, 1.0, 0.0])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
