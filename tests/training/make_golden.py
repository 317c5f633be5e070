#!/usr/bin/env python3
# Writes training_golden.h: what PyTorch computes, for the tests of training steps and gradients.
#
#   ATEN_CPU_CAPABILITY=default python3 make_golden.py > training_golden.h
#
# With that capability PyTorch's kernels round each operation by itself, as Rondo's do. Made with
# PyTorch 2.15 on the CPU; run again only when a case is added.
# SPDX-License-Identifier: Apache-2.0
import struct
import sys

import torch

torch.set_num_threads(1)
CAPABILITY = torch.backends.cpu.get_cpu_capability().upper()
assert "DEFAULT" in CAPABILITY, "set ATEN_CPU_CAPABILITY=default"

COUNT, STEPS = 64, 12


def values(seed, count, scale=1.0):
    state, out = seed, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(((state >> 8) / 2**24 - 0.5) * 2 * scale)
    return out


def bits(tensor):
    flat = tensor.detach().to(torch.float32).reshape(-1).tolist()
    words = ["0x%08x" % struct.unpack("<I", struct.pack("<f", v))[0] for v in flat]
    return ",\n    ".join(", ".join(words[i:i + 7]) for i in range(0, len(words), 7))


def run(make, schedule=None, clip=None):
    w = torch.nn.Parameter(torch.tensor(values(1, COUNT), dtype=torch.float32))
    optimizer = make([w])
    scheduler = schedule(optimizer) if schedule else None
    for step in range(STEPS):
        w.grad = torch.tensor(values(100 + step, COUNT, 0.3), dtype=torch.float32)
        if clip:
            clip([w])
        optimizer.step()
        if scheduler:
            scheduler.step()
    return w


O = torch.optim
S = torch.optim.lr_scheduler
N = torch.nn.utils
CASES = [
    ("sgd", run(lambda p: O.SGD(p, lr=.1))),
    ("sgd_decay", run(lambda p: O.SGD(p, lr=.1, weight_decay=.05))),
    ("momentum", run(lambda p: O.SGD(p, lr=.1, momentum=.9))),
    ("dampening", run(lambda p: O.SGD(p, lr=.1, momentum=.9, dampening=.5, weight_decay=.01))),
    ("nesterov", run(lambda p: O.SGD(p, lr=.1, momentum=.9, nesterov=True))),
    ("adam", run(lambda p: O.Adam(p, lr=.01, foreach=False))),
    ("adam_l2", run(lambda p: O.Adam(p, lr=.01, weight_decay=.1, foreach=False))),
    ("adam_betas", run(lambda p: O.Adam(p, lr=.01, betas=(.3, .9), eps=.1, foreach=False))),
    ("adamw", run(lambda p: O.AdamW(p, lr=.01, weight_decay=.1, foreach=False))),
    ("step", run(lambda p: O.SGD(p, lr=.1), lambda o: S.StepLR(o, 4, .5))),
    ("cosine", run(lambda p: O.SGD(p, lr=.1), lambda o: S.CosineAnnealingLR(o, 11))),
    ("warmup", run(lambda p: O.SGD(p, lr=.1), lambda o: S.LinearLR(o, 1 / 3, 1.0, 5))),
    ("clip_norm", run(lambda p: O.SGD(p, lr=.1), clip=lambda p: N.clip_grad_norm_(p, .5))),
    ("clip_value", run(lambda p: O.SGD(p, lr=.1), clip=lambda p: N.clip_grad_value_(p, .1))),
]


IDS = [[7, 3, 7, 8, 0, 7], [1, 1, 4, 3, 5, 8], [0, 5, 5, 4, 1, 3]]


