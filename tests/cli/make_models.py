#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small models of tests/cli/models, and the arrays of tests/cli/arrays, again (needs the
onnx package and numpy; the tests do not).

usage: make_models.py [MODEL_DIRECTORY [ARRAY_DIRECTORY]]
"""
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(directory, name, nodes, inputs, outputs, initializers=(), opset=13, ir_version=8,
         metadata=None):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = ir_version
    model.producer_name = "rondo-tests"
    helper.set_model_props(model, metadata or {})
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
    # The pixels of a file's bytes.
    for name, pixels in (("rgb", {}), ("bgr", {"pixel_format": "BGR"}), ("grey", {"pixel_format": "Grayscale"})):
        save(directory, "decode_" + name, [helper.make_node("ImageDecoder", ["x"], ["y"], name="decode", **pixels)],
             [value("x", TensorProto.UINT8, ["bytes"])], [value("y", TensorProto.UINT8, ["height", "width", None])],
             opset=20, ir_version=9)
    # Pictures as they are, in bytes and in reals; the mean of each channel as scores.
    through = [helper.make_node("Identity", ["x"], ["y"], name="through")]
    save(directory, "picture_bytes", through,
         [value("x", TensorProto.UINT8, ["n", "h", "w", 3])],
         [value("y", TensorProto.UINT8, ["n", "h", "w", 3])])
    save(directory, "picture_reals", through,
         [value("x", real, [1, 3, "h", "w"])], [value("y", real, [1, 3, "h", "w"])])
    save(directory, "picture_grey", through,
         [value("x", real, [1, 1, 43, 61])], [value("y", real, [1, 1, 43, 61])])
    save(directory, "picture_scores",
         [helper.make_node("ReduceMean", ["x"], ["y"], name="mean", axes=[2, 3], keepdims=0)],
         [value("x", real, ["n", 3, 21, 21])], [value("y", real, ["n", 3])],
         metadata={"Image.BitmapPixelFormat": "Bgr8",
                   "Image.NominalPixelRange": "NominalRange_0_255"})
    # |x| the long way, as a test directory: 300 squared leaves the range of f16.
    folder = os.path.join(directory, "norm")
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    save(folder, "model",
         [helper.make_node("Pow", ["x", "two"], ["s"], name="square"),
          helper.make_node("Sqrt", ["s"], ["r"], name="root"),
          helper.make_node("Relu", ["r"], ["y"], name="clip")],
         [value("x", real, [4])], [value("y", real, [4])],
         [numpy_helper.from_array(numpy.array(2, numpy.float32), "two")])
    x = numpy.array([300, -200, 1, 2], numpy.float32)
    for name, array in (("input_0", x), ("output_0", numpy.abs(x))):
        with open(os.path.join(data, name + ".pb"), "wb") as file:
            file.write(numpy_helper.from_array(array, name[:-2]).SerializeToString())
    # int4 and float8 in and out, and what they are as numbers; the weight has five elements, packed.
    save(directory, "narrow",
         [helper.make_node("Transpose", ["x"], ["t"], name="turn"),
          helper.make_node("Cast", ["x"], ["z"], name="widen", to=real),
          helper.make_node("Cast", ["x"], ["e"], name="narrow", to=TensorProto.FLOAT8E4M3FN),
          helper.make_node("Gather", ["w", "i"], ["p"], name="pick")],
         [value("x", TensorProto.INT4, [2, 3]), value("i", TensorProto.INT64, ["n"])],
         [value("t", TensorProto.INT4, [3, 2]), value("z", real, [2, 3]),
          value("e", TensorProto.FLOAT8E4M3FN, [2, 3]), value("p", TensorProto.INT4, ["n"])],
         [helper.make_tensor("w", TensorProto.INT4, [5], [1, -2, 3, -4, 5])], 21, 10)
    # A product, with a symbolic number of rows.
    weights = numpy.linspace(-1, 1, 64 * 64, dtype=numpy.float32).reshape(64, 64)
    save(directory, "product", [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
         [value("x", real, ["n", 64])], [value("y", real, ["n", 64])],
         [numpy_helper.from_array(weights, "w")])
    # A network in f16 itself, whose outputs were computed in f64: 100 products with rotations.
    folder = os.path.join(directory, "half_chain")
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    half = TensorProto.FLOAT16
    angle = 0.7
    turn = numpy.array([[numpy.cos(angle), -numpy.sin(angle)],
                        [numpy.sin(angle), numpy.cos(angle)]]).astype(numpy.float16)
    x = numpy.array([[1.7, -0.3], [0.2, 2.9]], numpy.float16)
    y = x.astype(numpy.float64)
    nodes = []
    for i in range(100):
        nodes.append(helper.make_node("MatMul", ["x" if i == 0 else f"v{i}", "turn"],
                                      ["y" if i == 99 else f"v{i + 1}"]))
        y = y @ turn.astype(numpy.float64)
    save(folder, "model", nodes, [value("x", half, [2, 2])], [value("y", half, [2, 2])],
         [numpy_helper.from_array(turn, "turn")])
    for name, array in (("input_0", x), ("output_0", y.astype(numpy.float16))):
        with open(os.path.join(data, name + ".pb"), "wb") as file:
            file.write(numpy_helper.from_array(array, name[:-2]).SerializeToString())
    # A loop without an end.
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["again"]), helper.make_node("Add", ["s", "s"], ["t"])],
        "turn", [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []),
                 value("s", real, [2])],
        [value("again", TensorProto.BOOL, []), value("t", real, [2])])
    save(directory, "endless_loop",
         [helper.make_node("Loop", ["", "true", "x"], ["y"], body=body, name="loop")],
         [value("x", real, [2])], [value("y", real, [2])],
         [numpy_helper.from_array(numpy.array(True), "true")])
    # Four turns of a loop, whose rows are stacked.
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["again"]),
         helper.make_node("Add", ["s", "s"], ["t"], name="double"),
         helper.make_node("Identity", ["t"], ["row"])],
        "turn", [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []),
                 value("s", real, [2])],
        [value("again", TensorProto.BOOL, []), value("t", real, [2]), value("row", real, [2])])
    save(directory, "stacked_loop",
         [helper.make_node("Loop", ["four", "", "x"], ["", "y"], body=body, name="loop")],
         [value("x", real, [2]), value("four", TensorProto.INT64, [])], [value("y", real, [None, 2])])
    # Weights of 4 MiB beside the model, which a test makes.
    weight = TensorProto(name="w", data_type=real, dims=[1 << 20],
                         data_location=TensorProto.EXTERNAL)
    entry = weight.external_data.add()
    entry.key, entry.value = "location", "weights.bin"
    save(directory, "weights_beside", [helper.make_node("Add", ["x", "w"], ["y"], name="sum")],
         [value("x", real, [1])], [value("y", real, [1 << 20])], [weight])
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
    # Four fills of a GiB each, in a few hundred bytes.
    fills = [helper.make_node("ConstantOfShape", ["shape"], [f"c{i}"], name=f"fill{i}")
             for i in range(4)]
    save(directory, "fill_bomb",
         fills + [helper.make_node("Add", ["c0", "c1"], ["a"], name="sum"),
                  helper.make_node("Mul", ["c2", "c3"], ["b"], name="product"),
                  helper.make_node("Sub", ["a", "b"], ["d"], name="difference"),
                  helper.make_node("ReduceSum", ["d"], ["y"], name="total")],
         [], [value("y", real, None)],
         [numpy_helper.from_array(numpy.array([2**28], numpy.int64), "shape")])
    # A loop whose state is twice as long after each of its turns.
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c2"], name="keep"),
         helper.make_node("Concat", ["s", "s"], ["s2"], name="double", axis=0)],
        "body", [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []),
                 value("s", real, ["n"])],
        [value("c2", TensorProto.BOOL, []), value("s2", real, ["m"])])
    save(directory, "growing_loop",
         [helper.make_node("Loop", ["count", "", "s0"], ["y"], name="grow", body=body)],
         [value("count", TensorProto.INT64, [])], [value("y", real, ["m"])],
         [numpy_helper.from_array(numpy.ones(4, numpy.float32), "s0")])
    # Where fresh random numbers are above zero: of another size in each run.
    save(directory, "noise_rows",
         [helper.make_node("RandomNormalLike", ["x"], ["n"], name="noise"),
          helper.make_node("Relu", ["n"], ["r"], name="clip"),
          helper.make_node("NonZero", ["r"], ["y"], name="find")],
         [value("x", real, [4, 8])], [value("y", TensorProto.INT64, [2, "found"])])
    # An op that does not exist.
    save(directory, "unknown_op",
         [helper.make_node("Frobnicate", ["x"], ["z"], name="odd")],
         [value("x", real, [2])], [value("z", real, [2])])
    # Several ops that do not exist, and an attribute.
    odd = helper.make_node("Relu", ["c"], ["z"], name="fourth", speed=3)
    save(directory, "missing_ops",
         [helper.make_node("Frobnicate", ["x"], ["a"], name="first", domain="com.example"),
          helper.make_node("Grobnicate", ["a"], ["b"], name="second"),
          helper.make_node("Frobnicate", ["b"], ["c"], name="third", domain="com.example"), odd],
         [value("x", real, [2])], [value("z", real, [2])])
    # A window that needs more than the 1 that an unset dimension counts as; an unnamed dimension.
    for name, width in (("window", "width"), ("unnamed", None)):
        save(directory, name,
             [helper.make_node("MaxPool", ["x"], ["z"], name="pool", kernel_shape=[2])],
             [value("x", real, [1, 1, width])], [value("z", real, [1, 1, None])])
    # An input with a default: z = relu(x + y), where y is 1 unless it is fed.
    save(directory, "optional",
         [helper.make_node("Add", ["x", "y"], ["s"], name="sum"),
          helper.make_node("Relu", ["s"], ["z"], name="clip")],
         [value("x", real, [1, 3]), value("y", real, [1, 3])], [value("z", real, [1, 3])],
         [numpy_helper.from_array(numpy.ones([1, 3], "float32"), "y")])
    # Outputs whose names no terminal and no file system should see as they are.
    # Names that a page or a picture must not take for markup.
    markup = ["</script><script>document.title='hit'</script>",
              "<img src=x onerror=\"document.title='hit'\">",
              "\" onload=\"document.title='hit'", "]]></title></svg><b>&lt;", "it's"]
    save(directory, "markup_names",
         [helper.make_node("Relu", ["x"], [name], name=name) for name in markup],
         [value("x", real, ["batch", 3])],
         [value(name, real, None) for name in markup])
    tricky = ["a/b", "a_b", "a b", "\x1b[31mRED\x1b[0m\a", "..", "\u202eabc\u009b1m", "a_b.2"]
    save(directory, "tricky_names",
         [helper.make_node("Relu", ["x"], [name], name="node " + name) for name in tricky],
         [value("x", real, ["\x1b]0;dimension\a", 2])],
         [value(name, real, None) for name in tricky])
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


def make_classes(models, arrays):
    """A classifier of points by their distance from the middle, for rondo train."""
    state, numbers = 7, []
    for _ in range(2000):
        state = (state * 1664525 + 1013904223) % 2**32
        numbers.append((state >> 8) / 2**24 - 0.5)
    w1 = numpy.array(numbers[:32], "float32").reshape(2, 16) * 2
    w2 = numpy.array(numbers[32:80], "float32").reshape(16, 3)
    x = numpy.array(numbers[100:700], "float32").reshape(300, 2) * 4
    y = numpy.digitize(numpy.hypot(x[:, 0], x[:, 1]), [0.9, 1.5]).astype("int64")
    weights = [numpy_helper.from_array(w1, "w1"),
               numpy_helper.from_array(numpy.zeros(16, "float32"), "b1"),
               numpy_helper.from_array(w2, "w2"),
               numpy_helper.from_array(numpy.zeros(3, "float32"), "b2")]
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
             helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "w2", "b2"], ["s"]),
             helper.make_node("Softmax", ["s"], ["p"], axis=-1)]
    real = TensorProto.FLOAT
    # Of any number of samples; of 32 alone, by its input, or by a constant inside.
    inside = [helper.make_node("Add", ["x", "of_32"], ["x_32"]),
              helper.make_node("Gemm", ["x_32", "w1", "b1"], ["h"])]
    zeros = numpy_helper.from_array(numpy.zeros([32, 2], "float32"), "of_32")
    for name, first, all_nodes, constants in [
            ("classes", "n", nodes, weights), ("classes_fixed", 32, nodes, weights),
            ("classes_inside", "n", inside + nodes[1:], weights + [zeros])]:
        graph = helper.make_graph(
            all_nodes, "classes", [helper.make_tensor_value_info("x", real, [first, 2])],
            [helper.make_tensor_value_info("p", real, [first, 3])], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        with open(os.path.join(models, name + ".onnx"), "wb") as file:
            file.write(model.SerializeToString())
    # Three turns of h = tanh(h w), whose weights no node of the model itself reads.
    body = helper.make_graph(
        [helper.make_node("MatMul", ["h", "w"], ["a"]), helper.make_node("Tanh", ["a"], ["h2"]),
         helper.make_node("Identity", ["go"], ["goes"])], "turn",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("h", real, ["n", 16])],
        [helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
         helper.make_tensor_value_info("h2", real, ["n", 16])])
    w = numpy.array(numbers[700:956], "float32").reshape(16, 16)
    graph = helper.make_graph(
        nodes[:1] + [helper.make_node("Loop", ["three", "", "h"], ["r"], body=body)] + nodes[2:],
        "classes", [helper.make_tensor_value_info("x", real, ["n", 2])],
        [helper.make_tensor_value_info("p", real, ["n", 3])],
        weights + [numpy_helper.from_array(w, "w"), numpy_helper.from_array(numpy.array(3), "three")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with open(os.path.join(models, "classes_loop.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    # out = x^3 + the slope of x^3 at p
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Mul", ["s", "x"], ["c"]),
             helper.make_node("Gradient", ["p"], ["d"], xs=["x"], y="c",
                              domain="ai.onnx.preview.training"),
             helper.make_node("Add", ["c", "d"], ["out"])]
    graph = helper.make_graph(
        nodes, "gradient", [helper.make_tensor_value_info(name, real, [1, 3]) for name in "xp"],
        [helper.make_tensor_value_info("out", real, [1, 3])])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.preview.training", 1)])
    with open(os.path.join(models, "gradient.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    numpy.savez(os.path.join(arrays, "classes.npz"), x=x, y=y)
    numpy.savez(os.path.join(arrays, "classes_rows.npz"), x=x, t=numpy.eye(3, dtype="float32")[y])
    # One matrix of 4096 elements, the least of which ranks share the updates.
    draw = numpy.random.default_rng(5)
    w = draw.standard_normal((64, 64)).astype("float32")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "wide",
        [helper.make_tensor_value_info("x", real, ["n", 64])],
        [helper.make_tensor_value_info("y", real, ["n", 64])], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with open(os.path.join(models, "classes_wide.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    numpy.savez(os.path.join(arrays, "classes_wide.npz"), x=draw.standard_normal((24, 64)).astype("float32"),
                y=draw.integers(0, 64, 24))
    y[17] = 3
    numpy.savez(os.path.join(arrays, "classes_out_of_range.npz"), x=x, y=y)
    y[17] = 0
    x[5, 0] = numpy.nan
    numpy.savez(os.path.join(arrays, "classes_spoilt.npz"), x=x, y=y)
    rows = numpy.eye(3, dtype="float32")[y]
    rows[7, 1] = numpy.inf
    numpy.savez(os.path.join(arrays, "classes_rows_spoilt.npz"), x=numpy.nan_to_num(x), t=rows)
    rows[7, 1] = 1.5
    numpy.savez(os.path.join(arrays, "classes_no_chance.npz"), x=numpy.nan_to_num(x), t=rows)


def make_arrays(directory):
    """Inputs for add_relu: x = [1, -2, 3], y = [0.5, 0.5, -4], so z = [1.5, 0, 0]."""
    def place(name):
        return os.path.join(directory, name)

    x = numpy.array([[1, -2, 3]], "float32")
    y = numpy.array([[0.5, 0.5, -4]], "float32")
    numpy.save(place("x.npy"), x)
    numpy.save(place("y.npy"), y)
    numpy.save(place("x_double.npy"), x.astype("float64"))
    numpy.save(place("x_half.npy"), x.astype("float16"))
    numpy.save(place("x_int.npy"), x.astype("int64"))
    numpy.save(place("x_fraction.npy"), numpy.array([[1, 2.5, 3]], "float64"))
    numpy.save(place("x_large.npy"), numpy.array([[1, 1e300, 3]], "float64"))
    # Two rows, the first axis running fastest in the file.
    numpy.save(place("fortran.npy"), numpy.asfortranarray([[1, 2, 3], [4, 5, 6]], "float32"))
    numpy.save(place("strings.npy"), numpy.array(["a", "bc"]))
    numpy.save(place("bytes.npy"), numpy.array([b"a", b"bc"]))
    numpy.save(place("complex.npy"), numpy.array([1j, 2], "complex64"))
    # As NumPy saves an array of ml_dtypes.int4: 7, -8, -1, 0, 1, 2.
    numpy.save(place("int4.npy"), numpy.array([[7, 8, 15], [0, 1, 2]], "uint8").view("V1"))
    numpy.save(place("objects.npy"), numpy.array([None, 1], object), allow_pickle=True)
    numpy.save(place("dates.npy"), numpy.array(["2020-01-01"], "datetime64[D]"))
    numpy.save(place("fields.npy"), numpy.zeros(2, [("a", "f4"), ("b", "i4")]))
    numpy.savez(place("stored.npz"), x=x, y=y)
    numpy.savez_compressed(place("packed.npz"), x=x, y=y, z=numpy.zeros((64, 64), "float32"))
    numpy.savez(place("single.npz"), something=x)
    x.tofile(place("x.bin"))
    with open(place("x.pb"), "wb") as file:
        file.write(numpy_helper.from_array(x, "x").SerializeToString())
    with open(place("another_name.pb"), "wb") as file:
        file.write(numpy_helper.from_array(numpy.array([[1.5, 0, 0]], "float32"), "z")
                   .SerializeToString())


if __name__ == "__main__":
    here = os.path.dirname(__file__)
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "models"))
    make_arrays(sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "arrays"))
    make_classes(sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "models"),
                 sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "arrays"))
