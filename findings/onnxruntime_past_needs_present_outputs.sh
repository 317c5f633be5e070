#!/bin/bash
# ONNX Runtime's MultiHeadAttention forgets the past where nobody asks for the present.
#
# What is done: com.microsoft.MultiHeadAttention with past_key and past_value (2 keys of the past, 2
# new ones), once with the output alone and once with present_key and present_value named, too.
# Seen (onnxruntime 1.32.0, CPU): with the two outputs named the result is that of all four keys; without
# them it is another, by more than 0.1, with no error and no warning.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6; then
    echo "skipped: pip could not install onnxruntime 1.32.0, onnx 1.23.2 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
random = np.random.default_rng(0)
FEEDS = {name: random.standard_normal((2, 2, 8)).astype(np.float32) for name in "qkv"}
for name in ("past_key", "past_value"):
    FEEDS[name] = random.standard_normal((2, 2, 2, 4)).astype(np.float32)


def run(outputs):
    names = ["q", "k", "v", "", "", "", "past_key", "past_value"]
    graph = helper.make_graph(
        [helper.make_node("MultiHeadAttention", names, outputs, domain="com.microsoft", num_heads=2)],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in FEEDS.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["y"], FEEDS)[0]


def split(x):
    return x.reshape(2, 2, 2, 4).transpose(0, 2, 1, 3)


key = np.concatenate([FEEDS["past_key"], split(FEEDS["k"])], 2)
value = np.concatenate([FEEDS["past_value"], split(FEEDS["v"])], 2)
scores = split(FEEDS["q"]) @ key.transpose(0, 1, 3, 2) / 2
weights = np.exp(scores - scores.max(-1, keepdims=True))
weights /= weights.sum(-1, keepdims=True)
expected = (weights @ value).transpose(0, 2, 1, 3).reshape(2, 2, 8)
named = np.abs(run(["y", "present_key", "present_value"]) - expected).max()
alone = np.abs(run(["y"]) - expected).max()
print(f"with present outputs off by {named:.2g}, without them by {alone:.2g}")
is_as_before = named < 1e-5 and alone > 0.1
print("as before" if is_as_before else "DIFFERS: was right with them, off by more than 0.1 without")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
