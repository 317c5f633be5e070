# SPDX-License-Identifier: Apache-2.0

"""Spectra, windows, random numbers, training steps, bodies, and a guess for any other op."""
import numpy as np
import onnx
from onnx import helper

from values import get_element_type
from draw import DTYPES, Draw, FLOATS, Invalid, is_float
from registry import generates, some


@generates("HannWindow", "HammingWindow", "BlackmanWindow")
def window(draw, op, schema):
    target = draw.pick(schema.get_dtypes(0, True))
    attrs = some(draw, schema, periodic=lambda: draw.whole(0, 1), output_datatype=get_element_type(target))
    size = np.array(draw.whole(1, 12), schema.pick_dtype(draw))
    draw.case.floor = 1e-7
    return draw.finish(draw.node(op, [draw.feed(size)], **attrs))


@generates("DFT")
def dft(draw, op, schema):
    is_complex = draw.chance(0.5)
    shape = draw.full_shape(1, 2, 6)
    shape = [draw.whole(1, 2)] + shape + [2 if is_complex else 1]
    rank = len(shape)
    axis = draw.whole(1, rank - 2)
    dtype = schema.pick_dtype(draw)
    attrs = some(draw, schema, inverse=lambda: draw.whole(0, 1) if is_complex else 0)
    if not is_complex and not attrs.get("inverse"):
        attrs.update(some(draw, schema, 0.3, onesided=1))
    inputs = [draw.feed(draw.array(dtype, shape, "plain"), False)]
    has_axis_input = schema.version >= 20
    length = draw.whole(1, 8)
    inputs.append(draw.feed(np.array(length, np.int64)) if draw.chance(0.4) else "")
    given = axis - rank if draw.chance(0.4) else axis
    if has_axis_input:
        inputs.append(draw.feed(np.array(given, np.int64)) if given != -2 or draw.chance(0.5) else "")
    elif axis != 1 or draw.chance(0.5):
        attrs["axis"] = given
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("STFT")
def stft(draw, op, schema):
    length, frame = draw.whole(6, 14), draw.whole(2, 5)
    dtype = schema.pick_dtype(draw)
    is_complex = draw.chance(0.2)
    signal = draw.array(dtype, [draw.whole(1, 2), length, 2 if is_complex else 1], "plain")
    inputs = [draw.feed(signal, False), draw.feed(np.array(draw.whole(1, 4), np.int64))]
    has_window = draw.chance(0.6)
    inputs.append(draw.feed(draw.array(dtype, [frame], "positive")) if has_window else "")
    if not has_window or draw.chance(0.5):
        inputs.append(draw.feed(np.array(frame, np.int64)))
    attrs = {"onesided": 0} if is_complex else some(draw, schema, onesided=lambda: draw.whole(0, 1))
    return draw.finish(draw.node(op, inputs, **attrs))


@generates("MelWeightMatrix")
def mel(draw, op, schema):
    dtype = schema.pick_dtype(draw)
    bins, dft_length, rate = draw.whole(1, 6), draw.whole(8, 32), draw.pick([4000, 8000, 16000])
    low, high = draw.real(0, 200), draw.real(1000, 2000)
    values = [np.array(v, dtype) for v in (bins, dft_length, rate)]
    values += [np.array(v, np.float32) for v in (low, high)]
    target = draw.pick([d for d in schema.get_dtypes(0, True) if is_float(d)])
    attrs = some(draw, schema, output_datatype=get_element_type(target))
    return draw.finish(draw.node(op, [draw.feed(v) for v in values], **attrs))


# ---- random numbers: another generator's, so only dtype and shape can be compared ---------------

def finish_drawn(draw, outputs):
    draw.case.is_drawn = True
    return draw.finish(outputs)


@generates("RandomNormal", "RandomUniform")
def random_(draw, op, schema):
    target = draw.pick(schema.get_dtypes(0, True))
    attrs = some(draw, schema, dtype=get_element_type(target), seed=draw.real, mean=draw.real,
                 scale=lambda: draw.real(0.1, 2), low=lambda: draw.real(-2, 0), high=lambda: draw.real(1, 2))
    return finish_drawn(draw, draw.node(op, [], shape=draw.full_shape(1), **attrs))