def table(make, sparse=True):
    """A table of 9 x 5 of which six rows are looked up, some of them twice."""
    start = torch.tensor(values(1, 45), dtype=torch.float32).reshape(9, 5)
    layer = torch.nn.Embedding(9, 5, sparse=sparse, _weight=start)
    optimizer = make(layer.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        x = torch.tensor(values(100 + step, 30, 0.3), dtype=torch.float32).reshape(6, 5)
        (layer(torch.tensor(IDS[step % 3])) * x).sum().backward()
        optimizer.step()
    return layer.weight


CASES += [
    ("sparse_adam", table(lambda p: O.SparseAdam(p, lr=.01))),
    ("sparse_adam_betas", table(lambda p: O.SparseAdam(p, lr=.01, betas=(.3, .9), eps=.1))),
    ("sparse_adagrad", table(lambda p: O.Adagrad(p, lr=.1, foreach=False))),
    ("adagrad", table(lambda p: O.Adagrad(p, lr=.1, foreach=False), False)),
    ("adagrad_decay",
     table(lambda p: O.Adagrad(p, lr=.1, weight_decay=.05, eps=.01, foreach=False), False)),
    ("dense_adam", table(lambda p: O.Adam(p, lr=.01, foreach=False), False)),
]


def scaler(bad, interval):
    s = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=interval)
    w = torch.nn.Parameter(torch.ones(1))
    optimizer = O.SGD([w], lr=0.0)
    out = []
    for step in range(24):
        w.grad = None
        s.scale(w.sum() * 0).backward()
        if step in bad:
            w.grad.fill_(float("inf") if step % 2 else float("nan"))
        s.step(optimizer)
        s.update()
        out.append(s.get_scale())
    return torch.tensor(out)


CASES.append(("scaler", scaler({3, 7, 8, 15}, 3)))


class Network(torch.nn.Module):
    """Convolution, batch norm, pool, product, layer norm, GELU, softmax: one of each."""

    def __init__(self):
        super().__init__()
        n = torch.nn
        self.conv = n.Conv2d(2, 4, 3, stride=2, padding=1)
        self.norm = n.BatchNorm2d(4)
        self.first = n.Linear(16, 8)
        self.layer = n.LayerNorm(8)
        self.second = n.Linear(8, 5)
        for i, p in enumerate(self.parameters()):
            p.data = torch.tensor(values(1000 + i, p.numel(), .5), dtype=p.dtype).reshape(p.shape)

    def forward(self, x, y):
        f = torch.nn.functional
        x = f.max_pool2d(f.relu(self.norm(self.conv(x))), 2)
        x = f.gelu(self.layer(self.first(x.flatten(1))))
        return f.cross_entropy(self.second(x), y)


network = Network().double()
x = torch.tensor(values(77, 3 * 2 * 8 * 8), dtype=torch.float64).reshape(3, 2, 8, 8)
loss = network(x, torch.tensor([1, 4, 0]))
loss.backward()
CASES.append(("network_loss", loss))
for name, parameter in network.named_parameters():
    CASES.append(("network_" + name.replace(".", "_"), parameter.grad))

# Products in bf16, weights and states of f32: what autocast makes of two layers.
first, second = torch.nn.Linear(12, 16), torch.nn.Linear(16, 5)
layers = [first.weight, first.bias, second.weight, second.bias]
for i, p in enumerate(layers):
    p.data = torch.tensor(values(2000 + i, p.numel(), .4), dtype=torch.float32).reshape(p.shape)
optimizer = O.AdamW(layers, lr=.02, weight_decay=.1, foreach=False)
labels = torch.tensor([0, 3, 1, 4, 2, 2, 0, 1])
losses = []
for step in range(20):
    x = torch.tensor(values(300 + step % 4, 96), dtype=torch.float32).reshape(8, 12)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(second(torch.relu(first(x))), labels)
    loss.backward()
    if step == 0:
        CASES += [("bf16_gradient_%d" % i, p.grad.clone()) for i, p in enumerate(layers)]
    optimizer.step()
    losses.append(loss.detach())
CASES.append(("bf16_losses", torch.stack(losses)))

print("// Made by make_golden.py with PyTorch %s; do not edit." % torch.__version__.split("+")[0])
print("// SPDX-License-Identifier: Apache-2.0")
print("// clang-format off")
for name, tensor in CASES:
    print("static const unsigned golden_%s[] = {\n    %s};" % (name, bits(tensor)))
print("// clang-format on")
sys.stdout.flush()
