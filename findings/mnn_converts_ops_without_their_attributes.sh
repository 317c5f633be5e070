#!/bin/bash
# MNN's converter reads ONNX ops without what makes them different: scatters that should add, multiply or take the least overwrite,
# reductions are over all axes, a remainder has the other sign, and nothing is said.
#
# What is done: ONNX files with one op, converted by MNN's converter without options and run by MNN on the processor, beside the reference
# of ONNX: ScatterElements and ScatterND (18) with each reduction, ReduceSum, ReduceL1, ReduceSumSquare and ReduceLogSum (18) with axes as
# an input, Mod (13) with fmod = 1, ArgMax (13) with select_last_index, Round (11); all in files of opset 18.
# Seen (mnn 3.6.1, onnx 1.23.2, numpy 2.4.6, x86-64): ScatterND of opset 18 overwrites whatever its reduction is; ScatterElements adds and
# multiplies, but overwrites for "max" and "min". ReduceL1, ReduceSumSquare and ReduceLogSum of 2 x 2 over axis 1 give one number of all
# four; ReduceSum is right. Mod with fmod of -7 and 2 is 1, of 5.3 and -2 -0.7: the remainder of the other rule. ArgMax takes the first of
# equals. Round takes 0.5 to 1 and 2.5 to 3.
# What one would expect: an error of the converter for what it does not read; it has one for ops that it does not know. A model that is
# converted without a word gives other results, and only a comparison of outputs shows it.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q MNN==3.6.1 onnx==1.23.2 numpy==2.4.6; then
    echo "skipped: pip could not install MNN, onnx and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import pathlib
import sys

import _tools  # MNN's own, what its mnnconvert calls
import MNN.expr
import MNN.nn
import numpy as np
import onnx
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(__file__).parent


def run(op, x, out="float", **constants):
    """What MNN and the reference make of op(x, constants...), flat."""
    x = np.array(x, np.float32)
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> g (float[{",".join(map(str, x.shape))}] x) => ({out} y)'
                               f' {{ y = {op} ({", ".join(["x", *constants])}) }}')
    for name, value in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.float32 if name == "f" or name == "u" else np.int64), name))
    reference = ReferenceEvaluator(model).run(None, {"x": x})[0]
    for dim in reference.shape:
        model.graph.output[0].type.tensor_type.shape.dim.add().dim_value = dim
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, FOLDER / "model.onnx")
    _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", str(FOLDER / "model.onnx"), "--MNNModel", str(FOLDER / "model.mnn"),
                       "--bizCode", "finding"])
    net = MNN.nn.load_module_from_file(str(FOLDER / "model.mnn"), ["x"], ["y"])
    y = net.forward([MNN.expr.const(x, list(x.shape), MNN.expr.NCHW, MNN.expr.float)])
    y = np.array((y[0] if isinstance(y, list) else y).read())
    seen = np.ravel(y).round(3).tolist(), np.ravel(reference).round(3).tolist()
    print(op, x.tolist(), constants or "", "MNN:", seen[0], "reference:", seen[1], flush=True)
    return seen


def near(seen, mnn, reference):
    return np.allclose(seen[0], mnn, atol=2e-3) and np.allclose(seen[1], reference, atol=2e-3)


print("mnn", importlib.metadata.version("mnn"), "onnx", onnx.__version__, "numpy", np.__version__, flush=True)
X = [1, 3, 2, 5]
is_as_before = True
for reduction, elements, nd, reference in (("none",) + ([6, 3, 2, 7],) * 3, ("add", [12, 3, 2, 12], [6, 3, 2, 7], [12, 3, 2, 12]),
                                           ("mul", [30, 3, 2, 35], [6, 3, 2, 7], [30, 3, 2, 35]),
                                           ("max", [6, 3, 2, 7], [6, 3, 2, 7], [6, 3, 2, 7]), ("min", [6, 3, 2, 7], [6, 3, 2, 7], [1, 3, 2, 5])):
    is_as_before &= near(run(f'ScatterElements <reduction = "{reduction}">', X, i=[0, 0, 3], u=[5, 6, 7]), elements, reference)
    is_as_before &= near(run(f'ScatterND <reduction = "{reduction}">', X, i=[[0], [0], [3]], u=[5, 6, 7]), nd, reference)
for op, mnn, reference in (("ReduceSum", [1, 5], [1, 5]), ("ReduceL1", [6], [1, 5]), ("ReduceSumSquare", [14], [1, 13]),
                           ("ReduceLogSum", [np.log(6)], [0, np.log(5)])):
    is_as_before &= near(run(f"{op} <keepdims = 0>", [[0, 1], [2, 3]], axes=[1]), mnn, reference)
is_as_before &= near(run("Mod <fmod = 1>", [-7, 7, 5.3, -5.3], f=[2, -2, -2, 2]), [1, -1, -0.7, 0.7], [-1, 1, 1.3, -1.3])
is_as_before &= near(run("ArgMax <select_last_index = 1>", [1, 3, 3, 2], out="int64"), [1], [2])
is_as_before &= near(run("Round", [0.5, 1.5, 2.5, -0.5]), [1, 2, 3, -1], [0, 2, 2, 0])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
