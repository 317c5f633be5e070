#!/bin/bash
# A sum of f16 becomes a model whose output is f32.
#
# What is done: x.sum(1), x.cumsum(1) and x.mean(1) of f16, exported (dynamo=True), beside the types of torch's results.
# Seen (torch 2.15.0, onnxscript 0.7.2): torch gives f16 for all three; the exported model casts to f32 for the sum and
# the cumulated sum and never back, so its declared output is f32 and keeps what torch rounds: 4097 ones give 4097
# for torch's 4096. The mean stays f16. A program that binds an f16 buffer of torch's size to such an output is off by
# a factor of two in bytes.
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
ones = torch.ones(2, 4097, dtype=torch.float16)
is_as_before = True
for name, function, type_seen in (("sum", lambda x: x.sum(1), np.float32), ("cumsum", lambda x: x.cumsum(1), np.float32),
                                  ("mean", lambda x: x.mean(1), np.float16)):
    mine, exported = function(ones), run(export(function, ones), ones)
    print(f"{name}: torch {mine.dtype} {float(mine.flatten()[-1])}, exported {exported.dtype} {float(exported.flatten()[-1])}")
    is_as_before = is_as_before and mine.dtype == torch.float16 and exported.dtype == type_seen
total = run(export(lambda x: x.sum(1), ones), ones)
is_as_before = is_as_before and float(total[0]) == 4097 and float(ones.sum(1)[0]) == 4096
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
