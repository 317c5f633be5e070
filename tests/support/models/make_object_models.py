#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the models of tests/models that work on strings, sequences, optionals and tables, or on as many rows as the
data say, again, with what ONNX Runtime says of them (needs the packages onnx and onnxruntime; the tests do not).

usage: make_object_models.py tests/models
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

REAL, WHOLE, TEXT, TRUTH = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING, TensorProto.BOOL


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def typed(name, type_proto):
    info = onnx.ValueInfoProto()
    info.name = name
    info.type.CopyFrom(type_proto)
    return info


def sequence(name, kind=REAL):
    return typed(name, helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, None)))


def optional(name, kind=REAL):
    return typed(name, helper.make_optional_type_proto(helper.make_tensor_type_proto(kind, None)))


def write(path, data, info):
    """A value as the .pb file of its declared type."""
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type" and info.type.sequence_type.elem_type.WhichOneof("value") == "map_type":
        proto = onnx.SequenceProto(name=info.name, elem_type=onnx.SequenceProto.MAP)
        for row in data:
            entry = proto.map_values.add(key_type=TEXT)
            entry.string_keys.extend(key.encode() for key in row)
            entry.values.CopyFrom(numpy_helper.from_list([np.float32(x) for x in row.values()], ""))
    elif kind == "sequence_type":
        proto = numpy_helper.from_list(data, info.name)
    elif kind == "optional_type":
        proto = onnx.OptionalProto(name=info.name, elem_type=onnx.OptionalProto.TENSOR)
        if data is None:
            proto.elem_type = onnx.OptionalProto.UNDEFINED
        else:
            proto.tensor_value.CopyFrom(numpy_helper.from_array(data))
    else:
        proto = numpy_helper.from_array(np.asarray(data), info.name)
    with open(path, "wb") as file:
        file.write(proto.SerializeToString())


