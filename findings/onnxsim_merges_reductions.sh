#!/bin/bash
# onnxsim makes one reduction of two that keep their axes differently: the result has another rank.
#
# What is done: ReduceMax (17) of 2 x 3 x 4 over axis 2 with keepdims = 1 and then over axis 1 without; over axis 0 without and then over
# axis 0 with; over both without. onnxsim.simplify with and without its check by numbers; before and after in ONNX Runtime without
# optimisations, and by numpy.
# Seen (onnxsim 0.8.1, onnx 1.23.2, onnxruntime 1.32.0): 2 x 1 becomes 2 and 1 x 4 becomes 1 x 1 x 4, since the second op's keepdims holds
# for all axes of the one that is left; the third is right. By default simplify checks nothing and says "checked: true"; with
# check_n = 3 it says false for the first, and still true for the second, whose numbers are alike when broadcast.
# An op behind it that broadcasts goes on with the other shape: max + z of 3 numbers is 3 x 4 before and 1 x 3 x 4 after.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnxsim==0.8.1 onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6; then
    echo "skipped: pip could not install onnxsim 0.8.1, onnxruntime, onnx and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import contextlib
import importlib.metadata
import io
import sys

import numpy as np
import onnx
import onnxruntime
import onnxsim
from onnx import parser


def model(first, second, dims):
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[2,3,4] x) => (float[{dims}] y) {{
        u = ReduceMax <axes = [{first[0]}], keepdims = {first[1]}> (x)
        y = ReduceMax <axes = [{second[0]}], keepdims = {second[1]}> (u)
    }}""")


def simplify(proto, **options):
    with contextlib.redirect_stdout(io.StringIO()):
        return onnxsim.simplify(proto, **options)


def run(proto):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


print("onnxsim", importlib.metadata.version("onnxsim"), "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
x = np.sin(np.arange(24, dtype=np.float32) * 7).reshape(2, 3, 4)
is_as_before = True
for first, second, dims, shape, checks in (((2, 1), (1, 0), "a,b", (2,), [True, False]), ((0, 0), (0, 1), "a,b", (1, 1, 4), [True, True]),
                                           ((0, 0), (0, 0), "a", (4,), [True, True])):
    proto = model(first, second, dims)
    onnx.checker.check_model(proto, full_check=True)
    exact = x
    for axis, keepdims in (first, second):
        exact = exact.max(axis, keepdims=bool(keepdims))
    before, after = run(proto), run(simplify(proto)[0])
    told = [simplify(proto)[1], simplify(proto, check_n=3)[1]]
    print(first, second, "numpy:", exact.shape, "before:", before.shape, "after:", after.shape, "checked:", told)
    is_as_before &= np.array_equal(before, exact) and after.shape == shape and told == checks
    is_as_before &= np.array_equal(after.ravel(), exact.ravel())
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
