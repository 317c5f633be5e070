# SPDX-License-Identifier: Apache-2.0

"""Writes the cases of com.microsoft beside this file: models of one op, with ONNX Runtime's results.

    python3 tests/vendor/make_cases.py

Needs onnx, onnxruntime and numpy. Cases are those that tools/difftest draws; tests/cli/test_vendor_ops.sh
runs them. A case of half precision is passed over: tolerances are those of f32.
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools" / "difftest"))

import make  # noqa: E402
from case import make_model, save_test  # noqa: E402
from gen_microsoft import MS  # noqa: E402
from oracles import run_oracle  # noqa: E402
from registry import GENERATORS  # noqa: E402

COUNTS = {"MatMulNBits": 4, "FusedConv": 3, "QGemm": 3, "SkipLayerNormalization": 2, "FusedMatMul": 3,
          "SkipSimplifiedLayerNormalization": 2, "QLinearSoftmax": 2, "EmbedLayerNormalization": 2}
SEED = 5


def draw(op, wanted):
    """The first cases of an op that ONNX Runtime computes."""
    index = 0
    while wanted > 0:
        case = make.make_case(SEED, index, [(MS, op)], 0.0)
        index += 1
        if case is None or any(a.dtype == np.float16 or a.size > 5000 for a in case.get_arrays()):
            continue
        case.opset = max(case.opset, 13)
        model = make_model(case)
        expected = run_oracle("onnxruntime", model, case)
        if not isinstance(expected, str) and all(a.size > 0 for a in expected.values()):
            yield index, case, model, expected
            wanted -= 1


def save_narrow(name, dtype, low, has_zeros):
    """GatherBlockQuantized of int4 or uint4, which NumPy does not have."""
    rng = np.random.default_rng(SEED)
    constants = [helper.make_tensor("data", dtype, [7, 48], rng.integers(low, low + 16, 7 * 48)),
                 numpy_helper.from_array(rng.uniform(0.01, 0.1, (7, 3)).astype(np.float32), "scales")]
    if has_zeros:
        constants.append(helper.make_tensor("zeros", dtype, [7, 3], rng.integers(low, low + 16, 21)))
    indices = np.array([3, -1, 0, 6])
    node = helper.make_node("GatherBlockQuantized", ["data", "indices", *(c.name for c in constants[1:])], ["y"],
                            domain=MS, block_size=16, quantize_axis=1, gather_axis=0)
    graph = helper.make_graph([node], name, [helper.make_tensor_value_info("indices", onnx.TensorProto.INT64, ["n"])],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], constants)
    save_model(name, graph, {"indices": indices})


def save_attention(name, kind, is_causal):
    """QAttention, which the generators do not draw: a mask of lengths, or causal with scales by column."""
    rng = np.random.default_rng(SEED)
    heads, width, counts = 2, 8, (2, 5)
    x = rng.integers(0, 200, (*counts, width)).astype(np.uint8)
    scales = rng.uniform(0.004, 0.02, 3 * width if is_causal else ()).astype(np.float32)
    constants = {"weights": rng.integers(0 if kind == np.uint8 else -90, 90, (width, 3 * width)).astype(kind),
                 "bias": rng.standard_normal(3 * width).astype(np.float32), "step": np.float32(0.02), "scales": scales,
                 "lengths": np.array([5, 3], np.int32), "zero": np.uint8(100),
                 "zeros": np.full(scales.shape, 40 if kind == np.uint8 else 0, kind)}
    inputs = ["x", *constants]
    if is_causal:
        inputs[5] = ""
        del constants["lengths"]
    node = helper.make_node("QAttention", inputs, ["y"], domain=MS, num_heads=heads, unidirectional=int(is_causal))
    graph = helper.make_graph([node], name, [helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, x.shape)],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()])
    save_model(name, graph, {"x": x})


def save_model(name, graph, feeds):
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    data = HERE / name / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, str(HERE / name / "model.onnx"))
    expected = dict(zip((port.name for port in graph.output), session.run(None, feeds)))
    for kind, values in (("input", feeds), ("output", expected)):
        for i, (key, value) in enumerate(values.items()):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value, key).SerializeToString())


def save_gated():
    """What onnxruntime's builder of language models writes, which the generators do not draw."""
    rng = np.random.default_rng(SEED)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def save(name, op, feeds, outputs=("y",), constants=None, **attributes):
        constants = constants or {}
        node = helper.make_node(op, [*feeds, *constants], outputs, domain=MS, **attributes)
        ports = [helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
                 for key, value in feeds.items()]
        results = [helper.make_tensor_value_info(key, onnx.TensorProto.FLOAT, None) for key in outputs]
        kept = [numpy_helper.from_array(value, key) for key, value in constants.items()]
        save_model(name, helper.make_graph([node], name, ports, results, kept), feeds)

    feeds = {"x": normal(2, 3, 24), "scale": normal(8), "gate": normal(2, 3, 24)}
    save("GatedRMSNorm_heads", "GatedRMSNorm", feeds, epsilon=1e-3)
    feeds = {"x": normal(3, 8), "scale": normal(8), "gate": normal(3, 8)}
    save("GatedRMSNorm_row", "GatedRMSNorm", feeds, activation="sigmoid")
    feeds = {"a": normal(2, 3, 4), "bias": normal(4), "factor": -np.abs(normal(4)), "b": normal(2, 3, 4)}
    save("LinearAttentionGate_both", "LinearAttentionGate", feeds, ("decay", "beta"))
    save("ScaledSiLU_alpha", "ScaledSiLU", {"x": normal(2, 5)}, alpha=1.7)
    save("ScaledSiLU_input", "ScaledSiLU", {"x": normal(2, 5), "scale": np.float32([0.3]).reshape(())})
    save("GatedAdd_rows", "GatedAdd", {"x": normal(2, 3, 4), "b": normal(2, 3, 4), "gate": normal(2, 3, 1)})
    angles = rng.uniform(0, 6, (50, 8)).astype(np.float32)
    caches = {"cos": np.cos(angles), "sin": np.sin(angles)}
    for name, shape, attributes in (
            ("sections", (2, 4, 5, 16), {"mrope_section": [4, 2, 2]}),
            ("turns", (2, 4, 5, 16), {"mrope_section": [2, 3, 3], "mrope_layout": 1, "interleaved": 1}),
            ("part", (2, 5, 64), {"mrope_section": [3, 3, 2], "mrope_layout": 1, "num_heads": 2,
                                  "rotary_embedding_dim": 16})):
        feeds = {"x": normal(*shape), "positions": rng.integers(0, 50, (3, 2, 5))}
        save("MRotaryEmbedding_" + name, "MRotaryEmbedding", feeds, constants=caches, **attributes)


def main():
    for old in HERE.glob("*_*"):
        if old.is_dir():
            shutil.rmtree(old)
    for domain, op in sorted(GENERATORS):
        if domain != MS:
            continue
        for index, case, model, expected in draw(op, COUNTS.get(op, 1)):
            save_test(case, model, expected, HERE / f"{op}_{index}")
    save_narrow("GatherBlockQuantized_i4", onnx.TensorProto.INT4, -8, False)
    save_narrow("GatherBlockQuantized_u4", onnx.TensorProto.UINT4, 0, True)
    save_attention("QAttention_u8", np.uint8, False)
    save_attention("QAttention_i8", np.int8, True)
    save_gated()


if __name__ == "__main__":
    main()
