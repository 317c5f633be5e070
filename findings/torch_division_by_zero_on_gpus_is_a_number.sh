#!/bin/bash
# A whole number divided by 0 is a number in PyTorch on a GPU, and another one for each type: 5 // 0 is -1 in int32 and 4294967295 in
# int64, -5 // 0 is -2 in both. On a processor it is an error.
#
# What is done: [5, -5, 0, 7] // 0, % 0 and fmod of 0, in int8, int32, int64 and [5, 6, 0, 7] in uint8, on the processor and on the GPU; the
# first also in a CUDA graph.
# Seen (torch 2.11.0+cu130, H200): the processor raises a RuntimeError, "ZeroDivisionError", in each. On the GPU // gives -1, -2, -1, -1 in
# int8 and int32, 255 in uint8, and 4294967295, -2, 4294967295, 4294967295 in int64; % and fmod give the same but -1 for -5. Nothing is
# raised, nor behind a synchronisation; a graph's replay gives the same numbers.
# What one would expect: an error on both, or one answer. The count of an empty group, by which something is divided as a whole number,
# stops a test on the processor, and on the GPU is an index beyond every table.
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
for kind in (torch.int8, torch.uint8, torch.int32, torch.int64):
    values = [5, 6 if kind == torch.uint8 else -5, 0, 7]
    for name, function in (("//", torch.floor_divide), ("%", torch.remainder), ("fmod", torch.fmod)):
        try:
            function(torch.tensor(values, dtype=kind), torch.zeros(4, dtype=kind))
            is_as_before = False
        except RuntimeError as error:
            on_processor = str(error).splitlines()[0]
        seen = function(torch.tensor(values, dtype=kind, device="cuda"), torch.zeros(4, dtype=kind, device="cuda"))
        torch.cuda.synchronize()
        print(kind, values, name, "0: the processor says", on_processor, "- the GPU", seen.tolist())
        high = {torch.uint8: 255, torch.int64: 2**32 - 1}.get(kind, -1)
        second = high if kind == torch.uint8 else -2 if name == "//" else -1
        is_as_before &= seen.tolist() == [high, second, high, high]
x, zero = torch.tensor([5, -5], device="cuda"), torch.zeros(2, dtype=torch.int64, device="cuda")
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    y = x // zero
graph.replay()
torch.cuda.synchronize()
print("replayed, int64:", y.tolist())
is_as_before &= y.tolist() == [2**32 - 1, -2]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
