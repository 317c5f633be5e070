#!/bin/bash
# Resize by linear interpolation takes a wrong neighbour in the reference of ONNX where a coordinate is a
# rounding below a whole number.
#
# What is done: Resize (opset 18, linear, half_pixel) of ten numbers to fourteen. Output 10 lies at
# 10.5 * 10 / 14 - 0.5 = 7, so it is x[7].
# Seen (onnxruntime 1.32.0, onnx 1.23.2): 79, which is x[7], in ONNX Runtime; 89, which is x[6], in the
# reference. All other outputs are alike.
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


x = np.array([[3, 14, 15, 92, 65, 35, 89, 79, 32, 38]], np.float32)
inputs = {"x": x, "roi": None, "scales": None, "sizes": np.array([1, 14], np.int64)}
(y,), (y_ref,) = run("Resize", inputs, 18, mode="linear")
print("onnxruntime", y[0], "reference", y_ref[0])
expect("onnxruntime has x[7] at output 10", abs(y[0, 10] - x[0, 7]) < 1e-3)
expect("the reference has x[6] there", abs(y_ref[0, 10] - x[0, 6]) < 1e-3)
expect("nothing else differs", np.sum(np.abs(y - y_ref) > 1e-3) == 1)
sys.exit(1 if differences else 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
