#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch's idioms of streams and graphs on a GPU, with torch.cuda.graph and with rondo.capture.

usage: gpu_torch.py        (RONDO_LIBRARY and PYTHONPATH as python/tests/run.sh sets them)

Exit status: 0 passed, 1 failed, 77 skipped because there is no torch or no GPU.
"""
import gc
import os
import statistics
import sys
import time

import rondo

try:
    import torch
except ImportError:
    print("skipped: no torch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: torch finds no GPU")
    sys.exit(77)

from rondo.interop import torch as helper  # noqa: E402

N = 512


def warm_up(step, stream):
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def record(step, stream):
    """The same step recorded both ways: (torch's graph, Rondo's)."""
    warm_up(step, stream)
    theirs = torch.cuda.CUDAGraph()
    with torch.cuda.graph(theirs, stream=stream):
        their_out = step()
    with rondo.capture(stream) as ours:
        our_out = step()
    return theirs, their_out, ours, our_out


def same(step, refill, rounds=5):
    stream = torch.cuda.Stream()
    theirs, their_out, ours, our_out = record(step, stream)
    for _ in range(rounds):
        refill()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            theirs.replay()
        ours.replay(stream)
        stream.synchronize()
        assert torch.equal(their_out, our_out)
    return ours


def check_inference():
    """Allocations inside, a linear layer, views, reductions."""
    x = torch.randn(N, N, device="cuda")
    model = torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.GELU(), torch.nn.Linear(N, N)).cuda()

    @torch.no_grad()
    def step():
        return model(x).softmax(-1)[:, ::2].sum(-1)

    graph = same(step, lambda: x.copy_(torch.randn(N, N)))
    held = graph.stats.arena_live_bytes
    assert held > 0, "torch's memory is not the graph's"
    # What eager work takes now must not be the graph's.
    junk = [torch.full((N, N), -1.0, device="cuda") for _ in range(50)]
    graph.replay()
    del junk


def check_training():
    """Backward and an optimizer inside: allocations of the backward pass are the graph's, too."""
    x, t = torch.randn(64, N, device="cuda"), torch.randn(64, N, device="cuda")
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU(), torch.nn.Linear(N, N)).cuda())
    optimizers = [torch.optim.Adam(m.parameters(), capturable=True) for m in models]

    def step(i):
        optimizers[i].zero_grad(set_to_none=False)
        loss = torch.nn.functional.mse_loss(models[i](x), t)
        loss.backward()
        optimizers[i].step()
        return loss

    stream = torch.cuda.Stream()
    for i in range(2):
        warm_up(lambda i=i: step(i), stream)
    theirs = torch.cuda.CUDAGraph()
    with torch.cuda.graph(theirs, stream=stream):
        their_loss = step(0)
    with rondo.capture(stream) as ours:
        our_loss = step(1)
    for _ in range(20):
        x.copy_(torch.randn(64, N))
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            theirs.replay()
        ours.replay(stream)
        stream.synchronize()
        torch.testing.assert_close(their_loss, our_loss)
    for a, b in zip(models[0].parameters(), models[1].parameters()):
        torch.testing.assert_close(a, b)


def check_forks():
    x = torch.randn(N, N, device="cuda")
    other = torch.cuda.Stream()

    def step():
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            a = x @ x
        b = x + 1
        torch.cuda.current_stream().wait_stream(other)
        return a * b

    warm_up(step, other)
    same(step, lambda: x.copy_(torch.randn(N, N)))


def check_events():
    """torch's events order streams inside a capture."""
    x = torch.randn(N, N, device="cuda")
    other, done, forked = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()

    def step():
        forked.record()
        other.wait_event(forked)
        with torch.cuda.stream(other):
            a = x.exp()
            done.record()
        b = x.cos()
        torch.cuda.current_stream().wait_event(done)
        return a + b

    same(step, lambda: x.copy_(torch.randn(N, N)))


def check_autocast():
    """Mixed precision: weights are cast inside the capture, so that replays see new ones."""
    model, x = torch.nn.Linear(N, N).cuda(), torch.randn(N, N, device="cuda")

    @torch.no_grad()
    def step():
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            return model(x).float()

    def refill():
        with torch.no_grad():
            model.weight.copy_(torch.randn(N, N))

    same(step, refill)


