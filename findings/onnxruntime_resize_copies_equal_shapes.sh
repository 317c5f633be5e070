#!/bin/bash
# Resize copies its input in ONNX Runtime where the output has the same shape, whatever the scale says.
#
# What is done: Resize (opset 18, nearest, floor, asymmetric) of 0 .. 7 with scale 1.1. The output has
# floor(8.8) = 8 elements, and element i is x[floor(i / 1.1)].
# Seen (onnxruntime 1.32.0, onnx 1.23.2): 0 1 2 3 4 5 6 7 in ONNX Runtime, 0 0 1 2 3 4 5 6 in the
# reference. With ten elements and the same scale both agree.
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


attributes = {
    "mode": "nearest",
    "nearest_mode": "floor",
    "coordinate_transformation_mode": "asymmetric",
}
for count in (8, 10):
    x = np.arange(count, dtype=np.float32).reshape(1, count)
    inputs = {"x": x, "roi": None, "scales": np.array([1, 1.1], np.float32)}
    (y,), (y_ref,) = run("Resize", inputs, 18, **attributes)
    print("onnxruntime", y[0], "reference", y_ref[0])
    if count == 8:
        expect("onnxruntime copies", np.array_equal(y, x))
        expect("the reference resizes", y_ref[0].tolist() == [0, 0, 1, 2, 3, 4, 5, 6])
    else:
        expect("they agree where the shape changes", np.array_equal(y, y_ref))
sys.exit(1 if differences else 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
