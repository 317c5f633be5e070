#!/bin/bash
# Paddle takes an array of uint16 for bf16: 300 becomes 3.2e-38, and 1000 and 0 are equal for all that is added to them. With a dtype beside
# it the same array is the numbers that it holds.
#
# What is done: numpy arrays of uint16 (0, 1, 300, 1000, 16256, 65535) by paddle.to_tensor, alone and with dtype float32 and int32, as a
# list of scalars, by vision.transforms.ToTensor, in a DataLoader, as the operand of a sum; by paddle.utils.dlpack.from_dlpack; a bf16
# tensor's numpy(). uint8, int16 and uint32.
# Seen (paddlepaddle 3.3.1, processor): the bits are read as bf16, 16256 is 1 and 65535 NaN, wherever no dtype is named; a DataLoader's
# batches of such labels or 16-bit pictures, too. dtype="float32" gives 300 and 1000. "uint16" as a dtype is bf16's other name there.
# from_dlpack keeps the numbers, though it calls their type bfloat16, too. numpy() of a bf16 tensor with 1 and 2 is uint16 16256 16384,
# and their mean 16320. uint8 and int16 are themselves, uint32 is an error.
# What one would expect: numbers, or an error as for uint32, since there is no type for them.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
if ! "$folder/venv/bin/pip" install -q paddlepaddle==3.3.1 numpy==2.4.6 setuptools==84.2.1; then
    echo "skipped: pip could not install PaddlePaddle"
    exit 77
fi
cat >"$folder/finding.py" <<'END'
import sys
import warnings

warnings.simplefilter("ignore")
import numpy as np
import paddle

print("paddle", paddle.__version__, "numpy", np.__version__)
numbers = np.array([0, 1, 300, 1000, 16256, 65535], np.uint16)
bits = (numbers.astype(np.uint32) << 16).view(np.float32)
batch = next(iter(paddle.io.DataLoader([numbers, numbers], batch_size=2)))
tensors = {
    "to_tensor": (paddle.to_tensor(numbers), "bfloat16", bits),
    "float32": (paddle.to_tensor(numbers, dtype="float32"), "float32", numbers),
    "int32": (paddle.to_tensor(numbers, dtype="int32"), "int32", numbers),
    "list of scalars": (paddle.to_tensor(list(numbers)), "bfloat16", bits),
    "ToTensor": (paddle.vision.transforms.ToTensor()(numbers.reshape(2, 3, 1)), "bfloat16", bits),
    "DataLoader": (batch[0], "bfloat16", bits),
    "ones plus": (paddle.ones([6]) + numbers, "float32", np.float32(1) + bits),
    "from_dlpack": (paddle.utils.dlpack.from_dlpack(numbers), "bfloat16", numbers),
    "uint8": (paddle.to_tensor(np.array([0, 200], np.uint8)), "uint8", [0, 200]),
    "int16": (paddle.to_tensor(np.array([0, 300], np.int16)), "int16", [0, 300]),
}
is_as_before = True
for name, (tensor, kind, expected) in tensors.items():
    got = tensor.astype("float32").numpy().ravel()
    print(f"{name}: {tensor.dtype} {got.tolist()}")
    is_as_before &= str(tensor.dtype) == "paddle." + kind and np.array_equal(got, np.float32(expected), equal_nan=True)
out = paddle.to_tensor([1.0, 2.0]).astype("bfloat16").numpy()
print("numpy() of 1 and 2 in bf16:", out.dtype, out.tolist(), "mean", out.mean())
is_as_before &= out.dtype == np.uint16 and out.tolist() == [16256, 16384]
try:
    paddle.to_tensor(numbers.astype(np.uint32))
    print("uint32: no error")
    is_as_before = False
except ValueError:
    print("uint32: an error")
print("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
"$folder/venv/bin/python" "$folder/finding.py"
