# SPDX-License-Identifier: Apache-2.0

"""Products, quantised products, quantisation and recurrent layers."""
import numpy as np

from values import get_element_type
from draw import Invalid, is_float
from gen_window import Window, channels
from registry import generates, some


def product_shapes(draw):
    m, k, n = (draw.extent(7) for _ in range(3))
    batch = draw.shape(0, 2, 3)
    a = draw.broadcast(batch) + [m, k]
    b = batch + [k, n]
    if draw.chance(0.3):
        b = [k, n]
    if draw.chance(0.12):
        a = [k]
    if draw.chance(0.12):
        b = [k]
    return a, b


@generates("MatMul")
def matmul(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    a, b = product_shapes(draw)
    return draw.finish(draw.node(op, [draw.feed(draw.array(dtype, a), False),
                                      draw.feed(draw.array(dtype, b))]))


@generates("Gemm")
def gemm(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    m, k, n = draw.extent(7), draw.extent(7), draw.extent(7)
    attrs = some(draw, schema, 0.5, transA=lambda: draw.whole(0, 1), transB=lambda: draw.whole(0, 1),
                 alpha=draw.real, beta=draw.real)
    if not is_float(dtype):
        attrs.pop("alpha", None)
        attrs.pop("beta", None)
    a = [k, m] if attrs.get("transA") else [m, k]
    b = [n, k] if attrs.get("transB") else [k, n]
    inputs = [draw.feed(draw.array(dtype, a), False), draw.feed(draw.array(dtype, b))]
    if schema.version < 11 or draw.chance(0.7):
        inputs.append(draw.feed(draw.array(dtype, draw.broadcast([m, n]))))
    return draw.finish(draw.node(op, inputs, **attrs))


EQUATIONS = ("ij,jk->ik", "ij->ji", "ii->i", "ii", "ij->", "bij,bjk->bik", "...ij,...jk->...ik", "i,j->ij",
             "i,i", "ij,ij->i", "bhqd,bhkd->bhqk", "ijk->kij", "...->...", "i...->...i", "ij,kj", "a,ab,b->")


@generates("Einsum")
def einsum(draw, op, schema):
    equation = draw.pick(EQUATIONS)
    dtype = schema.pick_dtype(draw)
    extents, more = {}, draw.full_shape(0, 2, 3)
    inputs = []
    for term in equation.split("->")[0].split(","):
        shape = []
        for part in term.replace("...", "."):
            shape += more if part == "." else [extents.setdefault(part, max(draw.extent(4), 1))]
        inputs.append(draw.feed(draw.array(dtype, shape, "plain")))
    if draw.chance(0.3):
        equation = equation.replace(",", ", ").replace("->", " -> ")
    return draw.finish(draw.node(op, inputs, equation=equation))


# ---- quantisation -------------------------------------------------------------------------------

def scale_array(draw, dtype, shape):
    """Scales of two's powers give ties; others do not."""
    if not is_float(dtype):
        return draw.array(dtype, shape, "positive")
    if draw.chance(0.5):
        return (2.0 ** draw.rng.integers(-4, 2, tuple(shape))).astype(dtype)
    return draw.array(dtype, shape, "positive")


def draw_scale_form(draw, schema, shape):
    """(shape of the scale, attributes): one for all, one along an axis, or blocks."""
    kind = draw.pick(["all", "all", "axis", "axis", "block"])
    if kind == "axis" and schema.version >= 13 and shape:
        axis = draw.axis(len(shape))
        if shape[axis] == 0:
            raise Invalid
        attrs = {} if axis == 1 and draw.chance(0.5) else {"axis": axis}
        return [shape[axis]], attrs
    if kind == "block" and schema.version >= 21 and shape:
        axis, block = draw.axis(len(shape)), draw.whole(1, 4)
        scale = list(shape)
        scale[axis] = -(-shape[axis] // block)
        return scale, {"axis": axis, "block_size": block}
    return draw.pick([[], [], [1]]) if schema.version >= 13 else [], {}


@generates("QuantizeLinear")
def quantize(draw, op, schema):
    shape = draw.shape()
    scale_shape, attrs = draw_scale_form(draw, schema, shape)
    dtype = schema.pick_dtype(draw)
    scale_dtype = dtype if schema.version >= 19 else np.dtype(np.float32)
    x = draw.array(dtype, shape, draw.pick(["any", "small"]))
    inputs = [draw.feed(x, False), draw.feed(scale_array(draw, scale_dtype, scale_shape))]
    target = schema.pick_dtype(draw, 2)
    if draw.chance(0.7):
        inputs.append(draw.feed(draw.array(target, scale_shape)))
    elif schema.has("output_dtype") and draw.chance(0.7):
        attrs["output_dtype"] = get_element_type(target)
    attrs.update(some(draw, schema, 0.2, saturate=lambda: draw.whole(0, 1)))
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("DequantizeLinear")
def dequantize(draw, op, schema):
    shape = draw.shape()
    scale_shape, attrs = draw_scale_form(draw, schema, shape)
    dtype = schema.pick_dtype(draw)
    scale_dtype = np.dtype(np.float32) if schema.version < 19 else schema.pick_dtype(draw, 1)
    x = draw.array(dtype, shape)
    inputs = [draw.feed(x, False), draw.feed(scale_array(draw, scale_dtype, scale_shape))]
    if draw.chance(0.7):
        zero = draw.array(dtype, scale_shape)
        inputs.append(draw.feed(zero if dtype != np.int32 else np.zeros_like(zero)))
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("DynamicQuantizeLinear")
def dynamic_quantize(draw, op, schema):
    x = draw.feed(draw.array(np.float32, draw.full_shape()), False)
    return draw.finish(draw.node(op, [x], 3))


@generates("MatMulInteger")
def matmul_integer(draw, op, schema):
    a, b = product_shapes(draw)
    ta, tb = schema.pick_dtype(draw), schema.pick_dtype(draw, 1)
    inputs = [draw.feed(draw.array(ta, a), False), draw.feed(draw.array(tb, b))]
    inputs.append(draw.feed(draw.array(ta, [])) if draw.chance(0.6) else "")
    if draw.chance(0.6):
        per_column = len(b) >= 2 and draw.chance(0.4)
        inputs.append(draw.feed(draw.array(tb, [b[-1]] if per_column and len(b) == 2 else [])))
    return draw.finish(draw.node(op, inputs))


@generates("QLinearMatMul")
def qlinear_matmul(draw, op, schema):
    a, b = product_shapes(draw)
    ta, tb = (draw.pick([np.int8, np.uint8]) for _ in range(2))
    ty = draw.pick([np.int8, np.uint8])
    def scale():
        return draw.feed(scale_array(draw, np.float32, []))
    inputs = [draw.feed(draw.array(ta, a), False), scale(), draw.feed(draw.array(ta, [])),
              draw.feed(draw.array(tb, b)), scale(), draw.feed(draw.array(tb, [])),
              scale(), draw.feed(draw.array(ty, []))]
    return draw.finish(draw.node(op, inputs))


def integer_convolution(draw, schema):
    window = Window(draw, draw.pick([1, 2, 2]), 5)
    group, c, m = channels(draw)
    tx, tw = (draw.pick([np.int8, np.uint8]) for _ in range(2))
    x = draw.array(tx, [draw.whole(1, 2), c] + window.input)
    w = draw.array(tw, [m, c // group] + window.kernel)
    attrs = window.attributes(draw, schema, draw.chance(0.5))
    if group != 1:
        attrs["group"] = group
    return x, w, m, attrs


@generates("ConvInteger")
def conv_integer(draw, op, schema):
    x, w, m, attrs = integer_convolution(draw, schema)
    inputs = [draw.feed(x, False), draw.feed(w)]
    inputs.append(draw.feed(draw.array(x.dtype, [])) if draw.chance(0.6) else "")
    if draw.chance(0.5):
        inputs.append(draw.feed(draw.array(w.dtype, draw.pick([[], [m]]))))
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("QLinearConv")
def qlinear_conv(draw, op, schema):
    x, w, m, attrs = integer_convolution(draw, schema)
    w_shape = draw.pick([[], [m]])
    ty = x.dtype
    inputs = [draw.feed(x, False), draw.feed(scale_array(draw, np.float32, [])),
              draw.feed(draw.array(x.dtype, [])), draw.feed(w),
              draw.feed(scale_array(draw, np.float32, w_shape)),
              draw.feed(draw.array(w.dtype, w_shape) if draw.chance(0.5) or not w_shape
                        else np.full(w_shape, 1, w.dtype)),
              draw.feed(scale_array(draw, np.float32, [])), draw.feed(draw.array(ty, []))]
    if draw.chance(0.5):
        inputs.append(draw.feed(draw.array(np.int32, [m])))
    return draw.finish(draw.node(op, inputs, **attrs))


# ---- recurrent layers ---------------------------------------------------------------------------

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
               "HardSigmoid", "Elu", "Softsign", "Softplus")
PER_CELL = {"RNN": 1, "GRU": 2, "LSTM": 3}
WITH_ALPHA = {"Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"}
WITH_BETA = {"Affine", "ScaledTanh", "HardSigmoid"}


def draw_activations(draw, op, directions):
    names = [draw.pick(ACTIVATIONS) for _ in range(PER_CELL[op] * directions)]
    attrs = {"activations": names}
    if any(name in WITH_ALPHA for name in names):
        attrs["activation_alpha"] = [draw.real(0.1, 1.0) for name in names if name in WITH_ALPHA]
        if any(name in WITH_BETA for name in names):
            attrs["activation_beta"] = [draw.real(0.1, 1.0) for name in names if name in WITH_BETA]
    return attrs


@generates("RNN", "GRU", "LSTM")
def recurrent(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    direction = draw.pick(["forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    seq, batch, size, hidden = (draw.whole(1, n) for n in (4, 3, 4, 4))
    gates = GATES[op] * hidden
    layout = schema.has("layout") and draw.chance(0.2)
    attrs = {"hidden_size": hidden}
    draw.case.floor = 2e-6  # of states around 1, where 1 - z cancels
    if direction != "forward" or draw.chance(0.3):
        attrs["direction"] = direction
    if layout:
        attrs["layout"] = 1
    if draw.chance(0.25):
        attrs.update(draw_activations(draw, op, directions))
    attrs.update(some(draw, schema, 0.2, clip=lambda: draw.real(0.2, 2.0)))
    if op == "GRU":
        attrs.update(some(draw, schema, linear_before_reset=lambda: draw.whole(0, 1)))
    if op == "LSTM":
        attrs.update(some(draw, schema, 0.15, input_forget=1))
    def array(shape):
        return draw.array(dtype, shape, "plain")
    x_shape = [batch, seq, size] if layout else [seq, batch, size]
    state = [batch, directions, hidden] if layout else [directions, batch, hidden]
    constant = draw.chance(0.6)
    inputs = [draw.feed(draw.array(dtype, x_shape, "any"), False),
              draw.feed(array([directions, gates, size]), constant),
              draw.feed(array([directions, gates, hidden]), constant)]
    inputs.append(draw.feed(array([directions, 2 * gates]), constant) if draw.chance(0.7) else "")
    lengths = np.array([draw.whole(1, seq) for _ in range(batch)], np.int32)
    inputs.append(draw.feed(lengths) if draw.chance(0.3) else "")
    inputs.append(draw.feed(array(state)) if draw.chance(0.5) else "")
    if op == "LSTM":
        inputs.append(draw.feed(array(state)) if draw.chance(0.5) else "")
        inputs.append(draw.feed(array([directions, 3 * hidden]), constant) if draw.chance(0.25) else "")
    wants = [draw.chance(0.8) for _ in range(3 if op == "LSTM" else 2)]
    if not any(wants):
        wants[0] = True
    return draw.finish(draw.node(op, inputs, wants, **attrs))
