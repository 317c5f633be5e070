#!/bin/bash
# A cubin's ELF header has its architecture in another byte, and another ABI, depending on the toolkit that wrote it: sm_90 of CUDA 12.9
# and of 13.2 are told by different rules, and 12.9 itself uses both.
#
# What is done: one kernel is compiled for sm_75, sm_90, sm_90a, sm_100 and sm_120 by NVRTC 12.9.86 and 13.2.86 (no GPU is needed), and
# the first 52 bytes of the cubins are read: EI_OSABI (byte 7), EI_ABIVERSION (byte 8), e_version (20) and e_flags (48).
# Seen: 12.9 writes OS ABI 51, ABI 7 and the architecture in the lowest byte of e_flags (0x5a = 90), repeated in bits 16 to 23, for
# sm_75 and sm_90, with bit 0x800 for sm_90a; and OS ABI 65, ABI 8 and the architecture in the second byte (0x64 = 100, the
# lowest byte is 2) for sm_100 and sm_120. 13.2 writes the second form for all, and its sm_90a has the flags of its sm_90, so
# that the two are no longer told apart here. A reader of the lowest byte finds 2 or 4.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q --no-deps --target "$folder/old" nvidia-cuda-nvrtc-cu12==12.9.86 ||
    ! "$folder/venv/bin/pip" install -q --no-deps --target "$folder/new" nvidia-cuda-nvrtc==13.2.86; then
    echo "skipped: pip could not install nvidia-cuda-nvrtc-cu12 12.9.86 and nvidia-cuda-nvrtc 13.2.86"
    exit 77
fi
old=$(find "$folder/old" -name libnvrtc.so.12)
new=$(find "$folder/new" -name libnvrtc.so.13)
if [ ! -f "$old" ] || [ ! -f "$new" ]; then
    echo "skipped: the packages have no library for this machine"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import ctypes
import struct
import sys

SOURCE = b'extern "C" __global__ void scale(float *x, float y) { x[threadIdx.x] *= y; }'
ARCHITECTURES = ("sm_75", "sm_90", "sm_90a", "sm_100", "sm_120")


def call(function, *arguments):
    status = function(*arguments)
    if status != 0:
        raise RuntimeError(f"{function.__name__}: {status}")


def header(library, architecture):
    nvrtc = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    option = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
    call(nvrtc.nvrtcCreateProgram, ctypes.byref(program), SOURCE, b"scale.cu", 0, None, None)
    call(nvrtc.nvrtcCompileProgram, program, 1, option)
    call(nvrtc.nvrtcGetCUBINSize, program, ctypes.byref(size))
    data = ctypes.create_string_buffer(size.value)
    call(nvrtc.nvrtcGetCUBIN, program, data)
    call(nvrtc.nvrtcDestroyProgram, ctypes.byref(program))
    assert data.raw[:4] == b"\x7fELF"
    return data.raw[7], data.raw[8], struct.unpack_from("<I", data.raw, 20)[0], struct.unpack_from("<I", data.raw, 48)[0]


first = {"sm_75": (51, 7, 129, 0x4B054B), "sm_90": (51, 7, 129, 0x5A055A), "sm_90a": (51, 7, 129, 0x5A0D5A)}
second = {"sm_75": (65, 8, 1, 0x6004B04), "sm_90": (65, 8, 1, 0x6005A04), "sm_90a": (65, 8, 1, 0x6005A04),
          "sm_100": (65, 8, 1, 0x6006402), "sm_120": (65, 8, 1, 0x6007802)}
is_as_before = True
for name, library, expected in (("12.9", sys.argv[1], {**second, **first}), ("13.2", sys.argv[2], second)):
    for architecture in ARCHITECTURES:
        seen = header(library, architecture)
        number = int(architecture[3:].rstrip("a"))
        places = [place for place in range(4) if seen[3] >> 8 * place & 0xFF == number]
        print(f"{name} {architecture}: OS ABI {seen[0]}, ABI {seen[1]}, version {seen[2]}, flags {seen[3]:#x}, number in bytes {places}")
        is_as_before &= seen == expected[architecture]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py" "$old" "$new"
