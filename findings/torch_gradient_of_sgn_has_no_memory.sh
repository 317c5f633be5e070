#!/bin/bash
# The gradient of torch.sgn is a tensor without memory: a clip of gradients, a second backward, fused SGD and torch.save raise errors
# that name "ZeroTensors"; that of torch.sign, the same zeros, does not.
#
# What is done: backward of sgn(x).sum() and of sign(x).sum() for a leaf x of two numbers; then, each from anew, plain and fused SGD,
# clip_grad_norm_, zero_grad(set_to_none=False), another backward, grad.numpy(), grad.tolist() and torch.save(grad).
# Seen (torch 2.15.0, CPU): both gradients print as zeros, but that of sgn answers _is_zerotensor() with True and has the address 0. A
# step of plain SGD works with it; all the others raise a RuntimeError (immutable, cannot be converted, not serializable). With sign all
# work, and so does sgn(x) * x, whose gradient is a sum.
# What one would expect: a gradient is a tensor like any other, and sgn of real numbers is sign, as its page says. A model that looks
# right in a first step fails in its second, or when gradients are clipped, averaged in place or saved, at a place far from sgn.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import io
import sys

import torch

ACTIONS = {
    "plain SGD": lambda x: torch.optim.SGD([x], lr=0.1, foreach=False).step(),
    "fused SGD": lambda x: torch.optim.SGD([x], lr=0.1, fused=True).step(),
    "clip_grad_norm_": lambda x: torch.nn.utils.clip_grad_norm_([x], 1.0),
    "zero_grad": lambda x: torch.optim.SGD([x], lr=0.1).zero_grad(set_to_none=False),
    "another backward": lambda x: (x * 2).sum().backward(),
    "numpy": lambda x: x.grad.numpy(),
    "tolist": lambda x: x.grad.tolist(),
    "save": lambda x: torch.save(x.grad, io.BytesIO()),
}


def failures(function):
    failed = []
    for name, action in ACTIONS.items():
        x = torch.ones(2, requires_grad=True)
        function(x).sum().backward()
        try:
            action(x)
        except RuntimeError as error:
            failed.append(name)
            print("   ", name, "-", str(error).splitlines()[0][:90])
    return failed


def is_without_memory(function):
    x = torch.ones(2, requires_grad=True)
    function(x).sum().backward()
    return x.grad._is_zerotensor() and x.grad.data_ptr() == 0


print("torch", torch.__version__)
is_as_before = True
for name, function, expected in (("sgn", torch.sgn, [action for action in ACTIONS if action != "plain SGD"]), ("sign", torch.sign, []),
                                 ("sgn(x) * x", lambda x: torch.sgn(x) * x, [])):
    print(name, "gradient without memory:", is_without_memory(function))
    is_as_before &= is_without_memory(function) == bool(expected) and failures(function) == expected
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
