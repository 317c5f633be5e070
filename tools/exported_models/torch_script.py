# SPDX-License-Identifier: Apache-2.0

"""Modules for PyTorch's older exporter: control flow of TorchScript, recurrent nets, packed sequences."""
import torch
from torch import nn


class Columns(nn.Module):
    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        out: list[torch.Tensor] = []
        for i in range(int(turns)):
            if bool(x.sum() > 0):
                x = x * -1.1
            else:
                x = x + i
            out.append(x[:, i % x.size(1)])
        return torch.stack(out, 1)


class Ragged(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        out: list[torch.Tensor] = []
        first = 0
        for i in range(lengths.size(0)):
            count = int(lengths[i])
            out.append(x[first:first + count].sum(0))
            first += count
        return torch.stack(out)


class EarlyExit(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        used = 0
        for layer in self.layers:
            x = torch.tanh(layer(x))
            if bool(x.abs().mean() < 0.3):
                return x, used
            used += 1
        return x, used


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.LSTM(6, 8, bidirectional=True, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.parts(packed)[0], batch_first=True)[0]


def list_modules():
    """{name: (module, values, opset)}."""
    normal = torch.randn
    found = {
        "columns": (torch.jit.script(Columns()), (normal(2, 4), torch.tensor(5)), 17),
        "ragged": (torch.jit.script(Ragged()), (normal(7, 3), torch.tensor([2, 4, 1])), 17),
        "early_exit": (torch.jit.script(EarlyExit()), (normal(2, 8),), 17),
        "packed": (Packed(), (normal(3, 5, 6), torch.tensor([5, 3, 2])), 17),
        "lstm": (nn.LSTM(6, 8, 2, bidirectional=True, batch_first=True), (normal(2, 5, 6),), 17),
        "gru": (nn.GRU(6, 8, 2, bidirectional=True), (normal(2, 5, 6),), 17),
        "rnn": (nn.RNN(6, 8, nonlinearity="relu"), (normal(2, 5, 6),), 17),
        "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2),
                    (normal(2, 5, 16),), 17),
        "activations": (nn.Sequential(nn.Linear(16, 64), nn.ELU(), nn.Linear(64, 64), nn.SELU(), nn.Linear(64, 64),
                                      nn.PReLU(), nn.Linear(64, 64), nn.Softplus()), (normal(8, 16),), 17),
    }
    for opset in (9, 11, 13, 17, 20):
        found[f"cnn_{opset}"] = (nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6(),
            nn.Upsample(scale_factor=2, mode="bilinear" if opset > 9 else "nearest"), nn.PixelShuffle(2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 5)), (normal(2, 3, 16, 16),), opset)
    return found
