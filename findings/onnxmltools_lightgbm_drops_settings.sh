#!/bin/bash
# The ONNX file of a LightGBM model leaves out what some settings mean: random forests are averaged over 100 trees, however many there
# are, or not at all; linear leaves lose their slopes, sigmoid its factor, one-versus-all becomes a softmax, and zeros are not missing.
#
# What is done: models of four trees on 0 .. 7, which learn their targets nearly exactly, with boosting_type rf, linear_tree, sigmoid =
# 3, multiclassova and zero_as_missing, and one without; LightGBM's results beside those of the file by onnxmltools in ONNX Runtime.
# Seen (lightgbm 4.7.0, onnxmltools 1.16.0, onnxruntime 1.32.0): without them both agree. A forest of 0 10 .. 70 says 0 0.4 .. 2.8 as an
# LGBMRegressor (4 / 100) and 0 40 .. 280 as its Booster (the sum of four); the linear tree is a step function; a probability of 0.99496
# is 0.85344 with sigmoid = 3, and its three scores of 0.00383 0.00383 0.99448 (no sum of 1) become 0.00002 0.00002 0.99996. A row whose
# zero LightGBM treats as missing goes to the other side. No error, no warning; an unknown objective is refused by name.
# What one would expect: a converter that refuses what it does not write, as it does with objectives. Labels are the same in most of
# these, so that an accuracy does not show it; thresholds on scores do.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 lightgbm==4.7.0 onnxmltools==1.16.0 \
    onnxconverter-common==1.16.0 scikit-learn==1.9.1 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, lightgbm, onnxmltools, onnxconverter-common, scikit-learn and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import sys
import warnings

import lightgbm
import numpy as np
import onnxmltools
import onnxruntime
from onnxmltools.convert.common.data_types import FloatTensorType

warnings.simplefilter("ignore")
X = np.arange(8, dtype=np.float32)[:, None]
TENS = np.arange(8) * 10.0
SETTINGS = {"verbose": -1, "min_child_samples": 1, "min_data_in_bin": 1, "n_estimators": 4, "learning_rate": 1.0, "n_jobs": 1}


def converted(model, x, output=0):
    kind = FloatTensorType([None, x.shape[1]])
    data = onnxmltools.convert_lightgbm(model, initial_types=[("x", kind)], target_opset=15, zipmap=False).SerializeToString()
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})[output]


def close(one, other):
    return bool(np.allclose(np.ravel(one), np.ravel(other), atol=1e-4))


def show(name, own, *files):
    print(name, "LightGBM:", np.round(own, 5).tolist(), "file:", *(np.round(np.ravel(file), 5).tolist() for file in files))


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("lightgbm", "onnxmltools", "onnxruntime")))
plain = lightgbm.LGBMRegressor(**SETTINGS).fit(X, TENS)
show("plain", plain.predict(X), converted(plain, X))
is_as_before = close(plain.predict(X), TENS) and close(converted(plain, X), TENS)

forest = lightgbm.LGBMRegressor(**SETTINGS, boosting_type="rf", bagging_fraction=0.9, bagging_freq=1).fit(X, TENS)
show("rf", forest.predict(X), converted(forest, X), converted(forest.booster_, X))
is_as_before &= close(converted(forest, X), forest.predict(X) * 4 / 100) and close(converted(forest.booster_, X), forest.predict(X) * 4)

linear = lightgbm.LGBMRegressor(**SETTINGS, linear_tree=True, num_leaves=2).fit(X, TENS)
show("linear_tree", linear.predict(X), converted(linear, X))
steps = converted(linear, X).ravel()
is_as_before &= len(np.unique(linear.predict(X).round(3))) == 8 and len(np.unique(steps.round(3))) < 8
is_as_before &= not close(steps, linear.predict(X))

labels = np.array([0, 0, 1, 0, 1, 1, 1, 1])
steep = lightgbm.LGBMClassifier(**SETTINGS, sigmoid=3.0).fit(X, labels)
own, file = steep.predict_proba(X)[:, 1], converted(steep, X, 1)[:, 1]
show("sigmoid = 3", own, file)
is_as_before &= close(np.log(file / (1 - file)), np.log(own / (1 - own)) / 3)

each = lightgbm.LGBMClassifier(**SETTINGS, objective="multiclassova").fit(X, np.array([0, 0, 1, 1, 2, 2, 2, 2]))
own, file = each.predict_proba(X), converted(each, X, 1)
margins = np.exp(np.log(own / (1 - own)))
show("multiclassova, last row", own[-1], file[-1])
is_as_before &= close(file, margins / margins.sum(1, keepdims=True)) and not close(own, file) and own.sum(1).max() > 1.003

random = np.random.default_rng(0)
many = random.standard_normal((500, 1)).astype(np.float32)
many[::5] = 0
missing = lightgbm.LGBMRegressor(**SETTINGS, zero_as_missing=True).fit(many, np.where(many[:, 0] == 0, -50.0, many[:, 0]))
zero = np.zeros((1, 1), np.float32)
show("zero_as_missing", missing.predict(zero), converted(missing, zero))
is_as_before &= abs(missing.predict(zero)[0] + 50) < 1 and converted(missing, zero).item() > -10
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
