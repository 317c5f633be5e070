# SPDX-License-Identifier: Apache-2.0

"""Sequences and optionals."""
import numpy as np
from onnx import helper

from draw import Invalid
from registry import generates, some
from values import Maybe, Sequence, get_element_type, make_type


def pick_dtype(draw, schema):
    """Of a tensor, or of the tensors of a sequence: the constraints do not say it alike."""
    if draw.chance(0.5):
        return np.dtype(np.float32)
    names = [np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.bool_, object]
    return np.dtype(draw.pick(names))


def sequence(draw, dtype, least=0, shape=None):
    """Tensors of any shapes, or all of one."""
    items = [draw.array(dtype, draw.shape(0, 3, 4) if shape is None else shape)
             for _ in range(draw.whole(least, 4))]
    return Sequence(np.dtype(dtype), items)


def position(draw, count):
    if count == 0:
        raise Invalid
    return draw.feed(np.array(draw.whole(-count, count - 1), draw.pick([np.int64, np.int32])))


@generates("SequenceEmpty")
def sequence_empty(draw, op, schema):
    attrs = some(draw, schema, dtype=lambda: get_element_type(pick_dtype(draw, schema)))
    return draw.finish(draw.node(op, [], **attrs))


@generates("SequenceConstruct")
def sequence_construct(draw, op, schema):
    dtype = pick_dtype(draw, schema)
    inputs = [draw.feed(item) for item in sequence(draw, dtype, 1).items]
    return draw.finish(draw.node(op, inputs))


@generates("SequenceAt", "SequenceErase")
def sequence_at(draw, op, schema):
    value = sequence(draw, pick_dtype(draw, schema), 1)
    inputs = [draw.feed(value)]
    if op == "SequenceAt" or draw.chance(0.7):
        inputs.append(position(draw, len(value.items)))
    return draw.finish(draw.node(op, inputs))


@generates("SequenceInsert")
def sequence_insert(draw, op, schema):
    dtype = pick_dtype(draw, schema)
    value = sequence(draw, dtype)
    inputs = [draw.feed(value), draw.feed(draw.array(dtype, draw.shape(0, 3, 4)))]
    if draw.chance(0.7):
        count = len(value.items)
        inputs.append(draw.feed(np.array(draw.whole(-count, count), draw.pick([np.int64, np.int32]))))
    return draw.finish(draw.node(op, inputs))


@generates("SequenceLength")
def sequence_length(draw, op, schema):
    return draw.finish(draw.node(op, [draw.feed(sequence(draw, pick_dtype(draw, schema)))]))


@generates("SplitToSequence")
def split_to_sequence(draw, op, schema):
    shape = draw.full_shape(1)
    axis = draw.axis(len(shape))
    extent = shape[axis]
    inputs = [draw.feed(draw.array(pick_dtype(draw, schema), shape), False)]
    attrs = some(draw, schema, keepdims=lambda: draw.whole(0, 1))
    if axis != 0 or draw.chance(0.3):
        attrs["axis"] = axis
    form = draw.pick(["ones", "each", "list"])
    dtype = draw.pick([np.int64, np.int32])
    if form == "each":
        inputs.append(draw.feed(np.array(draw.whole(1, extent + 1), dtype)))
    elif form == "list":
        cuts = sorted(draw.whole(0, extent) for _ in range(draw.whole(0, 3)))
        inputs.append(draw.ints([b - a for a, b in zip([0] + cuts, cuts + [extent])], dtype))
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("ConcatFromSequence")
def concat_from_sequence(draw, op, schema):
    dtype = pick_dtype(draw, schema)
    shape = draw.shape(1, 3, 4)
    if draw.chance(0.4):
        value = sequence(draw, dtype, 1, shape)
        attrs = {"new_axis": 1, "axis": draw.axis(len(shape), 1)}
    else:
        axis = draw.axis(len(shape))
        parts = [draw.array(dtype, [draw.extent(4) if i == axis % len(shape) else extent
                                    for i, extent in enumerate(shape)]) for _ in range(draw.whole(1, 4))]
        value, attrs = Sequence(np.dtype(dtype), parts), {"axis": axis}
        if draw.chance(0.3):
            attrs["new_axis"] = 0
    return draw.finish(draw.node(op, [draw.feed(value)], **attrs))


@generates("SequenceMap")
def sequence_map(draw, op, schema):
    shape = draw.full_shape(0, 2, 4)
    value = sequence(draw, np.float32, 1, shape if draw.chance(0.5) else None)
    inputs, names = [draw.feed(value)], ["item"]
    step = draw.pick(["Neg", "Abs", "Tanh", "Identity"])
    nodes = [helper.make_node(step, ["item"], ["mapped"])]
    form = draw.pick(["alone", "tensor", "sequence"])
    if form != "alone":
        names.append("other")
        nodes.append(helper.make_node("Add", ["mapped", "other"], ["sum"]))
        if form == "tensor":
            inputs.append(draw.feed(draw.array(np.float32, [], "plain")))
        else:
            items = [draw.array(np.float32, item.shape, "plain") for item in value.items]
            inputs.append(draw.feed(Sequence(np.dtype(np.float32), items)))
    results = [nodes[-1].output[0]]
    if draw.chance(0.3):
        nodes.append(helper.make_node("Shape", ["item"], ["extents"]))
        results.append("extents")
    infos = [[helper.make_tensor_value_info(name, 7 if name == "extents" else 1, None) for name in side]
             for side in (names, results)]
    return draw.finish(draw.node(op, inputs, len(results), body=helper.make_graph(nodes, "body", *infos)))


@generates("Optional")
def optional(draw, op, schema):
    value = pick_held(draw, schema)
    if draw.chance(0.25):
        return draw.finish(draw.node(op, [], type=make_type(value, None)))
    return draw.finish(draw.node(op, [draw.feed(value, False)]))


def pick_held(draw, schema):
    """A tensor or a sequence."""
    dtype = pick_dtype(draw, schema)
    return sequence(draw, dtype) if draw.chance(0.4) else draw.array(dtype, draw.shape(0, 3, 4))


@generates("OptionalHasElement")
def optional_has_element(draw, op, schema):
    value = pick_held(draw, schema)
    if schema.version >= 18 and draw.chance(0.4):
        inputs = [draw.feed(value, False)] if draw.chance(0.7) else []
    else:
        inputs = [draw.feed(Maybe(value, draw.chance(0.6)))]
    return draw.finish(draw.node(op, inputs))


@generates("OptionalGetElement")
def optional_get_element(draw, op, schema):
    value = pick_held(draw, schema)
    if schema.version < 18 or draw.chance(0.6):
        value = Maybe(value, True)
    return draw.finish(draw.node(op, [draw.feed(value, False)]))


@generates("Identity of sequences")
def identity(draw, op, schema):
    if schema.version < 14:
        raise Invalid
    value = sequence(draw, pick_dtype(draw, schema))
    if schema.version >= 16 and draw.chance(0.3):
        value = Maybe(value, draw.chance(0.7))
    return draw.finish(draw.node("Identity", [draw.feed(value)]))
