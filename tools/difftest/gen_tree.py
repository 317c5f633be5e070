# SPDX-License-Identifier: Apache-2.0

"""ai.onnx.ml: ensembles of trees, as versions 1 and 3 write them and as version 5 does."""
import numpy as np

from gen_ml import TRANSFORMS, draw_labels, finish, generates
from registry import some

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


class Tree:
    """Nodes in order of their numbers; children are numbers, a leaf has none."""

    def __init__(self, draw, columns, modes, depth):
        self.nodes = []
        self.grow(draw, columns, modes, depth)

    def grow(self, draw, columns, modes, depth):
        number = len(self.nodes)
        node = {"mode": "LEAF", "feature": 0, "value": 0.0, "true": 0, "false": 0, "missing": 0}
        self.nodes.append(node)
        if depth > 0 and (number == 0 or draw.chance(0.7)):
            node.update(mode=draw.pick(modes), feature=draw.whole(0, columns - 1),
                        value=draw.whole(-4, 4) / 2, missing=draw.whole(0, 1))
            node["true"] = self.grow(draw, columns, modes, depth - 1)
            node["false"] = self.grow(draw, columns, modes, depth - 1)
        return number


def draw_table(draw, schema, columns, has_missing):
    """Numbers on the grid of the thresholds, so that equality and order are met."""
    dtype = schema.pick_dtype(draw)
    x = draw.rng.integers(-8, 9, (draw.whole(1, 5), columns)) / (2 if dtype.kind == "f" else 1)
    if dtype.kind == "f" and has_missing:
        x = np.where(draw.rng.random(x.shape) < 0.2, np.nan, x)
    return x.astype(dtype)


def draw_trees(draw, columns):
    modes = MODES if draw.chance(0.3) else [draw.pick(MODES[:4])]
    return [Tree(draw, columns, modes, draw.whole(0 if draw.chance(0.2) else 1, 3))
            for _ in range(draw.whole(1, 4))]


def list_nodes(draw, trees, dtype, has_missing):
    """The attributes of versions 1 and 3."""
    nodes = [(t, i, node) for t, tree in enumerate(trees) for i, node in enumerate(tree.nodes)]
    attrs = {"nodes_treeids": [t for t, _, _ in nodes], "nodes_nodeids": [i for _, i, _ in nodes]}
    for name, key in (("modes", "mode"), ("featureids", "feature"), ("truenodeids", "true"),
                      ("falsenodeids", "false")):
        attrs["nodes_" + name] = [node[key] for _, _, node in nodes]
    if has_missing:
        attrs["nodes_missing_value_tracks_true"] = [node["missing"] for _, _, node in nodes]
    put_numbers(attrs, "nodes_values", [node["value"] for _, _, node in nodes], dtype)
    if draw.chance(0.2):  # which nothing reads
        put_numbers(attrs, "nodes_hitrates", [1.0 for _ in nodes], dtype)
    return attrs


def put_numbers(attrs, name, numbers, dtype):
    """Floats, or a tensor of doubles for double inputs."""
    if dtype == np.float64:
        attrs[name + "_as_tensor"] = np.array(numbers, np.float64)
    else:
        attrs[name] = numbers


def list_leaves(draw, trees, prefix, targets, dtype):
    """The weights of the leaves: one of a leaf, or one for each target."""
    entries = []
    for t, tree in enumerate(trees):
        for i, node in enumerate(tree.nodes):
            if node["mode"] == "LEAF":
                ids = range(targets) if draw.chance(0.5) else [draw.whole(0, targets - 1)]
                entries += [(t, i, target, draw.real()) for target in ids]
    attrs = {prefix + "_treeids": [e[0] for e in entries], prefix + "_nodeids": [e[1] for e in entries],
             prefix + "_ids": [e[2] for e in entries]}
    put_numbers(attrs, prefix + "_weights", [e[3] for e in entries], dtype)
    return attrs


def is_double(draw, schema, x):
    return np.float64 if x.dtype == np.float64 and schema.has("nodes_values_as_tensor") and \
        draw.chance(0.7) else np.float32


