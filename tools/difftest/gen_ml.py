# SPDX-License-Identifier: Apache-2.0

"""ai.onnx.ml: tables of numbers and of categories, linear models, support vectors."""
import numpy as np

from draw import WORDS, is_float
from registry import generates as generates_any, some
from values import STRING

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
F32 = np.dtype(np.float32)


def generates(*ops):
    return generates_any(*ops, domain=ML)


def finish(draw, op, inputs, outputs=1, **attrs):
    names = draw.node(op, inputs, outputs, ML, **attrs)
    return draw.finish(names)


def reals(draw, count, low=-2.0, high=2.0):
    return [draw.real(low, high) for _ in range(count)]


def table(draw, schema, kind="plain", least=1):
    """Rows and columns, with the shape and the array."""
    rows, columns = draw.whole(1, 4), draw.whole(least, 5)
    shape = [rows, columns]
    return columns, draw.array(schema.pick_dtype(draw), shape, kind)


@generates("Scaler")
def scaler(draw, op, schema):
    columns, x = table(draw, schema)
    count = draw.pick([1, columns])
    return finish(draw, op, [draw.feed(x, False)], offset=reals(draw, count), scale=reals(draw, count))


@generates("Binarizer")
def binarizer(draw, op, schema):
    x = draw.array(schema.pick_dtype(draw), draw.shape(1, 3), draw.pick(["any", "small"]))
    attrs = some(draw, schema, threshold=lambda: draw.pick([draw.real(), 1.0]))
    return finish(draw, op, [draw.feed(x, False)], **attrs)


@generates("Normalizer")
def normalizer(draw, op, schema):
    _, x = table(draw, schema, draw.pick(["plain", "small", "positive"]))
    return finish(draw, op, [draw.feed(x, False)], norm=draw.pick(["MAX", "L1", "L2"]))


@generates("Imputer")
def imputer(draw, op, schema):
    columns, x = table(draw, schema, "small")
    count = draw.pick([1, columns])
    if is_float(x.dtype):
        replaced = draw.pick([1.0, float("nan"), 0.0])
        x = np.where((draw.rng.random(x.shape) < 0.3) & np.isnan(replaced), replaced, x).astype(x.dtype)
        attrs = {"imputed_value_floats": reals(draw, count), "replaced_value_float": replaced}
    else:
        attrs = {"imputed_value_int64s": [draw.whole(5, 9) for _ in range(count)],
                 "replaced_value_int64": draw.whole(-2, 2)}
    return finish(draw, op, [draw.feed(x, False)], **attrs)


@generates("FeatureVectorizer")
def feature_vectorizer(draw, op, schema):
    dtype, rows = schema.pick_dtype(draw), draw.whole(1, 3)
    is_list = draw.chance(0.2)
    widths, inputs = [], []
    for _ in range(draw.whole(1, 3)):
        columns = draw.whole(1, 4)
        inputs.append(draw.feed(draw.array(dtype, [columns] if is_list else [rows, columns], "plain")))
        widths.append(columns if draw.chance(0.7) else draw.whole(1, 5))
    return finish(draw, op, inputs, inputdimensions=widths)


@generates("ArrayFeatureExtractor")
def array_feature_extractor(draw, op, schema):
    dtype = STRING if draw.chance(0.15) else schema.pick_dtype(draw)
    shape = draw.full_shape(1, 3)
    picks = draw.rng.integers(0, shape[-1], draw.pick([[1], [2], [1, 3], [3]]))
    x = draw.words(shape) if dtype == STRING else draw.array(dtype, shape)
    return finish(draw, op, [draw.feed(x), draw.feed(picks.astype(np.int64))])


# ---- categories -----------------------------------------------------------------------------------

LISTS = {"strings": STRING, "int64s": np.dtype(np.int64), "floats": F32}


