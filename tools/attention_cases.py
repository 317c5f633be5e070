#!/usr/bin/env python3
"""Writes tests/support/cases/op_attention_cases.h: results of ONNX Runtime for com.microsoft's attention ops.

usage: attention_cases.py [--write]    needs onnx, onnxruntime and numpy, outside the tree; without
                                       --write the rows are printed

Inputs are the patterns that op_rows.h describes, so a row holds their seeds; what comes out is
ONNX Runtime's on the processor.
SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

OUT = pathlib.Path(__file__).parents[1] / "tests/support/cases/op_attention_cases.h"
ort.set_default_logger_severity(4)


class P:
    """A tensor of f32 by its pattern: element i is ((i * 37 + seed * 11) mod 23 - 11) * factor."""

    def __init__(self, shape, seed, factor=0.125):
        self.shape, self.seed, self.factor = shape, seed, factor

    def array(self):
        i = np.arange(int(np.prod(self.shape)), dtype=np.int64)
        return (((i * 37 + self.seed * 11) % 23 - 11) * self.factor).astype(np.float32).reshape(self.shape)

    def text(self):
        factor = "" if self.factor == 0.125 else f"*{self.factor}"
        return f"f32[{','.join(map(str, self.shape))}]:~{self.seed}{factor}"


class W:
    """Whole numbers."""

    def __init__(self, kind, shape, values):
        self.kind, self.shape, self.values = kind, shape, values

    def array(self):
        return np.array(self.values, {"i32": np.int32, "i64": np.int64}[self.kind]).reshape(self.shape)

    def text(self):
        return f"{self.kind}[{','.join(map(str, self.shape))}]:{','.join(map(str, self.values))}"


def run(op, inputs, outputs, attributes):
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    out = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(op, names, out, domain="com.microsoft", **attributes)
    kinds = {np.dtype("f4"): TensorProto.FLOAT, np.dtype("i4"): TensorProto.INT32, np.dtype("i8"): TensorProto.INT64}
    arrays = {n: x.array() for n, x in zip(names, inputs) if x is not None}
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, kinds[a.dtype], a.shape) for n, a in arrays.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 10
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, arrays)


def number(x):
    text = f"{x:.6g}"
    return "0" if text == "-0" else text


def expected(array):
    return f"f32[{','.join(map(str, array.shape))}]:{','.join(number(x) for x in array.ravel())}"


def attribute(name, value):
    if isinstance(value, list):
        return f"{name}=I:{','.join(map(str, value))}"
    return f"{name}=f:{value}" if isinstance(value, float) else f"{name}={value}"


def literal(text):
    pieces = re.findall(r".{1,84}[, ]|.+$", text) or [""]
    return "\n".join(f'"{piece}"' for piece in pieces)


def row(op, inputs, outputs=1, skip=(), **attributes):
    while inputs and inputs[-1] is None:
        inputs.pop()
    results = run(op, inputs, outputs, attributes)
    shown = " ".join("-" if k in skip else expected(a) for k, a in enumerate(results))
    return "{" + ",\n".join([
        f'"com.microsoft.{op}"', "1",
        literal(" ".join("-" if x is None else x.text() for x in inputs)),
        literal(" ".join(attribute(n, v) for n, v in attributes.items())),
        literal("~5e-6 " + shown)]) + "},"


B = 2


H, K, D = 2, 2, 4  # of all but the grouped ones
HEADS, GROUPS = 2, 1


def group(rows, past, total=None, packed=False, lengths=None, outputs=3, more=(), angles=False, skip=(), **attributes):
    # ONNX Runtime takes turned heads of 16 elements, and several rows behind a past of one batch.
    width, batch = 16 if angles else 8, 1 if rows > 1 and past else B
    total = total or past + rows
    lengths = lengths or [total - 1] * batch
    q = [P([batch, rows, (HEADS + 2 * GROUPS) * width], 1), None, None] if packed else [
        P([batch, rows, HEADS * width], 1), P([batch, rows, GROUPS * width], 2), P([batch, rows, GROUPS * width], 3)]
    inputs = q + [P([batch, GROUPS, past, width], 4), P([batch, GROUPS, past, width], 5),
                  W("i32", [batch], lengths), W("i32", [1], [total])]
    inputs += [P([8, width // 2], 6), P([8, width // 2], 7)] if angles else [None, None]
    inputs += list(more)
    return row("GroupQueryAttention", inputs, outputs, skip, num_heads=HEADS, kv_num_heads=GROUPS, **attributes)


def multi(rows, keys, past=0, bias=False, padding=None, added=None, outputs=1, wide=D, **attributes):
    inputs = [P([B, rows, H * D], 1), P([B, keys, H * D], 2), P([B, keys, H * wide], 3),
              P([2 * H * D + H * wide], 4) if bias else None, padding, added]
    inputs += [P([B, H, past, D], 5), P([B, H, past, wide], 6)] if past else [None, None]
    return row("MultiHeadAttention", inputs, outputs, num_heads=H, **attributes)


def projected(rows, past=0, mask=None, added=None, outputs=1, columns=3 * H * D, bias=True, **attributes):
    inputs = [P([B, rows, 6], 1), P([6, columns], 2, 0.0625), P([columns], 3) if bias else None, mask,
              P([2, B, H, past, D], 4) if past else None, added]
    return row("Attention", inputs, outputs, num_heads=H, **attributes)


def rotary(inputs, **attributes):
    return row("RotaryEmbedding", inputs, **attributes)


def rows():
    yield group(3, 0)
    yield group(1, 3)
    yield group(2, 3, packed=True, scale=0.3)
    yield group(3, 0, packed=True, angles=True, do_rotary=1)
    yield group(1, 4, angles=True, do_rotary=1, rotary_interleaved=1)
    yield group(1, 4, local_window_size=2)
    yield group(4, 0, local_window_size=1, softcap=1.5)
    yield group(2, 2, smooth_softmax=1)
    yield group(2, 1, more=[None, None, P([HEADS], 8)])
    yield group(2, 1, more=[None, P([1, HEADS, 2, 3], 9)], softcap=2.0)
    yield group(1, 5, total=6, lengths=[2, 5], angles=True, do_rotary=1, skip=(1, 2))
    yield group(1, 6, total=4, lengths=[3, 1], skip=(1, 2))
    yield group(3, 6, total=6, lengths=[4], skip=(1, 2))
    yield group(2, 1, outputs=4, qk_output=1, softcap=2.0)
    yield group(2, 1, outputs=4, qk_output=2)
    yield group(2, 2, angles=True, do_rotary=1, more=[W("i64", [1, 2], [5, 7])])
    yield multi(3, 5)
    yield multi(3, 2, bias=True, wide=6)
    yield multi(2, 3, past=2, bias=True, outputs=3)
    yield multi(3, 3, unidirectional=1, scale=0.5)
    yield multi(2, 4, padding=W("i32", [B], [3, 2]))
    yield multi(2, 4, padding=W("i32", [B, 4], [1, 1, 0, 1, 0, 0, 0, 1]))
    yield multi(2, 2, past=2, outputs=3, padding=W("i32", [B, 2, 4], [1, 1, 0, 1] * 3 + [0, 1, 1, 0]), mask_filter_value=-3.0)
    yield multi(2, 3, added=P([1, H, 2, 3], 7), padding=W("i32", [B, 3], [1, 0, 1, 1, 1, 0]))
    yield projected(3)
    yield projected(3, bias=False, unidirectional=1)
    yield projected(2, past=3, outputs=2)
    yield projected(2, past=2, outputs=2, unidirectional=1, mask=W("i32", [B, 4], [1, 0, 1, 1, 1, 1, 1, 0]))
    yield projected(3, mask=W("i32", [B], [2, 3]))
    yield projected(3, mask=W("i32", [2 * B], [2, 3, 1, 0]))
    yield projected(3, mask=W("i32", [B, 3, 3], [1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1]), scale=0.25)
    yield projected(2, added=P([B, 1, 2, 2], 5))
    yield projected(3, columns=2 * H * D + H * 6, qkv_hidden_sizes=[H * D, H * D, H * 6])
    cosines, sines = P([5, D // 2], 2), P([5, D // 2], 3)
    yield rotary([P([2, 3, H * D], 1), W("i64", [2, 3], [0, 1, 2, 4, 0, 3]), cosines, sines])
    yield rotary([P([2, H, 3, D], 1), W("i64", [1], [2]), cosines, sines], interleaved=1)
    yield rotary([P([1, 2, 2 * 6], 1), W("i64", [1], [1]), cosines, sines], num_heads=2, rotary_embedding_dim=4)


def main():
    text = [f"// Written by tools/attention_cases.py, with onnx {onnx.__version__} and onnxruntime {ort.__version__}.",
            "// SPDX-License-Identifier: Apache-2.0", "#ifndef RONDO_TESTS_OP_ATTENTION_CASES_H",
            "#define RONDO_TESTS_OP_ATTENTION_CASES_H", "",
            '#include "support/cases/op_rows.h"', "", "static const op_row g_microsoft_rows[] = {"]
    text += list(rows()) + ["};", "", "#endif  // RONDO_TESTS_OP_ATTENTION_CASES_H", ""]
    if "--write" in sys.argv:
        OUT.write_text("\n".join(text))
        subprocess.run(["clang-format", "-i", str(OUT)], check=True)
    else:
        print("\n".join(text))


if __name__ == "__main__":
    main()
