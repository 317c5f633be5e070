#!/bin/bash
# An expression of whole numbers in a Triton kernel gives another result where an argument is 1: -n // 2 is -1, while it is towards zero
# for all other n.
#
# What is done: a kernel that stores -n // 2 and -n % 2 is compiled for n = 1, 3, 16 and 17 as a launch with that argument does it (warmup,
# for sm_90; no GPU is needed), and its code (TTIR) is computed here. The same with do_not_specialize, and for (n - 4) // 2 and
# (n - 6) // 2 with a constexpr.
# Seen (triton 3.9.0): // and % of values truncate, as in C, those of constants floor, as in Python; both stand in Triton's document on
# semantics. But a launch makes a constant of each whole argument that is 1, and so of what is formed from it: n = 1 gives -1 and 1,
# where C's rule gives 0 and -1; n = 3 gives -1 and -1 (Python: -2 and 1). With do_not_specialize = ["n"] n = 1 gives 0 and -1. So a
# count, a stride or a length of 1 changes the rule of an offset such as (n - BLOCK) // 2, and tests of larger sizes never see it.
# Run on an H200 (triton 3.6.0), the kernels of n store these numbers.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q triton==3.9.0; then
    echo "skipped: pip could not install triton"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import re
import sys
import warnings

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import MockTensor

warnings.simplefilter("ignore")


class NoGPU:
    """What a launch asks of a driver before it compiles."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


@triton.jit
def plain(out, n):
    tl.store(out, -n // 2)
    tl.store(out + 1, -n % 2)


@triton.jit(do_not_specialize=["n"])
def not_specialised(out, n):
    tl.store(out, -n // 2)
    tl.store(out + 1, -n % 2)


@triton.jit
def bounded(out, n, block: tl.constexpr):
    tl.store(out, (n - block) // 2)
    tl.store(out + 1, (n - block) % 2)


def cut(a, b):
    return abs(a) // b * (1 if a >= 0 else -1)


def stored(kernel, n, *constants):
    """The two numbers that the kernel's code stores for that n."""
    code = kernel.warmup(MockTensor(tl.int32), n, *constants, grid=(1,)).asm["ttir"]
    values, results = {"%n": n}, []
    for line in code.splitlines():
        if found := re.match(r"\s*(%[\w-]+) = arith\.constant (-?\d+) : i32", line):
            values[found[1]] = int(found[2])
        elif found := re.match(r"\s*(%[\w-]+) = arith\.(\w+) (%[\w-]+), (%[\w-]+) : i32", line):
            a, b = values[found[3]], values[found[4]]
            values[found[1]] = {"subi": lambda: a - b, "addi": lambda: a + b, "divsi": lambda: cut(a, b),
                                "remsi": lambda: a - b * cut(a, b)}[found[2]]()
        elif found := re.match(r"\s*tt\.store %[\w-]+, (%[\w-]+) :", line):
            results.append(values[found[1]])
    print(f"{kernel.__name__}, n = {n}:", results, "by values" if "divsi" in code else "by constants")
    return results


print("triton", triton.__version__)
driver.set_active(NoGPU())
is_as_before = stored(plain, 1) == [-1, 1]
for n in (3, 16, 17):
    is_as_before &= stored(plain, n) == [cut(-n, 2), -n - 2 * cut(-n, 2)]
for n in (1, 3):
    is_as_before &= stored(not_specialised, n) == [cut(-n, 2), -n - 2 * cut(-n, 2)]
is_as_before &= stored(bounded, 1, 4) == [-2, 1] and stored(bounded, 3, 6) == [-1, -1]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
