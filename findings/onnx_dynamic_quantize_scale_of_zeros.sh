#!/bin/bash
# DynamicQuantizeLinear of a tensor of zeros has three scales: ONNX's text, its reference and ONNX
# Runtime disagree.
#
# What is done: DynamicQuantizeLinear (opset 11) of three zeros. By the text of the operator the scale is
# (max - min) / 255, which is 0.
# Seen (onnxruntime 1.32.0, onnx 1.23.2): the scale is 1 in ONNX Runtime and 1/255 in the reference.
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


(y, scale, zero), (y_ref, scale_ref, zero_ref) = run(
    "DynamicQuantizeLinear", {"x": np.zeros(3, np.float32)}, 11, ("y", "scale", "zero")
)
print("onnxruntime", y, scale, zero, "reference", y_ref, scale_ref, zero_ref)
expect("onnxruntime's scale is 1", float(scale) == 1.0)
expect("the reference's scale is 1/255", scale_ref == np.float32(1) / np.float32(255))
sys.exit(1 if differences else 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
