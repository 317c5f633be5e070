#!/bin/bash
# onnx2torch makes of an ONNX file a module that is in training: its BatchNormalization goes by the batch at hand, and moves its averages.
# NonZero comes out transposed, and the slopes of PRelu go to the channels.
#
# What is done: BatchNormalization (15) with a mean of 1 and a variance of 2 of 2 x 2 x 2 numbers, as it is converted, a second time, and
# after eval(); NonZero (13) of [0 5 0 7] and of a 2 x 2 table; PRelu (16) of minus ones of 1 x 3 x 3 x 3 with the slopes 1, 2, 3 of
# one axis; in onnx2torch, ONNX Runtime and the reference.
# Seen (onnx2torch 1.5.15, torch 2.15.0, onnxruntime 1.32.0, onnx 1.23.2): module.training is True. The norm is that of the batch, though the
# file has no training_mode; a call changes running_mean, so that eval() is right only before the first one. NonZero gives n x rank, where
# ONNX has rank x n. PRelu multiplies channels, and not columns, by 1, 2, 3.
# What one would expect: what the file says, which is inference, and moments that stay. The first check of a converted network spoils it.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 onnx2torch==1.5.15 torch==2.15.0 torchvision==0.29.2 \
    numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, onnx2torch, torch, torchvision and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys

import numpy as np
import onnx
import onnx2torch
import onnxruntime
import torch
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator


def convert(text, opset, weights=(), **feeds):
    """The module, and what ONNX Runtime makes of the same file, with which the reference must agree."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    del model.graph.input[1:]
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights)
    onnx.checker.check_model(model, full_check=True)
    runtime = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    assert np.allclose(runtime, ReferenceEvaluator(model).run(None, feeds)[0])
    return onnx2torch.convert(model), runtime


def call(module, x):
    with torch.no_grad():
        return module(torch.from_numpy(x.copy())).numpy()


def close(one, other):
    return one.shape == other.shape and np.allclose(one, other, atol=1e-4)


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("onnx2torch", "torch", "onnxruntime", "onnx")))
is_as_before = True
x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
ones = np.ones(2, np.float32)
norm = "g (float[2,2,2] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[2,2,2] y) { y = BatchNormalization (x, s, b, m, v) }"
weights = [("s", ones), ("b", 0 * ones), ("m", ones), ("v", 2 * ones)]
module, runtime = convert(norm, 15, weights, x=x)
batch = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True))
was_training, first = module.training, call(module, x)
spoilt = call(module.eval(), x)
fresh = call(convert(norm, 15, weights, x=x)[0].eval(), x)
print("training:", was_training, "first of BatchNormalization: ONNX Runtime", round(float(runtime[0, 0, 0]), 4), "converted",
      round(float(first[0, 0, 0]), 4), "eval() after a call", round(float(spoilt[0, 0, 0]), 4), "eval() at once",
      round(float(fresh[0, 0, 0]), 4))
is_as_before &= was_training and close(first, batch) and close(fresh, runtime) and not close(spoilt, runtime)
for table in (np.array([0, 5, 0, 7], np.float32), np.array([[0, 1], [1, 1]], np.float32)):
    shape = ",".join(map(str, table.shape))
    module, runtime = convert(f"g (float[{shape}] x) => (int64[r,n] y) {{ y = NonZero (x) }}", 13, x=table)
    seen = call(module.eval(), table)
    print("NonZero: ONNX Runtime", runtime.tolist(), "converted", seen.tolist())
    is_as_before &= close(seen, runtime.T) and seen.shape != runtime.shape
x = -np.ones((1, 3, 3, 3), np.float32)
module, runtime = convert("g (float[1,3,3,3] x, float[3] s) => (float[1,3,3,3] y) { y = PRelu (x, s) }", 16,
                          [("s", np.array([1, 2, 3], np.float32))], x=x)
seen = call(module.eval(), x)
print("PRelu, first row: ONNX Runtime", runtime[0, 0, 0].tolist(), "converted", seen[0, 0, 0].tolist())
is_as_before &= close(seen, runtime.transpose(0, 3, 2, 1)) and not close(seen, runtime)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
