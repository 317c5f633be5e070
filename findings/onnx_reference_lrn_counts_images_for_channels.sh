#!/bin/bash
# LRN in the reference of ONNX normalises as many channels as there are images: of one image only the first channel.
#
# What is done: LRN (13, size 3, alpha 1, beta 1, bias 1) of ones with 5 channels, for batches of 1, 2, 5 and 8, in the reference and in
# ONNX Runtime, beside the operator's text: y = x / (1 + (sum of squares of the channel and its neighbours) / 3).
# Seen (onnx 1.23.2, onnxruntime 1.32.0): 0.6 0.5 0.5 0.5 0.6 in ONNX Runtime, as by the text; in the reference 0.6 1 1 1 1 for one
# image, 0.6 0.5 1 1 1 for two, the right numbers for five, and an error for eight (its loop over the channels goes to the length of axis
# 0). The case that comes with the package has five images of five channels.
# What one would expect: the reference is the operator. A check of AlexNet or GoogLeNet by it, image by image, finds fault with what is
# right; and the same image gets other numbers in another batch.
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
from onnx import parser
from onnx.reference import ReferenceEvaluator

model = parser.parse_model("""<ir_version: 9, opset_import: ["": 18]> g (float[n, 5, 1, 1] x) => (float[n, 5, 1, 1] y) {
    y = LRN <size = 3, alpha = 1.0, beta = 1.0, bias = 1.0> (x)
}""")
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
right = [0.6, 0.5, 0.5, 0.5, 0.6]
is_as_before = True
for images in (1, 2, 5, 8):
    x = np.ones((images, 5, 1, 1), np.float32)
    runtime = session.run(None, {"x": x})[0].reshape(images, 5)
    try:
        reference = ReferenceEvaluator(model).run(None, {"x": x})[0].reshape(images, 5)
    except IndexError as error:
        reference = None
        print(images, "images: reference:", error)
    print(images, "images: ONNX Runtime:", runtime[0].round(4).tolist())
    is_as_before &= np.allclose(runtime, right) and (reference is None) == (images == 8)
    if reference is not None:
        print(images, "images: reference:   ", reference[0].round(4).tolist())
        is_as_before &= np.allclose(reference, right[:images] + [1] * (5 - images))
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
