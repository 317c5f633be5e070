# SPDX-License-Identifier: Apache-2.0

"""Element-wise ops: one operand, two with broadcasting, any number, and conversions."""
import numpy as np

from draw import WORDS, is_float
from registry import generates, some

UNARY = ("Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor Identity IsNaN Log "
         "Neg Not Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh Mish "
         "HardSwish").split()
UNARY_WITH = {
    "Celu": {"alpha": (0.2, 2.0)}, "Elu": {"alpha": (-1.0, 2.0)},
    "HardSigmoid": {"alpha": (-1.0, 2.0), "beta": (-1.0, 1.0)}, "LeakyRelu": {"alpha": (-1.0, 1.5)},
    "Selu": {"alpha": (0.1, 2.0), "gamma": (0.1, 2.0)}, "Shrink": {"lambd": (0.0, 2.0), "bias": (-1, 1)},
    "ThresholdedRelu": {"alpha": (-1.0, 2.0)},
}
BINARY = ("Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual "
          "Mul Or Sub Xor").split()


def draw_unary_input(draw, schema):
    dtype = schema.pick_dtype(draw)
    return draw.array(dtype, draw.shape(), draw.pick(["any", "any", "any", "unit"]))


@generates(*UNARY)
def unary(draw, op, schema):
    x = draw.feed(draw_unary_input(draw, schema), False)
    return draw.finish(draw.node(op, [x]))


@generates(*UNARY_WITH)
def unary_with(draw, op, schema):
    ranges = UNARY_WITH[op]
    attrs = {name: draw.real(*limits) for name, limits in ranges.items() if draw.chance(0.7)}
    x = draw.feed(draw_unary_input(draw, schema), False)
    return draw.finish(draw.node(op, [x], **attrs))


@generates("Gelu")
def gelu(draw, op, schema):
    x = draw.feed(draw_unary_input(draw, schema), False)
    draw.case.floor = 5e-7  # 1 + tanh cancels
    return draw.finish(draw.node(op, [x], **some(draw, schema,
                                                 approximate=lambda: draw.pick(["none", "tanh"]))))


@generates("IsInf")
def is_inf(draw, op, schema):
    draw.has_specials = draw.chance(0.8)
    x = draw.feed(draw_unary_input(draw, schema), False)
    attrs = some(draw, schema, detect_negative=lambda: draw.whole(0, 1),
                 detect_positive=lambda: draw.whole(0, 1))
    return draw.finish(draw.node(op, [x], **attrs))


@generates("Clip")
def clip(draw, op, schema):
    if schema.has("min"):
        x = draw.feed(draw_unary_input(draw, schema), False)
        low = draw.real()
        attrs = some(draw, schema, min=low, max=low + abs(draw.real()) * draw.pick([1, 1, -1]))
        return draw.finish(draw.node(op, [x], **attrs))
    dtype = schema.pick_dtype(draw)
    inputs = [draw.feed(draw.array(dtype, draw.shape()), False)]
    for _ in range(2):
        bound = draw.array(dtype, [], draw.pick(["small", "plain", "any"]))
        inputs.append(draw.feed(bound) if draw.chance(0.7) else "")
    return draw.finish(draw.node(op, inputs))


def draw_pair(draw):
    shape = draw.shape()
    pair = [shape, draw.broadcast(shape)] if draw.chance(0.7) else [shape, shape]
    if draw.chance(0.3) and len(shape) > 1:  # both sides broadcast
        pair[0] = [1 if draw.chance(0.3) else extent for extent in shape]
    return pair if draw.chance(0.5) else pair[::-1]


def divide_safely(array):
    """No 0 and no -1 (least / -1 overflows): what a whole division by them gives is not defined."""
    if not is_float(array.dtype):
        array = np.where((array == 0) | (array == array.dtype.type(-1) if array.dtype.kind == "i"
                                         else array == 0), array.dtype.type(3), array)
    return array


