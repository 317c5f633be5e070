#!/bin/bash
# CatBoost's own ONNX file of a classifier with two classes calls them 0 and 1, whatever their labels are: of 5 and 7 it predicts 0 and 1.
# Losses of another link lose it: rates are logarithms, and one-versus-all becomes a softmax.
#
# What is done: CatBoostClassifier with the labels 5 and 7; 1 and 2; 1, 2 and 3; "a" and "b"; CatBoostRegressor with RMSE, Poisson and
# Tweedie, and CatBoostClassifier with MultiClass and MultiClassOneVsAll, saved by save_model(format="onnx") and run by ONNX Runtime,
# beside predict and predict_proba.
# Seen (catboost 1.2.10, onnxruntime 1.32.0): three classes, labels that are strings, RMSE and MultiClass agree. Two whole-number labels
# come out as 0 and 1. Poisson's and Tweedie's output is the logarithm of what predict says, below 0 too. MultiClassOneVsAll's
# probabilities add up to 1 in the file: a softmax of the logits of the three that predict_proba gives. No error and no warning,
# while trees that are not symmetric are refused.
# What one would expect: the labels of the training, as for three classes, and what predict says. With labels 0 and 1 all is right; with
# 1 and 2 every answer is one too small, and half of them still are classes.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q catboost==1.2.10 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install catboost, onnxruntime and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import os
import sys

import catboost
import numpy as np
import onnxruntime

FILE = os.path.join(sys.argv[1], "model.onnx")
X = np.linspace(-1, 1, 96, dtype=np.float32)[:, None]
SETTINGS = {"iterations": 8, "depth": 2, "verbose": 0, "thread_count": 1, "allow_writing_files": False}


def converted(model):
    model.save_model(FILE, format="onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(FILE, options, providers=["CPUExecutionProvider"]).run(None, {"features": X})


def close(one, other):
    return bool(np.allclose(np.ravel(one), np.ravel(other), atol=1e-5))


print("catboost", catboost.__version__, "onnxruntime", onnxruntime.__version__)
is_as_before = True
for labels in ((5, 7), (1, 2), (1, 2, 3), ("a", "b")):
    model = catboost.CatBoostClassifier(**SETTINGS).fit(X, np.array(labels)[np.arange(96) * len(labels) // 96])
    own, file = model.predict(X).ravel(), np.asarray(converted(model)[0])
    print("labels", labels, "CatBoost:", own[[0, -1]].tolist(), "file:", file[[0, -1]].tolist())
    expected = np.searchsorted(labels, own) if len(labels) == 2 and labels[0] != "a" else own
    is_as_before &= len(set(own)) == len(labels) and bool((file == expected).all())
for loss in ("RMSE", "Poisson", "Tweedie:variance_power=1.5"):
    model = catboost.CatBoostRegressor(loss_function=loss, **SETTINGS).fit(X, np.exp(X.ravel()))
    own, file = model.predict(X), np.asarray(converted(model)[0]).ravel()
    print(loss, "CatBoost:", own[[0, -1]].round(4).tolist(), "file:", file[[0, -1]].astype(float).round(4).tolist())
    is_as_before &= close(file, own if loss == "RMSE" else np.log(own)) and (loss == "RMSE" or file.min() < 0 < own.min())
for loss in ("MultiClass", "MultiClassOneVsAll"):
    model = catboost.CatBoostClassifier(loss_function=loss, **SETTINGS).fit(X, np.arange(96) // 32)
    own = model.predict_proba(X)
    file = np.array([[row[i] for i in range(3)] for row in converted(model)[1]])
    print(loss, "CatBoost:", own[0].round(4).tolist(), "file:", file[0].round(4).tolist())
    exponentials = own / (1 - own)
    softmax = exponentials / exponentials.sum(1, keepdims=True)
    is_as_before &= close(file, own) if loss == "MultiClass" else close(file, softmax) and not np.allclose(file, own, atol=0.1)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py" "$folder"
