#!/bin/bash
# The greatest of 1 NaN 2 3 is 2 in ONNX Runtime: neither the NaN nor the greatest of the others.
#
# What is done: ReduceMax and ReduceMin (18) of rows of four numbers with a NaN at each place, in ONNX Runtime, in the reference of ONNX
# and by numpy's max and fmax; Max (13) and TopK (11) of the same numbers.
# Seen (onnxruntime 1.32.0, CPU, x86-64, onnx 1.23.2): a NaN in front gives NaN; behind it some numbers are lost with the NaN, and which
# ones depends on its place: ReduceMax of 1 NaN 2 3 is 2 (numpy's max: NaN, fmax: 3), ReduceMin of 3 NaN 2 1 is 2 (fmin: 1).
# Double is the same. The reference says NaN for all, and so do Max and TopK of ONNX Runtime, whose first is the NaN wherever it is.
# So a NaN shows neither as a NaN nor as a gap, and a range that is measured so (for a scale, a guard, a report) is too small.
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

NAN = float("nan")


def run(text, x):
    kind = "float" if x.dtype == np.float32 else "double"
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g ({kind}[1,4] x) => ({kind}[1,k] y) {{
        one = Constant <value_ints = [1]> ()
        {text}
    }}""")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0].ravel(), ReferenceEvaluator(model).run(None, {"x": x})[0].ravel()


onnxruntime.set_default_logger_severity(3)  # of a constant that Max does not use
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
neither = {"ReduceMax": 0, "ReduceMin": 0}
for kind in (np.float32, np.float64):
    for numbers in ([1, 2, 3], [3, 2, 1]):
        for place in range(4):
            x = np.array([numbers[:place] + [NAN] + numbers[place:]], kind)
            for op, others in (("ReduceMax", np.fmax.reduce(x[0])), ("ReduceMin", np.fmin.reduce(x[0]))):
                runtime, reference = run(f"y = {op} (x, one)", x)
                print(kind.__name__, op, x[0].tolist(), "ONNX Runtime:", runtime[0], "reference:", reference[0], "of the others:", others)
                neither[op] += not np.isnan(runtime[0]) and runtime[0] != others
                is_as_before &= np.isnan(reference[0]) and np.isnan(runtime[0]) == (place == 0)
            for text in ("y = Max (x, x)", "y, i = TopK (x, one)"):
                is_as_before &= np.isnan(run(text, x)[0]).sum() == 1
for kind in (np.float32, np.float64):
    is_as_before &= run("y = ReduceMax (x, one)", np.array([[1, NAN, 2, 3]], kind))[0][0] == 2
    is_as_before &= run("y = ReduceMin (x, one)", np.array([[3, NAN, 2, 1]], kind))[0][0] == 2
print("neither NaN nor of the others:", {op: int(count) for op, count in neither.items()}, "of 16 each")
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