@generates("TreeEnsembleRegressor")
def tree_regressor(draw, op, schema):
    columns, targets, has_missing = draw.whole(1, 4), draw.whole(1, 3), draw.chance(0.4)
    x = draw_table(draw, schema, columns, has_missing)
    trees, dtype = draw_trees(draw, columns), is_double(draw, schema, x)
    attrs = {**list_nodes(draw, trees, dtype, has_missing), **list_leaves(draw, trees, "target", targets, dtype),
             "n_targets": targets, "post_transform": draw.pick(TRANSFORMS)}
    attrs.update(some(draw, schema, aggregate_function=lambda: draw.pick(AGGREGATES)))
    if draw.chance(0.4):
        put_numbers(attrs, "base_values", [draw.real() for _ in range(targets)], dtype)
    draw.case.floor = 1e-5
    return finish(draw, op, [draw.feed(x, False)], **attrs)


@generates("TreeEnsembleClassifier")
def tree_classifier(draw, op, schema):
    columns, classes, has_missing = draw.whole(1, 4), draw.whole(2, 4), draw.chance(0.4)
    x = draw_table(draw, schema, columns, has_missing)
    trees, dtype = draw_trees(draw, columns), is_double(draw, schema, x)
    scores = 1 if classes == 2 and draw.chance(0.5) else classes
    attrs = {**list_nodes(draw, trees, dtype, has_missing), **list_leaves(draw, trees, "class", scores, dtype),
             "post_transform": draw.pick(TRANSFORMS)}
    if draw.chance(0.3):
        put_numbers(attrs, "base_values", [draw.real() for _ in range(scores)], dtype)
    draw.case.floor = 1e-5
    return finish(draw, op, [draw.feed(x, False)], 2, **attrs,
                  **draw_labels(draw, classes, "classlabels_int64s"))


@generates("TreeEnsemble")
def tree_ensemble(draw, op, schema):
    columns, targets, has_missing = draw.whole(1, 4), draw.whole(1, 3), draw.chance(0.4)
    x = draw_table(draw, schema, columns, has_missing)
    least = 0 if draw.chance(0.1) else 1  # the evaluator ends a list of members at 0
    members = [[float(v + least) for v in draw.permutation(4)[:draw.whole(1, 3)]] for _ in range(40)]
    inner, leaves, roots = [], [], []
    for tree in draw_trees(draw, columns):
        if len(tree.nodes) == 1:
            continue
        places = {}
        for i, node in enumerate(tree.nodes):
            is_leaf = node["mode"] == "LEAF"
            places[i] = (is_leaf, len(leaves) if is_leaf else len(inner))
            (leaves if is_leaf else inner).append(node)
        roots.append(places[0][1])
        for node in tree.nodes:
            node["places"] = [places[node["true"]], places[node["false"]]]
    if not inner:
        return tree_ensemble(draw, op, schema)
    modes = [MODES.index(node["mode"]) for node in inner]
    has_members = draw.chance(0.3)
    lists = []
    for i in range(len(inner)):
        if has_members and draw.chance(0.4):
            modes[i] = 6
            lists += members[i % 40] + [np.nan]
    attrs = {"n_targets": targets, "tree_roots": roots, "nodes_modes": np.array(modes, np.uint8),
             "nodes_featureids": [node["feature"] for node in inner],
             "nodes_splits": np.array([node["value"] for node in inner], x.dtype),
             "leaf_targetids": [draw.whole(0, targets - 1) for _ in leaves],
             "leaf_weights": np.array([draw.real() for _ in leaves], x.dtype)}
    for side, name in enumerate(("true", "false")):
        attrs[f"nodes_{name}leafs"] = [int(node["places"][side][0]) for node in inner]
        attrs[f"nodes_{name}nodeids"] = [node["places"][side][1] for node in inner]
    if lists:
        attrs["membership_values"] = np.array(lists, x.dtype)
    if has_missing:
        attrs["nodes_missing_value_tracks_true"] = [node["missing"] for node in inner]
    attrs.update(some(draw, schema, aggregate_function=lambda: draw.whole(0, 3),
                      post_transform=lambda: draw.whole(0, 4)))
    draw.case.floor = 1e-5
    return finish(draw, op, [draw.feed(x, False)], **attrs)
