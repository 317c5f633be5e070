#!/bin/bash
# onnxoptimizer drops the first of two Reshapes in a row though the second copies dimensions from it: 2 x 12 becomes 8 x 3.
#
# What is done: Reshape (14) of 2 x 3 x 4 to (0, 12), 2 x 12, and on to (-1, 0), 2 x 12 again; and to (0, -1) and then (0, 0, -1), 2 x 12
# x 1. A 0 stands for the dimension of the op's input at that place. onnxoptimizer.optimize with its default passes; before and after in
# ONNX Runtime without optimisations; onnxsim (which has the same passes built in) and the reference of ONNX.
# Seen (onnxoptimizer 0.4.2, onnxsim 0.8.1, onnx 1.23.2, onnxruntime 1.32.0): one Reshape is left, and its zeros copy from the first
# one's input, so that the results are 8 x 3 and 2 x 3 x 4, with no error; onnxsim keeps 2 x 12 and 2 x 12 x 1, since it works shapes out
# first.
# What one would expect: only the last of two Reshapes counts, as the pass says, but not where it has zeros. Exporters write them for "as
# many rows as before", so rows of one sample are cut up into others; where the sizes do not fit, the file fails when it runs.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 onnxoptimizer==0.4.2 onnxsim==0.8.1 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, onnxoptimizer, onnxsim and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys

import numpy as np
import onnxoptimizer
import onnxruntime
import onnxsim
from onnx import parser
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(3)
x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0].shape


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("onnxoptimizer", "onnxsim", "onnx", "onnxruntime")))
is_as_before = True
for first, second, before, after in (("0, 12", "-1, 0", (2, 12), (8, 3)), ("0, -1", "0, 0, -1", (2, 12, 1), (2, 3, 4))):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float[2, 3, 4] x) => (float y) {{
        s = Constant <value_ints = [{first}]> ()
        t = Constant <value_ints = [{second}]> ()
        a = Reshape (x, s)
        y = Reshape (a, t)
    }}""")
    optimised = onnxoptimizer.optimize(model)
    ops = [node.op_type for node in optimised.graph.node]
    seen = {"before": run(model), "reference": ReferenceEvaluator(model).run(None, {"x": x})[0].shape, "onnxoptimizer": run(optimised),
            "onnxsim": run(onnxsim.simplify(model)[0])}
    print(f"Reshape to ({first}) and ({second}):", seen, ops)
    is_as_before &= seen == {"before": before, "reference": before, "onnxoptimizer": after, "onnxsim": before}
    is_as_before &= ops.count("Reshape") == 1
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
