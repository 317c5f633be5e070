#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cupy's idioms of streams and graphs on a GPU, with its own captures and with rondo.capture.

Exit status: 0 passed, 1 failed, 77 skipped because there is no cupy or no GPU.
"""
import gc
import sys

import rondo

try:
    import cupy
except ImportError:
    print("skipped: no cupy")
    sys.exit(77)
try:
    cupy.cuda.runtime.getDeviceCount()
except Exception as error:
    print(f"skipped: cupy finds no GPU: {error}")
    sys.exit(77)

from rondo.interop import cupy as helper  # noqa: E402

N = 256


def make():
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.random.standard_normal((N, N), dtype=cupy.float32)
        cupy.tanh(x * x) + x.sum()  # kernels are compiled before the capture
    stream.synchronize()
    return stream, x


def check_capture():
    """Allocations inside are the graph's, and eager work does not get them."""
    stream, x = make()
    with rondo.capture(stream) as graph:
        y = cupy.tanh(x * x) + x.sum()
    assert graph.stats.arena_live_bytes > 0
    for seed in range(3):
        with stream:
            x[...] = cupy.random.standard_normal((N, N), dtype=cupy.float32)
        graph.replay(stream)
        stream.synchronize()
        with stream:
            junk = [cupy.full((N, N), -1, cupy.float32) for _ in range(20)]
            want = cupy.tanh(x * x) + x.sum()
        stream.synchronize()
        cupy.testing.assert_allclose(y, want, rtol=1e-4)
        del junk


def check_beside_their_graph():
    stream, x = make()
    y, z = cupy.empty_like(x), cupy.empty_like(x)
    with stream:
        cupy.exp(x, out=y)
        stream.synchronize()
        stream.begin_capture()
        cupy.exp(x, out=y)
        theirs = stream.end_capture()
    with rondo.capture(stream) as ours:
        cupy.exp(x, out=z)
    theirs.launch(stream)
    ours.replay(stream)
    stream.synchronize()
    assert (y == z).all()


def check_refusal():
    stream, x = make()
    for step in (lambda: float(x.sum()), lambda: x @ x):  # of cuBLAS cupy says that itself
        try:
            with rondo.capture(stream):
                step()
        except Exception as error:
            notes = getattr(error, "__notes__", [])
            print(f"  {type(error).__name__}: {str(error).splitlines()[0][:90]} | notes: {notes!r:.200}")
        else:
            raise AssertionError("what cupy cannot record was recorded")
    with rondo.capture(stream) as graph:
        x += 1
    graph.replay()
    stream.synchronize()


def check_own_stream_and_tensors():
    ours = rondo.Stream("cuda:0")
    with helper.external_stream(ours):
        x = cupy.arange(N, dtype=cupy.float32)
        y = x * 2
    tensor = rondo.from_dlpack(y, ours)
    assert tensor.address == y.data.ptr
    back = cupy.from_dlpack(tensor)
    ours.synchronize()
    assert (back == cupy.arange(N, dtype=cupy.float32) * 2).all()


def check_memory():
    stream, x = make()
    pool = rondo.Pool("cuda:0")
    for _ in range(20):
        with rondo.capture(stream, pool=pool) as graph:
            y = x * x + 1
        graph.replay()
        stream.synchronize()
        del y
        graph.close()
        gc.collect()
    assert pool.stats.live_count == 0, pool.stats


def main():
    print(f"cupy {cupy.__version__}, Python {sys.version.split()[0]}")
    failed = 0
    for check in (check_capture, check_beside_their_graph, check_refusal, check_own_stream_and_tensors,
                  check_memory):
        print(check.__name__, flush=True)
        try:
            check()
        except Exception:
            import traceback
            traceback.print_exc()
            failed += 1
    print(f"{5 - failed} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
