# SPDX-License-Identifier: Apache-2.0

"""Ops that pick elements: gathers, scatters, selections, sorting."""
import numpy as np

from draw import Invalid
from registry import generates, some
from values import STRING

INDEX_TYPES = (np.int64, np.int32)


def indices(draw, extent, shape):
    """Whole numbers in [-extent, extent)."""
    if extent == 0 and int(np.prod(shape)) > 0:
        raise Invalid
    low = -extent if draw.chance(0.4) else 0
    values = draw.rng.integers(low, max(extent, low + 1), tuple(shape))
    return values.astype(draw.pick(INDEX_TYPES))


@generates("Gather")
def gather(draw, op, schema):
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape))
    return draw.finish(draw.node(op, [x, draw.feed(indices(draw, shape[axis], draw.shape(0, 2)))],
                                 **({} if axis == 0 else {"axis": axis})))


@generates("GatherElements")
def gather_elements(draw, op, schema):
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    index_shape = [draw.whole(0 if extent == 0 else 1, extent) for extent in shape]
    index_shape[axis] = draw.extent()
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape))
    return draw.finish(draw.node(op, [x, draw.feed(indices(draw, shape[axis], index_shape))],
                                 **({} if axis == 0 else {"axis": axis})))


def tuples(draw, shape, depth, batch, lead):
    """Index tuples into `depth` extents behind `batch` shared ones."""
    parts = [indices(draw, shape[batch + d], lead).astype(np.int64) for d in range(depth)]
    return np.stack(parts, -1) if parts else np.zeros(list(lead) + [0], np.int64)


@generates("GatherND")
def gather_nd(draw, op, schema):
    shape = draw.shape(1)
    batch = draw.whole(0, len(shape) - 1) if schema.has("batch_dims") and draw.chance(0.4) else 0
    depth = draw.whole(1, len(shape) - batch)
    lead = shape[:batch] + draw.shape(0, 2, 3)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape))
    attrs = {"batch_dims": batch} if batch or (schema.has("batch_dims") and draw.chance(0.2)) else {}
    return draw.finish(draw.node(op, [x, draw.feed(tuples(draw, shape, depth, batch, lead))], **attrs))


REDUCTIONS = {16: ["none", "add", "mul"], 18: ["none", "add", "mul", "max", "min"]}


def reduction(draw, schema):
    if not schema.has("reduction") or draw.chance(0.3):
        return {}
    return {"reduction": draw.pick(REDUCTIONS[16 if schema.version < 18 else 18])}


@generates("Scatter", "ScatterElements")
def scatter_elements(draw, op, schema):
    shape = draw.shape(1, 3)
    axis = draw.axis(len(shape)) if schema.version >= 11 else draw.whole(0, len(shape) - 1)
    index_shape = [draw.whole(0, extent) for extent in shape]
    dtype = schema.pick_dtype(draw)
    attrs = reduction(draw, schema) if dtype != STRING else {}
    is_adding = attrs.get("reduction", "none") != "none"
    index_shape[axis] = draw.extent() if is_adding else draw.whole(0, shape[axis])
    index = indices(draw, shape[axis], index_shape)
    if not is_adding:  # an element written twice has no defined value
        order = np.argsort(draw.rng.random([*index_shape[:axis % len(shape)], shape[axis],
                                            *index_shape[axis % len(shape) + 1:]]), axis)
        index = np.take(order, range(index_shape[axis]), axis).astype(index.dtype)
        if schema.version >= 11 and draw.chance(0.3):
            index = index - index.dtype.type(shape[axis])
    kind = draw.pick(["any", "small"])
    inputs = [draw.feed(draw.array(dtype, shape, kind)), draw.feed(index),
              draw.feed(draw.array(dtype, index_shape, kind))]
    return draw.finish(draw.node(op, inputs, **attrs, **({} if axis == 0 else {"axis": axis})))


@generates("ScatterND")
def scatter_nd(draw, op, schema):
    shape = draw.shape(1)
    depth = draw.whole(1, len(shape))
    dtype = schema.pick_dtype(draw)
    attrs = reduction(draw, schema) if dtype != STRING else {}
    if attrs.get("reduction", "none") != "none":
        lead = draw.shape(0, 2, 3)
        index = tuples(draw, shape, depth, 0, lead)
    else:
        places = int(np.prod(shape[:depth]))
        chosen = draw.permutation(places)[:draw.whole(0, places)]
        index = np.stack(np.unravel_index(np.array(chosen, np.int64), shape[:depth]), -1) \
            if places else np.zeros([0, depth], np.int64)
        index = index.astype(np.int64)
        lead = [len(chosen)]
    kind = draw.pick(["any", "small"])
    inputs = [draw.feed(draw.array(dtype, shape, kind)), draw.feed(index),
              draw.feed(draw.array(dtype, list(lead) + shape[depth:], kind))]
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("OneHot")
def one_hot(draw, op, schema):
    index_dtype = schema.pick_dtype(draw, 0)
    depth_dtype = schema.pick_dtype(draw, 1)
    dtype = schema.pick_dtype(draw, 2)
    depth = draw.whole(1, 5)
    shape = draw.shape(0, 3)
    index = draw.rng.integers(-depth - 1 if np.dtype(index_dtype).kind != "u" else 0, depth + 2,
                              tuple(shape)).astype(index_dtype)
    if np.dtype(index_dtype).kind not in "iu":
        index = np.asarray(index)
    inputs = [draw.feed(index), draw.feed(np.array(depth).astype(depth_dtype)
                                          .reshape(draw.pick([[], [1]]))),
              draw.feed(draw.array(dtype, [2], "small"))]
    return draw.finish(draw.node(op, inputs, **some(draw, schema, axis=lambda: draw.axis(len(shape), 1))))


