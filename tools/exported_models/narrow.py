# SPDX-License-Identifier: Apache-2.0

"""Models of four-bit and float8 weights and activations, as quantisers write them; weights are random."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from ops import draw

OPSET, IR = 21, 10
FLOAT8 = {"e4m3fn": TensorProto.FLOAT8E4M3FN, "e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
          "e5m2": TensorProto.FLOAT8E5M2, "e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ}


class Model:
    """A chain of nodes: each call adds one and returns its output's name."""

    def __init__(self, **feeds):
        self.feeds, self.nodes, self.weights, self.domains = feeds, [], [], {"": OPSET}

    def add(self, op, *inputs, domain="", **attributes):
        if domain:
            self.domains[domain] = 1
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], domain=domain, **attributes))
        return self.nodes[-1].output[0]

    def keep(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def keep_as(self, kind, values):
        """A constant of a type that numpy lacks."""
        values = np.asarray(values)
        name = f"w{len(self.weights)}"
        self.weights.append(helper.make_tensor(name, kind, values.shape, values.ravel().tolist()))
        return name

    def end(self, name):
        ports = [helper.make_tensor_value_info(key, numpy_helper.from_array(value).data_type, value.shape)
                 for key, value in self.feeds.items()]
        result = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "narrow", ports, [result], self.weights)
        opsets = [helper.make_opsetid(*item) for item in self.domains.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR).SerializeToString(), self.feeds


def draw_steps(low, high, *shape):
    return np.random.default_rng(sum(shape)).integers(low, high, shape, endpoint=True)


def dequantise(model, kind, low, high, k, n, block=0, has_zeros=False):
    """Weights [k, n] of 4 bits: one scale for all columns, one each, or blocks along k."""
    shape = (k // block, n) if block else (n,)
    inputs = [model.keep_as(kind, draw_steps(low, high, k, n)), model.keep(np.abs(draw(*shape)) * 0.01 + 1e-3)]
    if has_zeros:
        inputs.append(model.keep_as(kind, draw_steps(low, high, *shape)))
    attributes = {"axis": 0, "block_size": block} if block else {"axis": 1}
    return model.add("DequantizeLinear", *inputs, **attributes)


def make_product(kind, low, high, rows, **how):
    model = Model(x=draw(rows, 256))
    return model.end(model.add("MatMul", "x", dequantise(model, kind, low, high, 256, 384, **how)))


def make_layers(rows):
    """Two layers of int4 blocks with a gate, as a language model's."""
    model = Model(x=draw(rows, 256))
    gate = model.add("MatMul", "x", dequantise(model, TensorProto.INT4, -8, 7, 256, 512, block=32))
    up = model.add("MatMul", "x", dequantise(model, TensorProto.UINT4, 0, 15, 256, 512, block=64, has_zeros=True))
    value = model.add("Mul", model.add("Mul", gate, model.add("Sigmoid", gate)), up)
    return model.end(model.add("MatMul", value, dequantise(model, TensorProto.INT4, -8, 7, 512, 256, block=128)))


def make_bits(bits, rows, block, has_zeros):
    """com.microsoft.MatMulNBits."""
    k, n = 256, 384
    model = Model(x=draw(rows, k))
    inputs = ["x", model.keep(draw_steps(0, 255, n, k // block, block * bits // 8).astype(np.uint8)),
              model.keep(np.abs(draw(n, k // block)) * 0.01)]
    if has_zeros:
        inputs.append(model.keep(draw_steps(0, 255, n, (k // block * bits + 7) // 8).astype(np.uint8)))
    return model.end(model.add("MatMulNBits", *inputs, domain="com.microsoft", K=k, N=n, bits=bits, block_size=block))


def make_embedding():
    model = Model(ids=np.random.default_rng(1).integers(0, 500, (2, 17)))
    table = dequantise(model, TensorProto.INT4, -8, 7, 512, 64, block=32)
    return model.end(model.add("Gather", table, "ids"))


def make_steps(kind, scale):
    """Activations that go through a narrow type."""
    model = Model(x=draw(64, 96))
    step, zero = model.keep(np.float32(scale)), model.keep_as(kind, 0)
    narrow = model.add("QuantizeLinear", "x", step, zero)
    return model.end(model.add("DequantizeLinear", narrow, step, zero))


def make_float8_product(kind):
    model = Model(x=draw(33, 128))
    scale, zero = model.keep(np.float32(0.02)), model.keep_as(kind, 0)
    rows = model.add("DequantizeLinear", model.add("QuantizeLinear", "x", scale, zero), scale, zero)
    weights = model.add("DequantizeLinear", model.keep_as(kind, draw(128, 96) * 4), model.keep(np.float32(0.1)), zero)
    return model.end(model.add("MatMul", rows, weights))


def make_float8_convolution():
    kind = TensorProto.FLOAT8E4M3FN
    model = Model(x=draw(1, 16, 20, 20))
    scale, zero = model.keep(np.float32(0.02)), model.keep_as(kind, 0)
    image = model.add("DequantizeLinear", model.add("QuantizeLinear", "x", scale, zero), scale, zero)
    weights = model.add("DequantizeLinear", model.keep_as(kind, draw(24, 16, 3, 3) * 4), model.keep(np.float32(0.05)), zero)
    return model.end(model.add("Relu", model.add("Conv", image, weights, pads=[1, 1, 1, 1])))


def make_casts(kind):
    model = Model(x=draw(64, 96) * 40)
    half = model.add("Cast", model.add("Cast", "x", to=kind), to=TensorProto.FLOAT16)
    return model.end(model.add("Cast", model.add("Cast", half, to=kind), to=TensorProto.FLOAT))


def export_narrow():
    for rows in (1, 16, 70):
        yield f"int4_columns_{rows}", *make_product(TensorProto.INT4, -8, 7, rows)
        yield f"int4_blocks_{rows}", *make_product(TensorProto.INT4, -8, 7, rows, block=32)
        yield f"uint4_zeros_{rows}", *make_product(TensorProto.UINT4, 0, 15, rows, block=64, has_zeros=True)
        yield f"int4_layers_{rows}", *make_layers(rows)
        for bits in (4, 8):
            yield f"nbits{bits}_{rows}", *make_bits(bits, rows, 32, False)
            yield f"nbits{bits}_zeros_{rows}", *make_bits(bits, rows, 64, True)
    yield "int4_embedding", *make_embedding()
    yield "int4_steps", *make_steps(TensorProto.INT4, 0.4)
    yield "uint4_steps", *make_steps(TensorProto.UINT4, 0.2)
    yield "float8_convolution", *make_float8_convolution()
    for name, kind in FLOAT8.items():
        yield f"{name}_steps", *make_steps(kind, 0.03)
        yield f"{name}_product", *make_float8_product(kind)
        yield f"{name}_casts", *make_casts(kind)
