"""Makes tests/models/unet_mini: a U-Net of one level, normalised as PyTorch's exporter writes it.

InstanceNormalization with LeakyRelu, and GroupNorm as Reshape, InstanceNormalization, Reshape, Mul, Add
with SiLU as Sigmoid and Mul; expected outputs are ONNX Runtime's. Needs onnx, onnxruntime and numpy.

    python3 tests/support/models/make_unet_model.py tests/models
"""
# SPDX-License-Identifier: Apache-2.0
import os
import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

GROUPS = 4
IMAGE = (2, 3, 20, 12)

draws = numpy.random.default_rng(7)
nodes, weights = [], []


def keep(name, array):
    weights.append(numpy_helper.from_array(array, name))
    return name


def add(op, inputs, name, **attributes):
    nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
    return name


def normal(name, *shape, around=0.0, width=1.0):
    return keep(name, (around + width * draws.standard_normal(shape)).astype(numpy.float32))


def conv(x, channels, filters, size, name):
    width = 1.0 / (channels * size * size) ** 0.5
    inputs = [x, normal(name + ".w", filters, channels, size, size, width=width), normal(name + ".b", filters)]
    return add("Conv", inputs, name, kernel_shape=[size, size], pads=[size // 2] * 4)


def instance(x, channels, name):
    inputs = [x, normal(name + ".scale", channels, around=1.0, width=0.2), normal(name + ".shift", channels)]
    return add("LeakyRelu", [add("InstanceNormalization", inputs, name, epsilon=1e-5)], name + ".act", alpha=0.1)


def group(x, shape, name):
    channels = shape[1]
    ones = keep(name + ".ones", numpy.ones(GROUPS, numpy.float32))
    zeros = keep(name + ".zeros", numpy.zeros(GROUPS, numpy.float32))
    x = add("Reshape", [x, keep(name + ".in", numpy.array([0, GROUPS, -1]))], name + ".split")
    x = add("InstanceNormalization", [x, ones, zeros], name, epsilon=1e-5)
    x = add("Reshape", [x, keep(name + ".out", numpy.array(shape))], name + ".joined")
    x = add("Mul", [x, normal(name + ".gain", channels, 1, 1, around=1.0, width=0.2)], name + ".mul")
    x = add("Add", [x, normal(name + ".shift", channels, 1, 1)], name + ".add")
    return add("Mul", [x, add("Sigmoid", [x], name + ".sigmoid")], name + ".act")


def block(x, channels, filters, shape, name):
    x = instance(conv(x, channels, filters, 3, name + ".first"), filters, name + ".norm")
    return group(conv(x, filters, filters, 3, name + ".second"), shape, name + ".group")


def build():
    n, c, h, w = IMAGE
    skip = block("image", c, 8, (n, 8, h, w), "down")
    low = add("AveragePool", [skip], "pool", kernel_shape=[2, 2], strides=[2, 2])
    low = block(low, 8, 16, (n, 16, h // 2, w // 2), "low")
    inputs = [low, normal("up.w", 16, 8, 2, 2, width=0.2), normal("up.b", 8)]
    up = add("ConvTranspose", inputs, "up", kernel_shape=[2, 2], strides=[2, 2])
    joined = add("Concat", [up, skip], "joined", axis=1)
    y = conv(block(joined, 16, 8, (n, 8, h, w), "up.block"), 8, 2, 1, "mask")
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, IMAGE)
    mask = helper.make_tensor_value_info(y, TensorProto.FLOAT, (n, 2, h, w))
    graph = helper.make_graph(nodes, "unet_mini", [image], [mask], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    folder = os.path.join(sys.argv[1], "unet_mini")
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    model = build()
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    image = draws.standard_normal(IMAGE).astype(numpy.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, array in (("input_0", image), ("output_0", session.run(None, {"image": image})[0])):
        with open(os.path.join(data, name + ".pb"), "wb") as file:
            file.write(numpy_helper.from_array(array, "image" if name == "input_0" else "mask").SerializeToString())


if __name__ == "__main__":
    main()
