#!/bin/bash
# onnxscript's optimizer folds a BatchNormalization in training mode into the Conv before it, as if it were one for inference.
#
# What is done: Conv and BatchNormalization with training_mode = 1 (opset 17): the norm is by mean and variance of the batch at hand.
# onnxscript.optimizer.optimize; before and after in ONNX Runtime without optimisations, and by numpy.
# Seen (onnxscript 0.7.2, onnx 1.23.2, onnxruntime 1.32.0): before, each channel has mean 0 and variance 1, as numpy says. After, one
# Conv is left, made with the running mean and variance: what training_mode = 0 gives, and no error. If running
# statistics are outputs of the graph, the norm stays. ONNX Runtime's own fusion leaves such a norm alone.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnxscript==0.7.2 onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6; then
    echo "skipped: pip could not install onnxscript 0.7.2, onnxruntime, onnx and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
import onnxscript
import onnxscript.optimizer
from onnx import parser

LEVELS = onnxruntime.GraphOptimizationLevel
WEIGHTS = ("float[2,1,1,1] w = {2.0, -3.0}, float[2] one = {1.0, 1.0}, float[2] zero = {0.0, 0.0}, "
           "float[2] mean = {5.0, 6.0}, float[2] var = {7.0, 8.0}")


def model(training, outputs="float[4,2,3,3] y"):
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[4,1,3,3] x) => ({outputs}) <{WEIGHTS}> {{
            c = Conv (x, w)
            y{", m, v" if training else ""} = BatchNormalization <training_mode = {training}> (c, one, zero, mean, var)
        }}""")


def run(proto, level=LEVELS.ORT_DISABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


print("onnxscript", onnxscript.__version__, "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
x = np.arange(36, dtype=np.float32).reshape(4, 1, 3, 3) / 10
c = x.astype(np.float64) * np.array([2, -3]).reshape(2, 1, 1)
exact = (c - c.mean((0, 2, 3), keepdims=True)) / np.sqrt(c.var((0, 2, 3), keepdims=True) + 1e-5)
onnx.checker.check_model(model(1), full_check=True)
after = onnxscript.optimizer.optimize(model(1))
kept = onnxscript.optimizer.optimize(model(1, "float[4,2,3,3] y, float[2] m, float[2] v"))
ops, kept_ops = ([node.op_type for node in proto.graph.node] for proto in (after, kept))
is_right = [np.allclose(run(model(1), level), exact, atol=1e-4) for level in (LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_ALL)]
is_inference = np.allclose(run(after), run(model(0)), atol=1e-4)
print("before, plain and optimised by ONNX Runtime, as numpy:", is_right, "after:", ops, "off by",
      round(float(np.abs(run(after) - exact).max()), 3), "the same as training_mode = 0:", is_inference,
      "with statistics as outputs:", kept_ops)
is_as_before = (all(is_right) and ops == ["Conv"] and is_inference and np.abs(run(after) - exact).max() > 0.5 and
                "BatchNormalization" in kept_ops)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
