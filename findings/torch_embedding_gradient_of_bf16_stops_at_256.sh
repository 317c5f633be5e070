#!/bin/bash
# The gradient of an embedding's row in bf16 stops at 256 looks, in f16 at 2048: a frequent word's gradient is cut off on the processor.
#
# What is done: one row of a table is looked up 1000 times in bf16 and 5000 times in f16 and f32, by F.embedding (also sparse),
# F.embedding_bag, indexing, index_select, gather and as a product with one-hot rows, and the sum of all is differentiated;
# index_add, index_put with accumulate, scatter_add, cumsum and sum of as many ones. All exact results are numbers of the types.
# Seen (torch 2.15.0, CPU): the row's gradient is 256 (bf16) and 2048 (f16) by embedding, embedding_bag and indexing, as are index_add and
# index_put: each partial sum is rounded to the type, and ends where 1 is half a step. By index_select, gather and the product it
# is 1000 and 5000, as are scatter_add, cumsum and sum. In f32 all are right. So a word that stands in a batch some hundred times
# (a blank, a mark, a padding without padding_idx) has a gradient that is too small by a factor, and which one the formula
# of the look-up decides.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import torch
from torch.nn import functional


def gradient(look_up, kind, count):
    """The gradient of a row that is looked up so many times, and summed."""
    weight = torch.ones(2, 2, dtype=kind, requires_grad=True)
    look_up(weight, torch.zeros(count, dtype=torch.long)).sum().backward()
    rows = weight.grad.to_dense() if weight.grad.is_sparse else weight.grad
    return rows[0, 0].item()


LOOK_UPS = {
    "F.embedding": lambda weight, rows: functional.embedding(rows, weight),
    "F.embedding, sparse": lambda weight, rows: functional.embedding(rows, weight, sparse=True),
    "indexing": lambda weight, rows: weight[rows],
    "index_select": lambda weight, rows: weight.index_select(0, rows),
    "gather": lambda weight, rows: weight.gather(0, rows[:, None].expand(-1, 2)),
    "F.embedding_bag": lambda weight, rows: functional.embedding_bag(rows[None], weight, mode="sum"),
    "one-hot product": lambda weight, rows: functional.one_hot(rows, 2).to(weight.dtype) @ weight,
}

print("torch", torch.__version__)
seen = {}
for kind, count in ((torch.bfloat16, 1000), (torch.float16, 5000), (torch.float32, 5000)):
    for name, look_up in LOOK_UPS.items():
        seen[name, kind] = gradient(look_up, kind, count)
        print(kind, count, name, seen[name, kind])
    ones, zeros = torch.ones(count, dtype=kind), torch.zeros(count, dtype=torch.long)
    for name, result in (("index_add", torch.zeros(1, dtype=kind).index_add(0, zeros, ones)),
                         ("index_put", torch.zeros(1, dtype=kind).index_put((zeros,), ones, accumulate=True)),
                         ("scatter_add", torch.zeros(1, dtype=kind).scatter_add(0, zeros, ones)),
                         ("cumsum", ones.cumsum(0)[-1:]), ("sum", ones.sum(0, keepdim=True))):
        seen[name, kind] = result.item()
        print(kind, count, name, seen[name, kind])
EXACT = ("index_select", "gather", "one-hot product", "scatter_add", "cumsum", "sum")
is_as_before = True
for (name, kind), result in seen.items():
    exact, limit = {torch.bfloat16: (1000, 256), torch.float16: (5000, 2048), torch.float32: (5000, 5000)}[kind]
    is_as_before &= result == (exact if name in EXACT else limit)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
