#!/bin/bash
# OpenCV's functions take an array of int64 or uint64 from Python as int32, high bits cut: 2^40 + 5 is 5, 2^31 is negative, though OpenCV 5 has
# types of 64 bits, and takes uint32, int8 and f16 as they are.
#
# What is done: 1, 2^31, 2^40 + 5 and -1 as int64, and 1, 2^31, 2^40 + 5 as uint64 go through flip, add, max, sumElems, minMaxLoc, norm, merge,
# transpose, UMat and add(dtype=CV_64F); uint32, int8, bool and f64 through flip.
# Seen (OpenCV 5.0.0, numpy 2.4.6): the results are int32: 1 -2147483648 5 -1, without an error; the sum is -2147483643, the maximum by
# minMaxLoc 5; add to CV_64F starts from the cut numbers, too. The names cv2.CV_64S and CV_64U exist. uint32, int8, bool and f64 pass.
# What one would expect: int64 as int64, or an error. Whole numbers of numpy are int64 by default, and times in nanoseconds, counts,
# integral images and hashes do not fit into 32 bits.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q opencv-python-headless==5.0.0.93 numpy==2.4.6; then
    echo "skipped: pip could not install OpenCV and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys

import cv2
import numpy as np

print("OpenCV", cv2.__version__, "numpy", np.__version__)
numbers = np.array([[1, 2**31, 2**40 + 5, -1]])
cut = [1, -(2**31), 5, -1]
calls = {
    "flip": (lambda array: cv2.flip(array, 0), cut),
    "add 0": (lambda array: cv2.add(array, np.zeros_like(array)), cut),
    "max": (lambda array: cv2.max(array, array), cut),
    "merge": (lambda array: cv2.merge([array])[..., 0] if cv2.merge([array]).ndim == 3 else cv2.merge([array]), cut),
    "transpose": (cv2.transpose, cut),
    "UMat": (lambda array: cv2.UMat(array).get(), cut),
    "add 0 as CV_64F": (lambda array: cv2.add(array, np.zeros_like(array), dtype=cv2.CV_64F), cut),
    "sumElems": (lambda array: np.array(cv2.sumElems(array)[:1]), [-2147483643]),
    "minMaxLoc": (lambda array: np.array(cv2.minMaxLoc(array)[:2]), [-2147483648, 5]),
    "norm": (lambda array: np.array([cv2.norm(array, cv2.NORM_INF)]), [2147483648]),
}
is_as_before = hasattr(cv2, "CV_64S") and hasattr(cv2, "CV_64U")
for name, (call, expected) in calls.items():
    for kind in (np.int64, np.uint64):
        got = call(numbers.astype(kind))
        print(f"{name} of {np.dtype(kind)}: {got.dtype} {got.ravel().tolist()}")
        is_as_before &= got.ravel().tolist() == expected
        is_as_before &= name not in ("flip", "add 0", "max", "merge", "transpose", "UMat") or got.dtype == np.int32
for kind in (np.uint32, np.int8, np.bool_, np.float64):
    array = np.array([[0, 1, 3, 100]]).astype(kind)
    got = cv2.flip(array, 0)
    print(f"flip of {array.dtype}: {got.dtype} {got.ravel().tolist()}")
    is_as_before &= got.dtype == array.dtype and np.array_equal(got, array)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
