#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of PyTorch's operators learned: the words inside kernels of cuBLAS, cuDNN, PyTorch and NCCL.

usage: learn_torch.py LIBRONDO [DEVICE]       default: cuda:0

Each step takes its tensors by their addresses. It is learned, which executes nothing, and then run
with other buffers, with addresses in the middle of a buffer, and with other numbers; every result
must have the bits of the same step run by PyTorch. No two tensors of a step share memory: where they
do, PyTorch's operators do something else, or refuse. Temporaries inside a step are PyTorch's own:
they have the same address in each recording, as nothing else is allocated meanwhile.

Exit status: 0 passed, 1 failed, 77 skipped because there is no PyTorch or no GPU.
"""
import ctypes
import os
import sys

import dlpack_torch  # exits with 77 where there is no PyTorch
import rondo_library as r
import torch

SIZE = 128
POINTER_KIND, INT32_KIND, FLOAT_KIND = 0, 3, 10
PROVED = 1


class Value(ctypes.Union):
    _fields_ = [("pointer", ctypes.c_void_p), ("integer", ctypes.c_int64),
                ("unsigned_integer", ctypes.c_uint64), ("single", ctypes.c_float),
                ("number", ctypes.c_double), ("bytes", ctypes.c_void_p)]


class Argument(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("kind", ctypes.c_int32), ("bytes", ctypes.c_uint64), ("extent", ctypes.c_uint64),
                ("alignment", ctypes.c_uint64), ("memory", ctypes.c_int32),
                ("is_unchecked", ctypes.c_bool), ("least", Value), ("most", Value),
                ("multiple_of", ctypes.c_uint64), ("values", ctypes.POINTER(Value)),
                ("value_count", ctypes.c_size_t), ("is_exclusive", ctypes.c_bool)]


STEP = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(Value), ctypes.c_void_p)
WRITE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char),
                         ctypes.c_size_t)
r.SIGNATURES.update({
    "rondo_learned_create": (ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p,
                             ctypes.POINTER(Argument), ctypes.c_size_t, STEP, ctypes.c_void_p,
                             ctypes.POINTER(ctypes.c_void_p)),
    "rondo_learned_destroy": (None, ctypes.c_void_p),
    "rondo_learned_run": (ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(Value),
                          ctypes.c_size_t),
    "rondo_learned_describe": (ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, WRITE,
                               ctypes.c_void_p),
})


def tensor_at(rondo, address, shape):
    tensor = dlpack_torch.Tensor(dtype=1, data=address,
                                 shape=dlpack_torch.Shape(len(shape), tuple(shape)))
    info = dlpack_torch.Info(struct_size=ctypes.sizeof(dlpack_torch.Info),
                             device=dlpack_torch.Device(2, torch.cuda.current_device()),
                             type=dlpack_torch.Type(2, 32, 1))
    return torch.from_dlpack(dlpack_torch.give(rondo.functions, tensor, info))


class Learner:
    """A step over `shapes` of tensors and floats, learned and compared with its eager run."""

    def __init__(self, rondo, device, name, shapes, floats, step):
        self.rondo, self.name, self.shapes, self.step = rondo, name, shapes, step
        self.stream = torch.cuda.Stream()
        self.wrapped = rondo.stream_wrap(device, self.stream.cuda_stream)
        self.failure = None
        descriptions = []
        for i, shape in enumerate(shapes):
            bytes_ = 4
            for extent in shape:
                bytes_ *= extent
            descriptions.append(Argument(struct_size=ctypes.sizeof(Argument),
                                         name=f"tensor {i}".encode(), kind=POINTER_KIND,
                                         extent=bytes_, alignment=64, is_exclusive=True))
        for i in range(floats):
            descriptions.append(Argument(struct_size=ctypes.sizeof(Argument),
                                         name=f"float {i}".encode(), kind=FLOAT_KIND,
                                         least=Value(single=-4.0), most=Value(single=4.0)))
        self.count = len(descriptions)
        self.descriptions = (Argument * self.count)(*descriptions)
        self.callback = STEP(self.issue)
        self.learned = rondo.learned_create(device, None, self.descriptions, self.count,
                                            self.callback, None)

    def issue(self, stream, values, user_data):
        try:
            with torch.cuda.stream(self.stream):
                tensors = [tensor_at(self.rondo, values[i].pointer, shape)
                           for i, shape in enumerate(self.shapes)]
                self.step(*tensors, *(values[i].single for i in range(len(tensors), self.count)))
            return r.OK
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
            return r.STATE

    def values_of(self, tensors, floats):
        return (Value * self.count)(*[Value(pointer=t.data_ptr()) for t in tensors],
                                    *[Value(single=f) for f in floats])

    def make_tensors(self, offset):
        """Each in the middle of a larger buffer, `offset` times 64 bytes from its beginning."""
        made = []
        for shape in self.shapes:
            count = 1
            for extent in shape:
                count *= extent
            whole = torch.zeros(count + 4096, device="cuda")
            made.append(whole[16 * offset:16 * offset + count].view(shape))
        return made

    def fill(self, tensors, seed):
        source = torch.Generator().manual_seed(seed)
        for tensor in tensors:
            tensor.copy_(torch.randn(tensor.shape, generator=source))
        torch.cuda.synchronize()

    def bits(self, tensors):
        self.stream.synchronize()
        return [t.cpu().view(torch.int32).clone() for t in tensors]

    def check(self, rounds=6):
        sets = [self.make_tensors(offset) for offset in (0, 3, 7)]
        with torch.cuda.stream(self.stream):
            for tensors in sets:  # libraries set themselves up
                self.step(*tensors, *([1.0] * (self.count - len(self.shapes))))
        self.stream.synchronize()
        for turn in range(rounds):
            tensors = sets[turn % len(sets)]
            floats = [0.25 * turn - 1.0] * (self.count - len(self.shapes))
            self.fill(tensors, turn)
            with torch.cuda.stream(self.stream):
                self.step(*tensors, *floats)
            expected = self.bits(tensors)
            self.fill(tensors, turn)
            values = self.values_of(tensors, floats)
            status = self.rondo.functions.rondo_learned_run(self.learned, self.wrapped, values,
                                                            self.count)
            assert status == r.OK, (self.rondo.get_error().message, self.failure)
            for i, (got, wanted) in enumerate(zip(self.bits(tensors), expected)):
                assert torch.equal(got, wanted), f"{self.name}: run {turn}, tensor {i}: other bits"
        text = self.describe()
        print(f"{self.name}: {text.splitlines()[0]}")
        return text

    def describe(self):
        parts = []

        def write(_, text, length):
            parts.append(ctypes.string_at(text, length))
            return True

        self.rondo.learned_describe(self.learned, 0, WRITE(write), None)
        return b"".join(parts).decode()

    def close(self):
        self.rondo.learned_destroy(self.learned)
        self.rondo.stream_destroy(self.wrapped)


def matmul(a, b, c, alpha):
    torch.mm(a, b, out=c)
    c.mul_(alpha)


def linear_half(a, b, c):
    c.copy_(torch.mm(a.half(), b.half()))


def convolution(x, w, y):
    y.copy_(torch.nn.functional.conv2d(x, w, padding=1))


def operators(x, y, z, alpha):
    torch.add(x, y, alpha=alpha, out=z)
    z.copy_(torch.softmax(z, dim=1))
    y.copy_(torch.layer_norm(z, z.shape[1:]))


def all_reduce(x, y):
    torch.distributed.all_reduce(x)
    y.add_(x)


def main():
    name = sys.argv[2] if len(sys.argv) > 2 else "cuda:0"
    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        sys.exit(77)
    torch.cuda.set_device(name)
    rondo = r.Library(sys.argv[1])
    device = rondo.device_open(name.encode())
    square, image = (SIZE, SIZE), (2, 16, 32, 32)
    checks = [("mm", [square] * 3, 1, matmul), ("mm in half", [square] * 3, 0, linear_half),
              ("conv2d", [image, (16, 16, 3, 3), image], 0, convolution),
              ("add, softmax, layer norm", [square] * 3, 1, operators)]
    if torch.distributed.is_nccl_available():
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512")
        torch.distributed.init_process_group("nccl", rank=0, world_size=1)
        checks.append(("all-reduce", [square] * 2, 0, all_reduce))
    failed = 0
    for title, shapes, floats, step in checks:
        learner = Learner(rondo, device, title, shapes, floats, step)
        try:
            text = learner.check()
            if "refused" in text.splitlines()[0].lower():
                failed += 1
                print(text)
        except AssertionError as error:
            failed += 1
            print(f"{title}: FAILED: {error}\n{learner.describe()}")
        learner.close()
    rondo.device_release(device)
    print(f"torch {torch.__version__}: {len(checks) - failed} of {len(checks)} steps learned on {name}")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
