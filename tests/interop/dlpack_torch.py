#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors between PyTorch and Rondo without copies, through DLPack and ctypes.

usage: dlpack_torch.py LIBRONDO [DEVICE]...       default: cpu, and cuda where there is one

Exit status: 0 passed, 1 failed, 77 skipped because there is no PyTorch.
"""
import ctypes
import gc
import sys

try:
    import torch
    from torch.utils import dlpack
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", Device), ("type", Type),
                ("is_read_only", ctypes.c_bool),
                ("is_copied", ctypes.c_bool)]


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("extent", ctypes.c_int64 * 8)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("shape", Shape), ("data", ctypes.c_void_p),
                ("storage", ctypes.c_void_p), ("device", ctypes.c_void_p)]


def load(path):
    library = ctypes.CDLL(path)
    library.rondo_tensor_deinit.restype = None
    return library


python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
USED = b"used_dltensor"  # capsules keep the address of their name


def take(library, capsule):
    """A capsule's tensor becomes ours."""
    managed = python.PyCapsule_GetPointer(capsule, b"dltensor")
    tensor, info = Tensor(), Info(struct_size=ctypes.sizeof(Info))
    status = library.rondo_tensor_from_dlpack(ctypes.c_void_p(managed), ctypes.byref(tensor),
                                              ctypes.byref(info))
    if status == 0:
        python.PyCapsule_SetName(capsule, USED)
    return status, tensor, info


def give(library, tensor, info):
    """Our tensor becomes a capsule. It shares the bytes; ours may be given up."""
    managed = ctypes.c_void_p()
    status = library.rondo_tensor_to_dlpack(ctypes.byref(tensor), ctypes.byref(info.device),
                                            ctypes.byref(info.type), ctypes.byref(managed))
    assert status == 0, status
    return python.PyCapsule_New(managed, b"dltensor", None)


def check(library, device, dtype, shape):
    count = 1
    for extent in shape:
        count *= extent
    source = (torch.arange(count, device=device) % 2).to(dtype).reshape(shape)
    address, expected = source.data_ptr(), source.clone()
    status, tensor, info = take(library, dlpack.to_dlpack(source))
    assert status == 0, (dtype, status)
    assert (tensor.data or 0) == address and tensor.shape.rank == len(shape), (tensor.data, address)
    assert list(tensor.shape.extent[: len(shape)]) == list(shape)
    del source
    gc.collect()
    back = torch.from_dlpack(give(library, tensor, info))
    library.rondo_tensor_deinit(ctypes.byref(tensor))
    assert back.dtype == dtype and back.data_ptr() == address and back.shape == expected.shape
    assert back.device == expected.device
    assert torch.equal(back.float(), expected.float())


def check_memory(library, device):
    """What nobody holds any more is given back to PyTorch."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated(device)
    source = torch.zeros(1 << 20, device=device)
    status, tensor, info = take(library, dlpack.to_dlpack(source))
    assert status == 0
    del source
    assert torch.cuda.memory_allocated(device) > before
    back = torch.from_dlpack(give(library, tensor, info))
    library.rondo_tensor_deinit(ctypes.byref(tensor))
    assert torch.cuda.memory_allocated(device) > before
    del back
    gc.collect()
    assert torch.cuda.memory_allocated(device) == before


def main():
    library = load(sys.argv[1])
    devices = sys.argv[2:] or ["cpu"] + (["cuda:0"] if torch.cuda.is_available() else [])
    types = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16,
             torch.int32, torch.int64, torch.uint8, torch.bool]
    count = 0
    for device in devices:
        for dtype in types:
            for shape in [(2, 3, 4), (5,), (), (3, 0)]:
                check(library, device, dtype, shape)
                count += 1
        if device != "cpu":
            check_memory(library, device)
        strided = torch.zeros(4, 5, device=device).t()
        status, _, _ = take(library, dlpack.to_dlpack(strided))
        assert status == 1, status  # INVALID: make it contiguous first
    print(f"torch {torch.__version__}: {count} tensors there and back on {', '.join(devices)}")


if __name__ == "__main__":
    main()
