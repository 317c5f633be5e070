#!/bin/bash
# ONNX Runtime's Tokenizer takes the expression "." for "each character", not for a regular expression.
#
# What is done: com.microsoft.Tokenizer cuts "a", a line break and "b" by the expressions ".", "(.)" and
# "[^x]", which say the same of letters. In RE2's syntax "." matches no line break.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2): "(.)" leaves the line break out, as RE2 does; "." gives it
# as a token, as "[^x]" does; and mincharnum = 2 is refused with "." and taken with "(.)".
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
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)


def cut(expression, least):
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", mark=0,
                            pad_value="#", tokenexp=expression, mincharnum=least)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.STRING, [1])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, None)])
    model = helper.make_model(
        graph, ir_version=8,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, {"x": np.array(["a\nb"], dtype=object)})[0].tolist()[0]
    except Exception as error:
        return "refused" if "mincharnum is too big" in str(error) else str(error)


EXPECTED = {
    (".", 1): ["a", "\n", "b"],
    ("(.)", 1): ["a", "b"],
    ("[^x]", 1): ["a", "\n", "b"],
    (".", 2): "refused",
    ("(.)", 2): [],
}
differences = 0
for (expression, least), expected in EXPECTED.items():
    seen = cut(expression, least)
    print(f"{expression!r}, mincharnum {least}: {seen}" +
          ("" if seen == expected else f", DIFFERS: was {expected}"))
    differences += seen != expected
sys.exit(differences != 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