def check_pinned_inputs():
    """A copy from pinned memory is a node: replays send what the buffer then holds."""
    host, x = torch.zeros(N).pin_memory(), torch.zeros(N, device="cuda")
    stream = torch.cuda.Stream()

    def step():
        x.copy_(host, non_blocking=True)
        return x * 2

    theirs, their_out, ours, our_out = record(step, stream)
    for value in (1.0, 5.0):
        host.fill_(value)
        with torch.cuda.stream(stream):
            theirs.replay()
        ours.replay(stream)
        stream.synchronize()
        assert torch.equal(their_out, our_out) and our_out[0].item() == 2 * value


def check_shared_memory():
    """Graphs that are replayed in turn share memory, as with torch's pool=."""
    x = torch.randn(N, N, device="cuda")
    stream, step = torch.cuda.Stream(), lambda: (x @ x).relu() @ x
    warm_up(step, stream)
    with rondo.capture(stream) as first:
        a = step()
    del a  # the second may have what the first has no use for
    with rondo.capture(stream, pool=first) as second:
        b = step()
    taken = [graph.stats.arena_live_bytes for graph in (first, second)]
    print(f"  the first graph took {taken[0] >> 10} KiB, the second {taken[1] >> 10} KiB more")
    assert taken[1] < taken[0] or taken[0] == 0
    first.replay(stream)
    second.replay(stream)
    stream.synchronize()
    torch.testing.assert_close(b, step())


def check_part_of_a_network():
    """A part is replayed between eager parts, on torch's current stream."""
    x, hidden = torch.randn(N, N, device="cuda"), torch.empty(N, N, device="cuda")
    stream = torch.cuda.Stream()
    warm_up(lambda: torch.tanh(hidden) @ hidden, stream)
    with rondo.capture(stream) as middle:
        out = torch.tanh(hidden) @ hidden
    for _ in range(3):
        x.copy_(torch.randn(N, N))
        hidden.copy_(x + 1)
        middle.replay(torch.cuda.current_stream())
        result = out.sum(-1)
        torch.testing.assert_close(result, (torch.tanh(x + 1) @ (x + 1)).sum(-1))


