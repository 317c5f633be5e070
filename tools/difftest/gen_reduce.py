# SPDX-License-Identifier: Apache-2.0

"""Reductions, softmax, normalisations, losses."""
import numpy as np

from draw import FLOATS, Invalid, is_float
from registry import generates, some

REDUCES = ("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
           "ReduceSum ReduceSumSquare").split()
EMPTY_IS_FINE = ("ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd")


@generates(*REDUCES)
def reduce_(draw, op, schema):
    shape = draw.shape(0, 4)
    if op not in EMPTY_IS_FINE and draw.chance(0.9):
        shape = [max(extent, 1) for extent in shape]
    dtype = schema.pick_dtype(draw)
    kind = "positive" if op == "ReduceLogSum" and draw.chance(0.7) else draw.pick(["any", "small"])
    if op == "ReduceProd":
        kind = "small"
    x = draw.feed(draw.array(dtype, shape, kind), False)
    attrs = some(draw, schema, keepdims=lambda: draw.whole(0, 1),
                 noop_with_empty_axes=lambda: draw.whole(0, 1))
    low = 0 if schema.version < 11 else None
    axes = draw.axes(len(shape)) if shape and draw.chance(0.8) else None
    if axes is not None and low == 0:
        axes = [axis % len(shape) for axis in axes]
    if schema.has("axes"):
        return draw.finish(draw.node(op, [x], **attrs, **({"axes": axes} if axes else {})))
    inputs = [x] + ([draw.ints(axes)] if axes is not None else [])
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("Softmax", "LogSoftmax", "Hardmax")
def softmax(draw, op, schema):
    shape = draw.shape(1)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape), False)
    axis = draw.axis(len(shape)) if schema.version >= 11 else draw.whole(0, len(shape) - 1)
    return draw.finish(draw.node(op, [x], **({"axis": axis} if draw.chance(0.8) else {})))


@generates("LpNormalization")
def lp_normalization(draw, op, schema):
    shape = draw.shape(1)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape), False)
    return draw.finish(draw.node(op, [x], **some(draw, schema, axis=lambda: draw.axis(len(shape)),
                                                 p=lambda: draw.pick([1, 2]))))


@generates("MeanVarianceNormalization")
def mean_variance(draw, op, schema):
    shape = draw.full_shape(4, 4, 4)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape), False)
    return draw.finish(draw.node(op, [x], **some(draw, schema, axes=lambda: draw.subset(range(4), 1))))


@generates("LRN")
def lrn(draw, op, schema):
    shape = draw.full_shape(3, 5, 5)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape), False)
    attrs = some(draw, schema, alpha=lambda: draw.real(0, 1), beta=lambda: draw.real(0, 1),
                 bias=lambda: draw.real(0.5, 2))
    return draw.finish(draw.node(op, [x], size=draw.whole(1, 6), **attrs))


@generates("BatchNormalization")
def batch_normalization(draw, op, schema):
    shape = draw.full_shape(2, 4)
    if draw.chance(0.1):
        shape[0] = 0
    is_training = schema.has("training_mode") and draw.chance(0.3)
    dtype = schema.pick_dtype(draw)
    other = dtype if schema.version < 14 else schema.pick_dtype(draw, 1)
    spread = other if schema.version < 14 else schema.pick_dtype(draw, 3)
    c = [shape[1]]
    inputs = [draw.feed(draw.array(dtype, shape, "any" if not is_training else "plain"), False),
              draw.feed(draw.array(other, c, "plain")), draw.feed(draw.array(other, c, "plain")),
              draw.feed(draw.array(spread, c, "plain")), draw.feed(draw.array(spread, c, "positive"))]
    attrs = some(draw, schema, epsilon=lambda: draw.real(1e-5, 0.1), momentum=lambda: draw.real(0, 1))
    if is_training:
        attrs["training_mode"] = 1
    return draw.finish(draw.node(op, inputs, 3 if is_training else 1, **attrs))


@generates("InstanceNormalization")
def instance_normalization(draw, op, schema):
    shape = draw.full_shape(3, 5, 5)
    dtype = schema.pick_dtype(draw)
    inputs = [draw.feed(draw.array(dtype, shape), False)]
    inputs += [draw.feed(draw.array(dtype, [shape[1]], "plain")) for _ in range(2)]
    return draw.finish(draw.node(op, inputs, **some(draw, schema, epsilon=lambda: draw.real(1e-5, 0.1))))


@generates("LayerNormalization")
def layer_normalization(draw, op, schema):
    shape = draw.full_shape(1)
    axis = draw.axis(len(shape))
    dtype = schema.pick_dtype(draw)
    rest = shape[axis:]
    inputs = [draw.feed(draw.array(dtype, shape), False), draw.feed(draw.array(dtype, rest, "plain"))]
    if draw.chance(0.7):
        inputs.append(draw.feed(draw.array(dtype, rest, "plain")))
    attrs = some(draw, schema, epsilon=lambda: draw.real(1e-5, 0.1))
    if axis != -1:
        attrs["axis"] = axis
    outputs = [True, draw.chance(0.2), draw.chance(0.2)]
    return draw.finish(draw.node(op, inputs, outputs, **attrs))


@generates("GroupNormalization")
def group_normalization(draw, op, schema):
    groups = draw.whole(1, 3)
    shape = draw.full_shape(3, 5, 4)
    shape[1] = groups * draw.whole(1, 3)
    per = [groups if schema.version < 21 else shape[1]]
    dtype = schema.pick_dtype(draw)
    inputs = [draw.feed(draw.array(dtype, shape), False)]
    inputs += [draw.feed(draw.array(dtype, per, "plain")) for _ in range(2)]
    attrs = some(draw, schema, epsilon=lambda: draw.real(1e-5, 0.1))
    return draw.finish(draw.node(op, inputs, num_groups=groups, **attrs))


@generates("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(draw, op, schema):
    shape = draw.full_shape(2, 4, 5)
    dtype = schema.pick_dtype(draw)
    scores = draw.array(dtype, shape, "any" if draw.chance(0.3) else "plain")
    index_dtype = schema.pick_dtype(draw, 1)
    targets = draw.rng.integers(0, shape[1], [shape[0]] + shape[2:]).astype(index_dtype)
    attrs = some(draw, schema, reduction=lambda: draw.pick(["none", "sum", "mean"]))
    if draw.chance(0.3):
        attrs["ignore_index"] = draw.pick([-1, 0, 1, -100])
        if attrs["ignore_index"] < 0 and targets.size > 0:
            targets.flat[draw.whole(0, targets.size - 1)] = attrs["ignore_index"]
    inputs = [draw.feed(scores, False), draw.feed(targets, False)]
    if draw.chance(0.5):
        inputs.append(draw.feed(draw.array(dtype, [shape[1]], "positive")))
    outputs = [True] + ([draw.chance(0.5)] if op == "SoftmaxCrossEntropyLoss" else [])
    draw.case.floor = 1e-6  # terms cancel
    return draw.finish(draw.node(op, inputs, outputs, **attrs))


@generates("Det")
def det(draw, op, schema):
    shape = draw.full_shape(0, 2, 3)
    n = draw.whole(1, 4)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape + [n, n], "plain"), False)
    return draw.finish(draw.node(op, [x]))
