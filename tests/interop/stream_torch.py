#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's streams in Rondo, and Rondo's in PyTorch: PyTorch works, Rondo records and replays.

usage: stream_torch.py LIBRONDO [DEVICE]       default: cuda:0

Outputs are allocated before the capture: PyTorch's own allocator does not know that Rondo records,
and would give what it took inside to somebody else. Rondo's pools do know.

Exit status: 0 passed, 1 failed, 77 skipped because there is no PyTorch or no GPU.
"""
import contextlib
import ctypes
import sys

import dlpack_torch  # exits with 77 where there is no PyTorch
import rondo_library as r
import torch

SIZE = 256


class Scene:
    """A stream of PyTorch, a wrapper, a graph, and a step with inputs that change."""

    def __init__(self, rondo, device, stream):
        self.rondo, self.device, self.stream = rondo, device, stream
        self.wrapped = rondo.stream_wrap(device, stream.cuda_stream)
        options = r.GraphOptions(struct_size=ctypes.sizeof(r.GraphOptions))
        options.label, options.keep = b"torch step", r.KEEP_TEMPLATE
        self.graph = rondo.graph_create(device, ctypes.byref(options))
        with torch.cuda.stream(stream):
            self.a, self.b, self.c, self.d = (torch.zeros(SIZE, SIZE, device="cuda")
                                              for _ in range(4))
        self.refill(0)
        self.run_eagerly()  # cuBLAS sets itself up, with its workspace, in its first call

    def close(self):
        self.rondo.graph_destroy(self.graph)
        self.rondo.stream_destroy(self.wrapped)

    def step(self):
        torch.add(self.a, self.b, out=self.c)
        torch.mm(self.c, self.a, out=self.d)
        torch.relu_(self.d)

    def refill(self, seed):
        """On the stream itself: PyTorch's others do not wait for it, nor it for them."""
        source = torch.Generator().manual_seed(seed)
        with torch.cuda.stream(self.stream):
            for x in (self.a, self.b):
                x.copy_(torch.randn(SIZE, SIZE, generator=source))

    def run_eagerly(self):
        """The bits of the step, run by PyTorch."""
        with torch.cuda.stream(self.stream):
            self.step()
        return self.take_result()

    def take_result(self):
        self.stream.synchronize()
        result = self.d.cpu().view(torch.int32)
        with torch.cuda.stream(self.stream):
            self.c.fill_(-1)
            self.d.fill_(-1)
        self.stream.synchronize()
        return result

    @contextlib.contextmanager
    def capture(self):
        """Inside, PyTorch puts its work on the stream, and Rondo records it."""
        self.rondo.graph_capture_begin(self.graph, self.wrapped, r.THREAD_LOCAL)
        with torch.cuda.stream(self.stream):
            yield
        self.rondo.graph_capture_end(self.graph)

    def check_replays(self, rounds=5):
        for seed in range(1, rounds + 1):
            self.refill(seed)
            expected = self.run_eagerly()
            self.rondo.graph_replay(self.graph, self.wrapped)
            assert torch.equal(self.take_result(), expected), f"round {seed}: other bits"
        assert expected.any()


def check_capture(scene):
    rondo = scene.rondo
    with scene.capture():
        assert torch.cuda.is_current_stream_capturing()  # PyTorch sees it
        scene.step()
    assert not torch.cuda.is_current_stream_capturing()
    assert (scene.take_result() == torch.tensor(-1.0).view(torch.int32)).all(), "it ran already"
    assert rondo.graph_get_node_count(scene.graph) >= 3
    scene.check_replays()


def check_branches(scene):
    """Streams that PyTorch forks and joins by itself."""
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        torch.mm(scene.a, scene.b, out=torch.empty_like(scene.c))  # its own workspace
    other.synchronize()

    def step():
        other.wait_stream(scene.stream)
        torch.mm(scene.a, scene.b, out=scene.d)
        with torch.cuda.stream(other):
            torch.mm(scene.b, scene.a, out=scene.c)
        scene.stream.wait_stream(other)
        scene.d.sub_(scene.c)

    scene.step = step
    with scene.capture():
        scene.step()
    scene.check_replays()


