#!/bin/bash
# A sparse gradient that has one element, broadcast from a sum, is lost without an error.
#
# What is done: a step of SGD on torch.nn.Embedding(3, 1, sparse=True), of which one row is looked up and
# summed; the same with two rows, and with a table of width 2; and to_dense() of a sparse tensor of one
# value, once with memory of its own and once broadcast from a scalar.
# Seen (torch 2.15.0, CPU, with the checks of sparse invariants on): the first step changes nothing; the
# others do. A single value with strides of 0 counts as 0 in to_dense() and where it is added.
# Exit status: 0 the same, 1 something differs, 77 the package cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 numpy==2.4.6; then
    echo "skipped: pip could not install torch 2.15.0 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import torch

print("torch", torch.__version__)
torch.sparse.check_sparse_tensor_invariants.enable()


def step(width, rows):
    table = torch.nn.Embedding(3, width, sparse=True)
    torch.nn.init.ones_(table.weight)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.5)
    table(torch.tensor(rows)).sum().backward()
    optimizer.step()
    return table.weight.flatten().tolist()


def densify(values):
    return torch.sparse_coo_tensor(torch.tensor([[1]]), values, (3, 1)).to_dense().flatten().tolist()


one, two, wide = step(1, [1]), step(1, [1, 2]), step(2, [1])
plain, broadcast = densify(torch.ones(1, 1)), densify(torch.ones(()).expand(1, 1))
print("a table of ones after a step: width 1, one row looked up", one, "; two rows", two,
      "; width 2, one row", wide)
print("one value, made dense: of its own", plain, "; broadcast (strides of 0)", broadcast)
is_as_before = (one == [1.0, 1.0, 1.0] and two == [1.0, 0.5, 0.5]
                and wide == [1.0, 1.0, 0.5, 0.5, 1.0, 1.0]
                and plain == [0.0, 1.0, 0.0] and broadcast == [0.0, 0.0, 0.0])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
