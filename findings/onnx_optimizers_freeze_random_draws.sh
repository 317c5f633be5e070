#!/bin/bash
# onnxslim and onnxscript's optimizer draw random numbers themselves and put what came out into the file: it draws no more.
#
# What is done: x + a draw, by RandomUniform, Multinomial and Bernoulli of constant probabilities, and Dropout (training_mode) of a
# constant, without seeds, through onnxslim, onnxscript's optimizer, onnxsim and onnxoptimizer with their defaults; each result is run
# twice by ONNX Runtime without optimisations.
# Seen (onnxslim 0.1.98, onnxscript 0.7.2, onnxsim 0.8.1, onnxoptimizer 0.4.2, onnx 1.23.2, onnxruntime 1.32.0): before, no two runs are
# equal. onnxslim computes all four ahead and writes the numbers down, so that all runs are equal; onnxscript does so for Bernoulli and
# Dropout, whose inputs are constants. onnxsim and onnxoptimizer leave all alone. No warning.
# What one would expect: "constant folding" folds what is constant, and a draw is none, though its inputs are. So a sampler's noise, a
# Monte Carlo sum or a mask is the same in each run and on each machine, and is another one after each conversion.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 onnxslim==0.1.98 onnxscript==0.7.2 \
    onnxsim==0.8.1 onnxoptimizer==0.4.2 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, onnxslim, onnxscript, onnxsim, onnxoptimizer and numpy"
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
onnxruntime.set_default_logger_severity(4)
x = np.zeros(64, np.float32)
DRAWS = {
    "RandomUniform": "draw = RandomUniform <shape = [64]> ()",
    "Multinomial": "s = Multinomial <sample_size = 64> (odds) t = Cast <to = 1> (s) draw = Reshape (t, shape)",
    "Bernoulli": "draw = Bernoulli (half)",
    "Dropout": "draw = Dropout (half, ratio, on)",
}
TOOLS = {
    "none": lambda model: model,
    "onnxslim": onnxslim.slim,
    "onnxscript": onnxscript.optimizer.optimize,
    "onnxsim": lambda model: onnxsim.simplify(model)[0],
    "onnxoptimizer": lambda model: onnxoptimizer.optimize(model, onnxoptimizer.get_fuse_and_elimination_passes()),
}
FROZEN = {"onnxslim": set(DRAWS), "onnxscript": {"Bernoulli", "Dropout"}}


def make(text):
    half = ", ".join(["0.5"] * 64)
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float[64] x) => (float[64] y)
        <float[64] half = {{{half}}}, float[1, 4] odds = {{0, 0, 0, 0}}, int64[1] shape = {{64}}, float ratio = {{0.5}},
         bool on = {{1}}> {{
        {text}
        y = Add (x, draw)
    }}""")
    return shape_inference.infer_shapes(model)


def is_frozen(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    first, second = (session.run(None, {"x": x})[0] for _ in range(2))
    return np.array_equal(first, second)


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("onnxslim", "onnxscript", "onnxsim", "onnxoptimizer", "onnx",
                                                                  "onnxruntime")))
is_as_before = True
for name, tool in TOOLS.items():
    frozen = {draw for draw, text in DRAWS.items() if is_frozen(tool(copy.deepcopy(make(text))))}
    print(f"{name}: draws no more:", *sorted(frozen))
    is_as_before &= frozen == FROZEN.get(name, set())
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