@generates("RandomNormalLike", "RandomUniformLike", "Bernoulli")
def random_like(draw, op, schema):
    target = draw.pick(schema.get_dtypes(0, True))
    attrs = some(draw, schema, dtype=get_element_type(target), seed=draw.real)
    x = draw.feed(draw.array(schema.pick_dtype(draw, among=FLOATS), draw.shape(), "unit"), False)
    return finish_drawn(draw, draw.node(op, [x], **attrs))


@generates("Multinomial")
def multinomial(draw, op, schema):
    target = draw.pick(schema.get_dtypes(0, True))
    attrs = some(draw, schema, dtype=get_element_type(target), seed=draw.real,
                 sample_size=lambda: draw.whole(1, 5))
    x = draw.feed(draw.array(schema.pick_dtype(draw), draw.full_shape(2, 2), "positive"), False)
    return finish_drawn(draw, draw.node(op, [x], **attrs))


# ---- training steps -----------------------------------------------------------------------------

TRAINING = "ai.onnx.preview.training"


@generates("Adagrad", "Momentum", "Adam", domain=TRAINING)
def training(draw, op, schema):
    dtype = schema.pick_dtype(draw, 2)
    count = draw.whole(1, 2)
    states = 2 if op == "Adam" else 1
    shapes = [draw.shape(0, 2) for _ in range(count)]
    inputs = [draw.feed(draw.array(schema.pick_dtype(draw), [], "unit")),
              draw.feed(np.array(draw.whole(0, 3), np.int64))]
    for kind in ["plain", "plain"] + ["positive"] * states:
        inputs += [draw.feed(draw.array(dtype, shape, kind)) for shape in shapes]
    attrs = some(draw, schema, epsilon=lambda: draw.real(1e-4, 0.1),
                 norm_coefficient=lambda: draw.real(0, 0.2), decay_factor=lambda: draw.real(0, 0.2),
                 norm_coefficient_post=lambda: draw.real(0, 0.2))
    if op == "Momentum":
        attrs = {"alpha": draw.real(0, 1), "beta": draw.real(0, 1), "norm_coefficient": draw.real(0, 0.2),
                 "mode": draw.pick(["standard", "nesterov"])}
    if op == "Adam":
        attrs.update({"alpha": draw.real(0, 0.9), "beta": draw.real(0, 0.9)})
    outputs = draw.node(op, inputs, count * (1 + states), TRAINING, **attrs)
    return draw.finish(outputs)


# ---- bodies -------------------------------------------------------------------------------------

def body(name, nodes, inputs, outputs):
    def info(pair):
        return helper.make_tensor_value_info(pair[0], pair[1], pair[2])
    return helper.make_graph(nodes, name, [info(p) for p in inputs], [info(p) for p in outputs])


@generates("If")
def if_(draw, op, schema):
    dtype = np.dtype(np.float32)
    shape = draw.shape(1, 3)
    x = draw.feed(draw.array(dtype, shape), False)
    condition = draw.feed(np.array(draw.chance(0.5)).reshape(draw.pick([[], [1]])))
    branches = {}
    for branch in ("then_branch", "else_branch"):
        out = branch[:4] + "_out"
        step = draw.pick(["Relu", "Neg", "Abs", "Tanh", "Identity"])
        nodes = [helper.make_node(step, [x], [out])]
        if draw.chance(0.3):
            nodes = [helper.make_node(step, [x], [out + "_a"]),
                     helper.make_node("Add", [out + "_a", x], [out])]
        branches[branch] = body(branch, nodes, [], [(out, 1, None)])
    return draw.finish(draw.node(op, [condition], **branches))


