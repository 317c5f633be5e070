#!/usr/bin/env python3
"""The steps of bench/train_steps.c in PyTorch on the processor: torch_train_steps.py [THREADS]."""
# SPDX-License-Identifier: Apache-2.0
import statistics
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
F = nn.functional


def block(a, b):
    return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)]


mlp = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                    nn.Linear(512, 10))
cnn = nn.Sequential(*block(1, 32), *block(32, 64), nn.Flatten(), nn.Dropout(0.1),
                    nn.Linear(3136, 10))
CASES = [("mlp", mlp, torch.randn(128, 784),
          lambda p: torch.optim.SGD(p, 0.01, momentum=0.9)),
         ("cnn", cnn, torch.randn(64, 1, 28, 28), lambda p: torch.optim.AdamW(p, 1e-3))]
for name, net, x, make in CASES:
    y = torch.arange(x.shape[0]) % 10
    optimizer = make(net.parameters())
    times = []
    for _ in range(68):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        loss.item()
        times.append((time.perf_counter() - start) * 1e6)
    times = sorted(times[8:])
    print(f"{name}: PyTorch {torch.__version__}, {torch.get_num_threads()} threads: "
          f"{statistics.median(times):.0f} us a step ({times[6]:.0f} to {times[53]:.0f})")
