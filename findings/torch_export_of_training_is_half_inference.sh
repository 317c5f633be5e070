#!/bin/bash
# The export of a module that is in training mode trains in part: Dropout is switched on, BatchNormalization is written for inference,
# and the dropout of attention is gone.
#
# What is done: BatchNorm2d, Dropout(0.5) and scaled_dot_product_attention(dropout_p=0.5), each in training mode (a module's state
# after it is made), exported (dynamo=True) and run by ONNX Runtime.
# Seen (torch 2.15.0, onnxscript 0.7.2, onnxruntime 1.32.0): BatchNormalization has no training_mode, so it uses the running mean 0 and
# variance 1 where torch uses the batch's, with training=TrainingMode.TRAINING as well; Dropout has training_mode true and
# zeroes about half; attention's file holds no Dropout, and two runs of it are equal. The one warning says
# that the module is in training mode. So the file is neither the network in training nor the one for inference.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch 2.15.0, onnx, onnxscript 0.7.2 and onnxruntime"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import contextlib
import io
import sys
import warnings

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F


class Attention(torch.nn.Module):
    def forward(self, q):
        return F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)


def export(module, x, **options):
    with contextlib.redirect_stdout(io.StringIO()):
        return torch.onnx.export(module, (x,), dynamo=True, **options).model_proto


def run(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]


warnings.simplefilter("ignore")
print("torch", torch.__version__, "onnxruntime", onnxruntime.__version__)
torch.manual_seed(0)
x = torch.randn(4, 3, 8, 8) * 3 + 5
by_batch = torch.nn.BatchNorm2d(3).train()(x).detach().numpy()
by_running = torch.nn.BatchNorm2d(3).eval()(x).detach().numpy()
is_as_before = not np.allclose(by_batch, by_running, atol=0.5)
for options in ({}, {"training": torch.onnx.TrainingMode.TRAINING}):
    model = export(torch.nn.BatchNorm2d(3).train(), x, **options)
    norm, = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    modes = [attribute.i for attribute in norm.attribute if attribute.name == "training_mode"]
    is_running = np.allclose(run(model, x), by_running, atol=1e-4)
    print("BatchNorm2d", list(options), "training_mode:", modes, "as with running statistics:", is_running)
    is_as_before &= not modes and is_running

zeros = (run(export(torch.nn.Dropout(0.5).train(), x), x) == 0).mean()
attention = Attention().train()
model = export(attention, x)
runs = [run(model, x) for _ in range(2)]
is_random = not torch.equal(attention(x), attention(x))
without = F.scaled_dot_product_attention(x, x, x).numpy()
print(f"Dropout zeroes {zeros:.2f}; attention in torch is random: {is_random}, in the file:", not np.array_equal(*runs))
is_as_before &= bool(0.4 < zeros < 0.6) and is_random and np.array_equal(*runs) and np.allclose(runs[0], without, atol=1e-4)
is_as_before &= "Dropout" not in [node.op_type for node in model.graph.node]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
