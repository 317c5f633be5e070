#!/bin/bash
# A row of attention that is masked out is zero in torch, and the mean of all values in its export.
#
# What is done: scaled_dot_product_attention with a boolean mask whose second row is all False, in torch, exported
# (dynamo=True), and the same with an added mask of -inf.
# Seen (torch 2.15.0, onnxscript 0.7.2, onnxruntime 1.32.0): torch gives zeros for that row with either mask. The boolean
# mask is exported as an added -3.4028235e38, the least f32: softmax of a row of equal numbers is 1/n, so the row becomes
# the mean of all values, also of those that every other row masks. The exported graph has an IsNaN and a Where behind
# softmax for such rows, which that number never reaches. With the added mask of -inf the same graph has neither, and
# the row is NaN.
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

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def export(function, *inputs):
    with contextlib.redirect_stdout(io.StringIO()):
        program = torch.onnx.export(Module(function).eval(), inputs, dynamo=True)
    return program.model_proto


def run(model, *inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, [tensor.numpy() for tensor in inputs])))[0]


torch.manual_seed(0)
print("torch", torch.__version__, "onnxruntime", onnxruntime.__version__)
q = torch.randn(1, 2, 3, 8)
mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
added = torch.zeros(3, 3).masked_fill(~mask, -torch.inf)
attend = lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m)
of_bool, of_added = export(attend, q, mask), export(attend, q, added)
torch_rows = [attend(q, m)[0, :, 1].abs().max().item() for m in (mask, added)]
boolean, floating = run(of_bool, q, mask)[0, :, 1], run(of_added, q, added)[0, :, 1]
guards = ["IsNaN" in [node.op_type for node in model.graph.node] for model in (of_bool, of_added)]
is_mean = np.allclose(boolean, q[0].mean(1).numpy(), atol=1e-5)
print("torch's masked row, largest:", torch_rows, "exported, boolean: the mean of all values", is_mean,
      "added -inf: NaN", bool(np.isnan(floating).all()), "IsNaN in the graphs:", guards)
is_as_before = torch_rows == [0.0, 0.0] and is_mean and bool(np.isnan(floating).all())
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
