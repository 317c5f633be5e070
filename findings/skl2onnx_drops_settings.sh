#!/bin/bash
# skl2onnx writes models without some of their settings: neighbours weighted by distance count alike, Normalizer("max") divides by the
# signed maximum, columns that tell missing values are not there, and clip is off. Nothing is said.
#
# What is done: KNeighborsRegressor and -Classifier with weights="distance", Normalizer("max"), OrdinalEncoder with encoded_missing_value,
# SimpleImputer with add_indicator, MaxAbsScaler with clip, LinearDiscriminantAnalysis of two classes; scikit-learn's results, and those
# of the file in ONNX Runtime. Beside each the same without the setting.
# Seen (scikit-learn 1.9.1, skl2onnx 1.20.0, onnxruntime 1.32.0): the neighbours' file is that of weights="uniform": 5 5 15 15 25 instead
# of 0 5 15 20 28.6. Of -4 2 1 Normalizer makes -1 0.5 0.25, the file -2 1 0.5. A missing category is -1 instead of -5. The imputer has
# one column instead of two, and the scaler 2 instead of 1. The probabilities of two classes of the discriminant analysis are not those of
# the logistic function of its score: they are up to 0.15 off (labels and those of three classes are right). Without the settings all are
# right.
# What one would expect: the settings, or an error, as skl2onnx raises for other ones (infrequent categories of OneHotEncoder, KNNImputer
# by distance).
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q scikit-learn==1.9.1 skl2onnx==1.20.0 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6; then
    echo "skipped: pip could not install scikit-learn, skl2onnx, onnx, onnxruntime and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnxruntime
import skl2onnx
import sklearn
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import MaxAbsScaler, Normalizer, OrdinalEncoder

onnxruntime.set_default_logger_severity(3)
nan = np.nan


def convert(model, rows, output=0, options=None):
    """What the model's file makes of the rows."""
    file = skl2onnx.to_onnx(model, rows[:1], options=options)
    session = onnxruntime.InferenceSession(file.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {file.graph.input[0].name: rows})[output]


def column(*numbers):
    return np.array(numbers, np.float32)[:, None]


print("scikit-learn", sklearn.__version__, "skl2onnx", skl2onnx.__version__, "onnxruntime", onnxruntime.__version__)
points, asked = column(0, 1, 3, 10), column(0, 0.5, 2, 3, 9)
codes = column(7, 7, 7, 8, 8, 8, 9, 6)
holes = column(1, 2, nan, 4)
signed = np.array([[-4, 2, 1], [4, 2, 1]], np.float32)
rows = []  # what, with the setting (scikit-learn, file), without it (scikit-learn, file), what the file is expected to say
for kind, targets in ((KNeighborsRegressor, [0, 10, 20, 30]), (KNeighborsClassifier, [0, 0, 1, 1])):
    pair = []
    for weights in ("distance", "uniform"):
        model = kind(2, weights=weights).fit(points, targets)
        if kind is KNeighborsRegressor:
            pair += [model.predict(asked), convert(model, asked)]
        else:
            pair += [model.predict_proba(asked)[:, 1], convert(model, asked, 1, {id(model): {"zipmap": False}})[:, 1]]
    rows.append((kind.__name__ + "(weights='distance')", *pair, pair[2]))
maximum, plain = Normalizer("max").fit(signed), Normalizer("l1").fit(signed)
rows.append(("Normalizer('max')", maximum.transform(signed), convert(maximum, signed), plain.transform(signed), convert(plain, signed),
             [[-2, 1, 0.5], [1, 0.5, 0.25]]))
for name, model, plain, x, wanted in (
        ("OrdinalEncoder(encoded_missing_value=-5)", OrdinalEncoder(encoded_missing_value=-5), OrdinalEncoder(), holes, [0, 1, -1, 2]),
        ("SimpleImputer(add_indicator=True)", SimpleImputer(add_indicator=True), SimpleImputer(), holes, [1, 2, 7 / 3, 4]),
        ("MaxAbsScaler(clip=True)", MaxAbsScaler(clip=True), MaxAbsScaler(), column(1, 2, -1), [1, 2, 0.5])):
    fitted = column(1, -2, 1) if "MaxAbs" in name else x
    model.fit(fitted)
    plain.fit(codes if "Ordinal" in name else fitted)
    other = codes if "Ordinal" in name else holes if "Imputer" in name else column(1, -2, 1)
    asked = column(2, 4, 1) if "MaxAbs" in name else x
    rows.append((name, model.transform(asked), convert(model, asked), plain.transform(other), convert(plain, other), wanted))
is_as_before = True
for name, right, file, plain_right, plain_file, wanted in rows:
    print(f"{name}: scikit-learn {np.ravel(right).round(3).tolist()}, the file {np.ravel(file).round(3).tolist()}")
    is_as_before &= np.allclose(np.ravel(file), np.ravel(wanted), atol=1e-4)
    is_as_before &= np.shape(right) != np.shape(file) or not np.allclose(right, file, atol=1e-3)
    is_as_before &= np.allclose(np.ravel(plain_right), np.ravel(plain_file), atol=1e-4)
x = np.random.default_rng(0).standard_normal((60, 4)).astype(np.float32)
for classes, targets in ((2, (x[:, 0] + x[:, 1] > 0).astype(int)), (3, (2 * x[:, 0] + x[:, 1]).astype(int) % 3)):
    model = LinearDiscriminantAnalysis().fit(x, targets)
    options = {id(model): {"zipmap": False}}
    error = abs(model.predict_proba(x) - convert(model, x, 1, options)).max()
    print(f"LinearDiscriminantAnalysis of {classes} classes: probabilities off by {error:.4f}")
    is_as_before &= (error > 0.1) if classes == 2 else (error < 1e-3)
    is_as_before &= (model.predict(x) == convert(model, x)).all()
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
