#!/bin/bash
# torch's gelu of infinity is infinity in a tensor of one element, and NaN in one of two and more, where numbers above 1.7e38 become infinity,
# too: from two on oneDNN computes it.
#
# What is done: torch.nn.functional.gelu of inf, of 1e38 and of 3e38, in f32 and bf16, for tensors of 1, 2, 8 and 67 equal elements, and
# for 67 with torch.backends.mkldnn switched off; the same with approximate="tanh", and silu, mish and softplus of inf.
# Seen (torch 2.15.0, x86-64): one element gives inf, and 3e38 stays 3e38. In each longer tensor all are NaN, and inf for 3e38, in f32 and
# bf16 alike; without oneDNN they are as in the short one. gelu by tanh, silu, mish and softplus of inf are inf.
# What one would expect: x for large x, infinity for infinity, whatever the length. A test on one number passes, and an overflow that the
# next layer would have clipped is a NaN in the network.
# Exit status: 0 the same, 1 something differs, 77 the package cannot be installed here.
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
import math
import sys

import torch
from torch.nn import functional

print("torch", torch.__version__, torch.backends.cpu.get_cpu_capability())
is_as_before = True


def values(function, x, count, kind):
    return {str(y) for y in function(torch.full((count,), x, dtype=kind)).tolist()}


for kind in (torch.float32, torch.bfloat16):
    for count in (1, 2, 8, 67):
        seen = {x: values(functional.gelu, x, count, kind) for x in (math.inf, 3e38, 1e38)}
        print(kind, f"{count} elements: gelu of inf", *seen[math.inf], "of 3e38", *seen[3e38], "of 1e38", *seen[1e38])
        is_as_before &= seen[math.inf] == ({"inf"} if count == 1 else {"nan"})
        is_as_before &= seen[3e38] == ({str(torch.tensor(3e38, dtype=kind).item())} if count == 1 else {"inf"})
        is_as_before &= seen[1e38] == {str(torch.tensor(1e38, dtype=kind).item())}
        for other in (lambda x: functional.gelu(x, approximate="tanh"), functional.silu, functional.mish, functional.softplus):
            is_as_before &= values(other, math.inf, count, kind) == {"inf"}
    with torch.backends.mkldnn.flags(enabled=False):
        seen = {x: values(functional.gelu, x, 67, kind) for x in (math.inf, 3e38)}
    print(kind, "67 elements without oneDNN: gelu of inf", *seen[math.inf], "of 3e38", *seen[3e38])
    is_as_before &= seen == {math.inf: {"inf"}, 3e38: {str(torch.tensor(3e38, dtype=kind).item())}}
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
