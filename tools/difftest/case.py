# SPDX-License-Identifier: Apache-2.0

"""A case: a small graph with its inputs, and the ONNX model made of it."""
import dataclasses

import numpy as np
import onnx
from onnx import helper, numpy_helper

import values


@dataclasses.dataclass
class Node:
    op: str
    inputs: list          # names; "" is an absent input
    outputs: list
    attrs: dict = dataclasses.field(default_factory=dict)
    domain: str = ""


@dataclasses.dataclass
class Case:
    opset: int
    nodes: list
    feeds: dict           # name: array, Sequence or Maybe, in the order of the model's inputs
    constants: dict       # name: array
    outputs: list         # names
    seed: int = 0
    index: int = 0
    has_loose_shapes: bool = False  # inputs are declared by rank alone
    is_drawn: bool = False          # random results: only dtype and shape are compared
    tolerance: float = 1.0          # factor over the default, for long sums
    floor: float = 0.0              # differences below it are rounding, where terms cancel
    domains: dict = dataclasses.field(default_factory=dict)  # versions of other domains

    @property
    def ops(self):
        return sorted({node.op for node in self.nodes})

    def get_array(self, name):
        return self.feeds.get(name, self.constants.get(name))

    def get_arrays(self):
        given = list(self.feeds.values()) + list(self.constants.values())
        return [array for value in given for array in values.list_arrays(value)]

    def copy(self):
        nodes = [Node(n.op, list(n.inputs), list(n.outputs), dict(n.attrs), n.domain)
                 for n in self.nodes]
        return dataclasses.replace(self, nodes=nodes, feeds=dict(self.feeds),
                                   constants=dict(self.constants), outputs=list(self.outputs))


def make_attribute(name, value):
    if isinstance(value, np.ndarray):
        value = numpy_helper.from_array(value)
    if isinstance(value, list) and not value:
        return helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS)
    return helper.make_attribute(name, value)


def make_node(node):
    proto = helper.make_node(node.op, node.inputs, node.outputs, domain=node.domain,
                             name="n_" + node.outputs[0] if node.outputs[0] else "n")
    proto.attribute.extend(make_attribute(name, value) for name, value in node.attrs.items())
    return proto


def make_input(name, value, has_loose_shapes):
    shape = None
    if isinstance(value, np.ndarray):
        shape = [f"{name}_{i}" if has_loose_shapes else extent for i, extent in enumerate(value.shape)]
    return helper.make_value_info(name, values.make_type(value, shape))


def make_model(case):
    """The model; outputs are declared without shape or type where only running tells them."""
    outputs = [onnx.ValueInfoProto(name=name) for name in case.outputs]
    graph = helper.make_graph(
        [make_node(node) for node in case.nodes], "difftest",
        [make_input(name, value, case.has_loose_shapes) for name, value in case.feeds.items()],
        outputs, [numpy_helper.from_array(array, name) for name, array in case.constants.items()])
    opsets = [helper.make_opsetid("", case.opset)]
    opsets += [helper.make_opsetid(domain, version) for domain, version in case.domains.items()]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="rondo-difftest")
    model.ir_version = 10 if case.opset >= 21 else 9 if case.opset >= 20 else 8
    return model


def save_test(case, model, expected, directory):
    """Writes an ONNX test directory: model.onnx and test_data_set_0 with inputs and outputs."""
    data = directory / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(directory / "model.onnx"))
    sides = {"input": case.feeds,
             "output": {name: (expected or {}).get(name) for name in case.outputs}}
    for side, given in sides.items():
        for i, (name, value) in enumerate(given.items()):
            stored = values.store(value, name)
            if stored is not None:
                (data / f"{side}_{i}.pb").write_bytes(stored)