@generates("NonZero")
def non_zero(draw, op, schema):
    x = draw.feed(draw.array(schema.pick_dtype(draw), draw.shape(1), "small"), False)
    return draw.finish(draw.node(op, [x]))


@generates("Compress")
def compress(draw, op, schema):
    shape = draw.shape(1)
    axis = draw.axis(len(shape)) if draw.chance(0.7) else None
    if axis is not None and schema.version < 11:
        axis %= len(shape)
    length = int(np.prod(shape)) if axis is None else shape[axis]
    flags = draw.array(np.bool_, [draw.whole(0, length)])
    attrs = {} if axis is None else {"axis": axis}
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape), False)
    return draw.finish(draw.node(op, [x, draw.feed(flags)], **attrs))


def distinct(draw, dtype, shape, axis):
    """Values that differ along the axis by more than rounding, so that their order is one."""
    array = draw.array(dtype, shape, "plain")
    if draw.chance(0.5):
        return array
    return np.round(array.astype(np.float64) * 4).astype(dtype)


@generates("TopK")
def top_k(draw, op, schema):
    shape = draw.full_shape(1)
    axis = draw.axis(len(shape))
    dtype = schema.pick_dtype(draw)
    k = draw.whole(0, shape[axis])
    x = draw.feed(draw.array(dtype, shape, draw.pick(["any", "small"])), False)
    if schema.has("k"):
        return draw.finish(draw.node(op, [x], 2, k=max(k, 1), axis=axis % len(shape)))
    inputs = [x, draw.ints([k])]
    attrs = some(draw, schema, largest=lambda: draw.whole(0, 1), sorted=1)
    return draw.finish(draw.node(op, inputs, 2, **attrs, **({} if axis == -1 else {"axis": axis})))


@generates("ArgMax", "ArgMin")
def arg_extreme(draw, op, schema):
    shape = draw.full_shape(1)
    axis = draw.axis(len(shape)) if schema.version >= 11 else draw.whole(0, len(shape) - 1)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape, draw.pick(["any", "small"])), False)
    attrs = some(draw, schema, keepdims=lambda: draw.whole(0, 1),
                 select_last_index=lambda: draw.whole(0, 1))
    return draw.finish(draw.node(op, [x], **attrs, **({} if axis == 0 else {"axis": axis})))


@generates("Unique")
def unique(draw, op, schema):
    shape = draw.full_shape(1, 3, 4)
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape, "small"), False)
    attrs = some(draw, schema, sorted=lambda: draw.whole(0, 1), axis=lambda: draw.axis(len(shape)))
    return draw.finish(draw.node(op, [x], [True] + [draw.chance(0.6) for _ in range(3)], **attrs))


@generates("CumSum")
def cum_sum(draw, op, schema):
    shape = draw.shape(1)
    axis = draw.feed(np.array(draw.axis(len(shape)), draw.pick(INDEX_TYPES)))
    x = draw.feed(draw.array(schema.pick_dtype(draw), shape), False)
    attrs = some(draw, schema, exclusive=lambda: draw.whole(0, 1), reverse=lambda: draw.whole(0, 1))
    return draw.finish(draw.node(op, [x, axis], **attrs))


@generates("NonMaxSuppression")
def non_max_suppression(draw, op, schema):
    batch, classes, boxes = draw.whole(1, 2), draw.whole(1, 3), draw.whole(1, 8)
    corners = draw.array(np.float32, [batch, boxes, 4], "positive")
    scores = draw.array(np.float32, [batch, classes, boxes], "unit")
    inputs = [draw.feed(corners), draw.feed(scores)]
    if draw.chance(0.8):
        inputs.append(draw.ints([draw.whole(0, 6)]))
        inputs.append(draw.feed(np.array([draw.real(0, 1)], np.float32)) if draw.chance(0.7) else "")
        inputs.append(draw.feed(np.array([draw.real(0, 1)], np.float32)) if draw.chance(0.6) else "")
    attrs = some(draw, schema, center_point_box=lambda: draw.whole(0, 1))
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("TfIdfVectorizer")
def tf_idf(draw, op, schema):
    dtype = draw.pick([np.int32, np.int64])
    least, most = draw.pick([(1, 1), (1, 2), (2, 2), (1, 3)])
    pools = {1: [[1], [2], [3]], 2: [[1, 2], [2, 2], [3, 1]], 3: [[1, 2, 3]]}
    pool, counts = [], []
    for n in range(1, most + 1):
        counts.append(len(pool))
        if n >= 1:
            for gram in pools[n]:
                pool += gram
    grams = sum(len(pools[n]) for n in range(1, most + 1))
    order = draw.permutation(grams)
    attrs = {"mode": draw.pick(["TF", "IDF", "TFIDF"]), "min_gram_length": least,
             "max_gram_length": most, "max_skip_count": draw.whole(0, 2), "ngram_counts": counts,
             "ngram_indexes": order}
    has_words = draw.chance(0.2)
    attrs.update({"pool_strings": [f"w{n}" for n in pool]} if has_words else {"pool_int64s": pool})
    if draw.chance(0.6):
        attrs["weights"] = [draw.real(0.1, 2) for _ in range(grams)]
    shape = draw.full_shape(1, 2)
    x = draw.words(shape, ["w0", "w1", "w2", "w3"]) if has_words else \
        draw.rng.integers(0, 5, tuple(shape)).astype(dtype)
    return draw.finish(draw.node(op, [draw.feed(x, False)], **attrs))
