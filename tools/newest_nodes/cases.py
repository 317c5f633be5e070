# SPDX-License-Identifier: Apache-2.0

"""Writes the test cases of the installed onnx package as test directories."""
import os
import shutil

import numpy as np
import onnx
import onnx.backend.test
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import model as model_cases
from onnx.backend.test.case import node as node_cases

SHIPPED = ("simple", "pytorch-operator", "pytorch-converted")


def pack(value, info):
    """The message of an input or output, as its declared kind has it."""
    kind = info.type.WhichOneof("value")
    if isinstance(value, TensorProto):
        return value
    if kind == "sequence_type":
        return numpy_helper.from_list(list(value), info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if kind != "optional_type":
        return numpy_helper.from_array(np.asarray(value), info.name)
    if value is None:
        element = info.type.optional_type.elem_type.WhichOneof("value")
        kinds = onnx.OptionalProto
        return onnx.OptionalProto(name=info.name,
                                  elem_type=kinds.TENSOR if element == "tensor_type" else kinds.SEQUENCE)
    if info.type.optional_type.elem_type.WhichOneof("value") == "tensor_type" and isinstance(value, list):
        value = value[0]
    return numpy_helper.from_optional(value, info.name)


def save(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def write_case(directory, case):
    os.makedirs(directory)
    save(os.path.join(directory, "model.onnx"), case.model)
    for number, sets in enumerate(case.data_sets):
        folder = os.path.join(directory, f"test_data_set_{number}")
        os.makedirs(folder)
        for what, values, infos in (("input", sets[0], case.model.graph.input),
                                    ("output", sets[1], case.model.graph.output)):
            for i, value in enumerate(values):
                save(os.path.join(folder, f"{what}_{i}.pb"), pack(value, infos[i]))


def write_light(source, directory):
    """A model whose inputs are made, as onnx's own runner makes them."""
    folder = os.path.join(directory, "test_data_set_0")
    os.makedirs(folder)
    shutil.copy(source, os.path.join(directory, "model.onnx"))
    shutil.copy(source[:-5] + "_output_0.pb", os.path.join(folder, "output_0.pb"))
    graph = onnx.load(source).graph
    known = {tensor.name for tensor in graph.initializer}
    for i, info in enumerate(info for info in graph.input if info.name not in known):
        shape = [max(dim.dim_value, 1) for dim in info.type.tensor_type.shape.dim]
        count = int(np.prod(shape))
        values = (np.arange(count) / count).astype(np.float32).reshape(shape)
        save(os.path.join(folder, f"input_{i}.pb"), numpy_helper.from_array(values, info.name))


def write_cases(folder):
    """All cases, anew; their directories."""
    shutil.rmtree(folder, ignore_errors=True)
    for case in node_cases.collect_testcases() + model_cases.collect_testcases():
        if case.model is not None:  # others would be downloaded
            write_case(os.path.join(folder, case.kind, case.name), case)
    data = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data")
    for kind in SHIPPED:
        for name in os.listdir(os.path.join(data, kind)):
            source, target = os.path.join(data, kind, name), os.path.join(folder, kind, name)
            if os.path.isdir(source) and not os.path.exists(target):
                shutil.copytree(source, target)
    for name in os.listdir(os.path.join(data, "light")):
        if name.endswith(".onnx"):
            write_light(os.path.join(data, "light", name), os.path.join(folder, "light", name[:-5]))
    return sorted(os.path.join(folder, kind, name) for kind in os.listdir(folder)
                  for name in os.listdir(os.path.join(folder, kind)))
