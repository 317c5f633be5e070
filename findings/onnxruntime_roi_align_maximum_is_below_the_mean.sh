#!/bin/bash
# RoiAlign's maximum is smaller than its mean in ONNX Runtime and in the reference of ONNX: the maximum of one sample is another number
# than that sample.
#
# What is done: RoiAlign (16) of 0, 1, ... 35 as 6 x 6, one region, 2 x 2 outputs, one sample and four samples each, with mode avg and
# max and both coordinate modes, in ONNX Runtime, the reference and OpenVINO. A sample is interpolated between four neighbours; avg is
# the mean of the samples, max is the greatest of them, so that of one sample both are that sample.
# Seen (onnxruntime 1.32.0, CPU, onnx 1.23.2, openvino 2026.4.1): avg is the same in all three, 6.75 8.25 18.75 20.25. max of the same
# one sample is 5.25 6 14.25 15 in ONNX Runtime and the reference: the greatest of the four neighbours, each times its weight, not of
# their sums. With half_pixel it is below the mean with four samples, too. In OpenVINO max of one sample is the mean, and of four the
# greatest.
# What one would expect: a maximum that is not below a mean, as in max pooling. The expected numbers of ONNX's suite are of the first
# kind; a network trained with true maxima gets features that are a quarter to a half too small there.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 openvino==2026.4.1 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, openvino and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import parser
from onnx.reference import ReferenceEvaluator

FEEDS = {"x": np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6), "r": np.array([[0.5, 0.5, 3.5, 4.5]], np.float32),
         "b": np.zeros(1, np.int64)}


def run(mode, coordinates, samples):
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18]> g (float[1, 1, 6, 6] x, float[n, 4] r, int64[n] b) => (float y)
    {{
        y = RoiAlign <mode = "{mode}", coordinate_transformation_mode = "{coordinates}", output_height = 2, output_width = 2,
                      sampling_ratio = {samples}> (x, r, b)
    }}""")
    data = model.SerializeToString()
    core = openvino.Core()
    vino = core.compile_model(core.read_model(data, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(FEEDS)[0]
    runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, FEEDS)[0]
    results = [result.ravel() for result in (runtime, ReferenceEvaluator(model).run(None, FEEDS)[0], vino)]
    print(coordinates, samples * samples, "samples", mode, *(result.tolist() for result in results))
    return results


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "openvino", openvino.__version__)
print("ONNX Runtime, reference, OpenVINO:")
onnxruntime.set_default_logger_severity(3)
is_as_before = True
for coordinates in ("half_pixel", "output_half_pixel"):
    for samples in (1, 2):
        mean, maximum = run("avg", coordinates, samples), run("max", coordinates, samples)
        is_as_before &= np.allclose(mean[0], mean[1]) and np.allclose(mean[0], mean[2])
        is_as_before &= np.allclose(maximum[0], maximum[1])
        if samples == 1:
            is_as_before &= bool((maximum[0] < 0.9 * mean[0]).all()) and np.allclose(maximum[2], mean[2])
        else:
            is_as_before &= bool((maximum[2] > mean[2] + 1).all()) and bool((maximum[0] < maximum[2] - 1).all())
        if samples == 1 and coordinates == "half_pixel":
            is_as_before &= maximum[0].tolist() == [5.25, 6, 14.25, 15] and mean[0].tolist() == [6.75, 8.25, 18.75, 20.25]
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
