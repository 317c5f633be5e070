#!/bin/bash
# ONNX Runtime's Cast of reals to whole numbers of 4 bits rounds to the nearest, and then cuts off high bits: 7.6 becomes -8. Its Cast to
# 8 bits and more drops the fraction.
#
# What is done: Cast (21) of 1.5, 2.5, -1.5, 7.6 and 15.6 from float, double and float16 to int4 and int8, uint4 and uint8, and
# from there to int32, in ONNX Runtime and in the reference of ONNX.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): int8 gets 1 2 -1 7 15 in both. int4 gets 2 3 -2 -8 0 in ONNX Runtime (halves away
# from zero, then the low four bits) and 1 2 -1 7 -1 in the reference; uint4 2 3 14 8 0 and 1 2 15 7 15. So of the same weights
# the largest within the range, 7.6 for int4 and 15.6 for uint4, change their sign or vanish, and a Cast to int8 in between
# gives other numbers. QuantizeLinear, which stops at the range's ends, is the op for it.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, parser
from onnx.reference import ReferenceEvaluator

NUMBERS = [1.5, 2.5, -1.5, 7.6, 15.6]


def cast(kind, numpy_kind, *targets):
    """The numbers by way of the targets, in ONNX Runtime and in the reference."""
    steps = [f"v{i + 1} = Cast <to = {TensorProto.DataType.Value(target)}> (v{i})" for i, target in enumerate(targets)]
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]> g ({kind}[5] v0) => (int32[5] y) {{
        {chr(10).join(steps)}
        y = Cast <to = 6> (v{len(targets)})
    }}""")
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = np.array(NUMBERS, numpy_kind)
    seen = session.run(None, {"v0": x})[0].tolist(), ReferenceEvaluator(model).run(None, {"v0": x})[0].tolist()
    print(kind, "to", *targets, "ONNX Runtime:", seen[0], "reference:", seen[1])
    return seen


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
is_as_before = True
for kind, numpy_kind in (("float", np.float32), ("double", np.float64), ("float16", np.float16)):
    is_as_before &= cast(kind, numpy_kind, "INT4") == ([2, 3, -2, -8, 0], [1, 2, -1, 7, -1])
    is_as_before &= cast(kind, numpy_kind, "UINT4") == ([2, 3, 14, 8, 0], [1, 2, 15, 7, 15])
    is_as_before &= cast(kind, numpy_kind, "INT8") == ([1, 2, -1, 7, 15],) * 2
    is_as_before &= cast(kind, numpy_kind, "INT8", "INT4") == ([1, 2, -1, 7, -1],) * 2
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
