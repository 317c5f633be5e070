#!/bin/bash
# TreeEnsemble with post_transform SOFTMAX computes the logistic function in ONNX Runtime, with LOGISTIC the softmax; in the reference of
# ONNX neither.
#
# What is done: TreeEnsemble (ai.onnx.ml 5), whose post_transform is a number: 0 NONE, 1 SOFTMAX, 2 LOGISTIC, 3 SOFTMAX_ZERO, by the
# operator's text; a tree of two leaves, 1 for target 0 and 3 for target 1. The same tree as TreeEnsembleRegressor (ai.onnx.ml 3),
# whose post_transform is a word.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): with 1 a row of 1 and 0 becomes 0.7311 and 0.5, which is logistic; with 2 it becomes
# 0.7311 and 0.2689, softmax. The reference gives 1 and 0 for every number. The older op does what its word says in ONNX Runtime. So
# a model that is raised from the deprecated op to TreeEnsemble by the text gives other scores; their order within a row is the
# same, so that labels do not show it, and their sum is not 1.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

X = np.array([[-1], [1]], np.float32)
RAW = np.array([[1, 0], [0, 3]], np.float32)


def make(node, opset):
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 2])])
    model = helper.make_model(graph, ir_version=10,
                              opset_imports=[helper.make_opsetid("ai.onnx.ml", opset), helper.make_opsetid("", 20)])
    onnx.checker.check_model(model, full_check=True)
    return model


def new(number):
    return make(helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=2, aggregate_function=1, post_transform=number, tree_roots=[0],
        nodes_modes=numpy_helper.from_array(np.array([0], np.uint8)), nodes_featureids=[0],
        nodes_splits=numpy_helper.from_array(np.array([0], np.float32)), nodes_truenodeids=[0], nodes_trueleafs=[1],
        nodes_falsenodeids=[1], nodes_falseleafs=[1], leaf_targetids=[0, 1],
        leaf_weights=numpy_helper.from_array(np.array([1, 3], np.float32))), 5)


def old(word):
    return make(helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=2, aggregate_function="SUM", post_transform=word,
        nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[0.0] * 3, nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0],
        target_nodeids=[1, 2], target_ids=[0, 1], target_weights=[1.0, 3.0]), 3)


def run(name, model):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    seen = session.run(None, {"x": X})[0]
    print(name, "ONNX Runtime:", np.round(seen, 4).tolist())
    return seen


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__)
softmax = np.exp(RAW) / np.exp(RAW).sum(1, keepdims=True)
logistic = 1 / (1 + np.exp(-RAW))
is_as_before = True
for name, number, as_text, swapped in (("NONE", 0, RAW, RAW), ("SOFTMAX", 1, softmax, logistic), ("LOGISTIC", 2, logistic, softmax)):
    is_as_before &= np.allclose(run(f"TreeEnsemble {number} ({name})", new(number)), swapped)
    is_as_before &= np.allclose(run(f"TreeEnsembleRegressor {name}", old(name)), as_text)
    reference = ReferenceEvaluator(new(number)).run(None, {"x": X})[0]
    print(f"TreeEnsemble {number} ({name}) reference:", reference.tolist())
    is_as_before &= np.array_equal(reference, RAW)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
