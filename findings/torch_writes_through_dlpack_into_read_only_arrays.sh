#!/bin/bash
# torch.from_dlpack of a read-only numpy array is a tensor that writes into it, without a warning. Of a broadcast array it writes one
# number, and all are changed.
#
# What is done: arrays with flags.writeable off, a view that numpy.broadcast_to made, and an array of JAX go to torch by from_dlpack and
# are written to; numpy's own from_dlpack of the read-only array, torch.from_numpy of it, and what the exporter says (the version of
# DLPack and the flag "read only" of its capsule).
# Seen (torch 2.15.0, numpy 2.4.6, jax 0.10.2): t[0] = 99 changes the read-only array and the JAX array, whose values never change by
# contract; of four broadcast ones all are 99 (strides of 0). numpy sets the flag of DLPack 1.0, and its own import is read-only; torch
# asks for version 1.0 and drops the flag. torch.from_numpy shares memory, too, and warns.
# What one would expect: an error or a copy, as a torch tensor cannot be read-only, or at least from_numpy's warning: constants of a
# model, tables that are shared and cached results change in place by what looks like a conversion.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6; then
    echo "skipped: pip could not install torch, jax, jaxlib and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import ctypes
import sys
import warnings

import jax.numpy
import jax
import numpy as np
import torch


class Versioned(ctypes.Structure):
    """The head of DLPack's versioned tensor: version, context, deleter, flags (1: read only)."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64)]


def said(array):
    """The version and the flags in the capsule that the array hands out."""
    capsule = array.__dlpack__(max_version=(1, 0))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    head = Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
    return head.major, head.flags & 1


print("torch", torch.__version__, "numpy", np.__version__, "jax", jax.__version__)
is_as_before = True
fixed = np.arange(4, dtype=np.float32)
fixed.flags.writeable = False
one = np.broadcast_to(np.float32(1), (4,))
constant = jax.numpy.arange(4, dtype=np.float32)
for name, array, wanted in (("read-only", fixed, [99, 1, 2, 3]), ("broadcast", one, [99] * 4), ("JAX", constant, [99, 1, 2, 3])):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tensor = torch.from_dlpack(array)
        tensor[0] = 99
    print(f"{name}: behind t[0] = 99 it is {np.asarray(array).tolist()}, strides {tensor.stride()}, {len(caught)} warnings")
    is_as_before &= np.asarray(array).tolist() == wanted and not caught
print("numpy says (version, read only):", said(fixed), "of a writable array:", said(np.zeros(4)),
      "- its own import is writable:", np.from_dlpack(fixed).flags.writeable)
is_as_before &= said(fixed) == (1, 1) and said(np.zeros(4)) == (1, 0) and not np.from_dlpack(fixed).flags.writeable
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.from_numpy(fixed)
print("torch.from_numpy:", [str(warning.message)[:60] for warning in caught])
is_as_before &= len(caught) == 1
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
