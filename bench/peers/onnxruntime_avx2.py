#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A copy of the onnxruntime package that believes the processor has no AVX-512 and no VNNI.

Usage: bench/peers/onnxruntime_avx2.py FOLDER
       PYTHONPATH=FOLDER LD_PRELOAD=FOLDER/shim.so RONDO_MAX_CPU_ISA=AVX2 bench/peers/cpu_vs_onnxruntime.py ...

ONNX Runtime has no setting for this. In the copy each `cpuid` instruction that the disassembler finds
is an illegal one of the same length; shim.so (needs cc, on x86-64 Linux) answers it with what the
processor says, less the bits of AVX-512, AVX-VNNI and AMX. RONDO_MAX_CPU_ISA is for Rondo's side.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

SHIM = r"""
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

static void answer(int signal_number, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)r[REG_RIP];
    unsigned a, b, c, d;
    (void)info;
    if (at[0] != 0x0f || at[1] != 0x0b) {
        signal(signal_number, SIG_DFL);
        return;
    }
    const unsigned leaf = (unsigned)r[REG_RAX], part = (unsigned)r[REG_RCX];
    __cpuid_count(leaf, part, a, b, c, d);
    if (leaf == 7 && part == 0) {
        b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
        c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
        d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
    } else if (leaf == 7 && part == 1) {
        a &= ~(1u << 4 | 1u << 5 | 1u << 21);
        d &= ~(1u << 4 | 1u << 5 | 1u << 10 | 1u << 19);
    }
    r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
    r[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGILL, &action, 0);
}
"""


def find_instructions(path):
    """File offsets of the cpuid instructions in the executable segments."""
    headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    segments = [[int(number, 16) for number in match] for match in
                re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers)]
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, text=True) as dump:
        for line in dump.stdout:
            if line.rstrip().endswith("\tcpuid"):
                address = int(line.split(":")[0], 16)
                offset, start, _ = next(s for s in segments if s[1] <= address < s[1] + s[2])
                yield address - start + offset


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    import onnxruntime
    package = os.path.dirname(onnxruntime.__file__)
    target = os.path.join(folder, "onnxruntime")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(package, target)
    for path in glob.glob(os.path.join(target, "capi", "*.so*")):
        places = list(find_instructions(path))
        with open(path, "r+b") as file:
            for place in places:
                file.seek(place)
                assert file.read(2) == b"\x0f\xa2"
                file.seek(place)
                file.write(b"\x0f\x0b")
        print(f"{os.path.basename(path)}: {len(places)} instructions")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", os.path.join(folder, "shim.so")],
                   input=SHIM, text=True, check=True)


if __name__ == "__main__":
    main()
