"""Exported networks without their weights, which a machine can bring along, and with weights drawn anew.

strip(FOLDER, SKELETON) keeps of each tensor of 1024 and more different reals of FOLDER/model.onnx its mean, deviation
and sign, and of each input in FOLDER/test_data_set_0 likewise. fill(SKELETON, FOLDER) draws them (normal, the same
numbers everywhere), writes FOLDER/model.onnx with large weights in a file beside it, and input_N.pb of
FOLDER/test_data_set_0; with four_bits the products of f16 become MatMulNBits (blocks of 32 along k). expect(FOLDER)
adds the outputs by ONNX Runtime's CPU provider.
"""
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

REALS = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}
INLINE_BYTES = 1 << 17  # what is larger lies beside the graph


def describe(values):
    return [float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64)), bool((values >= 0).all())]


def strip(folder, target):
    model = onnx.load(f"{folder}/model.onnx")
    for tensor in model.graph.initializer:
        if tensor.data_type not in REALS or np.prod(tensor.dims) < 1024:
            continue
        values = numpy_helper.to_array(tensor)
        if np.unique(values.ravel()[:1 << 20]).size >= 1024:
            for field in ("raw_data", "float_data", "int32_data", "external_data", "data_location"):
                tensor.ClearField(field)
            tensor.doc_string = "drawn " + json.dumps(describe(values))
    for number, spec in enumerate(model.graph.input):
        values = read(f"{folder}/test_data_set_0/input_{number}.pb")
        real = values.dtype.kind == "f"
        spec.doc_string = json.dumps(describe(values) if real else [int(values.min()), int(values.max())])
    onnx.save(model, target)


class Numbers:
    """Normal deviates from a pool that is gone through around and around, as so many are needed."""

    def __init__(self):
        self.rng = np.random.Generator(np.random.SFC64(0))
        self.pool, self.at = self.rng.standard_normal((1 << 24) + 4097, dtype=np.float32), 0

    def draw(self, count, kind, mean, deviation, positive):
        out = np.empty(count, kind)
        for begin in range(0, count, 1 << 22):
            end = min(begin + (1 << 22), count)
            if self.at + end - begin > self.pool.size:
                self.at = (self.at + 7919) % 104729
            values = self.pool[self.at:self.at + end - begin] * np.float32(deviation) + np.float32(mean)
            out[begin:end] = np.abs(values) if positive else values
            self.at += end - begin
        return out


class Blob:
    def __init__(self, folder):
        self.file, self.at = open(f"{folder}/weights.bin", "wb"), 0

    def place(self, tensor, values):
        if values.nbytes < INLINE_BYTES:
            tensor.raw_data = values.tobytes()
            return
        self.file.write(b"\0" * (-self.at % 4096))
        self.at += -self.at % 4096
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", self.at), ("length", values.nbytes)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        values.tofile(self.file)
        self.at += values.nbytes


def put_four_bits(model, numbers, blob):
    """Each product of f16 with a drawn weight becomes a MatMulNBits with bits and scales of their own."""
    weights, replaced, added = {tensor.name: tensor for tensor in model.graph.initializer}, set(), []
    for node in model.graph.node:
        weight = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if weight is None or not weight.doc_string.startswith("drawn"):
            continue
        k, n = weight.dims
        bits = TensorProto(name=f"{weight.name}_bits", data_type=TensorProto.UINT8, dims=[n, k // 32, 16])
        scales = TensorProto(name=f"{weight.name}_scales", data_type=TensorProto.FLOAT16, dims=[n * (k // 32)])
        blob.place(bits, numbers.rng.integers(0, 256, n * k // 2, np.uint8))
        blob.place(scales, (numbers.rng.random(n * (k // 32), np.float32) * 0.004 + 0.002).astype(np.float16))
        replaced.add(weight.name)
        added += [bits, scales]
        node.op_type, node.domain = "MatMulNBits", "com.microsoft"
        node.input[1] = bits.name
        node.input.append(scales.name)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in
                              (("K", k), ("N", n), ("bits", 4), ("block_size", 32)))
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in replaced]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept + added)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def fill(skeleton, folder, four_bits=False):
    data = f"{folder}/test_data_set_0"
    os.makedirs(data, exist_ok=True)
    model, numbers, blob = onnx.load(skeleton), Numbers(), Blob(folder)
    if four_bits:
        put_four_bits(model, numbers, blob)
    for tensor in model.graph.initializer:
        if tensor.doc_string.startswith("drawn"):
            mean, deviation, positive = json.loads(tensor.doc_string[6:])
            tensor.ClearField("doc_string")
            count, kind = int(np.prod(tensor.dims)), REALS[tensor.data_type]
            blob.place(tensor, numbers.draw(count, kind, mean, deviation, positive))
    blob.file.close()
    for number, spec in enumerate(model.graph.input):
        shape, kind = [d.dim_value for d in spec.type.tensor_type.shape.dim], spec.type.tensor_type.elem_type
        drawn = json.loads(spec.doc_string)
        if kind in REALS:
            values = numbers.draw(int(np.prod(shape)), REALS[kind], *drawn).reshape(shape)
        else:
            values = numbers.rng.integers(drawn[0], drawn[1] + 1, shape, helper.tensor_dtype_to_np_dtype(kind))
        write(f"{data}/input_{number}.pb", values, spec.name)
    onnx.save(model, f"{folder}/model.onnx")


def read(path):
    with open(path, "rb") as file:
        return numpy_helper.to_array(TensorProto.FromString(file.read()))


def write(path, values, name):
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(np.asarray(values), name).SerializeToString())


def expect(folder):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "2"))
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
    data, feeds = f"{folder}/test_data_set_0", {}
    for number, spec in enumerate(session.get_inputs()):
        feeds[spec.name] = read(f"{data}/input_{number}.pb")
    for number, (spec, values) in enumerate(zip(session.get_outputs(), session.run(None, feeds))):
        write(f"{data}/output_{number}.pb", values, spec.name)


def input_names(path):
    return [spec.name for spec in onnx.load(path, load_external_data=False).graph.input]


def output_names(path):
    return [spec.name for spec in onnx.load(path, load_external_data=False).graph.output]


def count_read_bytes(path):
    """What a run in fp16 has to read at least: all tensors but those that only a Gather reads, and the inputs."""
    graph = onnx.load(path, load_external_data=False).graph
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    shapes = [(tensor.data_type, tensor.dims) for tensor in graph.initializer if tensor.name not in looked_up]
    shapes += [(spec.type.tensor_type.elem_type, [dim.dim_value for dim in spec.type.tensor_type.shape.dim])
               for spec in graph.input]
    sizes = {TensorProto.FLOAT: 2}
    return sum(int(np.prod(shape)) * sizes.get(kind, helper.tensor_dtype_to_np_dtype(kind).itemsize)
               for kind, shape in shapes)
