# SPDX-License-Identifier: Apache-2.0

"""Writes the cases of com.microsoft beside this file: models of one op, with ONNX Runtime's results.

    python3 tests/vendor/make_cases.py

Needs onnx, onnxruntime and numpy. Cases are those that tools/difftest draws; tests/cli/test_vendor_ops.sh
runs them. A case of half precision is passed over: tolerances are those of f32.
"""
import pathlib
import shutil
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools" / "difftest"))

import make  # noqa: E402
from case import make_model, save_test  # noqa: E402
from gen_microsoft import MS  # noqa: E402
from oracles import run_oracle  # noqa: E402
from registry import GENERATORS  # noqa: E402

COUNTS = {"MatMulNBits": 4, "FusedConv": 3, "QGemm": 3, "SkipLayerNormalization": 2, "FusedMatMul": 3,
          "SkipSimplifiedLayerNormalization": 2, "QLinearSoftmax": 2, "EmbedLayerNormalization": 2}
SEED = 5


def draw(op, wanted):
    """The first cases of an op that ONNX Runtime computes."""
    index = 0
    while wanted > 0:
        case = make.make_case(SEED, index, [(MS, op)], 0.0)
        index += 1
        if case is None or any(a.dtype == np.float16 or a.size > 5000 for a in case.get_arrays()):
            continue
        case.opset = max(case.opset, 13)
        model = make_model(case)
        expected = run_oracle("onnxruntime", model, case)
        if not isinstance(expected, str) and all(a.size > 0 for a in expected.values()):
            yield index, case, model, expected
            wanted -= 1


def main():
    for old in HERE.glob("*_*"):
        if old.is_dir():
            shutil.rmtree(old)
    for domain, op in sorted(GENERATORS):
        if domain != MS:
            continue
        for index, case, model, expected in draw(op, COUNTS.get(op, 1)):
            save_test(case, model, expected, HERE / f"{op}_{index}")


main()
