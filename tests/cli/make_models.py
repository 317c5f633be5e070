#!/usr/bin/env python3
"""Makes the small models of tests/cli/models again (needs the onnx package; the tests do not).

usage: make_models.py DIRECTORY
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(directory, name, nodes, inputs, outputs, initializers=(), opset=13):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    model.producer_name = "rondo-tests"
    with open(os.path.join(directory, name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString())


def main(directory):
    real = TensorProto.FLOAT
    rows = ["batch", 3]
    # z = relu(x + y), with a symbolic batch.
    save(directory, "add_relu",
         [helper.make_node("Add", ["x", "y"], ["s"], name="sum"),
          helper.make_node("Relu", ["s"], ["z"], name="clip")],
         [value("x", real, rows), value("y", real, rows)], [value("z", real, rows)])
    # |x| the long way, as a test directory: 300 squared leaves the range of f16.
    folder = os.path.join(directory, "norm")
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    save(folder, "model",
         [helper.make_node("Pow", ["x", "two"], ["s"], name="square"),
          helper.make_node("Sqrt", ["s"], ["r"], name="root"),
          helper.make_node("Relu", ["r"], ["y"], name="clip")],
         [value("x", real, [4])], [value("y", real, [4])],
         [numpy_helper.from_array(np.array(2, np.float32), "two")])
    x = np.array([300, -200, 1, 2], np.float32)
    for name, array in (("input_0", x), ("output_0", np.abs(x))):
        with open(os.path.join(data, name + ".pb"), "wb") as file:
            file.write(numpy_helper.from_array(array, name[:-2]).SerializeToString())
    # a needs b and b needs a.
    save(directory, "cyclic",
         [helper.make_node("Add", ["x", "b"], ["a"], name="first"),
          helper.make_node("Relu", ["a"], ["b"], name="second")],
         [value("x", real, [2])], [value("b", real, [2])])
    # Nobody makes "ghost".
    save(directory, "dangling",
         [helper.make_node("Add", ["x", "ghost"], ["z"], name="haunted")],
         [value("x", real, [2])], [value("z", real, [2])])
    # An extent of 2^62, and a product of extents that overflows 64 bits.
    save(directory, "huge_extent",
         [helper.make_node("Relu", ["x"], ["z"], name="wide")],
         [value("x", real, [2**62])], [value("z", real, [2**62])])
    save(directory, "overflowing_product",
         [helper.make_node("Relu", ["x"], ["z"], name="wider")],
         [value("x", real, [2**40, 2**40])], [value("z", real, [2**40, 2**40])])
    # A weight that claims 1000 elements and carries 4 bytes.
    short = TensorProto(name="w", data_type=real, dims=[1000], raw_data=b"\0\0\0\0")
    save(directory, "short_weight",
         [helper.make_node("Add", ["x", "w"], ["z"], name="lean")],
         [value("x", real, [1000])], [value("z", real, [1000])], [short])
    # Shapes that do not fit each other.
    save(directory, "wrong_shapes",
         [helper.make_node("MatMul", ["x", "y"], ["z"], name="product")],
         [value("x", real, [2, 3]), value("y", real, [4, 5])], [value("z", real, [2, 5])])
    # Element types that do not fit each other.
    save(directory, "wrong_types",
         [helper.make_node("Add", ["x", "y"], ["z"], name="mixture")],
         [value("x", real, [2]), value("y", TensorProto.INT64, [2])], [value("z", real, [2])])
    # An op that does not exist.
    save(directory, "unknown_op",
         [helper.make_node("Frobnicate", ["x"], ["z"], name="odd")],
         [value("x", real, [2])], [value("z", real, [2])])
    # An opset from the future.
    save(directory, "future_opset",
         [helper.make_node("Relu", ["x"], ["z"], name="early")],
         [value("x", real, [2])], [value("z", real, [2])], opset=999)
    # Weights in a file that is not there.
    outside = numpy_helper.from_array(__import__("numpy").zeros(4, "float32"), "w")
    outside.ClearField("raw_data")
    outside.data_location = TensorProto.EXTERNAL
    entry = outside.external_data.add()
    entry.key, entry.value = "location", "no_such_weights.bin"
    save(directory, "missing_weights",
         [helper.make_node("Add", ["x", "w"], ["z"], name="needy")],
         [value("x", real, [4])], [value("z", real, [4])], [outside])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "models"))
