# rondo run: values in, values out, on the host; eager and replayed.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx

# x = [1, -2, 3], y = [0.5, 0.5, -4], so z = relu(x + y) = [1.5, 0, 0]; NumPy's own header layout.
write_npy() { # FILE BYTES
    header="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }"
    while [ $(((10 + ${#header} + 1) % 64)) != 0 ]; do header="$header "; done
    start_npy "$1" "$header
"
    printf "$2" >>"$1"
}
write_npy "$work/x.npy" '\000\000\200\077\000\000\000\300\000\000\100\100'
write_npy "$work/y.npy" '\000\000\000\077\000\000\000\077\000\000\200\300'
write_npy "$work/z.npy" '\000\000\300\077\000\000\000\000\000\000\000\000'

for graphs in auto on off; do
    expect_status 0 run "$model" --device host --graphs $graphs --input "x=$work/x.npy" \
        --input "y=$work/y.npy" --output-dir "$work/out_$graphs"
    expect_text '^z  f32 \[1, 3\]'
    expect_text 'values 1.5 0 0$'
    # The header may be written with another blank here and there; elements are the last 12 bytes.
    tail -c 12 "$work/z.npy" >"$work/expected"
    tail -c 12 "$work/out_$graphs/z.npy" | cmp -s - "$work/expected" ||
        fail "--graphs $graphs wrote other values"
done
expect_text 'ran eagerly on host'
expect_status 0 run "$model" --device host --graphs on
expect_text 'replayed on host'

# What the tool writes, it reads.
expect_status 0 run "$model" --device host --input "x=$work/out_on/z.npy" --input "y=$work/y.npy"
expect_text 'values 2 0.5 0$'

# A symbolic dimension, random inputs: the same seed gives the same values, another one others.
expect_status 0 run "$model" --device host --set batch=4 --seed 7
expect_text '^z  f32 \[4, 3\]'
grep -v ' ms$' "$work/stdout" >"$work/seed7"
expect_status 0 run "$model" --device host --set batch=4 --seed 7 --input x=random
grep -v ' ms$' "$work/stdout" | cmp -s - "$work/seed7" || fail "seed 7 gave other values"
expect_status 0 run "$model" --device host --set batch=4 --seed 8
grep -v ' ms$' "$work/stdout" | cmp -s - "$work/seed7" && fail "seed 8 gave the values of seed 7"

# Each run both ways, with the outputs of the last.
expect_status 0 run "$model" --device host --self-check --input "x=$work/x.npy" \
    --input "y=$work/y.npy"
expect_text '^self-check: 1 run op by op and replayed: 1 value of 1 segment the same$'
expect_text 'values 1.5 0 0$'
expect_status 0 run "$here/../models/branch_and_loop/model.onnx" --device host --self-check=3
expect_text '^self-check: 3 runs op by op and replayed: [0-9]* values of [0-9]* segments the same'
# Sizes that depend on what was drawn, other ones in each run; NonZero runs between the segments.
noise=$here/models/noise_rows.onnx
expect_status 0 run "$noise" --device host --self-check=3
expect_text '^self-check: 3 runs op by op and replayed: 3 values of 3 segments the same; not compared: 1 of 3 ops, which run between segments$'
expect_status 0 run "$noise" --device host --graphs on
expect_text '^ran on host, 2 of 3 ops replayed, in [0-9.]* ms$'
expect_error 1 'graphs are off' run "$model" --device host --self-check --graphs off
expect_error 2 'needs a whole number' run "$model" --device host --self-check=x

# NaN values are legal.
write_npy "$work/nan.npy" '\000\000\300\177\000\000\200\077\000\000\200\077'
expect_status 0 run "$model" --device host --input "x=$work/nan.npy" --input "y=$work/y.npy"

# Less and more.
expect_status 0 run "$model" --device host --quiet --output-dir "$work/quiet"
[ ! -s "$work/stdout" ] || fail "--quiet prints"
[ -f "$work/quiet/z.npy" ] || fail "--quiet writes nothing"
expect_status 0 run "$model" --device host --verbose --set batch=2
expect_text '^device host \('
expect_text '^plan: 1 op in 1 segment, 0 bypassed; prepared in '
expect_text '^dimension batch = 2 \(--set batch=2\)$'
finish_test
