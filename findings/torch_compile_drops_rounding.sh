#!/bin/bash
# torch.compile drops a rounding that is written out: x.half().float() is x, and so is x.bfloat16().float().
#
# What is done: x.half().float() * 2 and x.bfloat16().float() * 2 of 64 f32 numbers, their low parts x - x.half().float(), and (x + 1) - x of f16
# numbers, eagerly and by torch.compile (inductor, processor), also with emulate_precision_casts; by numpy.
# Seen (torch 2.15.0, numpy 2.4.6): eager torch is numpy. Compiled, the first two are x * 2 to the last bit, so that a simulated
# quantisation, a test of a half precision model or a split of a number into its high and low part does nothing: the low part
# x - x.half().float() is 0. (x + 1) - x in f16 is 1 where every step of f16 gives 0 (x from 4096). With
# torch._inductor.config.emulate_precision_casts = True all are as in eager torch. Known there (issues 183761 and 185337).
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here, or there is no C++ compiler.
# SPDX-License-Identifier: Apache-2.0
set -eu
if ! command -v g++ >/dev/null; then
    echo "skipped: torch.compile needs g++ on the processor"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch 2.15.0 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import torch


def half(x):
    return x.half().float() * 2, x - x.half().float()


def bfloat16(x):
    return x.bfloat16().float() * 2, x - x.bfloat16().float()


def steps(x):
    return ((x + 1) - x,)


def compiled(function, x, is_emulated=False):
    torch._dynamo.reset()
    with torch._inductor.config.patch(emulate_precision_casts=is_emulated):
        return torch.compile(function)(x)


def alike(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


print("torch", torch.__version__, "numpy", np.__version__)
torch.manual_seed(0)
x = torch.randn(64)
rounded = x.numpy().astype(np.float16).astype(np.float32)
is_as_before = np.array_equal(half(x)[0].numpy(), rounded * 2) and not np.array_equal(rounded, x.numpy())
for function in (half, bfloat16):
    eager, fast, exact = function(x), compiled(function, x), compiled(function, x, True)
    is_kept = torch.equal(fast[0], x * 2)
    print(function.__name__, "compiled: x * 2", is_kept, "largest low part", fast[1].abs().max().item(), "eager",
          eager[1].abs().max().item(), "emulated as eager:", alike(eager, exact))
    is_as_before &= is_kept and not fast[1].any() and bool(eager[1].any()) and alike(eager, exact)
large = torch.full((64,), 4096.0).half()
results = [steps(large), compiled(steps, large), compiled(steps, large, True)]
print("(4096 + 1) - 4096 in f16, eager, compiled, emulated:", [values[0][0].item() for values in results])
is_as_before &= [set(values[0].tolist()) for values in results] == [{0.0}, {1.0}, {0.0}]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
TORCHINDUCTOR_CACHE_DIR="$folder/cache" "$folder/venv/bin/python" "$folder/finding.py"
