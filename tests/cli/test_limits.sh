# Small files that ask for much memory: they end soon, with what they wanted and how to allow it.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
models=$here/models

wanted='fill_bomb\.onnx: ConstantOfShape node "fill[0-9]": .*f32 \[268435456\].* limit of [0-9]+; raise .*--memory-limit'
expect_error 1 "$wanted" run "$models/fill_bomb.onnx"
expect_error 1 "$wanted" bench "$models/fill_bomb.onnx"
expect_error 1 "$wanted" inspect "$models/fill_bomb.onnx"

/usr/bin/printf '\223NUMPY\001\000\066\000%-53s\n\074\000\000\000\000\000\000\000' \
    "{'descr': '<i8', 'fortran_order': False, 'shape': ()}" >"$work/count.npy"
expect_error 1 'growing_loop\.onnx: Concat node "double": .*limit of 67108864; raise .*--memory-limit' \
    run "$models/growing_loop.onnx" --input "count=$work/count.npy" --memory-limit 64MiB

# What fits runs.
expect_status 0 run "$models/add_relu.onnx" --memory-limit 1MiB
expect_error 1 'add_relu\.onnx: .*limit of 1024; raise' run "$models/add_relu.onnx" --memory-limit 1K
for size in 0 -1 x 4X 4iB 1.5G 99999999999999999999 20000000T ''; do
    expect_error 2 '--memory-limit needs a size such as' run "$models/add_relu.onnx" --memory-limit "$size"
done

# Strings take many times their room in the file.
start_npy "$work/strings.npy" "{'descr': '|S1', 'fortran_order': False, 'shape': (16777217,), }"
head -c 16777217 /dev/zero >>"$work/strings.npy"
expect_error 1 'strings\.npy: holds 16777217 strings; at most 16777216 are read' compare \
    "$work/strings.npy" "$work/strings.npy"
# Turns of loops.
expect_error 1 'no end after 100 turns .*--loop-limit\) allows more$' run "$models/endless_loop.onnx" \
    --device host --loop-limit 100
finish_test
