# SPDX-License-Identifier: Apache-2.0

"""More small modules of one idea each, beside those of modules.py: blocks of published networks, and ops in
the forms that torch.onnx (dynamo) gives them."""
import sys

import numpy as np
import onnx
from modules import export


def list_ideas(torch):
    """(name, module or function, inputs, axes that are symbolic)."""
    import torchvision
    nn, f, draw = torch.nn, torch.nn.functional, torch.randn
    image, volume = draw(2, 8, 20, 24), draw(1, 4, 6, 10, 12)
    ids = torch.tensor(np.random.default_rng(3).integers(0, 40, (2, 10)))
    batch = {0: "batch"}
    lstm = nn.LSTM(12, 16, 2, bidirectional=True, batch_first=True)
    yield "lstm_states", lambda x, h, c: lstm(x, (h, c)), (draw(2, 7, 12), draw(4, 2, 16), draw(4, 2, 16)), None
    cell = nn.GRUCell(8, 12)
    yield "gru_cell", lambda x, h: cell(x[1], cell(x[0], h)), (draw(2, 3, 8), draw(3, 12)), None
    yield "volume_up", nn.Sequential(nn.Conv3d(4, 8, 3, 2, 1), nn.ReLU(), nn.ConvTranspose3d(8, 4, 2, 2)), (volume,), None
    yield "wave_up", nn.ConvTranspose1d(8, 12, 5, 3, 1, output_padding=2, groups=2), (draw(2, 8, 15),), [{2: "time"}]
    yield "volume_depthwise", nn.Sequential(nn.Conv3d(4, 8, (1, 3, 3), padding=(0, 1, 1), groups=4), nn.GroupNorm(2, 8),
                                            nn.Upsample(scale_factor=2, mode="trilinear")), (volume,), None
    squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 8, 1), nn.Hardsigmoid())
    yield "squeeze", lambda x: x * squeeze(x), (image,), [batch]
    yield "shuffles", nn.Sequential(nn.PixelUnshuffle(2), nn.ChannelShuffle(4), nn.LocalResponseNorm(5)), (image,), None
    wide = nn.ModuleList([nn.Conv2d(8, 6, 3, padding=d, dilation=d) for d in (1, 3, 6)])
    yield "aspp", lambda x: torch.cat([part(x) for part in wide], 1), (image,), None
    yield "masked_half", lambda q, k, v, m: f.scaled_dot_product_attention(q, k, v, m), (
        *(draw(2, 4, 9, 16).half() for _ in range(3)), torch.ones(9, 9, dtype=torch.bool).tril()), None
    yield "shared_heads", lambda q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), (
        draw(2, 8, 9, 16), draw(2, 2, 9, 16), draw(2, 2, 9, 16)), None
    slopes = torch.tensor([2.0 ** -(i + 1) for i in range(4)])[:, None, None]
    yield "alibi", lambda q: (q @ q.mT / 4 + slopes * (torch.arange(q.shape[2])[None] - torch.arange(
        q.shape[2])[:, None])).masked_fill(torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(
            1), float("-inf")).softmax(-1) @ q, (draw(2, 4, 9, 16),), [{2: "steps"}]
    table = nn.Embedding(15, 4)
    yield "relative", lambda q: (q @ q.mT + table((torch.arange(8)[None] - torch.arange(8)[:, None]) + 7).permute(
        2, 0, 1)).softmax(-1) @ q, (draw(2, 4, 8, 16),), None
    yield "cache", lambda c, x, i: (c.index_copy(1, i, x), c.slice_scatter(x, 1, 2, 4), c.scatter(
        1, i[None, :, None].expand(2, 2, 6), x)), (draw(2, 9, 6), draw(2, 2, 6), torch.tensor([3, 7])), None
    yield "nucleus", lambda x: x.scatter(1, x.sort(1, True).indices, x.sort(1, True).values.masked_fill(
        x.sort(1, True).values.softmax(1).cumsum(1) > 0.8, -1e4)), (draw(3, 30),), None
    yield "running", lambda x: (x.cumsum(0), x.flip(1).cumsum(1).flip(1), x.exp().cumsum(1).log()), (draw(5, 9),), None
    yield "unique", lambda i: torch.unique(i), (ids,), None
    yield "boxes", lambda b, s: torchvision.ops.nms(b, s, 0.5), (
        torch.cat([draw(12, 2), draw(12, 2) + 2], 1), torch.rand(12)), None
    yield "distances", lambda a, b: ((a[:, None] - b).norm(dim=-1), f.cosine_similarity(a[:4], b, 1), f.pairwise_distance(
        a[:4], b), (a[:, None] - b[None]).abs().sum(-1)), (draw(6, 8), draw(4, 8)), None
    yield "sums_of_products", lambda a, b, c: (torch.baddbmm(c, a, b, beta=0.5, alpha=2), torch.addmm(
        c[0], a[0], b[0]), torch.addcmul(c, a @ b, c, value=0.3), torch.addcdiv(c, a @ b, c.abs() + 1), torch.addmv(
            c[0, 0], b[0].mT, a[0, 0])), (draw(2, 5, 6), draw(2, 6, 7), draw(2, 5, 7)), None
    yield "norms", lambda x: (torch.linalg.vector_norm(x, 3, 1), x.norm(1, 0), torch.linalg.det(x[:5, :5]), f.normalize(
        x, dim=1), x.abs().max()), (draw(7, 9),), None
    yield "plane_spectrum", lambda x: torch.view_as_real(torch.fft.fft2(x)), (draw(2, 8, 12),), None
    yield "volume_warp", lambda x, g: f.grid_sample(x, g, align_corners=True), (volume, draw(1, 3, 4, 5, 3).tanh()), None
    yield "sizes_of_others", lambda x, y: f.interpolate(x, size=y.shape[2:], mode="bilinear") + y, (
        image, draw(2, 8, 31, 37)), None
    yield "unpool", lambda x: f.max_unpool2d(*f.max_pool2d(x, 2, return_indices=True), 2), (image,), None
    brain = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 8)).bfloat16()
    yield "brain", lambda x: brain(x.bfloat16()).float(), (image,), None
    packed = torch.tensor(np.random.default_rng(4).integers(0, 256, (8, 12)), dtype=torch.uint8)
    yield "unpacked", lambda x: x @ (torch.stack([packed & 15, packed >> 4], 2).flatten(1).float() - 8).mT * 0.1, (
        draw(3, 24),), None
    turns = torch._higher_order_ops.while_loop
    yield "while", lambda x: turns(lambda i, x: i < 5, lambda i, x: (i + 1, x * 0.5 + x.flip(0)), (
        torch.tensor(0), x))[1], (draw(4, 3),), None
    yield "reshaped", lambda x: x.reshape(x.shape[0] * 2, -1, 3).mean(1).view(2, -1), (draw(4, 6, 6),), [batch]
    yield "parts", lambda x: (*x.split([3, 1, 5]), *x.chunk(4, 1), *x.tensor_split(3, 1), x.narrow(0, 2, 4), x[
        ..., 1:7:2], x[-3:]), (draw(9, 10),), None
    yield "turned", lambda x: (x.rot90(1, (0, 1)), f.pad(x, (-1, 2, 3, -2), value=0.5), x.roll(3), x.swapaxes(
        0, 1).contiguous()), (draw(7, 8),), None
    yield "sliding", lambda x: (x.unfold(1, 4, 2).amax(-1), x.as_strided((3, 5), (2, 3))), (draw(6, 20),), None
    yield "norm_shapes", nn.Sequential(nn.LayerNorm((8, 20, 24)), nn.BatchNorm2d(8, affine=False), nn.GroupNorm(8, 8)), (
        image,), None
    emb = nn.Embedding(40, 16, padding_idx=0)
    yield "tied", lambda i: f.linear(emb(i).cumsum(1).tanh(), emb.weight).log_softmax(-1), (ids,), [{0: "batch", 1: "n"}]
    yield "more_losses", lambda x, y: (f.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
                                       f.binary_cross_entropy_with_logits(x, y.sigmoid()), f.smooth_l1_loss(
        x, y, beta=0.5), f.mse_loss(x, y, reduction="sum"), f.soft_margin_loss(x, y.sign()), f.poisson_nll_loss(
            x, y.abs())), (draw(4, 6), draw(4, 6)), None
    token, places = draw(1, 1, 16), draw(1, 31, 16)
    patches = nn.Conv2d(8, 16, 4, 4)
    yield "patches", lambda x: torch.cat([token.expand(x.shape[0], 1, 16), patches(x).flatten(2).mT], 1) + places, (
        image,), [batch]
    yield "selective", lambda x, d: selective_scan(torch, x, d), (draw(2, 12, 6), torch.rand(2, 12, 6)), None
    yield "routed", lambda x: x.index_add(0, (x[:, 0] > 0).nonzero()[:, 0], x[x[:, 0] > 0] * 2), (draw(10, 6),), None
    yield "encoding", lambda x: torch.cat([fun(x[..., None] * 2.0 ** torch.arange(6)).flatten(1) for fun in (
        torch.sin, torch.cos)], 1), (draw(9, 3),), [batch]
    codes = draw(20, 8)
    yield "codebook", lambda x: codes[(x[:, None] - codes).square().sum(-1).argmin(1)] - x.detach() + x, (draw(7, 8),), [batch]
    mel = torch.rand(33, 12)
    yield "mel", lambda x: (torch.stft(x, 64, 16, window=torch.hann_window(64), return_complex=True).abs().square().mT @
                            mel).clamp(min=1e-5).log10(), (draw(1, 400),), None
    tops = nn.ModuleList([nn.Conv2d(8, 6, 1), nn.Conv2d(8, 6, 1)])
    yield "pyramid", lambda x, y: tops[0](x) + f.interpolate(tops[1](y), scale_factor=2.0, mode="nearest"), (
        image, draw(2, 8, 10, 12)), [{2: "height", 3: "width"}, {2: "half_height", 3: "half_width"}]
    yield "bits", lambda i: (i & 5, i | 2, i ^ 3, i >> 1, (i > 7) & (i < 20), (i > 7) ^ (i < 20), torch.bitwise_not(
        i.to(torch.uint8)), i.to(torch.int32).abs().sum(1), i.to(torch.float64).mean()), (ids,), None
    yield "moments", lambda x: (x.min(1).values, x.std(1), x.sort(1).values[:, 4], x.aminmax(dim=1)), (draw(5, 9),), None
    yield "triangles", lambda x: (torch.tril_indices(4, 4), x.triu(1), torch.diag_embed(x[0]), x.trace(), torch.outer(
        x[0], x[1]), torch.kron(x[:2, :2], x[:2, :2]), torch.meshgrid(x[0], x[1], indexing="ij")), (draw(4, 4),), None
    yield "sampled_heads", lambda x, g, w: (f.grid_sample(x, g, align_corners=False) * w[:, None]).sum(-1), (
        draw(4, 16, 40, 40), draw(4, 100, 4, 2), torch.rand(4, 100, 4)), None
    yield "states_by_sums", lambda x, d: ((x * torch.exp(d.cumsum(1).clamp(max=30))).cumsum(1) * torch.exp(
        -d.cumsum(1).clamp(max=30))).sum(-1), (draw(1, 64, 128, 16), torch.rand(1, 64, 128, 16) * 0.1), [{1: "time"}] * 2


def selective_scan(torch, x, d):
    state, rows = torch.zeros(x.shape[0], x.shape[2], 4), []
    for t in range(x.shape[1]):
        state = state * torch.exp(-d[:, t, :, None] * torch.arange(1, 5)) + (d * x)[:, t, :, None]
        rows.append(state.sum(-1))
    return torch.stack(rows, 1)


def export_ideas():
    import torch
    torch.manual_seed(6)
    for i, (name, module, values, axes) in enumerate(list_ideas(torch)):
        try:
            data = export(torch, module, values, axes, 19 + 4 * (i % 2))
        except Exception as failure:  # the exporter's own
            print(f"torch.onnx cannot write {name}: {type(failure).__name__} {str(failure)[-300:]}", file=sys.stderr)
            continue
        ports = [port.name for port in onnx.load_from_string(data).graph.input]
        yield "idea_" + name, data, {port: np.asarray(value) for port, value in zip(ports, values)}
