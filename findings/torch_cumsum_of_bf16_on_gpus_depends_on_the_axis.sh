#!/bin/bash
# The running sum of ones in bf16 on a GPU stops at 256 along the first axis, and goes to 992 or 996 of 1000 along the last; on a
# processor it is right.
#
# What is done: cumsum of 1000 ones in bf16 and of 5000 in f16, as a vector, along the first axis of 1000 x 100 and along the last one of
# 100 x 1000, on the GPU and on the processor; the sum, and cumsum in f32.
# Seen (torch 2.11.0+cu130, H200): bf16 ends at 992 as a vector, at 996 along the last axis and at 256 along the first one, where it
# stands still from the 256th on; f16 at 4980, 4996 and 2048. On the processor all end at 1000 and 5000, which the types have, as the sums
# of both do, and f32 on each.
# What one would expect: sums in f32 that are rounded once, as the processor's cumsum and the GPU's own sum have them; or one result of
# the three: offsets, cumulated probabilities and positions are another sequence when the tensor is transposed.
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

print("torch", torch.__version__, torch.cuda.get_device_name())
is_as_before = True
for kind, count, right in ((torch.bfloat16, 1000, 1000), (torch.float16, 5000, 5000), (torch.float32, 5000, 5000)):
    ends = {}
    for device in ("cuda", "cpu"):
        vector = torch.ones(count, dtype=kind, device=device).cumsum(0)
        first = torch.ones(count, 100, dtype=kind, device=device).cumsum(0)[:, 0]
        last = torch.ones(100, count, dtype=kind, device=device).cumsum(1)[0]
        total = torch.ones(count, dtype=kind, device=device).sum()
        ends[device] = [x[-1].item() for x in (vector, first, last)]
        print(f"{kind} {device}: the running sum of {count} ones ends at {ends[device][0]:g} as a vector,",
              f"{ends[device][1]:g} along the first axis, {ends[device][2]:g} along the last; the sum is {total.item():g}")
        is_as_before &= total.item() == right
        if kind != torch.float32 and device == "cuda":
            stop = 256 if kind == torch.bfloat16 else 2048
            is_as_before &= ends[device][1] == stop == first[stop + 50].item()
            is_as_before &= stop < ends[device][0] < right and stop < ends[device][2] < right
        else:
            is_as_before &= ends[device] == [right] * 3
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
