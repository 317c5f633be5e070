#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/models/narrow_mini again (needs the onnx package 1.23, its ml_dtypes, and numpy).

Weights of int4, uint4, int2, float8, and float4 with scales of float8e8m0, each as quantisers write
them; activations in float8 and int4, casts with and without limits. The seed is one of those whose
numbers keep away from where rounding turns.

usage: make_narrow_model.py [DIRECTORY]
"""
import os
import sys

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

WIDTH, INNER, WORDS, SEED = 16, 12, 20, 1


def make_model(rng):
    def scales(*shape):
        return (0.02 + 0.1 * rng.random(shape)).astype(np.float32)

    powers = (2.0 ** rng.integers(-3, 2, (8, 2))).astype(np.float32)
    weights = {
        "table": rng.integers(-8, 8, (WORDS, WIDTH)).astype(ml_dtypes.int4),
        "table_scale": scales(WORDS, 1),
        "w": rng.integers(0, 16, (WIDTH, INNER)).astype(ml_dtypes.uint4),
        "w_scale": scales(4, INNER),
        "w_zero": rng.integers(5, 11, (4, INNER)).astype(ml_dtypes.uint4),
        "w2": (rng.standard_normal((INNER, WIDTH)) * 2).astype(ml_dtypes.float8_e4m3fn),
        "w2_scale": scales(WIDTH),
        "w3": rng.integers(-2, 2, (WIDTH, 8)).astype(ml_dtypes.int2),
        "w3_scale": scales(8),
        "w4": (rng.standard_normal((8, WIDTH)) * 2).astype(ml_dtypes.float4_e2m1fn),
        "w4_scale": powers.astype(ml_dtypes.float8_e8m0fnu),
        "a_scale": np.array(0.05, np.float32),
        "d_scale": np.array(0.3, np.float32),
        "d_zero": np.array(1).astype(ml_dtypes.int4),
    }

    def node(op, inputs, output, **attributes):
        return helper.make_node(op, inputs.split(), [output], name="make_" + output, **attributes)

    nodes = [
        node("Gather", "table ids", "g"),
        node("Gather", "table_scale ids", "g_scale"),
        node("DequantizeLinear", "g g_scale", "x", axis=2, block_size=WIDTH),
        node("DequantizeLinear", "w w_scale w_zero", "wide_w", axis=0, block_size=4),
        node("MatMul", "x wide_w", "a"),
        node("QuantizeLinear", "a a_scale", "narrow_a", output_dtype=T.FLOAT8E5M2),
        node("DequantizeLinear", "narrow_a a_scale", "wide_a"),
        node("DequantizeLinear", "w2 w2_scale", "wide_w2", axis=1),
        node("MatMul", "wide_a wide_w2", "b"),
        node("DequantizeLinear", "w3 w3_scale", "wide_w3", axis=1),
        node("MatMul", "b wide_w3", "c"),
        node("DequantizeLinear", "w4 w4_scale", "wide_w4", axis=1, block_size=8,
             output_dtype=T.FLOAT),
        node("MatMul", "c wide_w4", "d"),
        node("QuantizeLinear", "d d_scale d_zero", "q"),
        node("Transpose", "q", "codes", perm=[2, 0, 1]),
        node("Cast", "d", "d8", to=T.FLOAT8E4M3FNUZ, saturate=0),
        node("Cast", "d8", "half", to=T.BFLOAT16),
        node("Cast", "g_scale", "powers", to=T.FLOAT8E8M0, round_mode="nearest"),
        node("BitCast", "d8", "bits", to=T.UINT8),
    ]
    value = helper.make_tensor_value_info
    rows = ["batch", "n"]
    graph = helper.make_graph(
        nodes, "narrow_mini", [value("ids", T.INT64, rows)],
        [value("d", T.FLOAT, rows + [WIDTH]), value("narrow_a", T.FLOAT8E5M2, rows + [INNER]),
         value("codes", T.INT4, [WIDTH] + rows), value("half", T.BFLOAT16, rows + [WIDTH]),
         value("powers", T.FLOAT8E8M0, rows + [1]), value("bits", T.UINT8, rows + [WIDTH])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13,
                             producer_name="rondo-tests")


def find_margin(model, ids):
    """The least relative change of a number that is narrowed by which it becomes another."""
    graph = onnx.ModelProto()
    graph.CopyFrom(model)
    del graph.graph.output[:]
    for name in ("a", "d"):
        graph.graph.output.append(helper.make_tensor_value_info(name, T.FLOAT, None))
    a, d = ReferenceEvaluator(graph).run(None, {"ids": ids})
    margin = 1.0
    for numbers, narrow in (
            (a, lambda x: (x / np.float32(0.05)).astype(ml_dtypes.float8_e5m2).astype("f4")),
            (d, lambda x: x.astype(ml_dtypes.float8_e4m3fnuz).astype("f4")),
            (d, lambda x: np.clip(np.rint(x / np.float32(0.3)), -9, 6))):
        for size in (1e-5, 3e-5, 1e-4, 3e-4):
            for turn in (1 - size, 1 + size):
                if (narrow((numbers * turn).astype("f4")) != narrow(numbers)).any():
                    margin = min(margin, size)
    return margin


def main(directory):
    rng = np.random.default_rng(SEED)
    model = make_model(rng)
    ids = rng.integers(0, WORDS, (2, 5)).astype(np.int64)
    assert find_margin(model, ids) == 1.0
    onnx.checker.check_model(model)
    data = os.path.join(directory, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    onnx.save(model, os.path.join(directory, "model.onnx"))
    arrays = {"input_0": ("ids", ids)}
    for i, array in enumerate(ReferenceEvaluator(model).run(None, {"ids": ids})):
        arrays[f"output_{i}"] = (model.graph.output[i].name, np.asarray(array))
    for name, (tensor, array) in arrays.items():
        with open(os.path.join(data, name + ".pb"), "wb") as file:
            file.write(numpy_helper.from_array(array, tensor).SerializeToString())


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(__file__), "..", "..", "models", "narrow_mini")
    main(sys.argv[1] if len(sys.argv) > 1 else folder)
