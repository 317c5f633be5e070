#!/bin/bash
# onnxscript's optimizer makes one Clip of two whose ranges have nothing in common, and drops a Relu behind a Clip to a negative
# limit: the one Clip gives the first's limit where the two give the second's.
#
# What is done: Clip to [-1, 2] and then to [4, 6], and Clip to at most -1 and then Relu (opset 17), over 9 numbers, run as they are
# and after onnxscript.optimizer.optimize, in the reference of ONNX and in ONNX Runtime without optimisations. The definition,
# min(max(x, low), high) twice, gives 4 and 0 for every number.
# Seen (onnxscript 0.7.2, onnx 1.23.2, onnxruntime 1.32.0): both say 4 and 0 before and 2 and -1 after. One Clip from 4 to 2 is what
# is left of the first (a low limit above the high one gives the high one), one Clip from 0 to -1 of the second.
# torch.onnx.export(dynamo=True) calls this optimizer: x.clamp(-1, 2).clamp(4, 6) is 4 in torch 2.15.0 and 2 in its file.
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
from onnx.reference import ReferenceEvaluator

LIMITS = "float a = {-1.0}, float b = {2.0}, float c = {4.0}, float d = {6.0}"


def model(body):
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g (float[9] x) => (float[9] y) <{LIMITS}> {{ {body} }}')


def run(proto, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0], ReferenceEvaluator(proto).run(None, {"x": x})[0]


print("onnxscript", onnxscript.__version__, "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
x = np.array([-9, -1.5, -1, 0, 1, 2, 4, 5, 9], np.float32)
is_as_before = True
for body, exact, wrong in (
        ("u = Clip (x, a, b)  y = Clip (u, c, d)", np.minimum(np.maximum(np.minimum(np.maximum(x, -1), 2), 4), 6), 2),
        ("u = Clip (x, , a)  y = Relu (u)", np.maximum(np.minimum(x, -1), 0), -1)):
    before = model(body)
    onnx.checker.check_model(before, full_check=True)
    after = onnxscript.optimizer.optimize(model(body))
    seen = [set(values.tolist()) for values in run(before, x) + run(after, x)]
    print(body, "| exact:", set(exact.tolist()), "before:", seen[:2], "after:", seen[2:],
          [node.op_type for node in after.graph.node])
    is_as_before &= seen[0] == seen[1] == set(exact.tolist()) and seen[2] == seen[3] == {wrong}
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
