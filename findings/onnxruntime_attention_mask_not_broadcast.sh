#!/bin/bash
# ONNX Runtime's Attention does not broadcast a mask along the queries.
#
# What is done: Attention (opset 23) of 2 queries and 5 keys with boolean masks of five shapes that
# all broadcast to [batch, heads, queries, keys], as the operator allows.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): masks with all queries run and equal NumPy's result;
# [2, 1, 1, 5] and [1, 5] are refused when they run ("inconsistent q_sequence_length"). Exporters write
# masks of padding in the first of these two forms.
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
Q = random.standard_normal((2, 3, 2, 4)).astype(np.float32)
K = random.standard_normal((2, 3, 5, 4)).astype(np.float32)
V = random.standard_normal((2, 3, 5, 4)).astype(np.float32)


def attend(mask):
    scores = Q @ K.transpose(0, 1, 3, 2) / 2 + np.where(mask, 0, -np.inf).astype(np.float32)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ V


def run(mask):
    def port(name, dtype, shape):
        return helper.make_tensor_value_info(name, dtype, shape)

    graph = helper.make_graph(
        [helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"])],
        "g",
        [port("q", TensorProto.FLOAT, Q.shape), port("k", TensorProto.FLOAT, K.shape),
         port("v", TensorProto.FLOAT, V.shape), port("mask", TensorProto.BOOL, mask.shape)],
        [port("y", TensorProto.FLOAT, Q.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    try:
        y = session.run(None, {"q": Q, "k": K, "v": V, "mask": mask})[0]
    except Exception as error:
        return "refused" if "inconsistent q_sequence_length" in str(error) else str(error)
    return "right" if np.abs(y - attend(mask)).max() < 1e-5 else "wrong"


EXPECTED = {
    (2, 1, 2, 5): "right",
    (1, 1, 2, 5): "right",
    (2, 5): "right",
    (2, 1, 1, 5): "refused",
    (1, 5): "refused",
}
differences = 0
for shape, expected in EXPECTED.items():
    mask = np.ones(shape, dtype=bool)
    mask[..., 3:] = False
    seen = run(mask)
    print(f"mask {shape}: {seen}" + ("" if seen == expected else f", DIFFERS: was {expected}"))
    differences += seen != expected
sys.exit(differences != 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
