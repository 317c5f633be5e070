# SPDX-License-Identifier: Apache-2.0

"""The networks of bench/peers/gpu_models.sh in PyTorch: eager, and replayed from a CUDA graph.

    python3 bench/peers/torch_nets.py NAME...

The same shapes as the ONNX files have in their test data, random weights, fp32 and fp16. Prints a
JSON line for each with median microseconds of wall clock from the call until the device is idle,
inputs on the device; a way that PyTorch does not have is null, with the reason. A capture that fails
may leave the process without a usable device, so name what cannot be captured last.
"""
import json
import statistics
import sys
import time
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.backends.cudnn.benchmark = True
DEVICE = "cuda"


def make_vision(name, size=224):
    import torchvision

    net = getattr(torchvision.models, name)(weights=None)
    return net.to(memory_format=torch.channels_last), [torch.randn(1, 3, size, size)]


class Bert(nn.Module):
    def __init__(self):
        from transformers import BertConfig, BertModel

        super().__init__()
        self.net = BertModel(BertConfig(vocab_size=1000, hidden_size=128, num_hidden_layers=2,
                                        num_attention_heads=4, intermediate_size=512))

    def forward(self, ids, mask):
        return self.net(ids, attention_mask=mask)[0]


class DecodeStep(nn.Module):
    """A step of a GPT of two layers, with keys and values of the tokens before."""

    WIDTH, HEADS = 128, 4

    def __init__(self):
        super().__init__()
        width = self.WIDTH
        self.words, self.places = nn.Embedding(500, width), nn.Embedding(256, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "before": nn.LayerNorm(width), "all": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
            "between": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width),
            "down": nn.Linear(4 * width, width)}) for _ in range(2))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, 500, bias=False)

    def forward(self, ids, position, past):
        x = self.words(ids) + self.places(position)
        kept = []
        for layer, old in zip(self.layers, past):
            count, steps, width = x.shape
            heads = [y.view(count, steps, self.HEADS, -1).transpose(1, 2)
                     for y in layer["all"](layer["before"](x)).split(width, dim=-1)]
            keys, values = torch.cat([old[0], heads[1]], 2), torch.cat([old[1], heads[2]], 2)
            kept.append(torch.stack([keys, values]))
            weights = torch.softmax(heads[0] @ keys.transpose(-1, -2) / keys.shape[-1] ** 0.5, -1)
            x = x + layer["out"]((weights @ values).transpose(1, 2).reshape(count, steps, width))
            x = x + layer["down"](nn.functional.gelu(layer["up"](layer["between"](x))))
        return self.head(self.last(x)), torch.stack(kept)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(200, 64)
        self.layers = nn.LSTM(64, 96, 2, bidirectional=True)
        self.head = nn.Linear(192, 17)

    def forward(self, ids):
        return torch.log_softmax(self.head(self.layers(self.words(ids))[0]), -1)


class BranchAndLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x, steps):
        turn = 0
        while turn < int(steps) and bool(x.abs().max() < 100.0):
            x = torch.tanh(self.layer(x)) * 1.5 + x
            turn += 1
        return x * 2.0 if bool(x.sum() > 0) else x - 1.0


def make(name):
    if name in ("squeezenet1_1", "mobilenet_v2", "resnet50"):
        return make_vision(name)
    draw = torch.randint
    return {
        "bert_mini": lambda: (Bert(), [draw(0, 1000, (1, 32)), torch.ones(1, 32, dtype=torch.long)]),
        "gpt_mini": lambda: (DecodeStep(), [draw(0, 500, (1, 1)), torch.full((1, 1), 7),
                                            torch.randn(2, 2, 1, 4, 7, 32)]),
        "lstm_tagger": lambda: (Tagger(), [draw(0, 200, (23, 2))]),
        "branch_and_loop": lambda: (BranchAndLoop(), [torch.randn(3, 16), torch.tensor(5)]),
    }[name]()


def measure(work, least_s=1.0):
    for _ in range(10):
        work()
    times = []
    end = time.perf_counter() + least_s
    while time.perf_counter() < end or len(times) < 20:
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def capture(work):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def measure_net(name, dtype, row):
    torch.manual_seed(0)
    net, inputs = make(name)
    kind = torch.half if dtype == "fp16" else torch.float
    net = net.eval().to(DEVICE).to(kind)
    inputs = [x.to(DEVICE).to(kind) if x.is_floating_point() else x.to(DEVICE) for x in inputs]
    inputs = [x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in inputs]
    row["eager_us"] = measure(lambda: net(*inputs))
    row["graph_us"] = measure(capture(lambda: net(*inputs)).replay)


def main(names):
    for name in names:
        for dtype in ("fp32", "fp16"):
            row = {"name": name, "dtype": dtype, "eager_us": None, "graph_us": None, "reason": ""}
            try:
                with torch.inference_mode():
                    measure_net(name, dtype, row)
            except Exception as error:  # what a capture, or a missing package, refuses
                row["reason"] = str(error).strip().split("\n")[0][:120]
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
