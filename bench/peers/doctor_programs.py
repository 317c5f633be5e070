# SPDX-License-Identifier: Apache-2.0

"""Programs that know nothing of Rondo, for `rondo doctor` to predict, and what a real capture of them takes.

    rondo doctor -- python3 bench/peers/doctor_programs.py NAME [SECONDS]     runs the step in a loop
    python3 bench/peers/doctor_programs.py truth NAME [SECONDS]               captures it first, and replays it

Compares what a replay computes with what the step did. Prints one JSON line; times are medians of the wall clock, microseconds, from
before the step until the device is idle: `eager_us` of the loop's first quarter of a second, before the doctor takes device times,
`late_eager_us` of its last third.
"""
import json
import os
import statistics
import sys
import time

REPLAYS = 300


def measure_all(step, wait, seconds=0.0, runs=0):
    times = []
    end = time.perf_counter() + seconds
    while len(times) < runs or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        wait()
        times.append((time.perf_counter() - start) * 1e6)
    return times


def measure(*arguments, **named):
    return statistics.median(measure_all(*arguments, **named))


class Torch:
    """A step of PyTorch: `run` computes, `outputs` are what a replay has to give again."""

    def __init__(self, run, outputs=(), range_name=None):
        import torch

        self.torch, self.outputs, self.range_name = torch, outputs, range_name
        self.run = run
        self.wait = torch.cuda.synchronize

    def step(self):
        if self.range_name is None:
            self.run()
            return
        with self.torch.cuda.nvtx.range(self.range_name):
            self.run()

    def read(self):
        return [output().float().cpu() for output in self.outputs]

    def capture(self):
        side = self.torch.cuda.Stream()
        side.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(side):
            for _ in range(3):
                self.run()
        self.torch.cuda.current_stream().wait_stream(side)
        self.wait()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            self.run()
        return graph.replay

    def is_equal(self, before, after):
        return all(self.torch.allclose(a, b, rtol=1e-2, atol=1e-2) for a, b in zip(before, after))


def resnet50():
    import torch
    import torchvision

    net = torchvision.models.resnet50().eval().half().cuda()
    x = torch.randn(1, 3, 224, 224, device="cuda", dtype=torch.half)
    out = torch.empty(1, 1000, device="cuda", dtype=torch.half)

    def run():
        with torch.inference_mode():
            out.copy_(net(x))

    return Torch(run, [lambda: out])


def gpt2(reads_back=False):
    """GPT-2's 124M shape: twelve layers of 768, one token a step, a static cache of 512 places."""
    import torch
    import torch.nn.functional as f

    width, heads, layers, places = 768, 12, 12, 512
    torch.manual_seed(1)

    def weight(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.half) * 0.02

    table, positions = weight(50257, width), weight(places, width)
    blocks = [(weight(width), weight(width), weight(3 * width, width), weight(3 * width), weight(width, width),
               weight(width), weight(width), weight(width), weight(4 * width, width), weight(4 * width),
               weight(width, 4 * width), weight(width)) for _ in range(layers)]
    keys = [torch.zeros(1, heads, places, 64, device="cuda", dtype=torch.half) for _ in range(layers)]
    values = [torch.zeros_like(k) for k in keys]
    token = torch.full((1,), 464, device="cuda", dtype=torch.long)
    place = torch.zeros(1, device="cuda", dtype=torch.long)
    order = torch.arange(places, device="cuda")

    def run():
        with torch.inference_mode():
            x = table[token] + positions[place]
            mask = (order <= place).view(1, 1, 1, places)
            for (n1, m1, qkv, qkv_bias, proj, proj_bias, n2, m2, up, up_bias, down, down_bias), k, v in zip(
                    blocks, keys, values):
                q, new_k, new_v = f.linear(f.layer_norm(x, (width,), n1, m1), qkv, qkv_bias).split(width, 1)
                k.index_copy_(2, place, new_k.view(1, heads, 1, 64))
                v.index_copy_(2, place, new_v.view(1, heads, 1, 64))
                a = f.scaled_dot_product_attention(q.view(1, heads, 1, 64), k, v, attn_mask=mask)
                x = x + f.linear(a.reshape(1, width), proj, proj_bias)
                x = x + f.linear(f.gelu(f.linear(f.layer_norm(x, (width,), n2, m2), up, up_bias)), down, down_bias)
            token.copy_(f.linear(x, table).argmax(1))
            if reads_back and token.item() == -1:
                return
            place.copy_((place + 1) % places)

    return Torch(run)


def vit():
    import torch
    import torchvision

    net = torchvision.models.vit_b_16().eval().half().cuda()
    x = torch.randn(1, 3, 224, 224, device="cuda", dtype=torch.half)
    out = torch.empty(1, 1000, device="cuda", dtype=torch.half)

    def run():
        with torch.inference_mode():
            out.copy_(net(x))

    return Torch(run, [lambda: out])