@generates("Loop")
def loop(draw, op, schema):
    shape = draw.full_shape(1, 2, 4)
    trips, stop = draw.whole(0, 4), draw.whole(0, 4)
    x = draw.feed(draw.array(np.float32, shape, "plain"), False)
    limit = helper.make_tensor("limit", onnx.TensorProto.INT64, [], [stop])
    nodes = [helper.make_node("Constant", [], ["limit"], value=limit),
             helper.make_node(draw.pick(["Add", "Mul", "Sub"]), ["carried", x], ["next"]),
             helper.make_node("Less", ["turn", "limit"], ["goes_on"]),
             helper.make_node(draw.pick(["Relu", "Identity", "Neg"]), ["next"], ["scanned"])]
    graph = body("body", nodes, [("turn", 7, []), ("goes_in", 9, []), ("carried", 1, None)],
                 [("goes_on", 9, []), ("next", 1, None), ("scanned", 1, None)])
    count = draw.feed(np.array(trips, np.int64)) if draw.chance(0.8) else ""
    condition = draw.feed(np.array(draw.chance(0.9))) if draw.chance(0.5) else ""
    if count == "" and condition == "":
        count = draw.feed(np.array(trips, np.int64))
    return draw.finish(draw.node(op, [count, condition, x], 2, body=graph))


@generates("Scan")
def scan(draw, op, schema):
    if schema.version < 9:
        raise Invalid
    shape = draw.full_shape(1, 3, 4)
    axis = draw.axis(len(shape)) if schema.version >= 11 else draw.whole(0, len(shape) - 1)
    rest = shape[:axis % len(shape)] + shape[axis % len(shape) + 1:]
    state = draw.feed(draw.array(np.float32, rest, "plain"))
    xs = draw.feed(draw.array(np.float32, shape, "plain"), False)
    nodes = [helper.make_node(draw.pick(["Add", "Mul", "Max"]), ["state", "part"], ["next"]),
             helper.make_node("Identity", ["next"], ["out"])]
    graph = body("body", nodes, [("state", 1, rest), ("part", 1, rest)],
                 [("next", 1, rest), ("out", 1, rest)])
    attrs = {"num_scan_inputs": 1}
    if axis != 0:
        attrs["scan_input_axes"] = [axis]
    attrs.update(some(draw, schema, 0.4, scan_input_directions=lambda: [draw.whole(0, 1)],
                      scan_output_directions=lambda: [draw.whole(0, 1)]))
    if schema.version >= 11 and draw.chance(0.3):
        attrs["scan_output_axes"] = [draw.axis(len(rest), 1)]
    return draw.finish(draw.node(op, [state, xs], 2, body=graph, **attrs))


# ---- anything else ------------------------------------------------------------------------------

def guess(draw, op, schema, domain=""):
    """Inputs of one shape and any attribute values. Few such cases are valid; the oracles tell."""
    formal = schema.schema.inputs
    shape = draw.full_shape(1, 3, 4)
    inputs, dtypes = [], {}
    for i, parameter in enumerate(formal):
        choices = schema.get_dtypes(i)
        if not choices:
            raise Invalid
        optional = parameter.option == parameter.option.__class__.Optional
        if optional and draw.chance(0.5):
            inputs.append("")
            continue
        dtype = dtypes.setdefault(parameter.type_str, schema.pick_dtype(draw, i))
        inputs.append(draw.feed(draw.array(dtype, draw.pick([shape, shape, [], [1], shape[-1:]]),
                                           "small")))
    kinds = onnx.defs.OpSchema.AttrType
    values = {kinds.INT: lambda: draw.whole(0, 2), kinds.FLOAT: draw.real,
              kinds.INTS: lambda: [draw.whole(0, 2) for _ in range(draw.whole(1, 3))],
              kinds.FLOATS: lambda: [draw.real() for _ in range(shape[-1])]}
    attrs = {name: values[attribute.type]() for name, attribute in schema.attributes.items()
             if attribute.type in values and (attribute.required or draw.chance(0.3))}
    outputs = [o for o in schema.schema.outputs if o.option != o.option.__class__.Optional]
    return draw.finish(draw.node(op, inputs, len(outputs) or 1, domain, **attrs))
