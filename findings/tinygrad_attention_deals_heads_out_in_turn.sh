#!/bin/bash
# tinygrad deals the keys of an ONNX Attention out to the heads in turn where several heads share them: of four heads with two sets of keys
# and values the second and third look at the wrong one. ConvTranspose with auto_pad VALID is cut, and ties in QuantizeLinear go down or up
# by the number's size.
#
# What is done: Attention (23) of four heads with one, two and four heads of values, which are 0, 1, 2 and 3 throughout, as tensors of three and
# of four axes; ConvTranspose (18) of [1 0 0] by [1 2 3] with each auto_pad; QuantizeLinear (19) of 0.5, 1.5, 2.5 and 3.5 (scale 1) with
# the zero points 0 and 128; in tinygrad, ONNX Runtime and the reference.
# Seen (tinygrad 0.14.0 on the processor, onnxruntime 1.32.0, onnx 1.23.2): with two heads of values the heads see 0 0 1 1, in tinygrad 0 1 0
# 1; one or four are right. VALID gives [1 2 3 0 0], as without padding; tinygrad's is [2 3 0], as of SAME_UPPER. Ties are 0 2 2 4, to
# even; tinygrad's are 0 1 3 4, and with the zero point 128 they are 1 2 3 4 above it: just below a half is added, and what is lost
# in the sum decides.
# What one would expect: consecutive heads share, as by ONNX's text and torch's enable_gqa; no padding; ties to even. Language models of
# the last years share keys, and their weights are trained for one way of sharing only.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 tinygrad==0.14.0 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, tinygrad and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import os
import sys

os.environ.update(CPU="1", DEV="CPU", CACHELEVEL="0")
import numpy as np
import onnx
import onnxruntime
from onnx import parser
from onnx.reference import ReferenceEvaluator
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

FILE = os.path.join(sys.argv[1], "model.onnx")


def results(text, opset, feeds):
    """Of ONNX Runtime, with which the reference must agree, and of tinygrad."""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}')
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, FILE)
    runtime = onnxruntime.InferenceSession(FILE, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    assert np.array_equal(runtime, ReferenceEvaluator(model).run(None, feeds)[0])
    tiny = OnnxRunner(FILE)({name: Tensor(array) for name, array in feeds.items()})
    return runtime.ravel().tolist(), next(iter(tiny.values())).numpy().ravel().tolist()


def floats(*shape):
    return np.zeros(shape, np.float32)


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("tinygrad", "onnxruntime", "onnx")))
is_as_before = True
for count in (1, 2, 4):
    own = [head for head in range(count) for _ in range(4 // count)]
    in_turn = [float(head % count) for head in range(4)]
    values = np.repeat(np.arange(count, dtype=np.float32), 2)
    flat = results(f"""g (float[1,1,8] q, float[1,3,{count * 2}] k, float[1,3,{count * 2}] v) => (float[1,1,8] y)
        {{ y = Attention <q_num_heads=4, kv_num_heads={count}> (q, k, v) }}""", 23,
        {"q": floats(1, 1, 8), "k": floats(1, 3, count * 2), "v": np.tile(values, (1, 3, 1))})
    by_head = results(f"""g (float[1,4,1,2] q, float[1,{count},3,2] k, float[1,{count},3,2] v) => (float[1,4,1,2] y)
        {{ y = Attention (q, k, v) }}""", 23,
        {"q": floats(1, 4, 1, 2), "k": floats(1, count, 3, 2), "v": np.tile(values.reshape(1, count, 1, 2), (1, 1, 3, 1))})
    for name, (runtime, tiny) in (("three axes", flat), ("four axes", by_head)):
        print(f"{count} heads of values, {name}: ONNX Runtime", runtime[::2], "tinygrad", tiny[::2])
        is_as_before &= np.allclose(runtime[::2], own) and np.allclose(tiny[::2], in_turn)
for padding in ("NOTSET", "VALID", "SAME_UPPER"):
    runtime, tiny = results(f"""g (float[1,1,3] x, float[1,1,3] w) => (float[a,b,c] y)
        {{ y = ConvTranspose <auto_pad="{padding}"> (x, w) }}""", 18,
        {"x": np.array([[[1, 0, 0]]], np.float32), "w": np.array([[[1, 2, 3]]], np.float32)})
    print(f"ConvTranspose {padding}: ONNX Runtime", runtime, "tinygrad", tiny)
    is_as_before &= runtime == ([2, 3, 0] if padding == "SAME_UPPER" else [1, 2, 3, 0, 0])
    is_as_before &= tiny == (runtime if padding != "VALID" else [2, 3, 0])
for zero, expected in ((0, [0, 1, 3, 4]), (128, [129, 130, 131, 132])):
    runtime, tiny = results("g (float[4] x, float s, uint8 z) => (uint8[4] y) { y = QuantizeLinear (x, s, z) }", 19,
                            {"x": np.array([0.5, 1.5, 2.5, 3.5], np.float32), "s": np.array(1, np.float32), "z": np.array(zero, np.uint8)})
    print(f"ties, zero point {zero}: ONNX Runtime", runtime, "tinygrad", tiny)
    is_as_before &= runtime == [zero + x for x in (0, 2, 2, 4)] and tiny == expected
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py" "$folder"