def check_own_stream():
    """A stream of Rondo's as torch's current one."""
    ours = rondo.Stream("cuda:0")
    theirs = helper.external_stream(ours)
    x = torch.randn(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(theirs):
        y = x * 2
    tensor = rondo.from_dlpack(y, ours)
    assert tensor.address == y.data_ptr()
    back = torch.from_dlpack(tensor)
    ours.synchronize()
    assert torch.equal(back, x * 2)
    with rondo.capture(theirs) as graph:
        z = x * 3
    graph.replay()
    ours.synchronize()
    assert torch.equal(z, x * 3)


def check_recorded_by_torch():
    """torch.cuda.graph inside of a capture of ours is refused, and both go on."""
    stream, x = torch.cuda.Stream(), torch.ones(N, device="cuda")
    warm_up(lambda: x * 2, stream)
    try:
        with rondo.capture(stream):
            with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
                x * 2
    except Exception as error:
        print(f"  {type(error).__name__}: {str(error).splitlines()[0][:100]}")
    else:
        raise AssertionError("a capture inside a capture was taken")
    same(lambda: x * 2, lambda: x.add_(1))


def check_refusals():
    stream = torch.cuda.Stream()
    x = torch.randn(N, device="cuda")
    warm_up(lambda: x.sum(), stream)
    for step, kind in ((lambda: x.sum().item(), Exception), (lambda: x.cpu(), Exception),
                       (torch.cuda.synchronize, Exception), (lambda: torch.rand(N, device="cuda"), rondo.UnsupportedError)):
        try:
            with rondo.capture(stream):
                step()
        except kind as error:
            notes = getattr(error, "__notes__", [])
            print(f"  {type(error).__name__}: {str(error).splitlines()[0][:90]} | notes: {len(notes)}")
        else:
            raise AssertionError(f"{step} was recorded")
        # And both go on.
        y = torch.zeros(N, device="cuda")
        torch.cuda.synchronize()
        with rondo.capture(stream) as graph:
            y.add_(x)
        graph.replay()
        stream.synchronize()
        assert torch.equal(x, y)


def check_generator():
    """Rondo's random numbers in tensors of torch's."""
    stream = torch.cuda.Stream()
    generator = rondo.Generator("cuda:0", seed=1)
    x = torch.empty(N, device="cuda")
    torch.cuda.synchronize()
    with rondo.capture(stream) as graph:
        generator.normal(graph.stream, x)
        y = x * 2
    draws = []
    for _ in range(3):
        graph.replay()
        stream.synchronize()
        draws.append(y.clone())
    assert not torch.equal(draws[0], draws[1])


def check_memory():
    """Graphs that come and go leave nothing."""
    stream = torch.cuda.Stream()
    x = torch.randn(N, N, device="cuda")
    warm_up(lambda: x @ x, stream)
    count = helper._load().rondo_torch_get_segment_count
    before = None
    for i in range(20):
        with rondo.capture(stream) as graph:
            out = (x @ x).relu()
        graph.replay()
        stream.synchronize()
        del out
        graph.close()
        gc.collect()
        if i == 4:
            before = torch.cuda.mem_get_info()[0]
    assert count() == 0, f"{count()} segments are left"
    assert torch.cuda.mem_get_info()[0] >= before - (8 << 20)


def check_sessions():
    """A model on torch's stream, with torch's tensors, not waited for."""
    root = os.environ.get("RONDO_SOURCE_DIR") or os.path.join(os.path.dirname(__file__), "../..")
    stream = torch.cuda.Stream()
    session = rondo.Session(root + "/tests/models/vit_mini/model.onnx", stream=stream)
    x = torch.randn(2, 3, 12, 12, device="cuda")
    torch.cuda.synchronize()
    want = torch.from_numpy(session.run(None, {"x": x})[0])
    for _ in range(4):
        run = session.run_async({"x": x})
        with torch.cuda.stream(stream):
            y = torch.from_dlpack(run.on_stream()["y"]) * 2
        stream.synchronize()
        torch.testing.assert_close(y.cpu() / 2, want, rtol=1e-3, atol=1e-3)


def measure():
    x = torch.randn(64, 64, device="cuda")

    def step():
        y = x
        for _ in range(20):
            y = torch.relu(y + 1)
        return y

    stream = torch.cuda.Stream()
    theirs, _, ours, _ = record(step, stream)
    wrapped = rondo.Stream.wrap(stream)

    def cost(replay):
        times = []
        for _ in range(200):
            begin = time.perf_counter_ns()
            for _ in range(10):
                replay()
            times.append((time.perf_counter_ns() - begin) / 10)
            torch.cuda.synchronize()
        return statistics.median(times)

    with torch.cuda.stream(stream):
        rows = [("torch CUDAGraph.replay()", cost(theirs.replay)),
                ("rondo graph.replay(stream)", cost(lambda: ours.replay(wrapped)))]
    for name, value in rows:
        print(f"  {name:32} {value / 1e3:6.2f} us of the calling thread")


def main():
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}, Python {sys.version.split()[0]}")
    failed = 0
    checks = (check_inference, check_training, check_forks, check_events, check_autocast,
              check_pinned_inputs, check_shared_memory, check_part_of_a_network, check_own_stream,
              check_refusals, check_recorded_by_torch, check_generator, check_memory,
              check_sessions, measure)
    for check in checks:
        print(check.__name__, flush=True)
        try:
            check()
        except Exception as error:
            import traceback
            traceback.print_exc()
            print(f"  FAILED: {error!r}")
            failed += 1
        gc.collect()
        torch.cuda.empty_cache()  # what outlived its graph's pool
        left = helper._load().rondo_torch_get_segment_count()
        if left != 0 and check is not measure:  # whose graphs live on
            print(f"  FAILED: {left} segments of torch's are left")
            failed += 1
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
