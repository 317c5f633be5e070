#!/bin/bash
# OpenCV's mean of each channel over a batch of three or more pictures counts some pixels twice and others not at all; of one or two
# pictures it is right.
#
# What is done: ReduceSum, ReduceMean and ReduceMax (18) of 0 .. 26 as 3 x 3 x 3 x 1 over axes 0 2 3, 0 1 3, 1 2 3, 2 3 and 0 2, of
# 0 .. 17 as 2 x 3 x 3 x 1 over 0 2 3; the sum of one 1 among zeros, for each place; with both of OpenCV's engines, beside ONNX Runtime.
# Seen (OpenCV 5.0.0, onnxruntime 1.32.0): over 2 3, 1 2 3 and 0 2, and with two pictures, they agree. Over 0 2 3 of three OpenCV says
# 63 90 117 where the sums are 90 117 144: channel 0 is once its first picture and twice the second one's first row; the third
# picture does not count. Over 0 1 3 it is wrong as well. So is the classic engine, and over 1 2 3 too.
# What one would expect: the reduction over the axes named, which is what a batch norm in training or a mean over images is when it is
# written out. There is no error, shapes are right, and a test with a batch of one or two passes.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q opencv-python-headless==5.0.0.93 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install OpenCV, onnx, onnxruntime and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import os
import sys

import cv2
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

print("OpenCV", cv2.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
path = os.path.join(os.path.dirname(__file__), "model.onnx")


def both(nodes, x, constants=None, engine=cv2.dnn.ENGINE_AUTO):
    """What ONNX Runtime and OpenCV make of x, y being the output of the nodes."""
    constants = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (right,) = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, right.shape))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    net = cv2.dnn.readNetFromONNX(path, engine)
    net.setInput(x, "x")
    return right.ravel().tolist(), np.asarray(net.forward("y")).ravel().tolist()


is_as_before = True
for op in ("ReduceSum", "ReduceMean", "ReduceMax"):
    for shape, axes in (
        ((3, 3, 3, 1), [2, 3]),
        ((3, 3, 3, 1), [1, 2, 3]),
        ((3, 3, 3, 1), [0, 2]),
        ((3, 3, 3, 1), [0, 2, 3]),
        ((3, 3, 3, 1), [0, 1, 3]),
        ((2, 3, 3, 1), [0, 2, 3]),
    ):
        numbers = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        node = helper.make_node(op, ["x", "axes"], ["y"])
        right, got = both([node], numbers, {"axes": np.array(axes)})
        _, classic = both([node], numbers, {"axes": np.array(axes)}, cv2.dnn.ENGINE_CLASSIC)
        print(f"{op} of {shape} over {axes}: {got}, classic engine {'the same' if classic == got else classic}, ONNX Runtime {right}")
        is_wrong = shape[0] == 3 and axes in ([0, 2, 3], [0, 1, 3])
        is_as_before &= np.allclose(right, got, atol=1e-5) != is_wrong
        is_as_before &= np.allclose(right, classic, atol=1e-5) != (is_wrong or (shape[0] == 3 and axes == [1, 2, 3]))
        if op == "ReduceSum" and is_wrong and axes == [0, 2, 3]:
            is_as_before &= got == [63, 90, 117] and right == [90, 117, 144]
counts = []
for place in range(27):
    one = np.zeros(27, np.float32)
    one[place] = 1
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"])
    counts.append(both([node], one.reshape(3, 3, 3, 1), {"axes": np.array([0, 2, 3])})[1][0])
print("how often channel 0 counts each element:", *(int(count) for count in counts))
is_as_before &= counts == [1, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 2] + 15 * [0]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
