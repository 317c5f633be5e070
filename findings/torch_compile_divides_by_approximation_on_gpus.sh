#!/bin/bash
# torch.compile divides f32 on a GPU by an approximation: 21 / 7 is a little more than 3, so its ceiling is 4. Eager torch rounds
# correctly.
#
# What is done: (7 k) / 7 for k = 1 to 4096 in f32, its ceiling and whether it is k, eagerly and by torch.compile on the GPU, and for the
# divisors 3, 10, 49 and 641; x / y of random numbers beside the eager result; the ceiling of pages of 7 elements.
# Seen (torch 2.11.0+cu130, H200): of the quotients by 7 2724 of 4096 are not k, but the next number above, and so as many ceilings are k
# + 1; by 3, 10, 49 and 641 all are k. Eagerly all are. Of random quotients a quarter is one unit in the last place off.
# What one would expect: division as IEEE 754 has it, which CUDA's C++ and eager torch give: a multiple divided by its factor is exact.
# Triton's "/" is div.full.f32, of up to two units of error; numbers of pages, bins and steps that are computed in floats are one too
# many.
# Exit status: 0 the same, 1 something differs, 77 no GPU or no torch here.
# SPDX-License-Identifier: Apache-2.0
set -eu
if ! python3 -c "import sys, torch; sys.exit(not torch.cuda.is_available())" 2>/dev/null; then
    echo "skipped: this needs a GPU and torch"
    exit 77
fi
python3 - <<'END'
import sys

import torch


def divide(x, y):
    return x / y, torch.ceil(x / y)


print("torch", torch.__version__, torch.cuda.get_device_name())
compiled = torch.compile(divide)
k = torch.arange(1, 4097, dtype=torch.float32, device="cuda")
is_as_before, counts = True, {}
for divisor in (3, 7, 10, 49, 641):
    y = torch.full_like(k, divisor)
    eager = [(seen != k).sum().item() for seen in divide(k * y, y)]
    counts[divisor] = [(seen != k).sum().item() for seen in compiled(k * y, y)]
    print(f"({divisor} k) / {divisor} is not k, its ceiling is not k: eagerly {eager}, compiled {counts[divisor]} of 4096")
    is_as_before &= eager == [0, 0]
three = compiled(torch.full_like(k, 21), torch.full_like(k, 7))
print(f"21 / 7 compiled: {three[0][0].item():.9g}, its ceiling {three[1][0].item():g}")
torch.manual_seed(0)
x, y = torch.rand(2, 4096, device="cuda") + 0.5
error = (compiled(x, y)[0] / divide(x, y)[0] - 1).abs()
print(f"random quotients: {(error > 0).sum().item()} of 4096 differ, by up to {error.max().item():.2g}")
is_as_before &= counts[7][0] > 1000 and counts[7][1] > 1000 and three[1][0].item() == 4 and (error > 0).sum().item() > 400
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