def save(directory, name, nodes, inputs, outputs, sets, initializers=(), opsets=(("", 20),)):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets])
    model.ir_version = 9
    model.producer_name = "rondo-tests"
    folder = os.path.join(directory, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    for number, feeds in enumerate(sets):
        data = os.path.join(folder, "test_data_set_%d" % number)
        os.makedirs(data, exist_ok=True)
        results = session.run(None, {info.name: feed for info, feed in zip(inputs, feeds)})
        for kind, infos, values in (("input", inputs, feeds), ("output", outputs, results)):
            for i, (info, one) in enumerate(zip(infos, values)):
                write(os.path.join(data, "%s_%d.pb" % (kind, i)), one, info)


def words_and_lists(directory):
    """Strings to numbers and back, a sequence that grows in a loop, an optional that an If asks for."""
    node = helper.make_node
    grow = helper.make_graph(
        [node("Identity", ["going"], ["goes_on"]),
         node("SequenceAt", ["list", "turn"], ["item"]),
         node("Mul", ["item", "factor"], ["scaled"]),
         node("SequenceInsert", ["grown_in", "scaled"], ["grown_out"])],
        "grow", [value("turn", WHOLE, []), value("going", TRUTH, []), sequence("grown_in")],
        [value("goes_on", TRUTH, []), sequence("grown_out")])
    there = helper.make_graph([node("OptionalGetElement", ["maybe"], ["found"]),
                               node("Add", ["found", "factor"], ["picked_then"])],
                              "there", [], [value("picked_then", REAL, None)])
    absent = helper.make_graph([node("Identity", ["factor"], ["picked_else"])],
                               "absent", [], [value("picked_else", REAL, None)])
    negate = helper.make_graph([node("Neg", ["one"], ["negative"])], "negate",
                               [value("one", REAL, None)], [value("negative", REAL, None)])
    nodes = [
        node("LabelEncoder", ["words"], ["codes"], domain="ai.onnx.ml",
             keys_strings=["red", "green", "blue"], values_floats=[1.5, -2.0, 0.25], default_float=9.0),
        node("Relu", ["codes"], ["positive"]),
        node("Mul", ["positive", "factor"], ["scores"]),
        node("StringNormalizer", ["words"], ["kept"], case_change_action="UPPER", stopwords=["The"],
             is_case_sensitive=0, locale="C"),
        node("StringConcat", ["kept", "mark"], ["shouted"]),
        node("SequenceLength", ["list"], ["length"]),
        node("SequenceEmpty", [], ["nothing"]),
        node("Loop", ["length", "", "nothing"], ["grown"], body=grow),
        node("SequenceMap", ["list"], ["negated"], body=negate),
        node("ConcatFromSequence", ["grown"], ["joined"], axis=0),
        node("Cast", ["joined"], ["texts"], to=TEXT),
        node("OptionalHasElement", ["maybe"], ["is_there"]),
        node("If", ["is_there"], ["picked"], then_branch=there, else_branch=absent),
        node("Optional", ["joined"], ["wrapped"]),
    ]
    constants = [numpy_helper.from_array(np.array([2.0], np.float32), "factor"),
                 numpy_helper.from_array(np.array(["!"], object), "mark")]
    lists = [[np.array([1, -2], np.float32), np.array([0.5], np.float32)],
             [np.array([3, 4, -5, 0.125], np.float32)] * 3]
    save(directory, "words_and_lists", nodes,
         [value("words", TEXT, ["n"]), sequence("list"), optional("maybe")],
         [value("scores", REAL, ["n"]), value("shouted", TEXT, ["m"]), sequence("grown"),
          sequence("negated"), value("texts", TEXT, ["k"]), value("picked", REAL, None),
          optional("wrapped")],
         [(np.array(["red", "the", "blue", "unknown"], object), lists[0], np.array([7], np.float32)),
          (np.array(["The", "green"], object), lists[1], None)],
         constants, (("", 20), ("ai.onnx.ml", 3)))


def flower_trees(directory):
    """A classifier as converters make them: scaled features, trees, labels, and a ZipMap at the end."""
    rng = np.random.RandomState(5)
    lists = {key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                                 "falsenodeids")}
    leaves = []
    for tree in range(6):
        for number in range(7):  # two levels of tests, four leaves
            is_leaf = number > 2
            row = (tree, number, 0 if is_leaf else int(rng.randint(4)),
                   0.0 if is_leaf else float(np.round(rng.randn(), 2)),
                   "LEAF" if is_leaf else "BRANCH_LEQ", 0 if is_leaf else 2 * number + 1,
                   0 if is_leaf else 2 * number + 2)
            for key, entry in zip(lists, row):
                lists[key].append(entry)
            if is_leaf:
                weights = rng.dirichlet([1, 1, 1]) / 6
                leaves += [(tree, number, c, float(np.round(w, 4))) for c, w in enumerate(weights)]
    names = ["setosa", "versicolor", "virginica"]
    nodes = [
        helper.make_node("Scaler", ["x"], ["scaled"], domain="ai.onnx.ml",
                         offset=[5.8, 3.0, 3.7, 1.2], scale=[1.2, 2.3, 0.6, 1.3]),
        helper.make_node("TreeEnsembleClassifier", ["scaled"], ["label", "scores"],
                         domain="ai.onnx.ml", post_transform="NONE", classlabels_strings=names,
                         class_treeids=[x[0] for x in leaves], class_nodeids=[x[1] for x in leaves],
                         class_ids=[x[2] for x in leaves], class_weights=[x[3] for x in leaves],
                         **{"nodes_" + key: entries for key, entries in lists.items()}),
        helper.make_node("ZipMap", ["scores"], ["probabilities"], domain="ai.onnx.ml",
                         classlabels_strings=names),
    ]
    maps = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TEXT, helper.make_tensor_type_proto(REAL, [])))
    data = [np.round(rng.uniform([4, 2, 1, 0], [8, 4, 7, 2.5], (rows, 4)), 1).astype(np.float32)
            for rows in (5, 1)]
    save(directory, "flower_trees", nodes, [value("x", REAL, ["n", 4])],
         [value("label", TEXT, ["n"]), typed("probabilities", maps)], [(x,) for x in data], (),
         (("", 17), ("ai.onnx.ml", 3)))


