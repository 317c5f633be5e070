# SPDX-License-Identifier: Apache-2.0

"""Models of one op, of sizes that networks have: where a host kernel is out of line shows here."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 21, 10


def draw(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


def spread(*shape):
    return draw(*shape) * 3


def whole(high, *shape, kind=np.int64, low=0):
    return np.random.default_rng(7).integers(low, high, shape, endpoint=False).astype(kind)


def make(op, inputs, constants=(), outputs=1, **attributes):
    """(ONNX bytes, feeds): inputs are fed, constants are weights; None is an input left out."""
    kinds, names, feeds, weights = [], [], {}, []
    for i, value in enumerate([*inputs, *constants]):
        name = "" if value is None else f"x{i}"
        names.append(name)
        if value is None:
            continue
        tensor = numpy_helper.from_array(value, name)
        if i < len(inputs):
            feeds[name] = value
            kinds.append(helper.make_tensor_value_info(name, tensor.data_type, value.shape))
        else:
            weights.append(tensor)
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    graph = helper.make_graph([node], op, kinds, [onnx.ValueInfoProto(name=name) for name in results], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    model = onnx.shape_inference.infer_shapes(model)
    for port in model.graph.output:  # as inference finds them: an output must declare its type
        if not port.type.WhichOneof("value"):
            port.type.tensor_type.elem_type = TensorProto.FLOAT
    return model.SerializeToString(), feeds


def image(channels, side):
    return draw(1, channels, side, side)


def scalar(value, kind=np.float32):
    return np.array(value, kind)


def boxes(count):
    corners = np.random.default_rng(3).uniform(0, 200, (count, 2))
    return np.concatenate([corners, corners + np.random.default_rng(4).uniform(5, 60, (count, 2))],
                          1).astype(np.float32)


def list_ops():
    many = spread(64, 4096)
    bits = whole(2, 64, 4096, kind=bool)
    yield "einsum_matmul", make("Einsum", [draw(8, 64, 64), draw(8, 64, 64)], equation="bij,bjk->bik")
    yield "einsum_nbhc", make("Einsum", [draw(2, 4, 64, 32), draw(2, 4, 64, 32)], equation="nbhc,nbwc->nbhw")
    yield "einsum_sam", make("Einsum", [draw(4, 14, 14, 32), draw(14, 14, 32)], equation="bhwc,hkc->bhwk")
    yield "deform_conv", make("DeformConv", [image(16, 32), draw(16, 16, 3, 3), draw(1, 18, 32, 32)],
                              pads=[1, 1, 1, 1])
    yield "col2im", make("Col2Im", [draw(1, 72, 1024)], [np.array([32, 32]), np.array([3, 3])], pads=[1, 1, 1, 1])
    yield "cast_f16", make("Cast", [many], to=TensorProto.FLOAT16)
    yield "cast_f16_f32", make("Cast", [many.astype(np.float16)], to=TensorProto.FLOAT)
    yield "cast_i64_f32", make("Cast", [whole(99, 64, 4096)], to=TensorProto.FLOAT)
    yield "cast_bool_f32", make("Cast", [bits], to=TensorProto.FLOAT)
    yield "cast_f32_i64", make("Cast", [many], to=TensorProto.INT64)
    yield "quantize_u16", make("QuantizeLinear", [many], [scalar(0.01), scalar(100, np.uint16)])
    yield "quantize_u8", make("QuantizeLinear", [many], [scalar(0.1), scalar(100, np.uint8)])
    yield "dequantize_u16", make("DequantizeLinear", [whole(60000, 64, 4096, kind=np.uint16)],
                                 [scalar(0.01), scalar(100, np.uint16)])
    yield "dequantize_i8", make("DequantizeLinear", [whole(100, 64, 4096, kind=np.int8)],
                                [scalar(0.01), scalar(1, np.int8)])
    yield "topk", make("TopK", [draw(256, 4096)], [np.array([50])], outputs=2)
    yield "topk_of_boxes", make("TopK", [draw(1, 30000)], [np.array([1000])], outputs=2)
    yield "grid_sample", make("GridSample", [image(16, 64), np.tanh(draw(1, 64, 64, 2))], align_corners=1)
    for op in ("Atan", "Tan", "Sin", "Cos", "Erf", "Mish", "Softplus", "IsNaN", "Hardmax", "LogSoftmax", "Sinh"):
        yield op.lower(), make(op, [many])
    yield "isinf", make("IsInf", [many])
    yield "not", make("Not", [bits])
    yield "sign", make("Sign", [many])
    yield "round", make("Round", [many])
    for op in ("And", "Or", "Xor"):
        yield op.lower(), make(op, [bits, bits])
    for op in ("Less", "Greater", "LessOrEqual", "Equal"):
        yield op.lower(), make(op, [many, many[::-1].copy()])
    for op in ("Equal", "Less"):
        yield op.lower() + "_i64", make(op, [whole(9, 64, 4096), whole(9, 64, 4096)])
    for op in ("Add", "Sub", "Mul"):
        yield op.lower() + "_i64", make(op, [whole(9, 64, 4096), whole(9, 64, 4096)])
    yield "less_by_one", make("Less", [whole(9, 64, 4096), scalar(4, np.int64)])
    yield "where", make("Where", [bits, many, many])
    yield "where_of_one", make("Where", [bits, many], [scalar(0)])
    yield "clip_i64", make("Clip", [whole(99, 64, 4096)], [scalar(9, np.int64), scalar(50, np.int64)])
    yield "pow", make("Pow", [np.abs(many)], [scalar(1.7)])
    yield "mod_i64", make("Mod", [whole(99, 64, 4096), whole(9, 64, 4096, low=1)])
    yield "gather_elements", make("GatherElements", [many, whole(64, 64, 4096)], axis=0)
    yield "gather_elements_last", make("GatherElements", [many, whole(4096, 64, 512)], axis=1)
    yield "gather_nd", make("GatherND", [many, whole(64, 1000, 1)])
    yield "scatter_nd", make("ScatterND", [draw(256, 256), whole(256, 64, 1), draw(64, 256)])
    yield "scatter_elements", make("ScatterElements", [draw(256, 256), whole(256, 256, 256), draw(256, 256)],
                                   reduction="add")
    yield "nms", make("NonMaxSuppression", [boxes(500)[None], np.abs(draw(1, 4, 500))],
                      [np.array([50]), np.array([0.5], np.float32), np.array([0.3], np.float32)])
    yield "max_pool_3d", make("MaxPool", [draw(1, 16, 16, 16, 16)], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    yield "average_pool_3d", make("AveragePool", [draw(1, 16, 16, 16, 16)], kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    rois = boxes(100)
    yield "roi_align", make("RoiAlign", [image(64, 50), rois, whole(1, 100)], output_height=7, output_width=7,
                            sampling_ratio=2, spatial_scale=0.25)
    yield "roi_align_adaptive", make("RoiAlign", [image(64, 50), rois, whole(1, 100)], output_height=7,
                                     output_width=7, sampling_ratio=0, spatial_scale=0.25)
    for mode in ("reflect", "edge", "constant"):
        yield "pad_" + mode, make("Pad", [image(64, 56)], [np.array([0, 0, 3, 3, 0, 0, 3, 3])], mode=mode)
    yield "group_norm", make("GroupNormalization", [image(32, 12)], [draw(32), draw(32)], num_groups=4)
    yield "instance_norm", make("InstanceNormalization", [image(32, 56)], [draw(32), draw(32)])
    yield "layer_norm", make("LayerNormalization", [draw(128, 768)], [draw(768), draw(768)])
    for op in ("ReduceL2", "ReduceProd", "ReduceSumSquare", "ReduceLogSumExp", "ReduceMax"):
        yield op.lower(), make(op, [draw(256, 1024)], [np.array([1])])
    yield "reduce_max_rows", make("ReduceMax", [draw(256, 1024)], [np.array([0])])
    yield "arg_max", make("ArgMax", [draw(256, 1024)], axis=0)
    yield "arg_min_last", make("ArgMin", [draw(256, 1024)], axis=1)
    yield "trilu", make("Trilu", [draw(8, 256, 256)])
    yield "expand", make("Expand", [draw(64, 1, 256)], [np.array([64, 16, 256])])
    yield "tile", make("Tile", [draw(64, 256)], [np.array([4, 3])])
    yield "non_zero", make("NonZero", [whole(2, 256, 512, kind=np.float32)])
    yield "unique", make("Unique", [whole(999, 8192)])
    yield "one_hot", make("OneHot", [whole(64, 4096)], [scalar(64, np.int64), np.array([0, 1], np.float32)])
    yield "cum_sum", make("CumSum", [draw(256, 1024)], [scalar(1, np.int64)])
    yield "resize_cubic", make("Resize", [image(8, 32), None, None], [np.array([1, 8, 64, 64])], mode="cubic")
    yield "resize_linear", make("Resize", [image(32, 32), None, None], [np.array([1, 32, 64, 64])], mode="linear",
                                coordinate_transformation_mode="align_corners")
    yield "lrn", make("LRN", [image(64, 28)], size=5)
    yield "conv_transpose", make("ConvTranspose", [image(32, 16)], [draw(32, 16, 4, 4)], strides=[2, 2])
    yield "stft", make("STFT", [draw(1, 16000, 1), scalar(160, np.int64), draw(400), scalar(400, np.int64)])
    yield "dft", make("DFT", [draw(16, 512, 1)], [scalar(512, np.int64), scalar(1, np.int64)])


def find_spectra(frames):
    """STFT's result in f64, of its window and steps above."""
    signal, window = frames[0, :, 0].astype(np.float64), draw(400)
    found = np.fft.rfft([signal[start:start + 400] * window for start in range(0, len(signal) - 399, 160)])
    return np.stack([found.real, found.imag], -1)[None].astype(np.float32)


def export_ops():
    for name, (data, feeds) in list_ops():
        yield "op_" + name, data, feeds, *([[find_spectra(feeds["x0"])]] if name == "stft" else [])
