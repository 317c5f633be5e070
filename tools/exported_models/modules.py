# SPDX-License-Identifier: Apache-2.0

"""Small modules of one idea each, as torch.onnx (dynamo) and onnxruntime's quantisers write them."""
import os
import sys
import tempfile

import numpy as np
import onnx


def list_modules(torch):
    """(name, module or function, inputs, axes that are symbolic)."""
    nn, f = torch.nn, torch.nn.functional
    draw = torch.randn
    ids = torch.tensor(np.random.default_rng(1).integers(0, 50, (3, 12)))
    image = draw(1, 8, 24, 24)
    batch = {0: "batch"}
    yield "gru", nn.GRU(16, 24, batch_first=True), (draw(2, 10, 16),), [{1: "steps"}]
    yield "rnn_relu", nn.RNN(16, 24, 2, nonlinearity="relu"), (draw(10, 2, 16),), None
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, activation="gelu")
    yield "encoder", nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (draw(2, 9, 32),), [batch]
    yield "decoder", nn.TransformerDecoderLayer(32, 4, 64), (draw(7, 2, 32), draw(9, 2, 32)), None
    attention = nn.MultiheadAttention(32, 4, batch_first=True)
    yield "attention_weights", lambda x: attention(x, x, x, average_attn_weights=True), (draw(2, 9, 32),), None
    yield "speech", nn.Sequential(nn.Conv1d(8, 32, 5, 2, 2), nn.BatchNorm1d(32), nn.GLU(1), nn.Conv1d(16, 8, 3)), (
        draw(2, 8, 50),), [{2: "time"}]
    yield "video", nn.Sequential(nn.Conv3d(3, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2),
                                 nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 5)), (draw(1, 3, 8, 16, 16),), None
    yield "unet", nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.SiLU(),
                                nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.InstanceNorm2d(8, affine=True)), (image,), [
                                    {2: "height", 3: "width"}]
    yield "superres", nn.Sequential(nn.Conv2d(8, 36, 3, padding=1), nn.PReLU(36), nn.PixelShuffle(3)), (image,), [batch]
    for mode in ("bilinear", "bicubic", "nearest-exact"):
        more = {} if mode.startswith("near") else {"align_corners": False}
        yield "resize_" + mode, lambda x, mode=mode, more=more: f.interpolate(
            x, scale_factor=1.5, mode=mode, **more), (image,), None
    yield "antialias", lambda x: f.interpolate(x, size=(10, 13), mode="bilinear", antialias=True), (image,), None
    yield "warp", lambda x, t: f.grid_sample(x, f.affine_grid(t, list(x.shape)), padding_mode="border"), (
        image, torch.eye(2, 3)[None] + 0.1 * draw(1, 2, 3)), None
    bag = nn.EmbeddingBag(50, 16, mode="mean")
    yield "embedding_bag", bag, (ids,), None
    yield "sorting", lambda x: (torch.sort(x, 1, descending=True), torch.argsort(x, 0), torch.topk(x, 3, 1)), (
        draw(5, 20),), None
    yield "scatter", lambda x, i: torch.zeros(5, 40).scatter_add(1, i, x).scatter_reduce(1, i, x, "amax"), (
        draw(5, 12), torch.tensor(np.random.default_rng(2).integers(0, 40, (5, 12)))), None
    yield "put", lambda x, i: x.index_put((i,), torch.ones(4, 6), accumulate=True).index_add(0, i, torch.ones(4, 6)), (
        draw(9, 6), torch.tensor([1, 1, 3, 8])), None
    yield "select", lambda x: (x[x > 0], torch.nonzero(x > 1)), (draw(6, 7),), None
    yield "buckets", lambda x: torch.bucketize(x, torch.linspace(-2, 2, 9)), (draw(40),), None
    yield "spectrum", lambda x: torch.view_as_real(torch.fft.rfft(x)), (draw(3, 64),), None
    yield "spectrum_back", lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2), (draw(3, 64),), None
    yield "stft", lambda x: torch.stft(x, 64, 16, window=torch.hann_window(64), return_complex=True).abs(), (
        draw(2, 400),), None
    yield "windows", lambda x: torch.roll(x, (-2, -2), (2, 3)).reshape(1, 8, 4, 6, 4, 6).permute(
        0, 2, 4, 3, 5, 1).flatten(0, 2).flatten(1, 2).softmax(1), (image,), None
    yield "unfold", lambda x: f.fold(f.unfold(x, 3, padding=1), (24, 24), 3, padding=1), (image,), None
    for mode in ("circular", "replicate", "reflect"):
        yield "pad_" + mode, nn.Conv2d(8, 8, 5, padding=2, padding_mode=mode), (image,), None
    yield "statistics", lambda x: (x.var(1), x.std(0), torch.logsumexp(x, 1), x.norm(2, 1), x.prod(1), x.amax(
        (0, 1)), x.argmin(1), x.cumsum(1)), (draw(6, 11),), None
    yield "halves", nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)).half(), (
        draw(4, 32).half(),), [batch]
    yield "experts", make_experts(torch), (draw(10, 16),), None
    yield "rotary", make_rotary(torch), (draw(2, 4, 9, 16),), None
    yield "rms", nn.Sequential(nn.Linear(16, 32), nn.RMSNorm(32), nn.Mish(), nn.Linear(32, 4)), (draw(3, 16),), [batch]
    yield "branch", lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,)), (draw(3, 4),), None
    yield "repeat", lambda x: (x.repeat_interleave(3, 1), x.repeat(2, 2), x.expand(2, 3, 4), x.flip(1), x.tril(
        -1), x.diagonal(), x.unbind(0)[1], x.movedim(0, 1)), (draw(3, 4),), None
    yield "one_hot", lambda i: f.one_hot(i, 50).float().mean(1), (ids,), None
    yield "losses", lambda x, i: (f.cross_entropy(x, i, label_smoothing=0.1), f.nll_loss(x.log_softmax(
        1), i, reduction="none"), f.huber_loss(x, x * 2)), (draw(6, 9), torch.tensor([0, 8, 3, 3, 1, 5])), None
    yield "whole", lambda i: (i // 7, i % 7, i - i.max(), i.float().round(), i & 3, i << 2, ~i, i.clamp(3, 9)), (
        ids,), None
    yield "einsums", lambda a, b: (torch.einsum("bhqd,bhkd->bhqk", a, b), torch.einsum(
        "bhqd,bhqd->bh", a, b), torch.einsum("bhqd->bdq", a), torch.einsum("bhqd,ehkd->beqk", a, b)), (
        draw(2, 3, 5, 8), draw(2, 3, 5, 8)), None
    yield "adaptive", lambda x: (f.adaptive_avg_pool2d(x, (5, 7)), f.adaptive_max_pool2d(x, 4), f.lp_pool2d(
        x.abs(), 2, 3), f.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)), (image,), None
    yield "activations", lambda x: (f.elu(x), f.celu(x, 0.7), f.selu(x), f.hardswish(x), f.softsign(x), f.logsigmoid(
        x), f.tanhshrink(x), f.softshrink(x), f.relu6(x), f.threshold(x, 0.1, 3), f.hardtanh(x), f.gelu(
            x, approximate="tanh")), (draw(5, 33),), None
    yield "functions", lambda x: (x.erf(), x.atan2(x + 1), x.sinh(), x.asinh(), x.expm1(), x.abs().log1p(
    ), x.frac(), x.trunc(), x.sign(), x.abs().rsqrt(), x.remainder(0.7), x.fmod(0.7), x.exp2(), x.abs().log2(
    ), x.logaddexp(x * 2), x.lerp(x * 2, 0.3), x.nan_to_num(), x.sinc(), x.erfc()), (draw(5, 33),), None