def columns_and_classes(directory):
    """The other ops of ai.onnx.ml on a table of two columns: filled, scaled, encoded, fitted, classified."""
    def learned(op, inputs, outputs, **attributes):
        return helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)

    nodes = [
        learned("Imputer", ["x"], ["filled"], imputed_value_floats=[1., 2.], replaced_value_float=0.),
        learned("Binarizer", ["filled"], ["high"], threshold=1.),
        learned("FeatureVectorizer", ["filled", "high"], ["all"], inputdimensions=[2, 2]),
        learned("LinearRegressor", ["all"], ["fitted"], coefficients=[.5, 1., -1., 2.], intercepts=[.1], targets=1),
        learned("OneHotEncoder", ["kind"], ["encoded"], cats_strings=["one", "two"], zeros=1),
        learned("Scaler", ["x"], ["scaled"], offset=[.5, 1.], scale=[2., 3.]),
        learned("LinearClassifier", ["scaled"], ["number", "scores"], classlabels_ints=[3, 5, 9],
                coefficients=[.5, 1., -1., 2., .1, -.3], intercepts=[.1, .2, .3], post_transform="SOFTMAX"),
        learned("LabelEncoder", ["number"], ["word"], keys_int64s=[3, 5], values_strings=["x", "y"], default_string="?"),
        learned("Normalizer", ["scores"], ["even"], norm="L2"),
        learned("ArrayFeatureExtractor", ["even", "picked"], ["features"]),
        learned("SVMClassifier", ["x"], ["side", "sides"], classlabels_ints=[0, 1], coefficients=[1., -1., .5],
                kernel_type="RBF", kernel_params=[.5, .1, 2.], rho=[.2],
                support_vectors=[0., 1., 1., 0., 2., 1.], vectors_per_class=[2, 1]),
        learned("SVMRegressor", ["x"], ["curve"], coefficients=[1., -1.], kernel_type="POLY", n_supports=2,
                kernel_params=[.5, .1, 2.], rho=[.2], support_vectors=[0., 1., 1., 0.]),
        helper.make_node("Cast", ["curve"], ["told"], to=TEXT),
        helper.make_node("Cast", ["told"], ["heard"], to=REAL),
    ]
    feeds = (np.array([[0, 3], [1.5, 0], [-2, 4]], np.float32), np.array(["two", "none", "one"], object),
             np.array([2, 0], np.int64))
    save(directory, "columns_and_classes", nodes,
         [value("x", REAL, ["n", 2]), value("kind", TEXT, ["n"]), value("picked", WHOLE, [2])],
         [value("fitted", REAL, ["n", 1]), value("encoded", REAL, ["n", 2]), value("word", TEXT, ["n"]),
          value("features", REAL, ["n", 2]), value("side", WHOLE, ["n"]), value("sides", REAL, ["n", 2]),
          value("heard", REAL, ["n", 1])], [feeds], (), (("", 17), ("ai.onnx.ml", 3)))


def found_rows(directory):
    """The rows of a table with a positive sum through a small network; then, per row, as many steps as it says."""
    generator = np.random.default_rng(6)
    node = helper.make_node
    whole = {"axis": [1], "all": [-1], "first": [0], "six": [6]}
    weights = [numpy_helper.from_array(np.array(data, np.int64), name) for name, data in whole.items()]
    weights += [numpy_helper.from_array(np.array(data, np.int64), name) for name, data in (("begin", 0), ("step", 1))]
    weights += [numpy_helper.from_array(generator.normal(size=size).astype(np.float32), name)
                for name, size in (("w", (4, 6)), ("b", (6,)), ("v", (6, 3)))]
    nodes = [node("ReduceSum", ["x", "axis"], ["sums"], keepdims=0), node("Relu", ["sums"], ["scores"]),
             node("NonZero", ["scores"], ["found"]), node("Transpose", ["found"], ["places"]),
             node("GatherND", ["x", "places"], ["rows"]), node("MatMul", ["rows", "w"], ["wide"]),
             node("Add", ["wide", "b"], ["moved"]), node("Reshape", ["moved", "all"], ["flat"]),
             node("Tanh", ["flat"], ["bent"]), node("Shape", ["rows"], ["shape"]),
             node("Gather", ["shape", "first"], ["count"]), node("Concat", ["count", "six"], ["back"], axis=0),
             node("Reshape", ["bent", "back"], ["again"]), node("MatMul", ["again", "v"], ["y"]),
             node("ReduceMax", ["scores"], ["most"], keepdims=0), node("Ceil", ["most"], ["whole"]),
             node("Cast", ["whole"], ["end"], to=WHOLE), node("Range", ["begin", "end", "step"], ["steps"]),
             node("Cast", ["steps"], ["times"], to=REAL), node("Unsqueeze", ["times", "axis"], ["column"]),
             node("Unsqueeze", ["scores", "first"], ["row"]), node("Less", ["column", "row"], ["test"]),
             node("Cast", ["test"], ["mask"], to=REAL), node("MatMul", ["mask", "x"], ["z"])]
    sets = []
    for shift in (0.0, 1.0):
        x = generator.normal(size=(70, 4)).astype(np.float32)
        sets.append([x + np.float32(shift)])
    save(directory, "found_rows", nodes, [value("x", REAL, ["n", 4])],
         [value("y", REAL, ["found", 3]), value("z", REAL, ["steps", 4])], sets, weights)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    words_and_lists(sys.argv[1])
    flower_trees(sys.argv[1])
    columns_and_classes(sys.argv[1])
    found_rows(sys.argv[1])