@generates(*BINARY)
def binary(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    shapes = draw_pair(draw)
    kind = draw.pick(["any", "any", "small"])
    a, b = (draw.array(dtype, shape, kind) for shape in shapes)
    if op == "Div":
        b = divide_safely(b)
    return draw.finish(draw.node(op, [draw.feed(a), draw.feed(b)]))


@generates("Mod")
def mod(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    shapes = draw_pair(draw)
    a, b = draw.array(dtype, shapes[0]), divide_safely(draw.array(dtype, shapes[1]))
    attrs = {"fmod": 1} if is_float(dtype) else some(draw, schema, 0.5, fmod=lambda: draw.whole(0, 1))
    return draw.finish(draw.node(op, [draw.feed(a), draw.feed(b)], **attrs))


@generates("Pow")
def pow_(draw, op, schema):
    shapes = draw_pair(draw)
    dtype = schema.pick_dtype(draw)
    other = dtype
    if schema.count_inputs() > 1 and schema.get_dtypes(1) and schema.version >= 12:
        other = schema.pick_dtype(draw, 1)
    a = draw.array(dtype, shapes[0], draw.pick(["any", "positive", "small"]))
    b = draw.array(other, shapes[1], draw.pick(["small", "positive", "unit"]))
    if not is_float(dtype):  # a negative power of a whole number has no value
        b = np.abs(b)
        a = np.clip(a, -5 if a.dtype.kind == "i" and not is_float(other) else 0, 5).astype(dtype)
    return draw.finish(draw.node(op, [draw.feed(a), draw.feed(b)]))


@generates("PRelu")
def prelu(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    shape = draw.shape()
    return draw.finish(draw.node(op, [draw.feed(draw.array(dtype, shape), False),
                                      draw.feed(draw.array(dtype, draw.broadcast(shape)))]))


@generates("BitShift")
def bit_shift(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    shapes = draw_pair(draw)
    a = draw.array(dtype, shapes[0])
    b = draw.rng.integers(0, np.dtype(dtype).itemsize * 8, tuple(shapes[1]), dtype=dtype)
    return draw.finish(draw.node(op, [draw.feed(a), draw.feed(b)],
                                 direction=draw.pick(["LEFT", "RIGHT"])))


@generates("Max", "Min", "Sum", "Mean")
def variadic(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    shape = draw.shape()
    inputs = [draw.feed(draw.array(dtype, draw.broadcast(shape))) for _ in range(draw.whole(0, 3))]
    inputs.insert(draw.whole(0, len(inputs)), draw.feed(draw.array(dtype, shape)))
    return draw.finish(draw.node(op, inputs))


@generates("Where")
def where(draw, op, schema):
    dtype = schema.pick_dtype(draw, 1)
    shape = draw.shape()
    inputs = [draw.feed(draw.array(np.bool_, draw.broadcast(shape))),
              draw.feed(draw.array(dtype, shape)),
              draw.feed(draw.array(dtype, draw.broadcast(shape)))]
    return draw.finish(draw.node(op, inputs))


def convertible(draw, source, target, shape):
    """Values whose conversion is defined: in the range of both types."""
    array = draw.array(source, shape, draw.pick(["any", "small"]))
    if is_float(source) and not is_float(target) and target != np.bool_:
        with np.errstate(all="ignore"):
            array = np.nan_to_num(np.asarray(array, np.float64), nan=0, posinf=3, neginf=-3)
        if np.dtype(target).kind == "u":
            array = np.abs(array)
        array = array.astype(source)
    return array


@generates("Cast")
def cast(draw, op, schema):
    source = schema.pick_dtype(draw)
    target = draw.pick(schema.get_dtypes(0, True))
    from values import get_element_type
    x = draw.feed(convertible(draw, source, target, draw.shape()), False)
    return draw.finish(draw.node(op, [x], to=get_element_type(target)))


@generates("CastLike")
def cast_like(draw, op, schema):
    source, target = schema.pick_dtype(draw), schema.pick_dtype(draw, 1)
    x = draw.feed(convertible(draw, source, target, draw.shape()), False)
    like = draw.feed(draw.array(target, draw.shape(), "small"))
    return draw.finish(draw.node(op, [x, like]))


@generates("Dropout")
def dropout(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    inputs = [draw.feed(draw.array(dtype, draw.shape()), False)]
    attrs = {}
    if schema.has("ratio"):
        attrs = some(draw, schema, ratio=lambda: draw.real(0, 0.9))
    else:
        inputs.append(draw.feed(draw.array(np.float32, [], "unit")) if draw.chance(0.5) else "")
        inputs.append(draw.feed(np.array(False)) if draw.chance(0.4) else "")
    return draw.finish(draw.node(op, inputs, [True, draw.chance(0.4)], **attrs))


@generates("Constant")
def constant(draw, op, schema):
    choices = {"value": lambda: draw.array(draw.pick(schema.get_dtypes(0, True)), draw.shape()),
               "value_float": lambda: draw.real(), "value_int": lambda: draw.whole(-9, 9),
               "value_string": lambda: draw.pick(WORDS),
               "value_strings": lambda: [draw.pick(WORDS) for _ in range(draw.whole(1, 4))],
               "value_floats": lambda: [draw.real() for _ in range(draw.whole(1, 4))],
               "value_ints": lambda: [draw.whole(-9, 9) for _ in range(draw.whole(1, 4))]}
    name = draw.pick([name for name in choices if schema.has(name)])
    return draw.finish(draw.node(op, [], **{name: choices[name]()}))
