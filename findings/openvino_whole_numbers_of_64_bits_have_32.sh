#!/bin/bash
# OpenVINO computes int64 with 32 bits and double with float, though inputs and outputs have the wider type: 2^40 + 1 equals 2^41 + 1,
# and a time in nanoseconds goes in as one number and comes out as another. int8 and uint8 stop at their ends, int16 wraps.
#
# What is done: Identity, Add, Equal, Div (14) of int64; Mul (14) of double; Add and Sub of uint8, int8 and int16, in OpenVINO (device
# CPU) and in ONNX Runtime (not int16, which its Add does not have), beside numpy's.
# Seen (openvino 2026.4.1, onnx 1.23.2, onnxruntime 1.32.0): Identity of 1764390000123456789 is 1654402325, its low 32 bits, in an output
# of int64; 2^40 + 2^40 is 0; the times 1764390000000 / 1000 are -841558; 1.1 * 1.1 in an output of double is float's 1.2100000381, and
# 1e200 * 1e200 is 3.4e38, a finite number. 200 + 100 of uint8 is 255 and 7 - 9 is 0, 100 + 100 of int8 is 127; ONNX Runtime and numpy
# wrap to 44, 254 and -56. int16 wraps in OpenVINO, too.
# What one would expect: the type of the output is that of the arithmetic, or a refusal. Identifiers, times and hashes in a graph are
# other ones, and checksums or differences of pixels that rely on wrapping are not what the same file gives elsewhere.
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
from onnx import helper, parser


def run(op, *operands, result=None):
    kind = operands[0].dtype.name.replace("float64", "double")
    names = ["a", "b"][:len(operands)]
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g ({", ".join(f"{kind}[n] {name}" for name in names)})
        => ({result or kind}[n] y) {{ y = {op} ({", ".join(names)}) }}""")
    onnx.checker.check_model(model, full_check=True)
    feeds = dict(zip(names, operands, strict=True))
    core = openvino.Core()
    vino = core.compile_model(core.read_model(model.SerializeToString(), b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(feeds)[0]
    assert vino.dtype == helper.tensor_dtype_to_np_dtype(model.graph.output[0].type.tensor_type.elem_type)
    runtime = None
    if kind != "int16":
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        runtime = session.run(None, feeds)[0].tolist()
    print(op, kind, [operand.tolist() for operand in operands], "OpenVINO:", vino.tolist(), "ONNX Runtime:", runtime)
    return vino.tolist(), runtime


def array(kind, *numbers):
    return np.array(numbers, kind)


print("openvino", openvino.__version__, "onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
time = 1764390000123456789
is_as_before = run("Identity", array(np.int64, time)) == ([1654402325], [time]) and time % 2**32 == 1654402325
is_as_before &= run("Add", array(np.int64, 2**40, 5), array(np.int64, 2**40, 6)) == ([0, 11], [2**41, 11])
is_as_before &= run("Equal", array(np.int64, 2**40 + 1), array(np.int64, 2**41 + 1), result="bool") == ([True], [False])
is_as_before &= run("Div", array(np.int64, 1764390000000), array(np.int64, 1000)) == ([-841558], [1764390000])
vino, runtime = run("Mul", array(np.float64, 1.1, 1e200), array(np.float64, 1.1, 1e200))
is_as_before &= vino == [float(np.float32(1.1) * np.float32(1.1)), float(np.finfo(np.float32).max)] and runtime == [1.1 * 1.1, np.inf]
is_as_before &= run("Add", array(np.uint8, 200), array(np.uint8, 100)) == ([255], [44])
is_as_before &= run("Sub", array(np.uint8, 7), array(np.uint8, 9)) == ([0], [254])
is_as_before &= run("Add", array(np.int8, 100), array(np.int8, 100)) == ([127], [-56])
is_as_before &= run("Add", array(np.int16, 30000), array(np.int16, 30000)) == ([-5536], None)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
