# SPDX-License-Identifier: Apache-2.0

"""Ops of com.microsoft, which ONNX Runtime's optimiser and quantiser write; it is their only oracle."""
import numpy as np

from gen_matrix import scale_array
from gen_window import Window, channels
from registry import generates

MS = "com.microsoft"
F32, F16 = np.dtype(np.float32), np.dtype(np.float16)


def ms(draw, op, inputs, outputs=1, **attrs):
    return draw.finish(draw.node(op, inputs, outputs, domain=MS, **attrs))


def maybe(draw, make, chance=0.5):
    return make() if draw.chance(chance) else ""


def pick_float(draw, half=0.2):
    return F16 if draw.chance(half) else F32


# ---- normalisation ------------------------------------------------------------------------------

@generates("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MS)
def skip_layer(draw, op, schema):
    dtype = pick_float(draw)
    batch, rows, columns = draw.whole(1, 3), draw.whole(1, 5), draw.whole(2, 17)
    shape = draw.pick([[batch, rows, columns], [batch, rows, columns], [rows, columns]])
    skip = list(shape)
    if len(shape) == 3 and draw.chance(0.3):
        skip = draw.pick([[1, rows, columns], [rows, columns]])
    def vector():
        return draw.feed(draw.array(dtype, [columns], "plain"))
    is_simple = "Simplified" in op
    inputs = [draw.feed(draw.array(dtype, shape, "plain"), False),
              draw.feed(draw.array(dtype, skip, "plain"), False), vector()]
    if not is_simple:
        inputs.append(maybe(draw, vector))
    inputs.append(maybe(draw, vector))
    outputs = [True, False, False, draw.chance(0.6)]
    draw.case.floor = 5e-6
    draw.case.tolerance = 20.0 if dtype == F16 else 8.0
    return ms(draw, op, inputs, outputs if outputs[3] else 1, epsilon=draw.real(0.001, 0.1))


@generates("EmbedLayerNormalization", domain=MS)
def embed(draw, op, schema):
    batch, rows, columns, words = draw.whole(1, 3), draw.whole(1, 5), draw.whole(2, 9), draw.whole(2, 9)
    places, segments = rows + draw.whole(0, 3), draw.whole(1, 3)
    def table(count):
        return draw.feed(draw.array(F32, [count, columns], "plain"))
    def ids(count):
        return draw.feed(draw.rng.integers(0, count, (batch, rows), dtype=np.int32), False)
    has_segments = draw.chance(0.6)
    inputs = [ids(words), ids(segments) if has_segments else "", table(words), table(places),
              table(segments) if has_segments else "",
              draw.feed(draw.array(F32, [columns], "plain")), draw.feed(draw.array(F32, [columns], "plain")),
              maybe(draw, lambda: ids(2)), maybe(draw, lambda: ids(places))]
    outputs = [True, draw.chance(0.5), draw.chance(0.5)]
    draw.case.floor, draw.case.tolerance = 5e-6, 8.0
    return ms(draw, op, inputs, outputs, epsilon=draw.real(0.001, 0.1))


# ---- Gelu and its kin ---------------------------------------------------------------------------

@generates("Gelu", "QuickGelu", domain=MS)
def gelu(draw, op, schema):
    draw.case.floor = 1e-6
    attrs = {"alpha": draw.real(0.2, 2.0)} if op == "QuickGelu" and draw.chance(0.6) else {}
    return ms(draw, op, [draw.feed(draw.array(F32, draw.shape(1, 3), "plain"), False)], **attrs)


@generates("BiasGelu", "FastGelu", domain=MS)
def bias_gelu(draw, op, schema):
    dtype = pick_float(draw) if op == "FastGelu" else F32
    shape = draw.full_shape(1, 3)
    inputs = [draw.feed(draw.array(dtype, shape, "plain"), False)]
    if op == "BiasGelu" or draw.chance(0.6):
        inputs.append(draw.feed(draw.array(dtype, shape[-1:], "plain")))
    draw.case.floor = 2e-3 if dtype == F16 else 1e-5
    return ms(draw, op, inputs)


# ---- products -----------------------------------------------------------------------------------

@generates("FusedMatMul", "TransposeMatMul", domain=MS)
def fused_matmul(draw, op, schema):
    m, k, n = (draw.whole(1, 7) for _ in range(3))
    batch = draw.full_shape(0, 2, 3)
    attrs = {"alpha": draw.real()} if draw.chance(0.6) else {}
    shapes = []
    for name, rows, columns in (("A", m, k), ("B", k, n)):
        is_turned = draw.chance(0.5)
        shape = batch + ([columns, rows] if is_turned else [rows, columns])
        if is_turned:
            attrs["trans" + name] = 1
        if batch and op == "FusedMatMul" and draw.chance(0.2):
            shape = [shape[-2]] + batch + [shape[-1]]
            attrs["transBatch" + name] = 1
        shapes.append(shape)
    return ms(draw, op, [draw.feed(draw.array(F32, shapes[0], "plain"), False),
                         draw.feed(draw.array(F32, shapes[1], "plain"))], **attrs)


@generates("FusedGemm", domain=MS)
def fused_gemm(draw, op, schema):
    m, k, n = (draw.whole(1, 7) for _ in range(3))
    attrs = {"activation": draw.pick(["Relu", "LeakyRelu", "Tanh", "Sigmoid", "HardSigmoid"]),
             "transA": draw.whole(0, 1), "transB": draw.whole(0, 1)}
    if attrs["activation"] in ("LeakyRelu", "HardSigmoid"):
        attrs["activation_alpha"] = draw.real(0.05, 0.5)
    if attrs["activation"] == "HardSigmoid":
        attrs["activation_beta"] = draw.real(0.05, 0.5)
    if draw.chance(0.4):
        attrs.update(alpha=draw.real(), beta=draw.real())
    inputs = [draw.feed(draw.array(F32, [k, m] if attrs["transA"] else [m, k], "plain"), False),
              draw.feed(draw.array(F32, [n, k] if attrs["transB"] else [k, n], "plain")),
              maybe(draw, lambda: draw.feed(draw.array(F32, draw.broadcast([m, n]), "plain")))]
    draw.case.floor = 1e-6
    return ms(draw, op, inputs, **attrs)


@generates("FusedConv", domain=MS)
def fused_conv(draw, op, schema):
    window = Window(draw, 2, 5)
    group, c, m = channels(draw)
    x = draw.array(F32, [draw.whole(1, 2), c] + window.input, "plain")
    w = draw.array(F32, [m, c // group] + window.kernel, "plain")
    attrs = window.attributes(draw, Everything(), draw.chance(0.5))
    attrs["group"] = group
    name = draw.pick(["Relu", "LeakyRelu", "Tanh", "Sigmoid", "Clip", "HardSigmoid"])
    attrs["activation"] = name
    if name in ("LeakyRelu", "Clip", "HardSigmoid"):
        attrs["activation_params"] = {"LeakyRelu": [0.1], "Clip": [-0.5, 0.75], "HardSigmoid": [0.3, 0.4]}[name]
    inputs = [draw.feed(x, False), draw.feed(w, True),
              maybe(draw, lambda: draw.feed(draw.array(F32, [m], "plain"), True))]
    draw.case.floor = 1e-6
    return ms(draw, op, inputs, **attrs)


class Everything:
    """A schema that has every attribute."""
    version = 99

    def has(self, name):
        return name not in ("ceil_mode", "storage_order", "count_include_pad", "p")


# ---- bytes --------------------------------------------------------------------------------------

def pick_bytes(draw):
    return np.dtype(draw.pick([np.int8, np.uint8]))


def scale(draw, shape=()):
    return draw.feed(scale_array(draw, F32, list(shape)), True)


def zero(draw, dtype, chance=0.8):
    return draw.feed(draw.array(dtype, []), True) if draw.chance(chance) else ""


@generates("QLinearAdd", "QLinearMul", domain=MS)
def qlinear_binary(draw, op, schema):
    dtype = pick_bytes(draw)
    shape = draw.full_shape(0, 3)
    other = draw.broadcast(shape) if draw.chance(0.5) else shape
    inputs = [draw.feed(draw.array(dtype, shape), False), scale(draw), zero(draw, dtype),
              draw.feed(draw.array(dtype, other)), scale(draw), zero(draw, dtype), scale(draw), zero(draw, dtype)]
    return ms(draw, op, inputs)


@generates("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MS)
def qlinear_unary(draw, op, schema):
    dtype = pick_bytes(draw)
    shape = draw.full_shape(1, 3)
    attrs = {}
    if op == "QLinearLeakyRelu":
        attrs["alpha"] = draw.real(0.01, 0.5)
    if op == "QLinearSoftmax":
        attrs = {"axis": draw.axis(len(shape)), "opset": draw.pick([11, 13])}
    out = np.float32(1 / 256) if op != "QLinearLeakyRelu" else scale_array(draw, F32, [])
    inputs = [draw.feed(draw.array(dtype, shape), False), scale(draw), zero(draw, dtype),
              draw.feed(np.float32(out), True), zero(draw, dtype, 1.0)]
    return ms(draw, op, inputs, **attrs)


@generates("QLinearConcat", domain=MS)
def qlinear_concat(draw, op, schema):
    dtype = pick_bytes(draw)
    shape = draw.full_shape(1, 3)
    axis = draw.axis(len(shape))
    inputs = [scale(draw), zero(draw, dtype, 1.0)]
    for _ in range(draw.whole(1, 3)):
        shape[axis] = draw.whole(1, 4)
        inputs += [draw.feed(draw.array(dtype, shape), False), scale(draw), zero(draw, dtype, 1.0)]
    return ms(draw, op, inputs, axis=axis)


@generates("QLinearAveragePool", domain=MS)
def qlinear_average_pool(draw, op, schema):
    dtype = pick_bytes(draw)
    window = Window(draw, 2, 5)
    is_last = draw.chance(0.3)
    shape = [draw.whole(1, 2), draw.whole(1, 3)] + window.input
    shape = [shape[0]] + shape[2:] + [shape[1]] if is_last else shape
    attrs = window.attributes(draw, Everything(), True)
    attrs.pop("dilations", None)
    attrs.update(channels_last=int(is_last), count_include_pad=draw.whole(0, 1))
    inputs = [draw.feed(draw.array(dtype, shape), False), scale(draw), zero(draw, dtype, 1.0), scale(draw),
              zero(draw, dtype, 1.0)]
    return ms(draw, op, inputs, **attrs)


@generates("QLinearGlobalAveragePool", domain=MS)
def qlinear_global_pool(draw, op, schema):
    dtype = pick_bytes(draw)
    shape = [draw.whole(1, 2), draw.whole(1, 9), draw.whole(1, 5), draw.whole(1, 5)]
    inputs = [draw.feed(draw.array(dtype, shape), False), scale(draw), zero(draw, dtype, 1.0), scale(draw),
              zero(draw, dtype, 1.0)]
    return ms(draw, op, inputs, channels_last=draw.whole(0, 1))


@generates("QLinearWhere", domain=MS)
def qlinear_where(draw, op, schema):
    dtype = pick_bytes(draw)
    shape = draw.full_shape(1, 3)
    inputs = [draw.feed(draw.array(np.bool_, draw.broadcast(shape)), False),
              draw.feed(draw.array(dtype, draw.broadcast(shape))), scale(draw), zero(draw, dtype, 1.0),
              draw.feed(draw.array(dtype, shape), False), scale(draw), zero(draw, dtype, 1.0), scale(draw),
              zero(draw, dtype, 1.0)]
    return ms(draw, op, inputs)


@generates("QGemm", domain=MS)
def qgemm(draw, op, schema):
    m, k, n = (draw.whole(1, 9) for _ in range(3))
    ta, tb = np.dtype(np.uint8), pick_bytes(draw)
    attrs = {"transA": draw.whole(0, 1), "transB": draw.whole(0, 1)}
    if draw.chance(0.4):
        attrs["alpha"] = draw.real(0.2, 2.0)
    per_column = draw.chance(0.4)
    columns = [n] if per_column else []
    inputs = [draw.feed(draw.array(ta, [k, m] if attrs["transA"] else [m, k]), False), scale(draw),
              zero(draw, ta, 1.0), draw.feed(draw.array(tb, [n, k] if attrs["transB"] else [k, n])),
              scale(draw, columns), draw.feed(draw.array(tb, columns), True),
              maybe(draw, lambda: draw.feed(draw.array(np.int32, draw.broadcast([m, n])), True))]
    if draw.chance(0.6):
        inputs += [scale(draw), zero(draw, ta, 1.0)]
    return ms(draw, op, inputs, **attrs)


@generates("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(draw, op, schema):
    m, k, n = (draw.whole(1, 9) for _ in range(3))
    ta, tb = np.dtype(np.uint8), pick_bytes(draw)
    columns = [n] if draw.chance(0.4) else []
    inputs = [draw.feed(draw.array(ta, draw.full_shape(0, 1, 3) + [m, k]), False), draw.feed(draw.array(tb, [k, n])),
              scale(draw), scale(draw, columns), zero(draw, ta),
              maybe(draw, lambda: draw.feed(draw.array(tb, columns), True)),
              maybe(draw, lambda: draw.feed(draw.array(F32, [n], "plain"), True))]
    return ms(draw, op, inputs)


@generates("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(draw, op, schema):
    m, k, n = (draw.whole(1, 9) for _ in range(3))
    tb = pick_bytes(draw)
    columns = [n] if draw.chance(0.4) else []
    inputs = [draw.feed(draw.array(F32, draw.full_shape(0, 1, 3) + [m, k], "plain"), False),
              draw.feed(draw.array(tb, [k, n])), scale(draw, columns),
              maybe(draw, lambda: draw.feed(draw.array(tb, columns), True)),
              maybe(draw, lambda: draw.feed(draw.array(F32, [n], "plain"), True))]
    return ms(draw, op, inputs)


@generates("QuantizeLinear", "DequantizeLinear", domain=MS)
def linear(draw, op, schema):
    dtype = np.dtype(draw.pick([np.int8, np.uint8, np.int16, np.uint16]))
    shape = draw.full_shape(1, 3)
    axis = draw.axis(len(shape))
    rows = [shape[axis]] if draw.chance(0.5) else []
    x = draw.array(F32 if op[0] == "Q" else dtype, shape, "plain")
    inputs = [draw.feed(x, False), scale(draw, rows), draw.feed(draw.array(dtype, rows), True)]
    return ms(draw, op, inputs, **({"axis": axis} if rows else {}))


# ---- the rest -----------------------------------------------------------------------------------

@generates("Trilu", domain=MS)
def trilu(draw, op, schema):
    inputs = [draw.feed(draw.array(F32, draw.full_shape(2, 4), "plain"), False)]
    if draw.chance(0.5):
        inputs.append(draw.feed(np.array(draw.whole(-3, 3), np.int64), True))
    return ms(draw, op, inputs, upper=draw.whole(0, 1))


@generates("Pad", domain=MS)
def pad(draw, op, schema):
    shape = draw.full_shape(1, 3)
    pads = np.array([draw.whole(0, 2) for _ in range(2 * len(shape))], np.int64)
    mode = draw.pick(["constant", "edge"])
    inputs = [draw.feed(draw.array(F32, shape, "plain"), False),
              draw.feed(pads if draw.chance(0.5) else pads[None], True)]
    if mode == "constant" and draw.chance(0.5):
        inputs.append(draw.feed(np.array([1.5], np.float32), True))
    return ms(draw, op, inputs, mode=mode)


@generates("Unique", domain=MS)
def unique(draw, op, schema):
    return ms(draw, op, [draw.feed(draw.array(F32, [draw.whole(1, 9)], "small"), False)], 3)


@generates("Range", domain=MS)
def make_range(draw, op, schema):
    start = draw.whole(-3, 3)
    inputs = [draw.feed(np.array(v, np.int32), True) for v in (start, start + draw.whole(0, 9))]
    if draw.chance(0.5):
        inputs.append(draw.feed(np.array(draw.whole(1, 3), np.int32), True))
    return ms(draw, op, inputs)


@generates("ExpandDims", domain=MS)
def expand_dims(draw, op, schema):
    shape = draw.shape(1, 3)
    axis = draw.axis(len(shape), 1)
    return ms(draw, op, [draw.feed(draw.array(F32, shape), False), draw.feed(np.array(axis, np.int32), True)])


@generates("GridSample", domain=MS)
def grid_sample(draw, op, schema):
    n = draw.whole(1, 2)
    inputs = [draw.feed(draw.array(F32, [n, draw.whole(1, 3), draw.whole(2, 5), draw.whole(2, 5)], "plain"), False),
              draw.feed((draw.rng.random((n, draw.whole(1, 4), draw.whole(1, 4), 2)) * 2.4 - 1.2).astype(F32), False)]
    draw.case.tolerance, draw.case.floor = 20.0, 1e-5
    return ms(draw, op, inputs, mode=draw.pick(["bilinear", "bicubic"]),
              padding_mode=draw.pick(["zeros", "border", "reflection"]), align_corners=draw.whole(0, 1))


@generates("CDist", domain=MS)
def cdist(draw, op, schema):
    m, n, k = draw.whole(1, 6), draw.whole(1, 6), draw.whole(1, 9)
    draw.case.floor = 3e-3  # differences of squares there
    return ms(draw, op, [draw.feed(draw.array(F32, [m, k], "unit"), False), draw.feed(draw.array(F32, [n, k], "unit"))],
              metric=draw.pick(["euclidean", "sqeuclidean"]))


@generates("SampleOp", domain=MS)
def sample(draw, op, schema):
    return ms(draw, op, [draw.feed(draw.array(F32, draw.shape(0, 3)), False)])


# ---- numbers of a few bits ----------------------------------------------------------------------

def pack(numbers, bits):
    """The last axis, low bits first; what is missing in the last byte is 0."""
    each = 8 // bits
    missing = -numbers.shape[-1] % each
    padded = np.pad(numbers.astype(np.uint8), [(0, 0)] * (numbers.ndim - 1) + [(0, missing)])
    parts = padded.reshape(padded.shape[:-1] + (-1, each)) << (bits * np.arange(each, dtype=np.uint8))
    return parts.sum(-1).astype(np.uint8)


@generates("MatMulNBits", domain=MS)
def matmul_nbits(draw, op, schema):
    bits, block = draw.pick([4, 4, 8, 2]), draw.pick([16, 32, 64])
    n, k = draw.whole(1, 70), draw.whole(1, 150)
    blocks = -(-k // block)
    shape = draw.full_shape(0, 2, 5) + [draw.pick([1, 2, 3, 7, 13, 30]), k]
    dtype = pick_float(draw, 0.15)
    numbers = draw.rng.integers(0, 2 ** bits, (n, blocks, block))
    scales = draw.rng.uniform(0.01, 0.1, (n, blocks)).astype(dtype)
    zeros, groups, kind = "", "", draw.whole(0, 3)
    if kind in (1, 2):
        zeros = draw.feed(pack(draw.rng.integers(0, 2 ** bits, (n, blocks)), bits), True)
    elif kind == 3:
        zeros = draw.feed(draw.rng.uniform(0, 2 ** bits, (n, blocks)).astype(dtype), True)
    inputs = [draw.feed(draw.array(dtype, shape, "plain"), False),
              draw.feed(pack(numbers, bits), True), draw.feed(scales, True), zeros, groups,
              maybe(draw, lambda: draw.feed(draw.array(dtype, [n], "plain"), True), 0.3)]
    draw.case.tolerance, draw.case.floor = 20.0, 2e-5 if dtype == F32 else 2e-2
    return ms(draw, op, inputs, K=k, N=n, bits=bits, block_size=block)


@generates("GatherBlockQuantized", domain=MS)
def gather_block_quantized(draw, op, schema):
    bits, block = draw.pick([4, 8]), draw.pick([16, 32])
    rows, columns = draw.whole(1, 9), draw.whole(1, 3) * block
    blocks = columns // block
    numbers = draw.rng.integers(0, 2 ** bits, (rows, columns))
    inputs = [draw.feed(pack(numbers, bits), True),
              draw.feed(draw.rng.integers(-rows, rows, draw.full_shape(0, 2), dtype=np.int64), False),
              draw.feed(draw.rng.uniform(0.01, 0.1, (rows, blocks)).astype(pick_float(draw)), True)]
    if draw.chance(0.5):
        inputs.append(draw.feed(pack(draw.rng.integers(0, 2 ** bits, (rows, blocks)), bits), True))
    return ms(draw, op, inputs, bits=bits, block_size=block, gather_axis=0, quantize_axis=1)


def weights(draw, shape):
    return draw.feed(draw.array(F32, shape, "plain"), True)


def pick_network(draw):
    """Tokens, hidden, inner, experts, and the attributes of the routing and the activation."""
    attrs = {"k": draw.whole(1, 3), "normalize_routing_weights": draw.whole(0, 1),
             "activation_type": draw.pick(["relu", "gelu", "silu", "identity", "swiglu"])}
    if attrs["activation_type"] == "swiglu":
        attrs["swiglu_fusion"] = 1
        if draw.chance(0.5):
            attrs.update(activation_alpha=draw.real(0.5, 2.0), activation_beta=draw.real(0.0, 1.0))
        if draw.chance(0.5):
            attrs["swiglu_limit"] = draw.real(0.3, 2.0)
    return draw.whole(1, 6), draw.whole(1, 2) * 32, draw.whole(1, 2) * 32, draw.whole(3, 5), attrs


@generates("MoE", domain=MS)
def moe(draw, op, schema):
    tokens, hidden, inner, experts, attrs = pick_network(draw)
    fusion = 2 if attrs["activation_type"] == "swiglu" else 1
    inputs = [draw.feed(draw.array(F32, [tokens, hidden], "plain"), False),
              draw.feed(draw.rng.standard_normal((tokens, experts)).astype(F32), False),
              weights(draw, [experts, fusion * inner, hidden]),
              maybe(draw, lambda: weights(draw, [experts, fusion * inner])),
              weights(draw, [experts, hidden, inner]), maybe(draw, lambda: weights(draw, [experts, hidden]))]
    draw.case.tolerance, draw.case.floor = 30.0, 1e-4
    return ms(draw, op, inputs, **attrs)


@generates("QMoE", domain=MS)
def qmoe(draw, op, schema):
    tokens, hidden, inner, experts, attrs = pick_network(draw)
    attrs.update(activation_type="swiglu", swiglu_fusion=1, weights_prepacked=0)
    fusion, bits = 2, draw.pick([4, 4, 8])
    block = 0 if bits == 8 else draw.pick([0, 16, 32])  # blocks of 8 bits have activations of 8 bits there
    attrs["expert_weight_bits"] = bits
    if block:
        attrs["block_size"] = block
    def matrix(rows, columns):
        numbers = draw.rng.integers(0, 2 ** bits, (experts, rows, columns))
        scale_shape = (experts, rows, columns // block) if block else (experts, rows)
        return [draw.feed(pack(numbers, bits), True),
                draw.feed(draw.rng.uniform(0.01, 0.05, scale_shape).astype(F32), True)]
    inputs = [draw.feed(draw.array(F32, [tokens, hidden], "plain"), False),
              draw.feed(draw.rng.standard_normal((tokens, experts)).astype(F32), False),
              *matrix(fusion * inner, hidden), maybe(draw, lambda: weights(draw, [experts, fusion * inner])),
              *matrix(hidden, inner), maybe(draw, lambda: weights(draw, [experts, hidden]))]
    draw.case.tolerance, draw.case.floor = 30.0, 1e-4
    return ms(draw, op, inputs, **attrs)


@generates("Inverse", domain=MS)
def inverse(draw, op, schema):
    n = draw.whole(1, 5)
    x = draw.array(F32, draw.full_shape(0, 2) + [n, n], "plain") * 0.2 + np.eye(n, dtype=F32)
    draw.case.tolerance, draw.case.floor = 100.0, 1e-5
    return ms(draw, op, [draw.feed(x.astype(F32), False)])


@generates("Tokenizer", domain=MS)
def tokenizer(draw, op, schema):
    texts = ["two words", "a,b,,c", "aaab  b", "", "straße 12-3", "日本 x", " padded ", "x;y,z", "abcabc"]
    attrs = {"mark": draw.whole(0, 1), "pad_value": draw.pick(["#", "", "pad"]), "mincharnum": draw.whole(1, 2)}
    kind = draw.whole(0, 2)
    if kind == 0:
        attrs["tokenexp"] = draw.pick(["[a-z]+", ".", "[^ ]+", "ab*", "\\w+", "a|ab"])
    elif kind == 1:
        attrs["separators"] = draw.pick([[" "], [",", " "], ["[ ,]+"], [",+", ";"], ["b", " "]])
    else:
        attrs.update(separators=[""], mincharnum=1)
    shape = draw.pick([[draw.whole(1, 4)], [draw.whole(1, 3), draw.whole(1, 3)]])
    return ms(draw, op, [draw.feed(draw.words(shape, texts), False)], **attrs)
