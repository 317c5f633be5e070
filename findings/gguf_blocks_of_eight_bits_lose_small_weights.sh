#!/bin/bash
# GGUF's Q8_0, whose error is half a part in a hundred by rule, stores weights of 1e-5 as 7.57e-6, those of 5e-6 as 7.57e-6, too, and
# those below 3.7e-6 as 0. With 4 and 5 bits the same weights are kept.
#
# What is done: blocks of 32 equal weights from 1e-7 to 9e6, and one of 32 different ones up to 1e-5, to Q8_0, Q5_0 and Q4_0 and back by
# gguf's own quantize and dequantize.
# Seen (gguf 0.19.0, numpy 2.4.6): the factor between what is read and what was written is 1.000, 0.999, 0.984, 0.757, 1.514 and 0 in Q8_0
# for 1e-2, 1e-3, 1e-4, 1e-5, 5e-6 and 3e-6, also for different weights in a block; in Q5_0 and Q4_0 it is between 0.953 and 1.002 down to
# 1e-6. The scale of a block is an f16, and Q8_0's is the greatest weight / 127, below 7.8e-3 a subnormal of f16, whose steps are 6e-8.
# Above 127 * 65504, 8.3e6, it is infinity, in Q4_0 above 5.2e5 already.
# What one would expect: that eight bits are closer than four everywhere, and that the error goes with the weight. Differences of weights
# (adapters), rows of rare tokens and models with small scales lose digits or are 0, and the quantiser says nothing.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q gguf==0.19.0 numpy==2.4.6; then
    echo "skipped: pip could not install gguf and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys

import numpy as np
from gguf import GGMLQuantizationType, quants

np.seterr(over="ignore", invalid="ignore")


def stored(x, kind):
    kind = GGMLQuantizationType[kind]
    return quants.dequantize(quants.quantize(np.asarray(x, np.float32).reshape(1, 32), kind), kind)[0]


print("gguf", importlib.metadata.version("gguf"), "numpy", np.__version__)
is_as_before = True
for kind, expected in (("Q8_0", {1e-2: 1.0000, 1e-3: 0.9992, 1e-4: 0.9841, 1e-5: 0.7570, 5e-6: 1.5140, 3e-6: 0, 8e6: 1.0003, 9e6: np.inf}),
                       ("Q5_0", {1e-2: 1.0002, 1e-3: 1.0004, 1e-4: 1.0014, 1e-5: 0.9537, 1e-6: 0.9537, 1e-7: 0, 1e6: 0.9999}),
                       ("Q4_0", {1e-2: 1.0002, 1e-3: 1.0004, 1e-4: 1.0014, 1e-5: 1.0014, 1e-6: 0.9537, 1e-7: 0, 5e5: 0.9999, 1e6: np.inf})):
    seen = {weight: float(stored(np.full(32, weight), kind)[0] / np.float32(weight)) for weight in expected}
    print(kind, "factors", {weight: round(factor, 4) for weight, factor in seen.items()})
    is_as_before &= all(seen[weight] == factor or abs(seen[weight] - factor) < 1e-4 for weight, factor in expected.items())
weights = np.linspace(-1e-5, 1e-5, 32)
factors = stored(weights, "Q8_0") / weights
print("of 32 different weights up to 1e-5, Q8_0, factors", factors.min(), "to", factors.max())
is_as_before &= bool((factors < 0.9).all())
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
