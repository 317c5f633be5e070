#!/bin/bash
# ONNX Runtime makes one quantisation of two that follow each other, on a grid that is neither's: numbers that both hold exactly are
# changed.
#
# What is done: QuantizeLinear and DequantizeLinear (17, u8) twice, both with scale 0.25, with zero points 10 and 20, over -2, -1.75,
# ... 58: each is a multiple of 0.25 within both ranges, so by the operators' text the result is the input. Run without
# optimisations and with the first level.
# Seen (onnxruntime 1.32.0, onnx 1.23.2): without optimisations y = x. With the first level (and so by default) one pair is left, whose
# scale is 61.25 / 255 = 0.2402, the common part of both ranges in 255 steps: 236 of 241 numbers are others, by up to 0.12, half
# a step, none of them a multiple of 0.25. So parts of a network that were quantised apart and put together give other
# numbers by default, and what an integer behind them should be is not what it is.
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
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper, parser

LEVELS = onnxruntime.GraphOptimizationLevel


def run(proto, x, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = os.path.join(os.path.dirname(__file__), "optimised.onnx")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    graph = onnx.load(options.optimized_model_filepath).graph
    scales = {round(float(numpy_helper.to_array(value)), 4) for value in graph.initializer if value.data_type == 1}
    return session.run(None, {"x": x})[0], [node.op_type for node in graph.node], scales


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
x = np.arange(-8, 233).astype(np.float32) / 4
model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[{x.size}] x) => (float[{x.size}] y)
    <float s = {{0.25}}, uint8 a = {{10}}, uint8 b = {{20}}> {{
        p = QuantizeLinear (x, s, a)
        q = DequantizeLinear (p, s, a)
        r = QuantizeLinear (q, s, b)
        y = DequantizeLinear (r, s, b)
    }}""")
onnx.checker.check_model(model, full_check=True)
exact = x
for zero_point in (10, 20):
    exact = (np.clip(np.rint(exact / 0.25) + zero_point, 0, 255) - zero_point) * 0.25
plain, _, _ = run(model, x, LEVELS.ORT_DISABLE_ALL)
merged, ops, scales = run(model, x, LEVELS.ORT_ENABLE_BASIC)
default, _, _ = run(model, x, LEVELS.ORT_ENABLE_ALL)
other = int((merged != exact).sum())
print("plain as the text:", np.array_equal(plain, exact), "first level:", ops, "scale", scales, "others:", other, "of", x.size,
      "by up to", round(float(np.abs(merged - exact).max()), 3), "off the grid:", int((merged * 4 % 1 != 0).sum()))
is_as_before = (np.array_equal(exact, x) and np.array_equal(plain, exact) and np.array_equal(default, merged) and
                ops == ["QuantizeLinear", "DequantizeLinear"] and scales == {0.2402} and other > 200)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
