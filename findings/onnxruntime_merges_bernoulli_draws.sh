#!/bin/bash
# Two draws of Bernoulli from the same probabilities are one draw in ONNX Runtime by default: what should be independent is equal,
# always.
#
# What is done: two Bernoulli (15, no seed) of the same 1000 probabilities of 0.5, a Neg behind each, and the count of places where those
# are equal; the same with seeds 1 and 2, and with RandomUniformLike (1). With and without optimisations, and in the reference of ONNX.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): without optimisations about half of the places are equal, as by the op's text each node
# without a seed gets one of its own; by default all 1000 are: nodes alike in op, inputs and attributes become one, unless the draws
# themselves are outputs of the graph. RandomUniformLike stays two, and so do two seeds.
# What one would expect: a merge knows all ops of its standard that draw. Two masks of a dropout, two samples for a variance, a draw and
# its control are one and the same, with no error; a comparison with a run without optimisations shows other statistics.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import parser
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(3)
x = np.full(1000, 0.5, np.float32)


def make(first, second):
    return parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float[1000] x) => (float[1000] a, float[1000] b) {{
        p = {first} (x)
        q = {second} (x)
        a = Neg (p)
        b = Neg (q)
    }}""")


def equal_in_runtime(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    a, b = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    return int((a == b).sum())


def is_half(count):
    return 400 < count < 600  # 6 standard deviations of a fair coin


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
levels = onnxruntime.GraphOptimizationLevel
counts = {}
for name, pair in {"Bernoulli": ("Bernoulli", "Bernoulli"), "seeds 1, 2": ("Bernoulli <seed = 1.0>", "Bernoulli <seed = 2.0>"),
                   "RandomUniformLike": ("RandomUniformLike", "RandomUniformLike")}.items():
    model = make(*pair)
    a, b = ReferenceEvaluator(model).run(None, {"x": x})
    counts[name] = (equal_in_runtime(model, levels.ORT_ENABLE_ALL), equal_in_runtime(model, levels.ORT_DISABLE_ALL), int((a == b).sum()))
    print(name, "equal of 1000: by default, without optimisations, reference:", *counts[name])
by_default, plain, reference = counts["Bernoulli"]
is_as_before = by_default == 1000 and is_half(plain) and is_half(reference)
is_as_before &= is_half(counts["seeds 1, 2"][0]) and counts["RandomUniformLike"][0] < 10
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
