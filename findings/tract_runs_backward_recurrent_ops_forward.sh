#!/bin/bash
# tract runs LSTM, GRU and RNN with direction "reverse" forward, as if the attribute were not there; with "bidirectional" the second half is
# right. Celu and Swish lose their factor alpha.
#
# What is done: LSTM, GRU and RNN (14) of three steps, with the same weights in each direction; Celu (12) with alpha 2, beside Elu, Selu and
# LeakyRelu with an alpha; Swish (24) with alpha 1.702, beside the same in two ops; in tract, ONNX Runtime and the reference (the
# reference has no way back, so that the reversed ops are computed there by turning input and output over).
# Seen (tract 0.23.9, onnxruntime 1.32.0, onnx 1.23.2): the outputs of "reverse" are those of "forward" in tract, both sequence and last
# state; ONNX Runtime's are those of the input turned over. In "bidirectional" both halves agree. Celu is max(0, x) + min(0, exp(x /
# alpha) - 1), without alpha in front: half of what it is. Swish is x * sigmoid(x): alpha is ignored; Mul, Sigmoid and Mul are right.
# What one would expect: the op, or a refusal. The parts of a bidirectional net that an exporter wrote as two ops see the sequence from
# its begin twice.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 tract==0.23.9 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, tract and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import os
import sys

import numpy as np
import onnx
import onnxruntime
import tract
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

FILE = os.path.join(sys.argv[1], "model.onnx")


def graph(text, opset, weights=()):
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> {text}')
    del model.graph.input[1:]
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights)
    onnx.checker.check_model(model, full_check=True)
    return model


def runtime(model, x):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})


def by_tract(model, x):
    onnx.save(model, FILE)
    loaded = tract.onnx().load(FILE)
    loaded.set_input_fact(0, ",".join(map(str, x.shape)) + ",f32")
    loaded.analyse()
    return [output.to_numpy() for output in loaded.into_model().into_runnable().run([x])]


def first(array):
    return array.ravel()[:3].astype(float).round(4).tolist()


def close(one, other):
    return all(np.allclose(a, b, atol=1e-4) for a, b in zip(one, other))


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("tract", "onnxruntime", "onnx")))
is_as_before = True
source = np.random.default_rng(0)
x = source.normal(size=(3, 2, 2)).astype(np.float32)
for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    one = [source.normal(size=(1, gates * 3, size)).astype(np.float32) for size in (2, 3)]

    def recurrent(direction):
        count = 2 if direction == "bidirectional" else 1
        shapes = f"float[3,2,2] x, float[{count},{gates * 3},2] w, float[{count},{gates * 3},3] r"
        text = f"""g ({shapes}) => (float[3,{count},2,3] y, float[{count},2,3] h)
            {{ y, h = {op} <direction="{direction}", hidden_size=3> (x, w, r) }}"""
        return graph(text, 14, list(zip("wr", [np.concatenate([part] * count) for part in one])))

    forward, reverse, both = (recurrent(direction) for direction in ("forward", "reverse", "bidirectional"))
    turned = ReferenceEvaluator(forward).run(None, {"x": x[::-1].copy()})
    right = [turned[0][::-1], turned[1]]
    seen = by_tract(reverse, x)
    print(op, "reverse, last state: ONNX Runtime", first(runtime(reverse, x)[1]), "tract", first(seen[1]), "and forward",
          first(by_tract(forward, x)[1]))
    is_as_before &= close(runtime(reverse, x), right) and close(seen, by_tract(forward, x)) and not close(seen, right)
    is_as_before &= close(by_tract(forward, x), runtime(forward, x)) and close(by_tract(both, x), runtime(both, x))
x = np.array([-3, -1, -0.5, 0.5, 1, 2], np.float32)
for op in ("Celu", "Elu", "Selu", "LeakyRelu"):
    model = graph(f"g (float[6] x) => (float[6] y) {{ y = {op} <alpha=2.0> (x) }}", 12)
    (seen,), (expected,) = by_tract(model, x), runtime(model, x)
    print(op, "of -3, alpha 2: ONNX Runtime", round(float(expected[0]), 4), "tract", round(float(seen[0]), 4))
    is_as_before &= close([seen], [np.where(x < 0, expected / 2, expected) if op == "Celu" else expected])
swish = graph("g (float[6] x) => (float[6] y) { y = Swish <alpha=1.702> (x) }", 24)
parts = graph("g (float[6] x, float a) => (float[6] y) { z = Mul (x, a) s = Sigmoid (z) y = Mul (x, s) }", 24,
              [("a", np.float32(1.702).reshape(()))])
right = x / (1 + np.exp(-1.702 * x))
print("Swish of -3, alpha 1.702: ONNX Runtime", round(float(runtime(swish, x)[0][0]), 4), "tract", round(float(by_tract(swish, x)[0][0]), 4),
      "in two ops", round(float(by_tract(parts, x)[0][0]), 4))
is_as_before &= close(runtime(swish, x), [right]) and close(by_tract(parts, x), [right]) and close(by_tract(swish, x), [x / (1 + np.exp(-x))])
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py" "$folder"
