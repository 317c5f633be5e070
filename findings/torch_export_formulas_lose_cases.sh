#!/bin/bash
# torch.onnx.export writes atan2 and logaddexp by formulas that fail on ordinary numbers.
#
# What is done: torch.atan2 on the half axis y = 0, x < 0 and torch.logaddexp of 100 and -100, exported
# (dynamo=True) and run by ONNX Runtime.
# Seen (torch 2.15.0, onnxscript 0.7.2, onnxruntime 1.32.0): atan2(0, -1), the angle of every negative real number,
# is -pi for torch's pi, since the formula adds pi only where y > 0. So angles (of complex
# signals, of boxes) jump by a full turn there. logaddexp is exported as the logarithm of a sum of exponentials: infinite from 89 on, where torch
# gives 100.
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


print("torch", torch.__version__, "onnxruntime", onnxruntime.__version__)
y, x = torch.tensor([0.0, 1e-30, 1.0]), torch.tensor([-1.0, -1.0, 1.0])
a, b = torch.tensor([100.0, 1.0]), torch.tensor([-100.0, 2.0])
angles, sums = run(export(torch.atan2, y, x), y, x), run(export(torch.logaddexp, a, b), a, b)
print("atan2: torch", torch.atan2(y, x).tolist(), "exported", angles.tolist())
print("logaddexp: torch", torch.logaddexp(a, b).tolist(), "exported", sums.tolist())
pi = float(np.float32(np.pi))
is_as_before = (np.allclose(torch.atan2(y, x), [pi, pi, pi / 4]) and np.allclose(angles, [-pi, pi, pi / 4])
                and np.isinf(sums[0]) and np.isclose(sums[1], float(torch.logaddexp(a, b)[1])))
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
