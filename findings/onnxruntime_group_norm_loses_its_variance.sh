#!/bin/bash
# ONNX Runtime's GroupNormalization takes the mean of squares less the square of the mean, in f32: beside a mean of 4096 deviations of 1
# become NaN, or 316, and beside one of 1000 the result is 6 in 100 too small.
#
# What is done: GroupNormalization (18 and 21, one group, epsilon 1e-5) of 4096 normal numbers of a seed with deviation 1 around 0, 100,
# 1000, 4096 and 10000, and of c - 1, c + 1, c - 1 ... for those c, by ONNX Runtime and the reference of ONNX, beside the formula in
# double; LayerNormalization (17), InstanceNormalization (6) and BatchNormalization (15, training_mode) of the same numbers.
# Seen (onnxruntime 1.32.0, processor, onnx 1.23.2): it has no kernel for the op and runs the operator's definition in small ops, which
# writes the variance so. The spread of the result, which should be 1, is 1.00 around 0, 1.0015 around 100, 0.94 around 1000, NaN around
# 4096 (the variance is negative), 0.2 around 10000; of c - 1 and c + 1 it is 316.2 = 1 / sqrt(epsilon) from 4096 on. The reference, which
# runs the same definition, is NaN around 10000. LayerNormalization, InstanceNormalization and BatchNormalization are right everywhere.
# What one would expect: the formula of the operator's text, (x - mean) / sqrt(variance + epsilon), as the three others compute it: a
# group norm behind a layer with a bias works in training, in PyTorch, and not in its own file.
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
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import parser
from onnx.reference import ReferenceEvaluator

warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(3)
ops = {
    "group": "y = GroupNormalization <epsilon = 0.00001, num_groups = 1> (x, scale, bias)",
    "layer": "y = LayerNormalization <epsilon = 0.00001> (x, scales)",
    "instance": "y = InstanceNormalization <epsilon = 0.00001> (x, scale, bias)",
    "batch": "y, m, v = BatchNormalization <epsilon = 0.00001, training_mode = 1> (x, scale, bias, mean, variance)",
}


def run(name, opset, x):
    """The results of ONNX Runtime and of the reference."""
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": {opset}]>
        g (float[1, 1, n] x, float[1] scale, float[1] bias, float[n] scales, float[1] mean, float[1] variance)
        => (float[1, 1, n] y) {{ {ops[name]} }}""")
    feeds = {"x": x, "scales": np.ones(x.size, np.float32)}
    feeds |= {"scale": np.ones(1, np.float32), "bias": np.zeros(1, np.float32)}
    feeds |= {"mean": np.zeros(1, np.float32), "variance": np.ones(1, np.float32)}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0], ReferenceEvaluator(model).run(None, feeds)[0]


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
normal = np.random.default_rng(0).standard_normal(4096)
is_as_before = True
for opset in (18, 21):
    spreads, references, pairs = [], [], []
    for mean in (0, 100, 1000, 4096, 10000):
        x = (mean + normal).astype(np.float32).reshape(1, 1, -1)
        wide = x.astype(np.float64)
        right = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5)
        ours, theirs = run("group", opset, x)
        spreads.append(ours.std())
        references.append(theirs.std())
        pairs.append(run("group", opset, np.array([mean - 1, mean + 1] * 8, np.float32).reshape(1, 1, -1))[0].std())
        others = [run(name, 17, x)[0] for name in ("layer", "instance", "batch")]
        errors = [abs(y - right).max() for y in others]
        print(f"opset {opset} around {mean:5}: spread in ONNX Runtime {spreads[-1]:.4f}, the reference {references[-1]:.4f},",
              f"true {right.std():.4f}; of two numbers {pairs[-1]:.4f}; layer, instance and batch norm off by",
              " ".join(f"{error:.1e}" for error in errors))
        is_as_before &= max(errors) < 0.01
    is_as_before &= abs(spreads[0] - 1) < 1e-4 and abs(spreads[1] - 1) > 5e-4 and 0.005 < abs(spreads[2] - 1) < 0.5
    is_as_before &= not (abs(spreads[3] - 1) < 0.1) and not (abs(spreads[4] - 1) < 0.1)
    is_as_before &= np.allclose(pairs, [1, 1, 1, 316.2278, 316.2278], atol=1e-3) and not (abs(references[4] - 1) < 0.1)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
