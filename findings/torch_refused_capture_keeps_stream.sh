#!/bin/bash
# A capture of PyTorch's that is refused leaves the thread on the capture's stream.
#
# What is done: a body that asks for a value (`.item()`) inside `with torch.cuda.graph(...)`, in a `try`; then
# torch.cuda.current_stream(). The same with a body that raises an exception of its own and records
# nothing that is refused.
# Seen (torch 2.11.0+cu130, H200): behind the refused body the current stream is the capture's, so later work of
# the thread does not run on the stream that the program thinks of; behind the other it is the default one.
# What one would expect: a context manager gives back what it took, however its block ends.
# Exit status: 0 the same, 1 something differs, 77 no GPU or no torch here.
# SPDX-License-Identifier: Apache-2.0
set -eu
if ! python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    echo "skipped: this needs a GPU and torch"
    exit 77
fi
python3 - <<'END'
import sys

import torch

print("torch", torch.__version__, torch.cuda.get_device_name())
x = torch.ones(4, device="cuda")
torch.cuda.synchronize()


def where(body):
    default, stream = torch.cuda.current_stream(), torch.cuda.Stream()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
            body()
    except Exception as error:
        print(f"  {type(error).__name__}: {str(error).splitlines()[0][:70]}")
    now = torch.cuda.current_stream()
    torch.cuda.set_stream(default)
    return "default" if now == default else "capture's" if now == stream else "another"


def complain():
    x.add(1)
    raise ValueError("the program's own")


own, refused = where(complain), where(lambda: x.sum().item())
print("behind an exception of the program's:", own, "- behind a refused call:", refused)
is_as_before = own == "default" and refused == "capture's"
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
