#!/bin/bash
# A LightGBM model whose feature is a time in seconds becomes an ONNX file that takes each row for the one before it: thresholds are f64
# a little above the middle of two f32, and are rounded up to the upper one.
#
# What is done: one tree on eight times 128 s apart (neighbours in f32 at 1.76e9), the targets 0, 10, ... 70; the booster's own results,
# those of its file by onnxmltools in ONNX Runtime, and the thresholds of both. The same of a fraction, 0.1 and its seven next f32.
# XGBoost's tree on the times, through the same package, and scikit-learn's, through skl2onnx.
# Seen (lightgbm 4.7.0, onnxmltools 1.16.0, xgboost 3.2.0, scikit-learn 1.9.1, skl2onnx 1.20.0, onnxruntime 1.32.0): LightGBM says
# 0 10 20 ... 70 for the f32 inputs, its file 0 0 10 ... 60. A threshold is 1760000448.0000002; in the file it is 1760000512, which
# "x <= threshold" then holds for. No warning; a check by a few rows of ordinary features does not show it. XGBoost's
# thresholds are f32, and skl2onnx rounds down where it must; both files are right.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q lightgbm==4.7.0 onnxmltools==1.16.0 skl2onnx==1.20.0 \
    scikit-learn==1.9.1 xgboost==3.2.0 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install lightgbm, onnxmltools and the others"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import lightgbm
import numpy as np
import onnxmltools
import onnxruntime
import xgboost
from onnx import helper
from onnxmltools.convert.common.data_types import FloatTensorType
from skl2onnx import to_onnx
from sklearn.tree import DecisionTreeRegressor

TARGETS = np.arange(8) * 10.0


def run(model, x):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0].ravel()


def thresholds(node):
    return [node["threshold"]] + thresholds(node["left_child"]) + thresholds(node["right_child"]) if "threshold" in node else []


def by_lightgbm(x):
    many, labels = np.repeat(x, 20, axis=0), np.repeat(TARGETS, 20)
    options = {"objective": "regression", "learning_rate": 1.0, "num_leaves": 8, "min_data_in_leaf": 1, "min_data_in_bin": 1, "verbose": -1}
    booster = lightgbm.train(options, lightgbm.Dataset(many, labels), 1)
    model = onnxmltools.convert_lightgbm(booster, initial_types=[("x", FloatTensorType([None, 1]))])
    attributes = {a.name: helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
    inner = [v for v, mode in zip(attributes["nodes_values"], attributes["nodes_modes"]) if mode != b"LEAF"]
    own, file = booster.predict(x), run(model, x)
    print("LightGBM:", np.round(own, 3).tolist(), "file:", np.round(file, 3).tolist())
    print("thresholds:", sorted(thresholds(booster.dump_model()["tree_info"][0]["tree_structure"])), "file:", sorted(inner))
    return np.allclose(own, TARGETS) and np.allclose(file, [0] + TARGETS[:-1].tolist())


print("lightgbm", lightgbm.__version__, "onnxmltools", onnxmltools.__version__, "onnxruntime", onnxruntime.__version__)
times = (1760000000 + 128 * np.arange(8)).astype(np.float32).reshape(8, 1)
fractions = [np.float32(0.1)]
for _ in range(7):
    fractions.append(np.nextafter(fractions[-1], np.float32(1)))
is_as_before = by_lightgbm(times) and by_lightgbm(np.array(fractions).reshape(8, 1))

booster = xgboost.train({"max_depth": 4, "eta": 1, "base_score": 0, "reg_lambda": 0, "tree_method": "hist"},
                        xgboost.DMatrix(np.repeat(times, 20, axis=0), np.repeat(TARGETS, 20)), 1)
file = run(onnxmltools.convert_xgboost(booster, initial_types=[("x", FloatTensorType([None, 1]))]), times)
print("file of XGBoost:", file.tolist())
is_as_before &= np.allclose(booster.predict(xgboost.DMatrix(times)), TARGETS) and np.allclose(file, TARGETS)
tree = DecisionTreeRegressor().fit(times, TARGETS)
file = run(to_onnx(tree, times), times)
print("file of scikit-learn:", file.tolist())
is_as_before &= np.allclose(tree.predict(times), TARGETS) and np.allclose(file, TARGETS)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
