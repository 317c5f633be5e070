#!/bin/bash
# SGD with momentum goes on moving rows of an embedding that are no longer looked up.
#
# What is done: two steps on an embedding of two rows with sparse gradients, the first looks up row 0, the
# second row 1.
# Seen (torch 2.15.0, CPU): the second step moves row 0, too, by its momentum. (Weight decay with sparse
# gradients is refused, and SparseAdam leaves such rows.)
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
table = torch.nn.Embedding(2, 2, sparse=True)
torch.nn.init.ones_(table.weight)
optimizer = torch.optim.SGD(table.parameters(), lr=0.1, momentum=0.9)
seen = []
for row in (0, 1):
    optimizer.zero_grad()
    table(torch.tensor([row])).sum().backward()
    optimizer.step()
    seen.append([round(v, 6) for v in table.weight.flatten().tolist()])
print("after a step that looks up row 0, then one that looks up row 1:", seen)
is_as_before = seen == [[0.9, 0.9, 1.0, 1.0], [0.81, 0.81, 0.9, 0.9]]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
