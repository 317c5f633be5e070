#!/bin/bash
# Tanh of 45 and more is NaN in OpenCV where eight lie side by side, and 1 in what is left at the end of a row; Softplus of 89 is infinity,
# a LogSumExp of 100 and 100 too, and Relu of minus infinity NaN.
#
# What is done: Tanh, Softplus and Relu (18) of 1, 7, 8, 9 and 17 equal numbers, ReduceLogSumExp of 100 and 100 and LogSoftmax of -400 and 0,
# from ONNX files of one op, with both of OpenCV's engines, beside ONNX Runtime.
# Seen (OpenCV 5.0.0, onnxruntime 1.32.0, x86-64 with AVX2 or AVX-512): Tanh of 44 is 1, that of 45, 100 and infinity is NaN in groups of
# eight, of -45 and -100 -1. exp(2 x) has become infinity, and is divided by itself. Relu of -inf is NaN at each length. LogSoftmax of -400
# beside 0 is -inf for -400.
# What one would expect: 1, as any library's tanh says, and formulas that take the maximum out first. A recurrent net whose cell goes
# beyond 45, or a tanh GELU of a large activation, turns NaN, unless its rows are short.
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


infinity = float("inf")
is_as_before = True
for op, numbers in (("Tanh", (44, 45, 100, infinity, -45, -100)), ("Softplus", (88, 89)), ("Relu", (-3e38, -infinity))):
    for number in numbers:
        bad = []
        for length in (1, 7, 8, 9, 17):
            x = np.full((1, length), number, np.float32)
            right, got = both([helper.make_node(op, ["x"], ["y"])], x)
            _, classic = both([helper.make_node(op, ["x"], ["y"])], x, engine=cv2.dnn.ENGINE_CLASSIC)
            is_as_before &= np.array_equal(got, classic, equal_nan=True)
            wrong = ~np.isclose(got, right)
            is_as_before &= all((np.isnan if op != "Softplus" else np.isinf)(np.array(got)[wrong]))
            bad.append(int(wrong.sum()))
        print(f"{op} of {number}: ONNX Runtime {right[0]}, wrong in OpenCV of 1 7 8 9 17 equal ones: {bad}, the last one then is {got[-1]}")
        if op == "Tanh":
            is_as_before &= bad == ([0, 0, 8, 8, 16] if number >= 45 else [0, 0, 0, 0, 0])
        elif op == "Relu":
            is_as_before &= bad == ([1, 7, 8, 9, 17] if number == -infinity else [0, 0, 0, 0, 0])
        else:
            is_as_before &= bad == ([1, 7, 8, 9, 17] if number == 89 else [0, 0, 0, 0, 0])
x = np.full((1, 2), 100, np.float32)
right, got = both([helper.make_node("ReduceLogSumExp", ["x", "axes"], ["y"])], x, {"axes": np.array([1])})
print(f"ReduceLogSumExp of 100 and 100: {got}, ONNX Runtime {right}")
is_as_before &= got == [infinity] and abs(right[0] - 100.6931) < 1e-3
right, got = both([helper.make_node("LogSoftmax", ["x"], ["y"], axis=1)], np.array([[-400, 0]], np.float32))
print(f"LogSoftmax of -400 and 0: {got}, ONNX Runtime {right}")
is_as_before &= got == [-infinity, 0] and right == [-400, 0]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
