#!/bin/bash
# QLinearMatMul rounds ties another way in the reference of ONNX where the zero point is odd: it adds the
# zero point before it rounds to even, and ONNX Runtime after.
#
# What is done: QLinearMatMul (opset 10) of 1, 3 and 5 by 1 with scales 0.5, 1 and 1: the quotients are
# 0.5, 1.5 and 2.5. The result's zero point is 0, then 1.
# Seen (onnxruntime 1.32.0, onnx 1.23.2): with 0 both say 0 2 2; with 1 ONNX Runtime says 1 3 3 and the
# reference 2 2 4.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6; then
    echo "skipped: pip could not install onnxruntime 1.32.0, onnx 1.23.2 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
differences = 0


def make_model(op, inputs, opset, outputs=("y",), **attributes):
    """One node; every input is an initializer, None is an absent one."""
    names = ["" if value is None else name for name, value in inputs.items()]
    graph = helper.make_graph(
        [helper.make_node(op, names, list(outputs), **attributes)],
        "g",
        [],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in inputs.items() if value is not None],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)
    onnx.checker.check_model(model)
    return model


def run(op, inputs, opset, outputs=("y",), **attributes):
    model = make_model(op, inputs, opset, outputs, **attributes)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {}), ReferenceEvaluator(model).run(None, {})


def expect(what, is_so):
    global differences
    print("as before" if is_so else "DIFFERS  ", what)
    differences += not is_so


for zero_point, wanted, wanted_ref in ((0, [0, 2, 2], [0, 2, 2]), (1, [1, 3, 3], [2, 2, 4])):
    zero = np.array(0, np.uint8)
    one = np.array(1, np.float32)
    inputs = {
        "a": np.array([[1], [3], [5]], np.uint8),
        "a_scale": np.array(0.5, np.float32),
        "a_zero": zero,
        "b": np.array([[1]], np.uint8),
        "b_scale": one,
        "b_zero": zero,
        "y_scale": one,
        "y_zero": np.array(zero_point, np.uint8),
    }
    (y,), (y_ref,) = run("QLinearMatMul", inputs, 10)
    print(f"zero point {zero_point}: onnxruntime {y.ravel()}, reference {y_ref.ravel()}")
    expect("onnxruntime adds the zero point after rounding", y.ravel().tolist() == wanted)
    expect("the reference adds it before", y_ref.ravel().tolist() == wanted_ref)
sys.exit(1 if differences else 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