def draw_keys(draw, kind, count):
    if kind == "strings":
        return draw.subset(WORDS, count)[:count]
    numbers = draw.permutation(12)[:count]
    return [float(n) / 2 for n in numbers] if kind == "floats" else numbers


def draw_values(draw, kind, count):
    if kind == "strings":
        return [draw.pick(WORDS) for _ in range(count)]
    return reals(draw, count) if kind == "floats" else [draw.whole(-9, 9) for _ in range(count)]


def draw_looked_up(draw, kind, keys, shape):
    """Keys, and some that are in no list."""
    if kind == "strings":
        return draw.words(shape, list(keys) + ["nowhere"])
    return draw.rng.choice(np.array(list(keys) + [77], LISTS[kind]), tuple(shape))


@generates("LabelEncoder")
def label_encoder(draw, op, schema):
    if schema.version < 2:
        return old_label_encoder(draw, op, schema)
    keys_kind, values_kind = draw.pick(LISTS), draw.pick(LISTS)
    count = draw.whole(1, 6)
    keys, given = draw_keys(draw, keys_kind, count), draw_values(draw, values_kind, count)
    x = draw_looked_up(draw, keys_kind, keys, draw.full_shape(1, 2))
    attrs = some(draw, schema, default_string=lambda: draw.pick(["", "other"]), default_int64=lambda: 5,
                 default_float=draw.real)
    if schema.version >= 4 and draw.chance(0.4):
        types = {"strings": [STRING], "int64s": [np.int64, np.int32, np.int16], "floats": [np.float32, np.float64]}
        key_type, value_type = (np.dtype(draw.pick(types[kind])) for kind in (keys_kind, values_kind))
        x = x.astype(key_type)
        attrs = {"keys_tensor": np.array(keys, key_type), "values_tensor": np.array(given, value_type),
                 "default_tensor": np.array(given[:1], value_type)}
        return finish(draw, op, [draw.feed(x, False)], **attrs)
    attrs.update({"keys_" + keys_kind: keys, "values_" + values_kind: given})
    return finish(draw, op, [draw.feed(x, False)], **attrs)


def old_label_encoder(draw, op, schema):
    classes = draw.subset([word for word in WORDS if word], 1)
    attrs = some(draw, schema, default_string=lambda: "other", default_int64=lambda: draw.whole(-3, -1))
    shape = draw.full_shape(1, 2)
    x = draw.words(shape, classes + ["nowhere"]) if draw.chance(0.5) else \
        draw.rng.integers(-1, len(classes) + 2, tuple(shape)).astype(np.int64)
    return finish(draw, op, [draw.feed(x, False)], classes_strings=classes, **attrs)


@generates("CategoryMapper")
def category_mapper(draw, op, schema):
    count = draw.whole(1, 5)
    words, numbers = draw_keys(draw, "strings", count), draw_keys(draw, "int64s", count)
    kind, keys = draw.pick([("strings", words), ("int64s", numbers)])
    attrs = some(draw, schema, default_string=lambda: "other", default_int64=lambda: draw.whole(-3, 3))
    x = draw_looked_up(draw, kind, keys, draw.full_shape(1, 2))
    return finish(draw, op, [draw.feed(x, False)], cats_strings=words, cats_int64s=numbers, **attrs)


@generates("OneHotEncoder")
def one_hot_encoder(draw, op, schema):
    kind = draw.pick(["strings", "int64s"])
    keys = draw_keys(draw, kind, draw.whole(1, 5))
    x = draw_looked_up(draw, kind, keys, draw.full_shape(1, 2))
    if kind == "int64s":
        x = x.astype(schema.pick_dtype(draw))
    attrs = some(draw, schema, zeros=lambda: draw.whole(0, 1))
    if attrs.get("zeros") == 0:  # then every category must be in the list
        x = np.where(x == ("nowhere" if kind == "strings" else 77), np.array(keys, x.dtype)[0], x)
    return finish(draw, op, [draw.feed(x, False)], **{"cats_" + kind: keys}, **attrs)


