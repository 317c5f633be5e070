#!/bin/bash
# torch.onnx.export drops arguments that change the result, and says nothing.
#
# What is done: three functions of torch with an argument that ONNX's op of that name has no word for, exported
# (dynamo=True) and run by ONNX Runtime, beside torch's own result.
# Seen (torch 2.15.0, onnxscript 0.7.2, onnxruntime 1.32.0): no error and no warning, and a model that computes
# something else. avg_pool2d(divisor_override=2) becomes AveragePool, which divides by the window's 9;
# cross_entropy(label_smoothing=0.1) becomes SoftmaxCrossEntropyLoss without smoothing; scatter_reduce("mean")
# becomes ScatterElements(reduction="none"), which overwrites: [1, 2, 3] with 4, 5 at 0 and 6 at 1 gives 5, 6, 3 for
# 3.33, 4, 3.
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
image, logits = torch.randn(1, 2, 7, 7), torch.randn(4, 5)
cases = {
    "avg_pool2d, divisor_override": (lambda x: F.avg_pool2d(x, 3, divisor_override=2), (image,),
                                     lambda x: F.avg_pool2d(x, 3)),
    "cross_entropy, label_smoothing": (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
                                       (logits, torch.tensor([1, 2, 3, 0])), F.cross_entropy),
    "scatter_reduce, mean": (lambda x, i, s: x.scatter_reduce(0, i, s, "mean"),
                             (torch.tensor([1.0, 2, 3]), torch.tensor([0, 0, 1]), torch.tensor([4.0, 5, 6])),
                             lambda x, i, s: torch.tensor([5.0, 6, 3])),
}
print("torch", torch.__version__, "onnxruntime", onnxruntime.__version__)
is_as_before = True
for name, (function, inputs, plain) in cases.items():
    model = export(function, *inputs)
    exported, wanted = run(model, *inputs), function(*inputs).numpy()
    is_right = np.allclose(exported, wanted, rtol=1e-4, atol=1e-5)
    is_plain = np.allclose(exported, plain(*inputs).numpy(), rtol=1e-4, atol=1e-5)
    print(f"{name}: {model.graph.node[-1].op_type}, as torch {is_right}, as if the argument were not there {is_plain}")
    is_as_before = is_as_before and not is_right and is_plain
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