def check_current_stream(scene):
    """The current one is what a program is likeliest to hand over; outside of torch.cuda.stream it
    is the legacy default stream, which runs work but cannot record."""
    rondo = scene.rondo
    with torch.cuda.stream(scene.stream):
        current = rondo.stream_wrap(scene.device, torch.cuda.current_stream().cuda_stream)
    assert rondo.stream_get_native(current) == scene.stream.cuda_stream
    rondo.graph_capture_begin(scene.graph, current, r.THREAD_LOCAL)
    with torch.cuda.stream(scene.stream):
        scene.step()
    rondo.graph_capture_end(scene.graph)
    rondo.stream_destroy(current)
    scene.check_replays()
    rondo.graph_reset(scene.graph)

    default = torch.cuda.default_stream()
    legacy = rondo.stream_wrap(scene.device, default.cuda_stream)
    status, message = rondo.refused("graph_capture_begin", scene.graph, legacy, r.THREAD_LOCAL)
    assert status == r.INVALID and "legacy default stream cannot record" in message, message
    x = torch.zeros(SIZE, dtype=torch.int32, device="cuda")
    rondo.stream_fill(legacy, x.data_ptr(), 7, 4, SIZE)
    assert (x + 1).sum().item() == 8 * SIZE  # in the order of the stream, for both
    rondo.stream_destroy(legacy)


def check_own_stream(scene):
    """The other way round: PyTorch works on a stream of Rondo's."""
    rondo = scene.rondo
    own = rondo.stream_create(scene.device, None)
    other = Scene(rondo, scene.device, torch.cuda.ExternalStream(rondo.stream_get_native(own)))
    check_capture(other)
    other.close()
    rondo.stream_destroy(own)


def check_let_go(scene):
    """A wrapper goes, and the stream stays PyTorch's."""
    with scene.capture():
        scene.step()
    scene.check_replays()
    expected = scene.run_eagerly()
    scene.close()
    assert scene.stream.query() and torch.equal(scene.run_eagerly(), expected)
    with torch.cuda.stream(scene.stream):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=scene.stream):
            scene.step()
        graph.replay()
    assert torch.equal(scene.take_result(), expected)


def check_synchronising_operation(scene):
    """The end says what broke the capture, and where; PyTorch and Rondo go on."""
    rondo = scene.rondo
    with torch.cuda.stream(scene.stream):
        total = torch.zeros((), device="cuda")
        torch.sum(scene.d, dim=(0, 1), out=total)
        total.item()  # takes its memory, which a capture forbids
    rondo.graph_capture_begin(scene.graph, scene.wrapped, r.THREAD_LOCAL)
    with torch.cuda.stream(scene.stream):
        rondo.label_push(scene.wrapped, b"model")
        scene.step()
        rondo.label_push(scene.wrapped, b"loss")
        torch.sum(scene.d, dim=(0, 1), out=total)
        try:
            total.item()
            raise AssertionError("item() does not synchronise")
        except RuntimeError as error:
            assert "captur" in str(error), error
    status, message = rondo.refused("graph_capture_end", scene.graph)
    record = rondo.get_error()
    assert status == r.STATE and "broken by a call that Rondo did not see" in message, message
    assert record.driver_name == b"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", record.driver_name
    assert "model/loss" in message, message
    report = r.Report(struct_size=ctypes.sizeof(r.Report))
    rondo.graph_get_report(scene.graph, ctypes.byref(report))
    assert report.cause == r.CAUSE_UNSEEN_CALL and report.label == b"model/loss", report.label
    assert report.has_last_node and report.last_node_index >= 2
    print(f"  the record of .item(): {message}")
    is_recording = ctypes.c_bool(True)
    rondo.stream_is_recording(scene.wrapped, ctypes.byref(is_recording))
    assert not is_recording.value
    assert scene.run_eagerly().any()
    with scene.capture():
        scene.step()
    scene.check_replays()