def dlrm():
    import torch

    torch.manual_seed(1)
    tables = [torch.nn.EmbeddingBag(10000, 64, mode="sum").cuda() for _ in range(26)]
    bottom = torch.nn.Sequential(torch.nn.Linear(13, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).cuda()
    top = torch.nn.Sequential(torch.nn.Linear(27 * 64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).cuda()
    dense = torch.randn(128, 13, device="cuda")
    sparse = [torch.randint(0, 10000, (128, 4), device="cuda") for _ in range(26)]
    out = torch.empty(128, 1, device="cuda")

    def run():
        with torch.inference_mode():
            parts = [bottom(dense)] + [table(ids) for table, ids in zip(tables, sparse)]
            out.copy_(top(torch.cat(parts, 1)))

    return Torch(run, [lambda: out])


def train():
    import torch
    import torchvision

    net = torchvision.models.resnet18(num_classes=10).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, capturable=True)
    x = torch.randn(16, 3, 64, 64, device="cuda")
    y = torch.randint(0, 10, (16,), device="cuda")
    loss_function = torch.nn.CrossEntropyLoss()

    def run():
        optimizer.zero_grad(set_to_none=False)
        loss_function(net(x), y).backward()
        optimizer.step()

    return Torch(run, range_name="train step")


def matmul():
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
    b, c, d = torch.randn_like(a), torch.empty_like(a), torch.empty_like(a)

    def run():
        torch.mm(a, b, out=c)
        torch.mm(b, a, out=d)

    return Torch(run, [lambda: c[:8, :8]])


class Cupy:
    def __init__(self):
        import cupy

        self.cupy = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.x = cupy.zeros(1 << 16, dtype=cupy.float32)
        self.wait = self.stream.synchronize

    def step(self):
        with self.stream:
            self.x.fill(1.0)
            for i in range(20):
                self.cupy.add(self.x, 1.0, out=self.x)
                self.cupy.multiply(self.x, 0.5, out=self.x)

    def read(self):
        return [self.x.get()]

    def capture(self):
        self.stream.begin_capture()
        self.step()
        graph = self.stream.end_capture()
        return lambda: graph.launch(self.stream)

    def is_equal(self, before, after):
        return bool((before[0] == after[0]).all())


class Jax:
    """XLA captures by itself: XLA_FLAGS decides, so that the loop and the truth are two runs.

    Its host takes longer than the device, so that the truth is a row of replays with one wait behind it."""

    ROW = 50

    def __init__(self):
        import jax
        import jax.numpy as jnp

        weights = [jax.random.normal(jax.random.key(i), (1024, 1024)) * 0.03 for i in range(48)]
        self.x = jax.random.normal(jax.random.key(99), (256, 1024))

        @jax.jit
        def run(x, weights):
            for weight in weights:
                x = jnp.tanh(x @ weight)
            return x

        self.run = run
        self.weights = weights
        self.wait = lambda: self.out.block_until_ready()

    def step(self):
        self.out = self.run(self.x, self.weights)

    def read(self):
        return []

    def capture(self):
        return lambda: [self.step() for _ in range(self.ROW)]

    def is_equal(self, before, after):
        return True


PROGRAMS = {"resnet50": resnet50, "gpt2": gpt2, "gpt2-item": lambda: gpt2(True), "vit": vit, "dlrm": dlrm, "train": train,
            "matmul": matmul, "cupy": Cupy, "jax": Jax}


def measure_truth(program):
    before = program.read()
    try:
        replay = program.capture()
        measure(replay, program.wait, 0.3)
        row = getattr(program, "ROW", 1)
        graph_us = measure(replay, program.wait, runs=REPLAYS // row) / row
        return {"graph_us": round(graph_us, 1), "equal": program.is_equal(before, program.read())}
    except Exception as problem:  # what refuses is the result
        return {"refused": str(problem).split("\n")[0][:160]}


def main():
    is_truth = sys.argv[1] == "truth"
    arguments = sys.argv[2:] if is_truth else sys.argv[1:]
    seconds = float(arguments[1]) if len(arguments) > 1 else 2.5
    program = PROGRAMS[arguments[0]]()
    measure(program.step, program.wait, runs=10)
    result = {"program": arguments[0]}
    if is_truth:
        result.update(measure_truth(program))
    if "refused" not in result:
        result["eager_us"] = round(measure(program.step, program.wait, 0.25, runs=5), 1)
        times = measure_all(program.step, program.wait, seconds, runs=5)
        result["late_eager_us"] = round(statistics.median(times[2 * len(times) // 3:]), 1)
    print(json.dumps(result), flush=True)
    os._exit(0)


main()
