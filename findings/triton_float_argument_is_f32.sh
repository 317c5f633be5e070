#!/bin/bash
# A Python float that is handed to a Triton kernel arrives as an f32, also where all else is f64; a literal of the same number does not.
#
# What is done: a kernel that loads an f64, multiplies it by an argument, by a literal 0.1 and by a constexpr argument, and stores all
# three is compiled as a launch with the arguments 0.1 and 0.1 does it (warmup, for sm_90; no GPU is needed), and its code (TTIR) is
# read. The same for an argument that is annotated as tl.float64.
# Seen (triton 3.9.0): the argument is declared f32 and widened in the kernel, so 0.1 is 0.10000000149 there (1e300 would be inf); the
# literal and the constexpr are f64, 0.1 to the last bit. Annotated as tl.float64 the argument is f64. So a step size, an
# epsilon or a limit handed over as an argument limits an f64 kernel to seven digits, and moving a number from
# the source into the arguments changes results. Run on an H200 (triton 3.6.0), 1 * argument is 0.10000000149, 1 * literal 0.1.
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
def plain(x, argument, constant: tl.constexpr):
    value = tl.load(x)
    tl.store(x, value * argument)
    tl.store(x + 1, value * 0.1)
    tl.store(x + 2, value * constant)


@triton.jit
def annotated(x, argument: tl.float64, constant: tl.constexpr):
    value = tl.load(x)
    tl.store(x, value * argument)
    tl.store(x + 1, value * 0.1)
    tl.store(x + 2, value * constant)


def compile_as_launched(kernel, argument):
    """The kernel's types of arguments, whether it widens an f32, and its f64 constants."""
    compiled = kernel.warmup(MockTensor(tl.float64), argument, 0.1, grid=(1,))
    code = compiled.asm["ttir"]
    constants = [float(number) for number in re.findall(r"arith\.constant (\S+) : f64", code)]
    print(f"{kernel.__name__}, {argument}:", compiled.src.signature["argument"], "constants:", constants)
    return compiled.src.signature["argument"], bool(re.search(r"arith\.extf %argument : f32 to f64", code)), constants


print("triton", triton.__version__)
driver.set_active(NoGPU())
is_as_before = compile_as_launched(plain, 0.1) == ("fp32", True, [0.1])
is_as_before &= compile_as_launched(plain, 1e300) == ("fp32", True, [0.1])
is_as_before &= compile_as_launched(annotated, 0.1) == ("fp64", False, [0.1])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
