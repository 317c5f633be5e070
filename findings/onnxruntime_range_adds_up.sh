#!/bin/bash
# Range of floats adds its step up in ONNX Runtime: the error grows along the output.
#
# What is done: Range (opset 11) from 0 to 1000 by 0.1, in f32. ONNX says output[i] = start + i * delta.
# Seen (onnxruntime 1.32.0, onnx 1.23.2): both have 10000 elements; the last is 999.8029 in ONNX Runtime,
# a step short, and 999.9 in the reference.
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


numbers = {"start": np.float32(0), "limit": np.float32(1000), "delta": np.float32(0.1)}
(y,), (y_ref,) = run("Range", {k: np.array(v) for k, v in numbers.items()}, 11)
print("onnxruntime", y.shape, y[-1], "reference", y_ref.shape, y_ref[-1])
steps = np.full(10000, numbers["delta"], np.float32)
steps[0] = 0
expect("onnxruntime adds up in f32", np.array_equal(y, np.add.accumulate(steps, dtype=np.float32)))
expect("the reference multiplies", abs(y_ref[-1] - 999.9) < 1e-3 and y.shape == y_ref.shape)
sys.exit(1 if differences else 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
