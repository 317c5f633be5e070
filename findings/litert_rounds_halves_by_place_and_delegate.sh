#!/bin/bash
# QUANTIZE of LiteRT rounds halves to even by default; without its delegate away from zero, but only in what is left behind groups of
# eight: nine times 0.5 is eight times 0 and once 1.
#
# What is done: a TFLite file with one QUANTIZE op (f32 to int8, scale 1, zero point 0), written by the schema of the package, of 1, 4, 9
# and 16 elements 0.5 1.5 2.5 -0.5 ... and of nine 0.5, by the default interpreter (with XNNPACK), by the built-in kernels without a
# delegate, and by the reference kernels; then NaN and 1e10; and MUL of int8 with a scale of 1 in and 2 out.
# Seen (ai-edge-litert 2.3.0, x86-64): default 0 2 2 0 everywhere, reference 1 2 3 -1 everywhere; the built-in kernels give 1 2 3 -1 for 4
# elements, and for 9 0 2 2 0 0 2 2 0 1: eights are rounded to even, the rest away from zero. 1e10 and NaN are 127 by default and -128
# with the other two. MUL of 1 3 5 -3 by 1 with half the scale is 0 2 2 -2 by default and 1 2 3 -1 otherwise.
# What one would expect: one rounding in one version of one op, and the greatest number for 1e10. Inputs on a grid (pixels by 2, means of
# two) hit halves often; a model that was checked on the reference kernels is off by one in half of those, and a tail of a tensor differs
# from its body.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q ai-edge-litert==2.3.0 numpy==2.4.6; then
    echo "skipped: pip could not install ai-edge-litert and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

KINDS = {"default": OpResolverType.AUTO, "built-in": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, "reference": OpResolverType.BUILTIN_REF}
TYPES = {"float32": schema.TensorType.FLOAT32, "int8": schema.TensorType.INT8}


def tensor(model, graph, array, scale, constant=False):
    t = schema.TensorT()
    t.shape, t.type, t.buffer, t.name = list(array.shape), TYPES[array.dtype.name], 0, f"t{len(graph.tensors)}"
    if constant:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(array.tobytes(), np.uint8)
        model.buffers.append(buffer)
        t.buffer = len(model.buffers) - 1
    if scale:
        t.quantization = schema.QuantizationParametersT()
        t.quantization.scale, t.quantization.zeroPoint, t.quantization.min, t.quantization.max = [scale], [0], [], []
    graph.tensors.append(t)
    return len(graph.tensors) - 1


def run(op, operands, out_scale, options, kind_of_options, version):
    """operands: (array, scale or 0); the first is the input, others are constants. The output is int8."""
    model, graph, code, node = schema.ModelT(), schema.SubGraphT(), schema.OperatorCodeT(), schema.OperatorT()
    model.version, model.buffers, graph.tensors = 3, [schema.BufferT()], []
    code.builtinCode, code.deprecatedBuiltinCode, code.version = op, op, version
    node.inputs = [tensor(model, graph, array, scale, i > 0) for i, (array, scale) in enumerate(operands)]
    node.outputs = [tensor(model, graph, np.zeros(len(operands[0][0]), np.int8), out_scale)]
    node.builtinOptions, node.builtinOptionsType = options, kind_of_options
    graph.inputs, graph.outputs, graph.operators = node.inputs[:1], node.outputs, [node]
    model.operatorCodes, model.subgraphs = [code], [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    results = {}
    for name, kind in KINDS.items():
        interpreter = Interpreter(model_content=bytes(builder.Output()), experimental_op_resolver_type=kind)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], operands[0][0])
        interpreter.invoke()
        results[name] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()
    return results


def quantize(*x):
    results = run(schema.BuiltinOperator.QUANTIZE, [(np.array(x, np.float32), 0)], 1.0, schema.QuantizeOptionsT(),
                  schema.BuiltinOptions.QuantizeOptions, 1)
    print("QUANTIZE", *x, results)
    return list(results.values())


print("ai-edge-litert", importlib.metadata.version("ai-edge-litert"), "numpy", np.__version__)
HALVES, EVEN, AWAY = [0.5, 1.5, 2.5, -0.5], [0, 2, 2, 0], [1, 2, 3, -1]
is_as_before = quantize(0.5) == [[0], [1], [1]]
is_as_before &= quantize(*HALVES) == [EVEN, AWAY, AWAY]
is_as_before &= quantize(*HALVES * 2, 0.5) == [EVEN * 2 + [0], EVEN * 2 + [1], AWAY * 2 + [1]]
is_as_before &= quantize(*HALVES * 4) == [EVEN * 4, EVEN * 4, AWAY * 4]
is_as_before &= quantize(*[0.5] * 9) == [[0] * 9, [0] * 8 + [1], [1] * 9]
is_as_before &= quantize(1e10, float("nan")) == [[127, 127], [-128, -128], [-128, -128]]
products = run(schema.BuiltinOperator.MUL, [(np.array([1, 3, 5, -3], np.int8), 1.0), (np.ones(4, np.int8), 1.0)], 2.0, schema.MulOptionsT(),
               schema.BuiltinOptions.MulOptions, 2)
print("MUL", products)
is_as_before &= list(products.values()) == [[0, 2, 2, -2], [1, 2, 3, -1], [1, 2, 3, -1]]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