def make_experts(torch):
    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = torch.nn.Linear(16, 4)
            self.up = torch.nn.Parameter(torch.randn(4, 16, 32) * 0.2)
            self.down = torch.nn.Parameter(torch.randn(4, 32, 16) * 0.2)

        def forward(self, x):
            weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
            hidden = torch.nn.functional.silu(torch.einsum("ti,tkio->tko", x, self.up[chosen]))
            return (torch.einsum("tki,tkio->tko", hidden, self.down[chosen]) * weights[..., None]).sum(1)
    return Experts()


def make_rotary(torch):
    class Rotary(torch.nn.Module):
        def forward(self, x):
            steps = torch.arange(x.shape[2], dtype=torch.float32)
            angles = torch.outer(steps, 1.0 / 10000 ** (torch.arange(0, 16, 2) / 16))
            first, second = x[..., ::2], x[..., 1::2]
            turned = (first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos())
            return torch.stack(turned, -1).flatten(-2)
    return Rotary()


def wrap(torch, call):
    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            parts = [cell.cell_contents for cell in call.__closure__ or ()]
            self.parts = torch.nn.ModuleList(part for part in parts if isinstance(part, torch.nn.Module))

        def forward(self, *values):
            return call(*values)
    return Wrapped()


def export(torch, module, values, axes, opset):
    """The bytes of the exporter's file, or None where it has no such export."""
    is_function = not isinstance(module, torch.nn.Module)
    module = wrap(torch, module) if is_function else module
    dynamic = None
    if axes:
        dynamic = tuple({axis: torch.export.Dim.DYNAMIC for axis in item} for item in axes)
        dynamic = {"values": dynamic} if is_function else dynamic
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(module.eval(), values, path, dynamo=True, opset_version=opset, external_data=False,
                          verbose=False, dynamic_shapes=dynamic)
        with open(path, "rb") as file:
            return file.read()


