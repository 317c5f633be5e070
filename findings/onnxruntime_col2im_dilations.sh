#!/bin/bash
# Col2Im of three image axes takes dilations wrongly in ONNX Runtime.
#
# What is done: Col2Im of an image of 3 x 3 x 3 from blocks of 2 x 2 x 2 with dilations of 2, so that there
# is one block, whose eight elements (1 to 8) go to the eight corners. The same with two axes.
# Seen (onnxruntime 1.32.0, onnx 1.23.2): with two axes the corners are 1, 2, 3, 4. With three the reference and
# the definition give 1 to 8 in order; ONNX Runtime gives 1, 2, 4, 5, ..., sums of other elements.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6; then
    echo "skipped: pip could not install onnxruntime 1.32.0, onnx 1.23.2 and numpy 2.4.6"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)


def corners(axes):
    """What both give at the corners of an image, and whether the rest is 0."""
    count = 2 ** axes
    columns = np.arange(1, count + 1, dtype=np.float32).reshape(1, count, 1)
    graph = helper.make_graph(
        [helper.make_node("Col2Im", ["columns", "image", "block"], ["y"], dilations=[2] * axes,
                          pads=[0] * (2 * axes), strides=[1] * axes)],
        "g", [helper.make_tensor_value_info("columns", 1, columns.shape)],
        [helper.make_tensor_value_info("y", 1, (1, 1) + (3,) * axes)],
        [numpy_helper.from_array(np.full(axes, 3, np.int64), "image"),
         numpy_helper.from_array(np.full(axes, 2, np.int64), "block")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    feeds = {"columns": columns}
    at = (0, 0) + (slice(None, None, 2),) * axes
    return [run(None, feeds)[0][at].flatten().tolist() for run in
            (onnxruntime.InferenceSession(model.SerializeToString()).run, ReferenceEvaluator(model).run)]


two, three = corners(2), corners(3)
print("two axes: ONNX Runtime", two[0], "reference", two[1])
print("three axes: ONNX Runtime", three[0], "reference", three[1])
wanted = [float(i) for i in range(1, 9)]
is_as_before = two[0] == two[1] == wanted[:4] and three[1] == wanted and three[0][:4] == [1.0, 2.0, 4.0, 5.0]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
