"""A loop of the driver's calls by ctypes, with a wait in the middle of its step."""
# SPDX-License-Identifier: Apache-2.0
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")


def check(status):
    if status != 0:
        raise RuntimeError(f"status {status}")


check(cuda.cuInit(0))
device = ctypes.c_int()
check(cuda.cuDeviceGet(ctypes.byref(device), 0))
context = ctypes.c_void_p()
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxPushCurrent_v2(context))
stream = ctypes.c_void_p()
check(cuda.cuStreamCreate(ctypes.byref(stream), 1))
memory = ctypes.c_uint64()
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1024)))


def read_loss():
    check(cuda.cuStreamSynchronize(stream))


def fill(value, count):
    check(cuda.cuMemsetD32Async(memory, value, ctypes.c_size_t(count), stream))


for step in range(60):
    fill(1, 64)
    read_loss()
    fill(2, 32)
    fill(3, 16)
    check(cuda.cuCtxSynchronize())
    sum(range(2000))
