# SPDX-License-Identifier: Apache-2.0

"""Ops that move elements: views, cuts, joins, pads, and those that make tensors of shapes."""
import numpy as np

from draw import Invalid
from registry import generates, some


def feed_any(draw, schema, shape, kind="any"):
    return draw.feed(draw.array(schema.pick_dtype(draw), shape, kind), False)


def factor(draw, count):
    """A shape of `count` elements."""
    shape = []
    while count > 1 and len(shape) < 4:
        divisors = [d for d in range(1, count + 1) if count % d == 0]
        shape.append(draw.pick(divisors))
        count //= shape[-1]
    return shape + ([count] if count != 1 else []) + ([1] if draw.chance(0.2) else [])


@generates("Reshape")
def reshape(draw, op, schema):
    shape = draw.shape()
    count = int(np.prod(shape))
    allow = schema.has("allowzero") and draw.chance(0.3)
    target = factor(draw, count) if count > 0 else list(shape)
    if count > 0:
        for i in range(len(target)):
            if not allow and i < len(shape) and target[i] == shape[i] and draw.chance(0.4):
                target[i] = 0
    if target and draw.chance(0.5) and count > 0:
        target[draw.whole(0, len(target) - 1)] = -1
    attrs = {"allowzero": int(allow)} if schema.has("allowzero") and (allow or draw.chance(0.2)) else {}
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape), draw.ints(target)], **attrs))


@generates("Flatten")
def flatten(draw, op, schema):
    shape = draw.shape(1)
    low = -len(shape) if schema.version >= 11 else 0
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape)],
                                 **some(draw, schema, axis=lambda: draw.whole(low, len(shape)))))


@generates("Transpose")
def transpose(draw, op, schema):
    shape = draw.shape(0, 5, 5)
    attrs = some(draw, schema, 0.8, perm=lambda: draw.permutation(len(shape)))
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape)], **attrs))


@generates("Squeeze")
def squeeze(draw, op, schema):
    shape = draw.shape(0, 3)
    for _ in range(draw.whole(0, 2)):
        shape.insert(draw.whole(0, len(shape)), 1)
    ones = [i for i, extent in enumerate(shape) if extent == 1]
    axes = draw.subset(ones, 1) if ones and draw.chance(0.7) else None
    if axes is not None and (schema.version >= 11):
        axes = [a - len(shape) if draw.chance(0.4) else a for a in axes]
    x = feed_any(draw, schema, shape)
    if schema.has("axes"):
        return draw.finish(draw.node(op, [x], **({"axes": axes} if axes else {})))
    return draw.finish(draw.node(op, [x] + ([draw.ints(axes)] if axes else [])))


@generates("Unsqueeze")
def unsqueeze(draw, op, schema):
    shape = draw.shape(0, 3)
    extra = draw.whole(1, 3)
    rank = len(shape) + extra
    axes = draw.permutation(rank)[:extra]
    if schema.version >= 11:
        axes = [a - rank if draw.chance(0.4) else a for a in axes]
    x = feed_any(draw, schema, shape)
    if schema.has("axes"):
        return draw.finish(draw.node(op, [x], axes=sorted(axes) if schema.version < 11 else axes))
    return draw.finish(draw.node(op, [x, draw.ints(axes)]))


@generates("Concat")
def concat(draw, op, schema):
    shape = draw.shape(1)
    dtype = schema.pick_dtype(draw)
    axis = draw.axis(len(shape)) if schema.version >= 11 else draw.whole(0, len(shape) - 1)
    inputs = []
    for _ in range(draw.whole(1, 4)):
        shape[axis] = draw.extent()
        inputs.append(draw.feed(draw.array(dtype, shape)))
    return draw.finish(draw.node(op, inputs, axis=axis))


@generates("Split")
def split(draw, op, schema):
    shape = draw.shape(1)
    axis = draw.axis(len(shape)) if schema.version >= 11 else draw.whole(0, len(shape) - 1)
    extent, count = shape[axis], draw.whole(1, 4)
    sizes = None
    attrs = {"axis": axis} if axis != 0 or draw.chance(0.5) else {}
    if draw.chance(0.6):
        cuts = sorted(draw.whole(0, extent) for _ in range(count - 1))
        sizes = [b - a for a, b in zip([0] + cuts, cuts + [extent])]
    elif schema.has("num_outputs"):
        attrs["num_outputs"] = count
        if (count - 1) * -(-extent // count) > extent:
            raise Invalid
    elif extent % count != 0:
        shape[axis] = count * draw.whole(0, 2)
    inputs = [feed_any(draw, schema, shape)]
    if sizes is not None and schema.has("split"):
        attrs["split"] = sizes
    elif sizes is not None:
        inputs.append(draw.ints(sizes))
    return draw.finish(draw.node(op, inputs, count, **attrs))


def bound(draw, extent):
    return draw.pick([draw.whole(-extent - 2, extent + 2), draw.whole(-extent - 2, extent + 2),
                      2**31 - 1, -2**31, 2**63 - 1, -2**63])


@generates("Slice")
def slice_(draw, op, schema):
    shape = draw.shape(1)
    axes = draw.subset(range(len(shape)), 1)
    starts, ends = ([bound(draw, shape[a]) for a in axes] for _ in range(2))
    x = feed_any(draw, schema, shape)
    if draw.chance(0.2):
        axes = list(range(len(axes)))
    given = axes
    if schema.version >= 10:
        given = [a - len(shape) if draw.chance(0.3) else a for a in axes]
    if schema.has("starts"):
        return draw.finish(draw.node(op, [x], starts=starts, ends=ends, axes=given))
    dtype = draw.pick([np.int64, np.int32])
    limit = np.iinfo(dtype)
    starts, ends = (np.clip(np.array(v, dtype=object), limit.min, limit.max).astype(dtype)
                    for v in (starts, ends))
    inputs = [x, draw.ints(starts, dtype), draw.ints(ends, dtype)]
    is_plain = axes == list(range(len(axes)))
    inputs.append("" if is_plain and draw.chance(0.5) else draw.ints(given, dtype))
    steps = [draw.pick([1, 1, 2, -1, -2, 3, limit.max, limit.min]) for _ in axes]
    inputs.append("" if draw.chance(0.3) else draw.ints(steps, dtype))
    return draw.finish(draw.node(op, inputs))


@generates("Expand")
def expand(draw, op, schema):
    shape = draw.shape()
    target = draw.broadcast(shape)
    return draw.finish(draw.node(op, [feed_any(draw, schema, draw.broadcast(shape)),
                                      draw.ints(draw.pick([shape, shape, target]))]))


@generates("Tile")
def tile(draw, op, schema):
    shape = draw.shape(1, 3, 4)
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape),
                                      draw.ints([draw.whole(0, 3) for _ in shape])]))


