#!/bin/bash
# Bernoulli of ONNX Runtime draws 1 with the probability 1 - p: ones become zeros and zeros ones.
#
# What is done: Bernoulli (opset 15, seed 1) over 10000 equal probabilities, in ONNX Runtime on the CPU
# and in the reference evaluator of ONNX.
# Seen (onnxruntime 1.32.0, onnx 1.23.2, x86-64): the share of ones for p = 0, 0.1, 0.9 and 1 is 1, 0.90,
# 0.10 and 0 in ONNX Runtime, and 0, 0.10, 0.90 and 1 in the reference.
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


for p in (0.0, 0.1, 0.9, 1.0):
    x = np.full(10000, p, np.float32)
    (drawn,), (wanted,) = run("Bernoulli", {"x": x}, 15, seed=1.0)
    print(f"p = {p}: onnxruntime {drawn.mean():.3f} ones, reference {wanted.mean():.3f}")
    expect("onnxruntime draws 1 with 1 - p", abs(drawn.mean() - (1 - p)) < 0.03)
    expect("the reference draws 1 with p", abs(wanted.mean() - p) < 0.03)
sys.exit(1 if differences else 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
