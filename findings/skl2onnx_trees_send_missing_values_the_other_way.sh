#!/bin/bash
# The ONNX files that skl2onnx writes of decision trees and forests send every missing value to the right: what the tree learned of
# missing values is lost, and nothing is said.
#
# What is done: DecisionTreeRegressor and -Classifier, RandomForestRegressor and ExtraTreesRegressor learn from one feature, 0 to 3, where
# the missing ones (NaN) have the targets of the small numbers, and from missing ones with those of the large numbers; predictions of
# scikit-learn and of the file in ONNX Runtime, and the attribute of the file that says where missing values go.
# Seen (scikit-learn 1.9.1, skl2onnx 1.20.0, onnxruntime 1.32.0): trees that learn 0 for missing values predict 9, the largest target, in
# the file; trees that learn 9 predict 9. nodes_missing_value_tracks_true is 0 at every node, and a NaN is not less than or equal to
# anything; other numbers are predicted alike. Of two forests of five trees 11 of 12 rows with a missing value are predicted otherwise, by
# up to 1.5.
# What one would expect: the attribute filled in, which ONNX has for this, or an error. scikit-learn's trees take NaN since 1.3.
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
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

onnxruntime.set_default_logger_severity(3)
nan = np.nan
x = np.array([nan, nan, 0, 1, 2, 3], np.float32)[:, None]
asked = np.array([nan, 0, 1, 2, 3], np.float32)[:, None]


def convert(model, rows):
    """The file's predictions, and its attribute for missing values."""
    file = skl2onnx.to_onnx(model, rows[:1])
    session = onnxruntime.InferenceSession(file.SerializeToString(), providers=["CPUExecutionProvider"])
    tracks = [list(a.ints) for node in file.graph.node for a in node.attribute if a.name == "nodes_missing_value_tracks_true"]
    return session.run(None, {file.graph.input[0].name: rows})[0].ravel(), tracks


print("scikit-learn", sklearn.__version__, "skl2onnx", skl2onnx.__version__, "onnxruntime", onnxruntime.__version__)
is_as_before = True
for targets, learned, written in (([0, 0, 0, 0, 9, 9], 0, 9), ([9, 9, 0, 0, 9, 9], 9, 9)):
    for maker in (DecisionTreeRegressor, DecisionTreeClassifier):
        tree = maker(random_state=0).fit(x, targets)
        seen, tracks = convert(tree, asked)
        print(f"{maker.__name__} of targets {targets}: scikit-learn {tree.predict(asked).tolist()}, file {seen.tolist()}, {tracks}")
        is_as_before &= tree.predict(asked).tolist() == [learned, 0, 0, 9, 9] and seen.tolist() == [written, 0, 0, 9, 9]
        is_as_before &= not np.any(tracks[0])
generator = np.random.default_rng(0)
x = generator.standard_normal((60, 4)).astype(np.float32)
y = 3 * x[:, 0] + x[:, 1] ** 2
x[::5, 1] = nan
for maker in (RandomForestRegressor, ExtraTreesRegressor):
    forest = maker(5, random_state=0).fit(x, y)
    error = abs(convert(forest, x)[0] - forest.predict(x))
    missing = np.isnan(x[:, 1])
    print(f"{maker.__name__}: {(error[missing] > 0.01).sum()} of {missing.sum()} rows with a missing value differ,",
          f"by up to {error.max():.2f}, of the others {(error[~missing] > 0.01).sum()}")
    is_as_before &= (error[missing] > 0.01).sum() >= 6 and error.max() > 0.5 and (error[~missing] < 0.01).all()
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
