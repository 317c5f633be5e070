#!/bin/bash
# The reference of ONNX takes LSTM and GRU without clip, activations and input_forget, and all recurrent ops without the lengths of their
# sequences: it computes another network and says nothing. OpenVINO leaves input_forget out.
#
# What is done: LSTM (14), GRU (14) and RNN (14) of 3 steps, 2 sequences, 2 inputs and 2 hidden units with weights of a seed: as they
# are, with clip = 0.1, with other activations (not RNN), with lengths 3 and 1, LSTM with input_forget = 1; in ONNX Runtime, the
# reference and OpenVINO.
# Seen (onnx 1.23.2, onnxruntime 1.32.0, openvino 2026.4.1, CPU): without any of these all three agree. In ONNX Runtime each changes the
# result, and steps beyond a length are 0; in the reference none of them changes anything (RNN refuses Relu there by name). OpenVINO
# agrees with ONNX Runtime on all but input_forget (the input gate is then 1 - the forget gate), which it ignores. The cases that come
# with ONNX have none of these but lengths that leave nothing out.
# What one would expect: an attribute that is not implemented is refused, as unknown ops are. A padded batch is the usual case of
# lengths: its last states are those of the padding in the reference, and a right implementation seems wrong.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, openvino and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OTHER = {"LSTM": ["Sigmoid", "Relu", "Tanh"], "GRU": ["Sigmoid", "Relu"]}


def make(op, extra):
    random = np.random.default_rng(0)
    shapes = {"x": (3, 2, 2), "w": (1, 2 * GATES[op], 2), "r": (1, 2 * GATES[op], 2)}
    feeds = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    attributes = {"": {}, "clip": {"clip": 0.1}, "activations": {"activations": OTHER.get(op)}, "lengths": {},
                  "input_forget": {"input_forget": 1}}[extra]
    inputs = ["x", "w", "r"]
    if extra == "lengths":
        inputs += ["", "lengths"]
        feeds["lengths"] = np.array([3, 1], np.int32)
    node = helper.make_node(op, inputs, ["y"], hidden_size=2, **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                                            for name, value in feeds.items()],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 1, 2, 2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model, feeds


def run(op, extra):
    model, feeds = make(op, extra)
    data = model.SerializeToString()
    runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    reference = ReferenceEvaluator(model).run(None, feeds)[0]
    core = openvino.Core()
    vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]
    return runtime, reference, vino


def alike(one, other):
    return bool(np.allclose(one, other, atol=1e-4))


print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__, "openvino", openvino.__version__)
is_as_before = True
for op in GATES:
    plain = run(op, "")
    is_as_before &= alike(plain[0], plain[1]) and alike(plain[0], plain[2])
    for extra in ("clip", "lengths") + (("activations",) if op in OTHER else ()) + (("input_forget",) if op == "LSTM" else ()):
        with_it = run(op, extra)
        ignored = [alike(one, other) for one, other in zip(plain, with_it, strict=True)]
        print(op, extra, "ignored by ONNX Runtime, the reference, OpenVINO:", *ignored)
        is_as_before &= ignored == [False, True, extra == "input_forget"]
        is_as_before &= ignored[2] or alike(with_it[0], with_it[2])
        if extra == "lengths":
            is_as_before &= not with_it[0][1:, 0, 1].any() and bool(with_it[1][1:, 0, 1].any())
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
