#!/usr/bin/env python3
"""The steps of bench/models/train_steps.c in PyTorch.

    torch_train_steps.py [cpu|cuda] [CASE...] [--threads 2] [--steps 60]

CASE: mlp, cnn, resnet18 (needs torchvision), gpt2, embed; without one mlp and cnn. On a GPU a step is
one CUDA graph, replayed, with the wait; resnet18 and gpt2 are in float16 by autocast there, with a
scaled loss. On the processor it is run eagerly, in float32. Under torchrun each rank has a GPU, and
DistributedDataParallel averages gradients in buckets while the backward pass runs, inside the graph.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import os
import time

import torch
from torch import nn

F = nn.functional
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
WIDTH, HEADS, LAYERS, WORDS, PLACES, BATCH, TOKENS = 768, 12, 12, 50257, 1024, 4, 256


def block(a, b):
    return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, tokens, _ = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, tokens, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.words.weight)


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1000000, 150, sparse=True)

    def forward(self, ids):
        return F.normalize(self.table(ids), dim=-1)


def classify(scores, labels):
    return F.cross_entropy(scores.float().view(-1, scores.shape[-1]), labels.view(-1))


def make(name):
    """The net, x, y, the loss, the optimiser's name."""
    if name == "mlp":
        net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return net, torch.randn(128, 784), torch.arange(128) % 10, classify, "sgd"
    if name == "cnn":
        net = nn.Sequential(*block(1, 32), *block(32, 64), nn.Flatten(), nn.Dropout(0.1), nn.Linear(3136, 10))
        return net, torch.randn(64, 1, 28, 28), torch.arange(64) % 10, classify, "adamw"
    if name == "resnet18":
        import torchvision
        net = torchvision.models.resnet18(weights=None).to(memory_format=torch.channels_last)
        x = torch.randn(32, 3, 224, 224).to(memory_format=torch.channels_last)
        return net, x, torch.arange(32), classify, "sgd"
    if name == "gpt2":
        ids = torch.randint(0, WORDS, (BATCH, TOKENS))
        return Gpt2(), ids, torch.randint(0, WORDS, (BATCH, TOKENS)), classify, "adamw"
    return Embed(), torch.full((1,), 128), torch.full((1, 150), 0.5), F.mse_loss, "rows"


def make_optimizer(kind, net, device):
    fused = {"fused": True} if device == "cuda" else {}
    if kind == "sgd":
        return torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, **fused)
    if kind == "adamw":
        more = {"capturable": True} if device == "cuda" else {}
        return torch.optim.AdamW(net.parameters(), 1e-3, **fused, **more)
    return torch.optim.SGD(net.parameters(), 0.001)


def make_step(name, device):
    net, x, y, loss, kind = make(name)
    net, x, y = net.to(device).train(), x.to(device), y.to(device)
    side = torch.cuda.Stream() if device == "cuda" else None
    if RANKS > 1:
        torch.cuda.synchronize() if side else None
        with torch.cuda.stream(side):
            net = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
        torch.cuda.synchronize() if side else None
    optimizer = make_optimizer(kind, net, device)
    is_half = device == "cuda" and name in ("resnet18", "gpt2")
    scaler = torch.amp.GradScaler(device, enabled=is_half)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.float16, enabled=is_half):
            value = loss(net(x), y)
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        return value

    if device != "cuda":
        return lambda: step().item()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5 if RANKS == 1 else 11):  # DistributedDataParallel settles in ten
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay():
        graph.replay()
        torch.cuda.synchronize()

    return replay


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", nargs="?", default="cpu")
    parser.add_argument("cases", nargs="*", default=["mlp", "cnn"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if RANKS > 1:
        os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # its watchdog queries events, which captures refuse
        if options.device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl" if options.device == "cuda" else "gloo")
    for name in options.cases or ["mlp", "cnn"]:
        step = make_step(name, options.device)
        times, spent, warm_up = [], 0.0, min(8, options.steps)
        for i in range(warm_up + options.steps):
            spent = time.process_time() if i == warm_up else spent
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e6)
        spent = (time.process_time() - spent) * 1e6 / options.steps
        times = sorted(times[warm_up:])
        tenth = len(times) // 10
        of_ranks = f" with {RANKS} ranks" if RANKS > 1 else ""
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"{name}: PyTorch {torch.__version__} on {options.device}{of_ranks}: {times[len(times) // 2]:.0f} us "
                  f"a step ({times[tenth]:.0f} to {times[-1 - tenth]:.0f}), processors {spent:.0f} us", flush=True)
    if RANKS > 1:
        os._exit(0)  # a captured collective keeps the group from ending


if __name__ == "__main__":
    main()
