#!/bin/bash
# torch.cuda.make_graphed_callables trains on its sample: a BatchNorm's averages move three steps towards it before the first real step,
# and the generator is moved on, so that a seed gives other numbers.
#
# What is done: a module with BatchNorm1d and Dropout in training mode; its averages, num_batches_tracked and the state of the GPU's
# generator before and behind make_graphed_callables with a sample of mean 100; with num_warmup_iters=1, and with the module in eval().
# Seen (torch 2.11.0+cu130, H200): behind it num_batches_tracked is 3 and the mean 27.1 = 100 (1 - 0.9^3), with one warm-up 1 and 10; the
# generator's state is another one. In eval() the averages stay. A first real step then makes the fourth step of the averages.
# What one would expect: a call that prepares changes nothing, or puts back what it moved: the parameters' gradients are left out of it
# with care. A sample of zeros, as one makes it for its shape, pulls the averages of a trained network to 0 by a quarter.
# Exit status: 0 the same, 1 something differs, 77 no GPU or no torch here.
# SPDX-License-Identifier: Apache-2.0
set -eu
if ! python3 -c "import sys, torch; sys.exit(not torch.cuda.is_available())" 2>/dev/null; then
    echo "skipped: this needs a GPU and torch"
    exit 77
fi
python3 - <<'END'
import sys
import warnings

import torch

warnings.simplefilter("ignore")


def prepare(is_training, **options):
    """num_batches_tracked, the mean, and whether the generator was moved, behind the call."""
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).cuda().train(is_training)
    sample = torch.full((8, 4), 100.0, device="cuda", requires_grad=True)
    torch.cuda.manual_seed(0)
    before = torch.cuda.get_rng_state()
    torch.cuda.make_graphed_callables(module, (sample,), **options)
    torch.cuda.synchronize()
    return module[0].num_batches_tracked.item(), module[0].running_mean[0].item(), not torch.equal(before, torch.cuda.get_rng_state())


print("torch", torch.__version__, torch.cuda.get_device_name())
default, one, still = prepare(True), prepare(True, num_warmup_iters=1), prepare(False)
for name, row in (("by default", default), ("one warm-up", one), ("eval()", still)):
    print(f"{name}: batches tracked {row[0]}, mean {row[1]:.4f}, generator moved: {row[2]}")
is_as_before = default[0] == 3 and abs(default[1] - 27.1) < 0.01 and default[2]
is_as_before &= one[0] == 1 and abs(one[1] - 10) < 0.01 and still[:2] == (0, 0)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