@generates("ZipMap")
def zip_map(draw, op, schema):
    columns, x = table(draw, schema)
    labels = draw_labels(draw, columns, "classlabels_int64s")
    return finish(draw, op, [draw.feed(x, False)], **labels)


def draw_labels(draw, count, numbers):
    if draw.chance(0.5):
        return {"classlabels_strings": draw.subset([w for w in WORDS if w], count)[:count]}
    return {numbers: draw.permutation(20)[:count]}


# ---- linear models, support vectors ---------------------------------------------------------------

@generates("LinearRegressor")
def linear_regressor(draw, op, schema):
    columns, x = table(draw, schema)
    targets = draw.whole(1, 3)
    attrs = {"coefficients": reals(draw, targets * columns), "post_transform": draw.pick(TRANSFORMS)}
    if targets > 1 or draw.chance(0.5):
        attrs["targets"] = targets
    if draw.chance(0.7):
        attrs["intercepts"] = reals(draw, targets)
    draw.case.floor = 1e-5
    return finish(draw, op, [draw.feed(x, False)], **attrs)


@generates("LinearClassifier")
def linear_classifier(draw, op, schema):
    columns, x = table(draw, schema)
    classes = draw.whole(2, 4)
    rows = 1 if classes == 2 and draw.chance(0.5) else classes
    attrs = {"coefficients": reals(draw, rows * columns), "intercepts": reals(draw, rows),
             "post_transform": draw.pick(TRANSFORMS)}
    attrs.update(some(draw, schema, multi_class=lambda: draw.whole(0, 1)))
    draw.case.floor = 1e-5
    return finish(draw, op, [draw.feed(x, False)], 2, **attrs,
                  **draw_labels(draw, classes, "classlabels_ints"))


def draw_kernel(draw):
    kind = draw.pick(["LINEAR", "POLY", "RBF", "SIGMOID"])
    return {"kernel_type": kind, "kernel_params": [draw.real(0.05, 0.5), draw.real(), float(draw.whole(1, 3))]}


@generates("SVMRegressor")
def svm_regressor(draw, op, schema):
    columns, x = table(draw, schema)
    attrs = {**draw_kernel(draw), "post_transform": "NONE", "rho": reals(draw, 1)}
    count = draw.whole(0, 4)
    if count > 0:
        attrs.update(n_supports=count, support_vectors=reals(draw, count * columns),
                     coefficients=reals(draw, count))
    else:
        attrs.update(coefficients=reals(draw, columns), kernel_type="LINEAR")
    attrs.update(some(draw, schema, 0.3, one_class=lambda: draw.whole(0, 1)))
    draw.case.floor = 2e-5
    return finish(draw, op, [draw.feed(x, False)], **attrs)


@generates("SVMClassifier")
def svm_classifier(draw, op, schema):
    columns, x = table(draw, schema)
    classes = draw.whole(2, 4)
    pairs = classes * (classes - 1) // 2
    attrs = {**draw_kernel(draw), "post_transform": draw.pick(TRANSFORMS)}
    if draw.chance(0.7):
        per_class = [draw.whole(1, 3) for _ in range(classes)]
        count = sum(per_class)
        attrs.update(vectors_per_class=per_class, support_vectors=reals(draw, count * columns),
                     coefficients=reals(draw, (classes - 1) * count), rho=reals(draw, pairs))
        if draw.chance(0.4):
            attrs.update(prob_a=reals(draw, pairs, -2, -0.2), prob_b=reals(draw, pairs, -0.5, 0.5))
    else:
        attrs.update(coefficients=reals(draw, classes * columns), rho=reals(draw, 1), kernel_type="LINEAR")
    draw.case.floor = 2e-5
    return finish(draw, op, [draw.feed(x, False)], 2, **attrs,
                  **draw_labels(draw, classes, "classlabels_ints"))
