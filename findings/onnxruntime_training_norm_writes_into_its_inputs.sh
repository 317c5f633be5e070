#!/bin/bash
# ONNX Runtime's BatchNormalization in training mode writes the new averages into its inputs where nobody reads them as outputs: into the
# caller's arrays, or the model's own weights. A fresh norm (scale 1, bias 0, mean 0, variance 1) gives other numbers at each run.
#
# What is done: BatchNormalization (15, training_mode 1, momentum 0.9) of 1 3 5 7 in one channel, with scale 1, bias 0, mean 0 and
# variance 1 as initialisers, with other ones and as inputs of the graph, with y alone and with the two averages as outputs of the graph;
# three runs of one session, with and without optimisations, and of the reference of ONNX.
# Seen (onnxruntime 1.32.0, processor, onnx 1.23.2): y is -1.3416 -0.4472 0.4472 1.3416 in the reference and, in all runs, where the
# averages are outputs of the graph, too. Where y alone is one, the default session of the fresh norm gives -1.4783 ... 2.2783, then
# -1.6013 ... 3.1213, then -1.7120 ... 3.8800: equal initialisers are made one, mean and bias, variance and scale, and each run writes the
# averages into them. Without optimisations, or with other weights, y is right. Arrays that the caller gives as mean and variance are
# changed in place, to 0.4 and 1.4 behind the first run, with and without optimisations.
# What one would expect: inputs that stay as they are, as the operator's text has them: its averages are outputs.
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
x = np.array([[1], [3], [5], [7]], np.float32)
fresh = "float[1] s = {1}, float[1] b = {0}, float[1] m = {0}, float[1] v = {1}"
other = "float[1] s = {1}, float[1] b = {0}, float[1] m = {0.5}, float[1] v = {2}"
alone = "float[4, 1] y"
every = "float[4, 1] y, float[1] mean, float[1] variance"
plain = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def run(initialisers, outputs, level=None, feeds=()):
    """y of three runs of one session, and of the reference."""
    inputs = "".join(f", float[1] {name}" for name in feeds)
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 15]> g (float[4, 1] x{inputs}) => ({outputs}) <{initialisers}>
        {{ y, mean, variance = BatchNormalization <training_mode = 1> (x, s, b, m, v) }}""")
    options = onnxruntime.SessionOptions()
    if level is not None:
        options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = ReferenceEvaluator(model).run(None, {"x": x, **{name: array.copy() for name, array in dict(feeds).items()}})[0]
    return [session.run(None, {"x": x, **dict(feeds)})[0].ravel() for _ in range(3)], wanted.ravel()


def show(numbers):
    return " ".join(f"{number:.4f}" for number in numbers)


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
true = (x.ravel() - 4) / np.sqrt(5 + 1e-5)
drift = [[-1.4783, 2.2783], [-1.6013, 3.1213], [-1.7120, 3.8801]]
for name, initialisers, outputs, level, wanted in (
        ("fresh, y alone", fresh, alone, None, drift),
        ("fresh, y alone, no optimisations", fresh, alone, plain, None),
        ("fresh, all outputs", fresh, every, None, None),
        ("other weights, y alone", other, alone, None, None)):
    seen, reference = run(initialisers, outputs, level)
    print(f"{name}: reference {show(reference)}, ONNX Runtime", ", then ".join(show(y) for y in seen))
    is_as_before &= np.allclose(reference, true, atol=1e-5)
    ends = [[y[0], y[-1]] for y in seen]
    is_as_before &= np.allclose(ends, [[true[0], true[-1]]] * 3 if wanted is None else wanted, atol=2e-4)
for level in (None, plain):
    feeds = {"m": np.zeros(1, np.float32), "v": np.ones(1, np.float32)}
    seen, reference = run("float[1] s = {1}, float[1] b = {0}", alone, level, feeds)
    print("mean and variance of the caller", "by default:" if level is None else "without optimisations:",
          "y", show(seen[0]), "the arrays behind three runs", show(feeds["m"]), show(feeds["v"]))
    is_as_before &= all(np.allclose(y, true, atol=1e-5) for y in seen)
    is_as_before &= np.allclose([feeds["m"][0], feeds["v"][0]], [4 * (1 - 0.9**3), 5 - 4 * 0.9**3], atol=1e-3)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
