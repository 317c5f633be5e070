#!/bin/bash
# Infinity becomes 0 when tract quantises it to uint8 with a zero point, and in the reference of ONNX with any: a number that is too large
# stops at the type's upper end up to 2^31 steps, and from there on at the lower one.
#
# What is done: QuantizeLinear (19) of 127, 1e9, 3e9, inf and -inf by a scale of 0.5, to uint8 with the zero points 0 and 3 and to int8 with 0
# and 3; in tract, in the reference of ONNX and in ONNX Runtime. By the op's text the result is saturate(x / scale + zero point).
# Seen (tract 0.23.9, onnx 1.23.2, onnxruntime 1.32.0, x86-64): ONNX Runtime has the type's largest number for the first four but -inf, which is
# its least. tract agrees with a zero point of 0; with 3 it makes the least of 3e9 and inf. The reference makes the least of them
# with either. 1e9, two thousand million steps, is right in all.
# What one would expect: the largest number. An activation that overflows, or a mask made of infinities, becomes the most negative value;
# and tract's answer changes its side with a zero point that should move it by three steps.
# Exit status: 0 the same, 1 something differs, 77 not x86-64, or the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
if [ "$(uname -m)" != x86_64 ]; then
    echo "skipped: what is too large for a conversion is another number on $(uname -m)"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.32.0 tract==0.23.9 numpy==2.4.6; then
    echo "skipped: pip could not install onnx, onnxruntime, tract and numpy"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import importlib.metadata
import os
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import tract
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

warnings.simplefilter("ignore")
FILE = os.path.join(sys.argv[1], "model.onnx")
X = np.array([127, 1e9, 3e9, np.inf, -np.inf], np.float32)


def by_tract(model):
    onnx.save(model, FILE)
    loaded = tract.onnx().load(FILE)
    loaded.set_input_fact(0, "5,f32")
    loaded.analyse()
    return loaded.into_model().into_runnable().run([X])[0].to_numpy()


print(*(f"{name} {importlib.metadata.version(name)}" for name in ("tract", "onnx", "onnxruntime")))
is_as_before = True
for kind in ("uint8", "int8"):
    for zero in (0, 3):
        model = parser.parse_model(f"""<ir_version: 9, opset_import: ["": 19]>
            g (float[5] x, float s, {kind} z) => ({kind}[5] y) {{ y = QuantizeLinear (x, s, z) }}""")
        del model.graph.input[1:]
        model.graph.initializer.extend([numpy_helper.from_array(np.array(0.5, np.float32), "s"),
                                        numpy_helper.from_array(np.array(zero, kind), "z")])
        onnx.checker.check_model(model, full_check=True)
        data = model.SerializeToString()
        runtime = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": X})[0]
        seen, reference = by_tract(model), ReferenceEvaluator(model).run(None, {"x": X})[0]
        print(kind, "zero point", zero, "ONNX Runtime", runtime.tolist(), "tract", seen.tolist(), "reference", reference.tolist())
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        first = min(254 + zero, most)
        is_as_before &= runtime.tolist() == [first, most, most, most, least]
        is_as_before &= reference.tolist() == [first, most, least, least, least]
        is_as_before &= np.array_equal(seen, runtime if zero == 0 else reference)
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py" "$folder"