def as_tensor(rondo, address):
    """Memory of Rondo's as PyTorch sees it; not PyTorch's to free."""
    tensor = dlpack_torch.Tensor(dtype=1, data=address,
                                 shape=dlpack_torch.Shape(2, (SIZE, SIZE)))
    info = dlpack_torch.Info(struct_size=ctypes.sizeof(dlpack_torch.Info),
                             device=dlpack_torch.Device(2, torch.cuda.current_device()),
                             type=dlpack_torch.Type(2, 32, 1))
    return torch.from_dlpack(dlpack_torch.give(rondo.functions, tensor, info))


def check_pool(scene):
    """What a pool gives inside a capture is the graph's until its reset."""
    rondo, bytes_ = scene.rondo, SIZE * SIZE * 4
    pool = rondo.pool_create(scene.device, None)
    blocks = []

    def step_in_pool():
        block = rondo.pool_allocate(pool, scene.wrapped, bytes_)
        blocks.append(block)
        between = as_tensor(rondo, block)
        assert between.data_ptr() == block
        torch.add(scene.a, scene.b, out=between)
        torch.mm(between, scene.a, out=scene.d)
        torch.relu_(scene.d)
        rondo.pool_free(pool, block)

    with scene.capture():
        step_in_pool()
    # The eager block is another one, and both kinds of step come to the same.
    scene.step = step_in_pool
    scene.check_replays()
    assert blocks[0] not in blocks[1:], "an eager block is the graph's"
    rondo.graph_reset(scene.graph)
    rondo.pool_release(pool)


def check_foreign_capture(scene):
    """While PyTorch records by itself, Rondo says so and leaves that capture alone."""
    rondo = scene.rondo
    pool = rondo.pool_create(scene.device, None)
    ready = rondo.graph_create(scene.device, None)
    rondo.graph_capture_begin(ready, scene.wrapped, r.THREAD_LOCAL)
    rondo.stream_fill(scene.wrapped, scene.c.data_ptr(), 1, 4, 1)
    rondo.graph_capture_end(ready)
    scene.refill(1)
    expected = scene.run_eagerly()
    theirs = torch.cuda.CUDAGraph()
    address = ctypes.c_void_p()
    with torch.cuda.graph(theirs, stream=scene.stream):
        torch.add(scene.a, scene.b, out=scene.c)
        refusals = [
            rondo.refused("graph_capture_begin", scene.graph, scene.wrapped, r.THREAD_LOCAL),
            rondo.refused("pool_allocate", pool, scene.wrapped, 4096, ctypes.byref(address)),
            rondo.refused("graph_replay", ready, scene.wrapped),
        ]
        torch.mm(scene.c, scene.a, out=scene.d)
        torch.relu_(scene.d)
    parts = ["records already", "a capture that Rondo did not begin", "records"]
    for (status, message), part in zip(refusals, parts):
        assert status == r.STATE and part in message, message
    assert address.value is None
    theirs.replay()
    torch.cuda.default_stream().synchronize()
    assert torch.equal(scene.take_result(), expected), "PyTorch's graph is not what it recorded"
    # And after it Rondo records on the same stream.
    with scene.capture():
        scene.step()
    scene.check_replays()
    rondo.graph_destroy(ready)
    rondo.pool_release(pool)


def main():
    name = sys.argv[2] if len(sys.argv) > 2 else "cuda:0"
    if not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        sys.exit(77)
    torch.cuda.set_device(name)
    rondo = r.Library(sys.argv[1])
    device = rondo.device_open(name.encode())
    checks = [check_capture, check_branches, check_current_stream, check_own_stream,
              check_synchronising_operation, check_pool, check_foreign_capture]
    for check in checks:
        print(check.__name__, flush=True)
        scene = Scene(rondo, device, torch.cuda.Stream())
        check(scene)
        scene.close()
    print(check_let_go.__name__, flush=True)
    check_let_go(Scene(rondo, device, torch.cuda.Stream()))
    rondo.device_release(device)
    print(f"torch {torch.__version__}: {len(checks) + 1} checks of shared streams on {name}")


if __name__ == "__main__":
    main()
