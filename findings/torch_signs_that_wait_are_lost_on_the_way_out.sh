#!/bin/bash
# A tensor of torch whose sign is still to be turned leaves with the wrong one: x.conj().imag of 1 + 2i is -2, through DLPack it is 2, and
# in a program saved by torch.export, too; safetensors stores x.conj() as x.
#
# What is done: z = 1 + 2i, 3 - 4i; z.conj().imag and z.conj(), which are views with a bit "negative" or "conjugate", through
# numpy.from_dlpack, torch.from_dlpack, numpy(), torch.save, safetensors.torch.save and, as the constant of a module, torch.export.export,
# with and without torch.export.save and load; the same behind resolve_neg() and resolve_conj().
# Seen (torch 2.15.0, safetensors 0.8.0, numpy 2.4.6, processor): z.conj().imag is -2 4. By numpy.from_dlpack and torch.from_dlpack it is
# 2 -4: the memory is handed out, and DLPack has no word for the bit. numpy() raises an error and names resolve_neg(), and conjugates are
# refused by DLPack as well. A module with -2 4 as a buffer gives 2 -4 once its exported program was saved and loaded, and with z.conj()
# that of z; before that both are right. safetensors stores 1 + 2i, 3 - 4i for the conjugate. torch.save, and all behind resolve_...(),
# are right.
# What one would expect: the numbers that torch prints, or the error that numpy() raises. FFTs and adjoints end in such views
# (rfft(x).conj().imag, x.mH.imag), and all who take over torch's memory get the mirror image.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 safetensors==0.8.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch, safetensors and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import io
import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np
import safetensors
import safetensors.torch
import torch


def through_file(tensor):
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file)


def through_safetensors(tensor):
    return safetensors.torch.load(safetensors.torch.save({"x": tensor}))["x"]


class Plus(torch.nn.Module):
    """Adds a constant."""

    def __init__(self, constant):
        super().__init__()
        self.register_buffer("constant", constant)

    def forward(self, x):
        return x + self.constant


def export(constant, is_saved):
    """What the exported program adds to zeros."""
    program = torch.export.export(Plus(constant), (torch.zeros(2),))
    if is_saved:
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        program = torch.export.load(file)
    return program.module()(torch.zeros(2))


print("torch", torch.__version__, "safetensors", safetensors.__version__, "numpy", np.__version__)
z = torch.tensor([1 + 2j, 3 - 4j])
negative, conjugate = z.conj().imag, z.conj()
right, wrong = [-2, 4], [2, -4]
both, plain = [1 - 2j, 3 + 4j], [1 + 2j, 3 - 4j]
is_as_before = negative.tolist() == right and negative.is_neg() and conjugate.tolist() == both and conjugate.is_conj()
for name, function, tensor, wanted in (
        ("numpy.from_dlpack of the imaginary part", np.from_dlpack, negative, wrong),
        ("torch.from_dlpack of it", torch.from_dlpack, negative, wrong),
        ("torch.save of it", through_file, negative, right),
        ("torch.save of the conjugate", through_file, conjugate, both),
        ("safetensors of it", through_safetensors, conjugate, plain),
        ("safetensors behind resolve_conj()", through_safetensors, conjugate.resolve_conj(), both),
        ("numpy.from_dlpack behind resolve_neg()", np.from_dlpack, negative.resolve_neg(), right),
        ("the exported program of the imaginary part", lambda x: export(x, False), negative, right),
        ("the same, saved and loaded", lambda x: export(x, True), negative, wrong),
        ("the same behind resolve_neg()", lambda x: export(x, True), negative.resolve_neg(), right),
        ("the exported program of the conjugate", lambda x: export(x, False), conjugate, both),
        ("the same, saved and loaded", lambda x: export(x, True), conjugate, plain)):
    seen = function(tensor).tolist()
    print(f"{name}: {seen}")
    is_as_before &= seen == wanted
for function, tensor in ((lambda x: x.numpy(), negative), (np.from_dlpack, conjugate)):
    try:
        function(tensor)
        is_as_before = False
    except (RuntimeError, BufferError) as error:
        print("error:", str(error)[:90])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