def export_modules(names=()):
    import torch
    torch.manual_seed(5)
    for i, (name, module, values, axes) in enumerate(list_modules(torch)):
        if names and name not in names:
            continue
        try:
            data = export(torch, module, values, axes, 20 + 4 * (i % 2))
        except Exception as failure:  # the exporter's own
            print(f"torch.onnx cannot write {name}: {type(failure).__name__} {str(failure)[-300:]}", file=sys.stderr)
            continue
        ports = [port.name for port in onnx.load_from_string(data).graph.input]
        yield "module_" + name, data, {port: np.asarray(value) for port, value in zip(ports, values)}


# ---- the same, quantised or in half precision ---------------------------------------------------

def list_changes(source, target, feeds):
    """(name, call): each call writes another form of the file source, to target or as what it returns."""
    from onnxruntime import quantization as q
    from onnxruntime.quantization import matmul_nbits_quantizer as bits
    from onnxruntime.transformers.float16 import convert_float_to_float16

    class Reader(q.CalibrationDataReader):
        def __init__(self):
            self.left = iter([feeds])

        def get_next(self):
            return next(self.left, None)

    def make_static(of_values, of_weights, **how):
        return lambda: q.quantize_static(source, target, Reader(), activation_type=getattr(q.QuantType, of_values),
                                         weight_type=getattr(q.QuantType, of_weights), **how)

    def make_bits(count):
        quantiser = bits.MatMulNBitsQuantizer(onnx.load(source), bits=count, block_size=16, is_symmetric=count == 8)
        quantiser.process()
        return quantiser.model.model

    yield "dynamic", lambda: q.quantize_dynamic(source, target, weight_type=q.QuantType.QInt8, per_channel=True)
    yield "qdq_s8", make_static("QInt8", "QInt8", extra_options={"ActivationSymmetric": True})
    yield "qdq_u16", make_static("QUInt16", "QInt8", per_channel=True)
    yield "qdq_4", make_static("QUInt8", "QInt4")
    yield "qoperator", make_static("QUInt8", "QUInt8", quant_format=q.QuantFormat.QOperator)
    yield "float8", make_static("QFLOAT8E4M3FN", "QFLOAT8E4M3FN", calibrate_method=q.CalibrationMethod.Distribution)
    yield "half", lambda: convert_float_to_float16(onnx.load(source), keep_io_types=True)
    for count in (4, 8):
        yield f"bits{count}", lambda count=count: make_bits(count)


def export_varied():
    names = ("gru", "encoder", "speech", "video", "unet", "superres", "experts", "rms", "pad_reflect",
             "attention_weights", "windows")
    for name, data, feeds in export_modules(names):
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "source.onnx"), os.path.join(folder, "target.onnx")
            with open(source, "wb") as file:
                file.write(data)
            for change, call in list_changes(source, target, feeds):
                if (change, name) == ("half", "module_encoder"):  # ONNX Runtime 1.32 itself ends on it
                    continue
                try:
                    model = call() or onnx.load(target)
                except Exception as failure:  # the quantiser's own
                    print(f"onnxruntime cannot write {change}_{name}: {str(failure)[:100]}", file=sys.stderr)
                    continue
                yield f"{change}_{name}", model.SerializeToString(), feeds
