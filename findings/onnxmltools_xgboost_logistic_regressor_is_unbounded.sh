#!/bin/bash
# The ONNX file of an XGBRegressor with a logistic objective gives scores below 0 and above 1: the margin, to which the base score is
# added as it is. The probabilities of multi:softmax are margins, too.
#
# What is done: XGBRegressor with reg:logistic and binary:logistic (targets from 0 to 1), reg:squarederror and count:poisson, and
# XGBClassifier with binary:logistic, multi:softprob and multi:softmax on 0 .. 63; XGBoost's results beside those of the file by
# onnxmltools in ONNX Runtime.
# Seen (xgboost 3.2.0, onnxmltools 1.16.0, onnxruntime 1.32.0): squared error, poisson, binary:logistic of the classifier and softprob
# agree. The regressor's 0.253 .. 0.745 are -0.582 .. 1.574 in the file: log(p / (1 - p)) + 0.5, where 0.5 is the base score, a
# probability; so a sigmoid behind it does not help, either. The classifier's second output of multi:softmax is margins whose softmax is
# predict_proba. No error and no warning, while binary:logitraw is refused.
# What one would expect: what predict says, as for the other objectives, or a refusal. A rate or a share that is predicted this way
# (clicks, defaults) keeps its order, so ranks and AUC are right, and every threshold and sum is wrong.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 xgboost==3.2.0 onnxmltools==1.16.0 \
    onnxconverter-common==1.16.0 scikit-learn==1.9.1 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, xgboost, onnxmltools, onnxconverter-common, scikit-learn and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys
import warnings

import numpy as np
import onnxmltools
import onnxruntime
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

warnings.simplefilter("ignore")
X = np.arange(64, dtype=np.float32)[:, None]
SHARES = np.linspace(0, 1, 64)
SETTINGS = {"n_estimators": 4, "max_depth": 2, "n_jobs": 1}


def converted(model, output):
    data = onnxmltools.convert_xgboost(model, initial_types=[("x", FloatTensorType([None, 1]))], target_opset=15).SerializeToString()
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": X})[output]


def close(one, other):
    return bool(np.allclose(np.ravel(one), np.ravel(other), atol=1e-4))


def show(name, own, file):
    print(name, "XGBoost:", own[[0, -1]].round(4).tolist(), "file:", file[[0, -1]].round(4).tolist())


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("xgboost", "onnxmltools", "onnxruntime")))
is_as_before = True
for objective in ("reg:squarederror", "count:poisson", "reg:logistic", "binary:logistic"):
    model = xgboost.XGBRegressor(objective=objective, **SETTINGS).fit(X, SHARES)
    own, file = model.predict(X), converted(model, 0).ravel()
    show(f"regressor {objective}", own, file)
    if "logistic" in objective:
        is_as_before &= close(file, np.log(own / (1 - own)) + 0.5) and file.min() < 0 and file.max() > 1
    else:
        is_as_before &= close(own, file)
for objective, classes in (("binary:logistic", 2), ("multi:softprob", 3), ("multi:softmax", 3)):
    model = xgboost.XGBClassifier(objective=objective, **SETTINGS).fit(X, np.arange(64) * classes // 64)
    own, file = model.predict_proba(X), converted(model, 1)
    show(f"classifier {objective}", own, file)
    is_as_before &= bool((model.predict(X) == converted(model, 0)).all())
    if objective == "multi:softmax":
        exponentials = np.exp(file)
        is_as_before &= close(exponentials / exponentials.sum(1, keepdims=True), own) and file.min() < 0
    else:
        is_as_before &= close(own, file)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
