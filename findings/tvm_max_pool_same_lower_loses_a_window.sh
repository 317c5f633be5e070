#!/bin/bash
# Apache TVM reads MaxPool with auto_pad SAME_LOWER and a stride with one window too few, and with the others elsewhere. Resize by scales
# goes by the sizes instead.
#
# What is done: MaxPool and AveragePool (18) of 1, 2, ... n for n of 5, 6, 7 and 8, windows of 2 and 3, strides 1, 2 and 3, with SAME_LOWER
# and SAME_UPPER; Resize (18, nearest, floor, asymmetric) of 0 .. 9 by a scale of 0.35, which gives three elements; in TVM (relax, llvm),
# ONNX Runtime and by the op's text, written out (Resize in the reference).
# Seen (apache-tvm 0.27.0.post1, onnxruntime 1.32.0, onnx 1.23.2): AveragePool, SAME_UPPER and a stride of 1 agree. MaxPool with SAME_LOWER has
# a window less in seven cases with a stride: of 1 .. 5 with 3 and stride 2 it is [3 5] for [2 4 5],
# with 3 and stride 3 [4] for [2 5]. Resize samples 0, 2 and 5 (i / 0.35) in ONNX Runtime and the reference, and 0, 3 and 6 in TVM (i *
# 10 / 3).
# What one would expect: the length through the stride, rounded up; the scale that stands in the file. A residual sum behind such a pool does
# not fit, and a global mean hides it.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 apache-tvm==0.27.0.post1 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, apache-tvm and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys

import numpy as np
import onnx
import onnxruntime
import tvm
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx


def results(text, x, weights=()):
    """Of ONNX Runtime and of TVM, and the model."""
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {text}')
    del model.graph.input[1:]
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights)
    onnx.checker.check_model(model, full_check=True)
    runtime = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    module = from_onnx(model, shape_dict={"x": list(x.shape)}, keep_params_in_input=False)
    module = relax.transform.LegalizeOps()(relax.transform.DecomposeOpsForInference()(module))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    made = machine["main"](tvm.runtime.tensor(x)).numpy()
    return runtime.ravel().tolist(), made.ravel().tolist(), model


def pool(op, padding, length, window, stride):
    """By the text: as many windows as the length through the stride, rounded up."""
    count = -(-length // stride)
    missing = max((count - 1) * stride + window - length, 0)
    before = (missing + 1) // 2 if padding == "SAME_LOWER" else missing // 2
    windows = [[x for x in range(i * stride - before + 1, i * stride - before + 1 + window) if 1 <= x <= length] for i in range(count)]
    return [float(max(row)) if op == "MaxPool" else sum(row) / len(row) for row in windows]


def close(one, other):
    return len(one) == len(other) and np.allclose(one, other)


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("apache-tvm", "onnxruntime", "onnx")))
is_as_before = True
differing = 0
for length in (5, 6, 7, 8):
    x = np.arange(1, length + 1, dtype=np.float32).reshape(1, 1, length)
    for op in ("MaxPool", "AveragePool"):
        for padding in ("SAME_LOWER", "SAME_UPPER"):
            for window, stride in ((2, 2), (3, 2), (3, 3), (3, 1)):
                runtime, seen, _ = results(f"""g (float[1,1,{length}] x) => (float[a,b,c] y)
                    {{ y = {op} <auto_pad="{padding}", kernel_shape=[{window}], strides=[{stride}]> (x) }}""", x)
                is_as_before &= close(runtime, pool(op, padding, length, window, stride))
                if not close(runtime, seen):
                    print(f"{op} {padding} of 1 .. {length}, {window} by {stride}: ONNX Runtime", runtime, "TVM", seen)
                    differing += 1
                    is_as_before &= op == "MaxPool" and padding == "SAME_LOWER" and stride > 1 and len(seen) == len(runtime) - 1
is_as_before &= differing == 7
runtime, seen, model = results("""g (float[1,1,10,1] x, float[4] s) => (float[a,b,c,d] y)
    { y = Resize <mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"> (x, , s) }""",
                        np.arange(10, dtype=np.float32).reshape(1, 1, 10, 1), [("s", np.array([1, 1, 0.35, 1], np.float32))])
reference = ReferenceEvaluator(model).run(None, {"x": np.arange(10, dtype=np.float32).reshape(1, 1, 10, 1)})[0].ravel().tolist()
print("Resize of 0 .. 9 by 0.35: ONNX Runtime", runtime, "reference", reference, "TVM", seen)
is_as_before &= runtime == reference == [0, 2, 5] and seen == [0, 3, 6]
print("as before" if is_as_before else f"DIFFERS ({differing})")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
