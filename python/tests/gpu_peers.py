#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other libraries' kernels on a GPU, on their streams and in captures: numba-cuda, cuda.core, jax.

Exit status: 0 passed, 1 failed, 77 skipped because there is no GPU or none of them.
"""
import gc
import sys

import numpy as np

import rondo

N = 1024


def check_numba():
    """A kernel of numba's, on numba's own stream, recorded and learned."""
    for gone, now in (("row_stack", np.vstack), ("in1d", np.isin)):
        if not hasattr(np, gone):  # numpy 2.5 has not what numba-cuda asks for
            setattr(np, gone, now)
    from numba import cuda

    @cuda.jit
    def add(x, value):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += value

    stream = cuda.stream()
    x = cuda.to_device(np.zeros(N, np.float32), stream=stream)
    add[4, 256, stream](x, np.float32(0))  # compiled before the capture
    stream.synchronize()
    handle = stream if hasattr(stream, "__cuda_stream__") else int(stream.handle.value or 0)
    with rondo.capture(handle, device="cuda:0") as graph:
        add[4, 256, stream](x, np.float32(1))
        add[4, 256, stream](x, np.float32(2))
    assert graph.node_count == 2, graph.nodes
    for _ in range(3):
        graph.replay()
    stream.synchronize()
    assert (x.copy_to_host() == 9).all()


CODE = """extern "C" __global__ void scale(float *to, const float *of, float rate, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = of[i] * rate;
}"""


def check_cuda_core():
    """cuda.core's stream, kernel and memory; its launches are recorded."""
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    device = Device()
    device.set_current()
    stream = device.create_stream()
    program = Program(CODE, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
    kernel = program.compile("cubin").get_kernel("scale")
    x, y = (rondo.empty(N, "float32", "cuda:0") for _ in range(2))
    with rondo.capture(stream) as graph:
        graph.stream.fill(x, 0x3f800000, element_bytes=4)  # 1.0f
        launch(stream, LaunchConfig(grid=4, block=256), kernel, y.address, x.address,
               np.float32(7), np.int32(N))
    graph.replay(stream)
    stream.sync()
    assert (y.numpy() == 7).all() and graph.node_count == 2


def check_learned_cupy():
    """rondo.learn around a function that launches a kernel of cupy's: values change, code does not."""
    import cupy

    from rondo.interop import cupy as helper
    kernel = cupy.RawKernel(CODE, "scale")

    def step(stream, to, of, rate):
        with helper.external_stream(stream):
            kernel((4,), (256,), (np.uint64(to), np.uint64(of), np.float32(rate), np.int32(N)))

    x = cupy.arange(N, dtype=cupy.float32)
    outputs = [cupy.zeros(N, cupy.float32) for _ in range(2)]
    kernel((4,), (256,), (outputs[0], x, np.float32(0), np.int32(N)))
    cupy.cuda.runtime.deviceSynchronize()
    learned = rondo.learn(step, {"to": outputs[0], "of": x, "rate": "float32"}, "cuda:0")
    stream = rondo.Stream("cuda:0")
    for i in range(6):
        learned(stream, outputs[i % 2], x, 0.5 + i)
        stream.synchronize()
        assert (cupy.asnumpy(outputs[i % 2]) == np.arange(N, dtype=np.float32) * (0.5 + i)).all()
    assert learned.report.state == "proved", learned.report
    print(f"  learned {learned.report.slot_count} words")


def check_jax():
    """Arrays of jax's go in and come out without a copy."""
    import jax
    if jax.devices()[0].platform != "gpu":
        raise ImportError("jax finds no GPU")
    x = jax.numpy.arange(N, dtype="float32")
    x.block_until_ready()
    stream = rondo.Stream("cuda:0")
    tensor = rondo.from_dlpack(x, stream)
    out = rondo.empty(N, "float32", "cuda:0")
    rondo.Op("Neg", tensor)(stream, tensor, out=[out])
    stream.synchronize()
    back = jax.dlpack.from_dlpack(out)
    assert (np.asarray(back) == -np.arange(N, dtype=np.float32)).all()


def main():
    if not any(d.name.startswith("cuda") for d in rondo.devices() if d.available):
        print("skipped: no GPU")
        sys.exit(77)
    ran = failed = 0
    for check in (check_numba, check_cuda_core, check_learned_cupy, check_jax):
        try:
            check()
            print(f"{check.__name__}: passed", flush=True)
            ran += 1
        except ImportError as error:
            print(f"{check.__name__}: skipped: {error}")
        except Exception:
            import traceback
            traceback.print_exc()
            print(f"{check.__name__}: FAILED", flush=True)
            failed += 1
        gc.collect()
    print(f"{ran} passed, {failed} failed")
    sys.exit(1 if failed else 0 if ran else 77)


if __name__ == "__main__":
    main()
