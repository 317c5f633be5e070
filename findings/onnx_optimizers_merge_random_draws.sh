#!/bin/bash
# Four optimisers of ONNX files make one draw of two: two dropouts in training drop the same elements, x + noise - (x + other noise) is
# 0.
#
# What is done: pairs of Dropout (13, training_mode), Bernoulli (15), RandomUniformLike and RandomNormal (1) without seeds, whose two
# results are outputs, through onnxoptimizer, onnxsim, onnxslim and onnxscript with their defaults (onnxoptimizer: all of its passes that
# fuse or eliminate); then in ONNX Runtime without optimisations, where they are counted as equal or not.
# Seen (onnxoptimizer 0.4.2, onnxsim 0.8.1, onnxslim 0.1.98, onnxscript 0.7.2, onnx 1.23.2, onnxruntime 1.32.0): before, no pair is
# equal. onnxoptimizer and onnxsim make one node of all four pairs, onnxslim of all but RandomNormal, onnxscript of Dropout and
# Bernoulli; each node is kept by its text alone (op, inputs, attributes), and a draw has the same text as another one.
# What one would expect: nodes that draw are never "common subexpressions". So a file for training, or one that samples twice (dropout
# left on for uncertainty, noise on both sides of a contrast), has correlated draws after a step that is run "to tidy the graph".
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 onnxoptimizer==0.4.2 onnxsim==0.8.1 \
    onnxslim==0.1.98 onnxscript==0.7.2 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, onnxoptimizer, onnxsim, onnxslim, onnxscript and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import copy
import importlib.metadata
import logging
import sys
import warnings

import numpy as np
import onnxoptimizer
import onnxruntime
import onnxscript.optimizer
import onnxsim
import onnxslim
from onnx import parser, shape_inference

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(3)
x = np.full(1000, 0.5, np.float32)
DRAWS = {"Dropout": "Dropout (x, ratio, on)", "Bernoulli": "Bernoulli (x)", "RandomUniformLike": "RandomUniformLike (x)",
         "RandomNormal": "RandomNormal <shape = [1000]> ()"}
TOOLS = {
    "none": lambda model: model,
    "onnxoptimizer": lambda model: onnxoptimizer.optimize(model, onnxoptimizer.get_fuse_and_elimination_passes()),
    "onnxsim": lambda model: onnxsim.simplify(model)[0],
    "onnxslim": onnxslim.slim,
    "onnxscript": onnxscript.optimizer.optimize,
}
MERGED = {"none": set(), "onnxoptimizer": set(DRAWS), "onnxsim": set(DRAWS), "onnxslim": set(DRAWS) - {"RandomNormal"},
          "onnxscript": {"Dropout", "Bernoulli"}}


def make(draw):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float[1000] x) => (float[1000] a, float[1000] b) {{
        ratio = Constant <value_float = 0.5> ()
        on = Constant <value = bool {{1}}> ()
        p = {draw}
        q = {draw}
        a = Add (p, x)
        b = Add (q, x)
    }}""")
    return shape_inference.infer_shapes(model)


def is_one_draw(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    a, b = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    return np.array_equal(a, b)


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("onnxoptimizer", "onnxsim", "onnxslim", "onnxscript", "onnx",
                                                                  "onnxruntime")))
is_as_before = True
for name, tool in TOOLS.items():
    merged = {draw for draw, text in DRAWS.items() if is_one_draw(tool(copy.deepcopy(make(text))))}
    print(f"{name}: one draw of two:", *sorted(merged))
    is_as_before &= merged == MERGED[name]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
