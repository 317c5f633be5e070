#!/bin/bash
# OpenCV 5 pads auto_pad SAME_UPPER in front where the padding is odd and a stride is there, and SAME_LOWER behind without one: a 3 x 3
# convolution with stride 2, as TensorFlow's models have it, sees the picture moved by a pixel.
#
# What is done: Conv, MaxPool and AveragePool (18) of 1 .. 6 in a row, windows of 2, 3 and 4, strides 1 and 2, SAME_UPPER and SAME_LOWER, with
# both of OpenCV's engines, beside ONNX Runtime; the same padding written as pads.
# Seen (OpenCV 5.0.0, onnxruntime 1.32.0): a window of 3 with stride 2 has one cell of padding; SAME_UPPER puts it behind: sums 6 12 11. OpenCV's
# default engine says 3 9 15, the sums of SAME_LOWER; its classic engine 6 12 11. Even windows with stride 1 and SAME_LOWER give
# SAME_UPPER's 3 5 7 9 11 6 in both engines, in place of 1 3 5 7 9 11; the classic one takes each SAME_LOWER for SAME_UPPER. With pads
# all agree.
# What one would expect: the odd cell at the end for SAME_UPPER, at the beginning for SAME_LOWER. Nothing is said: shapes are equal, and a
# classifier only becomes a little worse.
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


row = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 1, 6)
engines = {"default": cv2.dnn.ENGINE_AUTO, "classic": cv2.dnn.ENGINE_CLASSIC}
wrong = {name: [] for name in engines}
is_as_before = True
for op in ("Conv", "MaxPool", "AveragePool"):
    for window in (2, 3, 4):
        for stride in (1, 2):
            padding = max(0, (-(-6 // stride) - 1) * stride + window - 6)
            for side in ("SAME_UPPER", "SAME_LOWER"):
                constants = {"w": np.ones((1, 1, 1, window), np.float32)} if op == "Conv" else {}
                names = ["x", *constants]
                sizes = dict(kernel_shape=[1, window], strides=[1, stride])
                for name, engine in engines.items():
                    node = helper.make_node(op, names, ["y"], auto_pad=side, **sizes)
                    right, got = both([node], row, constants, engine)
                    if got != right:
                        wrong[name].append((op, window, stride, side))
                        print(f"{op}, window {window}, stride {stride}, {side}, {name} engine: {got}, ONNX Runtime {right}")
                    front = padding // 2 if side == "SAME_UPPER" else padding - padding // 2
                    node = helper.make_node(op, names, ["y"], pads=[0, front, 0, padding - front], **sizes)
                    written, by_pads = both([node], row, constants, engine)
                    is_as_before &= np.allclose(written, right) and np.allclose(by_pads, right)
lower = [(op, window, 1, "SAME_LOWER") for op in ("Conv", "MaxPool", "AveragePool") for window in (2, 4)]
upper = [(op, 3, 2, "SAME_UPPER") for op in ("Conv", "MaxPool", "AveragePool")]
is_as_before &= set(wrong["default"]) == set(lower + upper)
print("wrong in the classic engine:", wrong["classic"])
is_as_before &= set(wrong["classic"]) == set(lower + [(op, window, stride, "SAME_LOWER") for op, window, stride, _ in upper])
node = helper.make_node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER", kernel_shape=[1, 3], strides=[1, 2])
is_as_before &= both([node], row, {"w": np.ones((1, 1, 1, 3), np.float32)}) == ([6, 12, 11], [3, 9, 15])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