@generates("Pad")
def pad(draw, op, schema):
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if schema.version >= 19 else [])
    mode = draw.pick(modes)
    shape = draw.shape(1, 4, 6, 200)
    axes = list(range(len(shape)))
    is_partial = schema.version >= 18 and draw.chance(0.4)
    if is_partial:
        axes = draw.subset(axes, 1)
    if mode != "constant":
        for axis in axes:
            shape[axis] = max(shape[axis], 2)
    pads = []
    for _ in range(2):
        for axis in axes:
            most = 3 if mode in ("constant", "edge") else min(3, shape[axis] - 1)
            low = -1 if draw.chance(0.15) and shape[axis] > 3 else 0
            pads.append(draw.whole(low, most))
    dtype = schema.pick_dtype(draw)
    x = draw.feed(draw.array(dtype, shape), False)
    attrs = {} if mode == "constant" and draw.chance(0.5) else {"mode": mode}
    if schema.has("pads"):
        attrs.update(some(draw, schema, value=draw.real))
        return draw.finish(draw.node(op, [x], pads=pads, **attrs))
    inputs = [x, draw.ints(pads)]
    has_value = mode == "constant" and draw.chance(0.6)
    inputs.append(draw.feed(draw.array(dtype, [], "small")) if has_value else "")
    if is_partial:
        inputs.append(draw.ints([a - len(shape) if draw.chance(0.4) else a for a in axes]))
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("DepthToSpace")
def depth_to_space(draw, op, schema):
    block = draw.whole(1, 3)
    shape = [draw.extent(2), block * block * draw.whole(1, 2), draw.extent(3), draw.extent(3)]
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape)], blocksize=block,
                                 **some(draw, schema, mode=lambda: draw.pick(["DCR", "CRD"]))))


@generates("SpaceToDepth")
def space_to_depth(draw, op, schema):
    block = draw.whole(1, 3)
    shape = [draw.extent(2), draw.whole(1, 3), block * draw.extent(3), block * draw.extent(3)]
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape)], blocksize=block))


@generates("Shape")
def shape_(draw, op, schema):
    shape = draw.shape()
    attrs = some(draw, schema, start=lambda: draw.whole(-5, 5), end=lambda: draw.whole(-5, 5))
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape)], **attrs))


@generates("Size")
def size(draw, op, schema):
    return draw.finish(draw.node(op, [feed_any(draw, schema, draw.shape())]))


@generates("ConstantOfShape")
def constant_of_shape(draw, op, schema):
    dtype = draw.pick(schema.get_dtypes(0, True))
    attrs = some(draw, schema, 0.8, value=lambda: draw.array(dtype, [1]))
    return draw.finish(draw.node(op, [draw.ints(draw.shape())], **attrs))


@generates("Range")
def range_(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    start, step = draw.array(dtype, [], "small"), draw.array(dtype, [], "small")
    if step == 0:
        step = step + np.array(1, dtype)
    limit = draw.array(dtype, [], "small")
    return draw.finish(draw.node(op, [draw.feed(np.asarray(v, dtype)) for v in (start, limit, step)]))


@generates("Trilu")
def trilu(draw, op, schema):
    shape = draw.shape(2)
    inputs = [feed_any(draw, schema, shape)]
    if draw.chance(0.6):
        inputs.append(draw.feed(np.array(draw.whole(-6, 6), np.int64)))
    return draw.finish(draw.node(op, inputs, **some(draw, schema, upper=lambda: draw.whole(0, 1))))


@generates("EyeLike")
def eye_like(draw, op, schema):
    from values import get_element_type
    shape = [draw.extent(), draw.extent()]
    target = draw.pick(schema.get_dtypes(0, True))
    attrs = some(draw, schema, dtype=get_element_type(target), k=lambda: draw.whole(-5, 5))
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape)], **attrs))


@generates("ReverseSequence")
def reverse_sequence(draw, op, schema):
    shape = draw.full_shape(2)
    time = draw.whole(0, 1)
    lengths = [draw.whole(1, shape[time]) for _ in range(shape[1 - time])]
    attrs = {"time_axis": time, "batch_axis": 1 - time} if time == 1 or draw.chance(0.5) else {}
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape), draw.ints(lengths)], **attrs))


@generates("CenterCropPad")
def center_crop_pad(draw, op, schema):
    shape = draw.shape(1)
    axes = draw.axes(len(shape), 1) if draw.chance(0.6) else None
    target = [draw.whole(0, 8) for _ in (shape if axes is None else axes)]
    attrs = {} if axes is None else {"axes": axes}
    return draw.finish(draw.node(op, [feed_any(draw, schema, shape), draw.ints(target)], **attrs))
