#!/bin/bash
# Two captures of the same step of PyTorch differ in a kernel's parameters: the byte of a functor that has no
# members is passed to the kernel, and nobody has written it. What compares captured parameters byte for byte (to see
# what changes from step to step, or as a key of a cache) sees changes where there are none.
#
# What is done: tensor.copy_(half tensor), the same two tensors, is captured 64 times, with other calls of PyTorch
# between; the parameters of the one kernel are read with cuGraphKernelNodeGetParams and cuFuncGetParamInfo.
# Seen: parameters of 4, 1, 16, 1, 1, 1 or so bytes; those of 4 bytes and more are equal in all captures,
# those of one byte hold several values.
# Exit status: 0 the same, 1 something differs, 77 no GPU or no PyTorch here.
# SPDX-License-Identifier: Apache-2.0
set -eu
python=$(command -v python3) || { echo "skipped: this needs python3 with PyTorch and a GPU"; exit 77; }
"$python" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)' 2>/dev/null ||
    { echo "skipped: this needs PyTorch and a GPU"; exit 77; }
"$python" - <<'END'
import ctypes as c
import sys

import torch

cuda = c.CDLL("libcuda.so.1")
print("torch", torch.__version__, "on", torch.cuda.get_device_name(0))


class Kernel(c.Structure):
    _fields_ = [("function", c.c_void_p), ("sizes", c.c_uint * 7), ("parameters", c.POINTER(c.c_void_p)),
                ("extra", c.c_void_p), ("kernel", c.c_void_p), ("context", c.c_void_p)]


def must(code):
    if code != 0:
        sys.exit(f"the driver says {code}")


def read(graph):
    """The parameters of the graph's one kernel, as a tuple of bytes objects."""
    count = c.c_size_t(0)
    must(cuda.cuGraphGetNodes(c.c_void_p(graph), None, c.byref(count)))
    nodes = (c.c_void_p * count.value)()
    must(cuda.cuGraphGetNodes(c.c_void_p(graph), nodes, c.byref(count)))
    if count.value != 1:
        sys.exit(f"{count.value} nodes were captured, not one")
    node = Kernel()
    must(cuda.cuGraphKernelNodeGetParams_v2(c.c_void_p(nodes[0]), c.byref(node)))
    found = []
    offset, size = c.c_size_t(0), c.c_size_t(0)
    while True:
        function, i = c.c_void_p(node.function or node.kernel), c.c_size_t(len(found))
        ask = cuda.cuFuncGetParamInfo if node.function else cuda.cuKernelGetParamInfo
        if ask(function, i, c.byref(offset), c.byref(size)) != 0:
            return tuple(found)
        found.append(c.string_at(node.parameters[len(found)], size.value))


source = torch.randn(128, 128, device="cuda").half()
target = torch.empty(128, 128, device="cuda")
target.copy_(source)
torch.cuda.synchronize()
captures = []
for i in range(64):
    for k in range(i % 7):  # other calls in between
        torch.add(target, float(i), alpha=k + 0.5)
        torch.mm(target[: k + 1], target)
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        target.copy_(source)
    captures.append(read(graph.raw_cuda_graph()))
values = [{capture[p] for capture in captures} for p in range(len(captures[0]))]
print("sizes of the parameters:", [len(p) for p in captures[0]])
print("values of each in 64 captures:", [len(v) for v in values])
wide = all(len(v) == 1 for v, p in zip(values, captures[0]) if len(p) > 1)
single = any(len(v) > 1 for v, p in zip(values, captures[0]) if len(p) == 1)
print("as before" if wide and single else "DIFFERS", "parameters of one byte differ between captures, wider ones do not")
sys.exit(0 if wide and single else 1)
END
