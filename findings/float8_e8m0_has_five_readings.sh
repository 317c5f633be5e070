#!/bin/bash
# A number becomes another power of two as float8_e8m0, the type of block scales, in each library: 1.25 is 1 in PyTorch and ml_dtypes, and
# 2 in ONNX and CUDA; -3 is 4, NaN or 2^-127, 0 is 2^-127 or NaN, infinity 2^127 or NaN.
#
# What is done: 1.25, 1.5, 0, -3, 3e38, infinity and NaN as f32 to float8_e8m0 and back, by torch, by ml_dtypes (whose type JAX has), by
# Cast (24) with its defaults in the reference of ONNX and in ONNX Runtime, and by the constructor of __nv_fp8_e8m0 in CUDA's header,
# compiled for the processor.
# Seen (torch 2.15.0, ml_dtypes 0.6.0, onnx 1.23.2, onnxruntime 1.32.0, CUDA 13.2's header): torch and ml_dtypes round to the nearest,
# ties up; ONNX by default and CUDA's constructor go up. torch and the reference take the magnitude of a negative number, and so does
# CUDA; ONNX Runtime makes the least number of it, and ml_dtypes NaN. 0 is 2^-127 but in ml_dtypes, where it is NaN. 3e38 is NaN in torch
# and ml_dtypes, 2^127 elsewhere; infinity is NaN in these two and in the reference. NaN is NaN everywhere: no two of the five agree on
# all seven.
# What one would expect: one rule of rounding for one format. The same weights, quantised by blocks in two libraries, have scales that
# differ by a factor of two, and a block of zeros is zeros in one and NaN in another.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here, or no C++ compiler.
# SPDX-License-Identifier: Apache-2.0
set -eu
if ! command -v g++ >/dev/null; then
    echo "skipped: this needs g++"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q torch==2.15.0 onnx==1.23.2 onnxruntime==1.32.0 ml_dtypes==0.6.0 numpy==2.4.6 ||
    ! "$folder/venv/bin/pip" install -q --target "$folder/cuda" --no-deps nvidia-cuda-runtime==13.2.86 nvidia-cuda-crt==13.2.86; then
    echo "skipped: pip could not install torch, onnx, onnxruntime, ml_dtypes and nvidia-cuda-runtime"
    exit 77
fi
cat >"$folder/finding.cpp" <<'END'
#include <cstdio>
#include <cstdlib>
#include <cuda_fp8.h>

int main(int count, char **words) {
    for (int i = 1; i < count; ++i) {
        std::printf("%.9g\n", (double)(float)__nv_fp8_e8m0(std::strtof(words[i], nullptr)));
    }
}
END
g++ -std=c++17 -w -I"$folder/cuda/nvidia/cu13/include" -o "$folder/cuda_e8m0" "$folder/finding.cpp"
cat >"$folder/finding.py" <<'END'
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import torch
from onnx import parser
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(3)
np.seterr(all="ignore")
least, greatest, nan = 2.0**-127, 2.0**127, np.nan
x = np.array([1.25, 1.5, 0, -3, 3e38, np.inf, nan], np.float32)
model = parser.parse_model("""<ir_version: 11, opset_import: ["": 24]> g (float[n] x) => (float[n] y)
    { e = Cast <to = 24> (x) y = Cast <to = 1> (e) }""")
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
wanted = {
    "PyTorch": [1, 2, least, 4, nan, nan, nan],
    "ml_dtypes": [1, 2, nan, nan, nan, nan, nan],
    "ONNX's reference": [2, 2, least, 4, greatest, nan, nan],
    "ONNX Runtime": [2, 2, least, least, greatest, greatest, nan],
    "CUDA": [2, 2, least, 4, greatest, greatest, nan],
}
seen = {
    "PyTorch": torch.from_numpy(x).to(torch.float8_e8m0fnu).float().tolist(),
    "ml_dtypes": x.astype(ml_dtypes.float8_e8m0fnu).astype(np.float32).tolist(),
    "ONNX's reference": ReferenceEvaluator(model).run(None, {"x": x})[0].tolist(),
    "ONNX Runtime": session.run(None, {"x": x})[0].tolist(),
    "CUDA": [float(word) for word in subprocess.check_output([sys.argv[1], *map(str, x)], text=True).split()],
}
print("torch", torch.__version__, "ml_dtypes", ml_dtypes.__version__, "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
print("of", x.tolist())
is_as_before = True
for name, numbers in seen.items():
    print(f"{name}:", " ".join(f"{number:.5g}" for number in numbers))
    is_as_before &= np.array_equal(np.float32(numbers), np.float32(wanted[name]), equal_nan=True)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py" "$folder/cuda_e8m0"
