# Inputs from files of every kind, shapes and dimensions from the command line, casting, and a model
# from standard input.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx
arrays=$here/arrays

# z = relu(x + y) of the values in arrays/ (make_models.py): [1.5, 0, 0].
expect_sum() {
    expect_status 0 run "$model" --device host "$@" --input "y=$arrays/y.npy"
    expect_text '^z  f32 \[1, 3\]'
    expect_text 'values 1.5 0 0$'
}
for file in x.npy stored.npz stored.npz:x single.npz x.pb x.bin; do
    expect_sum --input "x=$arrays/$file"
done
run_tool run "$model" --device host --input "x=$arrays/packed.npz"
if grep -q 'this build has no zlib' "$work/stderr"; then
    echo "a build without zlib: packed archives are refused"
else
    expect_sum --input "x=$arrays/packed.npz"
fi
expect_error 1 'stored\.npz: has no entry "q"; there are: x, y' run "$model" \
    --input "x=$arrays/stored.npz:q"
printf 'PK\005\006\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >"$work/empty.npz"
expect_error 1 'empty\.npz: has no entry "x"; it has none$' run "$model" --input "x=$work/empty.npz"
expect_error 1 'not a \.npy file of numbers or strings, nor \.npz, \.pb, \.bin or \.raw' run "$model" \
    --input "x=$here/test_inputs.sh"

# A pipe.
check_count=$((check_count + 1))
cat "$arrays/x.npy" | "$rondo" run "$model" --device host --input x=/dev/stdin \
    --input "y=$arrays/y.npy" >"$work/stdout" 2>"$work/stderr" || fail "an input from a pipe"
expect_text 'values 1.5 0 0$'

# Raw bytes: one open extent follows from their number.
cat "$arrays/x.bin" "$arrays/x.bin" >"$work/two.raw"
expect_status 0 run "$model" --device host --input "x=$work/two.raw"
expect_text '^z  f32 \[2, 3\]'
expect_status 0 run "$model" --device host --shape x=2x3 --input "x=$work/two.raw"
expect_text '^z  f32 \[2, 3\]'
expect_error 1 'two\.raw: holds 24 bytes, f32 \[3, 3\] takes 36' run "$model" \
    --set batch=3 --input "x=$work/two.raw"
head -c 10 "$arrays/x.bin" >"$work/odd.raw"
expect_error 1 'odd\.raw: holds 10 bytes' run "$model" --input "x=$work/odd.raw"

# Fortran order is turned: the first row is 1 2 3.
expect_status 0 run "$model" --device host --input "x=$arrays/fortran.npy" \
    --input "y=$arrays/fortran.npy"
expect_text 'values 2 4 6 8 10 12$'

# What .npy files may hold besides numbers, each by its name.
expect_error 1 'strings\.npy: holds string, input "x" takes f32' run "$model" \
    --input "x=$arrays/strings.npy"
expect_error 1 'bytes\.npy: holds string, input "x" takes f32' run "$model" --cast \
    --input "x=$arrays/bytes.npy"
expect_error 1 'complex\.npy: holds c64, input "x" takes f32' run "$model" \
    --input "x=$arrays/complex.npy"
expect_error 1 'int4\.npy: holds raw bytes' run "$model" --input "x=$arrays/int4.npy"

# Arrays of ml_dtypes: bytes whose type is the input's, in and out.
narrow="$here/models/narrow.onnx"
expect_status 0 run "$narrow" --device host --input "x=$arrays/int4.npy" --output-dir "$work/narrow"
expect_text '^t  i4 \[3, 2\]'
expect_text 'values 7 0 -8 1 -1 2$'
expect_text '^e  f8e4m3fn \[2, 3\]'
expect_status 0 run "$narrow" --device host --cast --input "x=$work/narrow/z.npy" \
    --output-dir "$work/again"
for name in t e; do
    cmp "$work/narrow/$name.npy" "$work/again/$name.npy" || fail "$name.npy differs"
    grep -q "'descr': '<V1'" "$work/narrow/$name.npy" || fail "$name.npy: no bytes"
done
expect_error 1 'z\.npy: holds f32, input "x" takes i4 \[2, 3\]; --cast converts it' run "$narrow" \
    --input "x=$work/narrow/z.npy"
expect_error 1 'x_fraction\.npy: element 1 is 2\.5, which i4 cannot hold' run "$narrow" --cast \
    --input "x=$arrays/x_fraction.npy"
expect_error 1 'objects\.npy: holds Python objects' run "$model" --input "x=$arrays/objects.npy"
expect_error 1 'dates\.npy: holds dates' run "$model" --input "x=$arrays/dates.npy"
expect_error 1 'fields\.npy: holds a structured array' run "$model" --input "x=$arrays/fields.npy"

# Another element type: only when asked for, and only where every value survives.
for type in double half int; do
    expect_error 1 "x_$type\.npy: holds .*, input \"x\" takes f32 \[batch, 3\]; --cast converts it" \
        run "$model" --input "x=$arrays/x_$type.npy"
    expect_sum --cast --input "x=$arrays/x_$type.npy"
done
expect_error 1 'x_large\.npy: element 1 is 1.*e\+300, which f32 cannot hold' \
    run "$model" --cast --input "x=$arrays/x_large.npy"

# Dimensions: from --set, from --shape, from a file; the others follow.
expect_status 0 run "$model" --device host --input "x=$arrays/fortran.npy" --verbose
expect_text '^dimension batch = 2 \(.*fortran\.npy\)$'
expect_text '^input y: f32 \[2, 3\], not given$'
expect_text '^z  f32 \[2, 3\]'
expect_status 0 run "$model" --device host --shape y=5x3 --verbose
expect_text '^dimension batch = 5 \(--shape y=5x3\)$'
expect_text '^z  f32 \[5, 3\]'
expect_error 1 'fortran\.npy: has shape \[2, 3\], and --shape says \[4, 3\]' run "$model" \
    --shape x=4x3 --input "x=$arrays/fortran.npy"

# A dimension left at 1 that makes the model impossible is named with its cure.
expect_error 1 'window\.onnx.*; nobody set width, so it counts as 1: try --set width=N$' \
    run "$here/models/window.onnx" --device host
expect_status 0 run "$here/models/window.onnx" --device host --set width=4
expect_text '^z  f32 \[1, 1, 3\]'
expect_error 1 'unnamed dimensions of input "x" count as 1: try --shape x=1x1xA$' \
    inspect "$here/models/unnamed.onnx" --device host
expect_status 0 run "$here/models/unnamed.onnx" --device host --shape x=1x1x5
expect_text '^z  f32 \[1, 1, 4\]'
expect_error 1 'the model has no symbolic dimensions' \
    run "$here/models/unnamed.onnx" --set x=4

# An input with a default is fed when it is named.
optional=$here/models/optional.onnx
expect_status 0 run "$optional" --device host --input "x=$arrays/x.npy"
expect_text 'values 2 0 4$'
expect_status 0 run "$optional" --device host --input "x=$arrays/x.npy" --input "y=$arrays/y.npy"
expect_text 'values 1.5 0 0$'
expect_status 0 inspect "$optional" --device host --input "y=$arrays/y.npy"
# The program that is made for it keeps what --keep-f32 names, too.
expect_status 0 run "$optional" --device host --dtype fp16 --keep-f32 Relu \
    --input "x=$arrays/x.npy" --input "y=$arrays/y.npy"
expect_text 'values 1.5 0 0$'
expect_error 1 'no such input; the inputs are: x [^,]*.*, y ' run "$optional" --input q=random

# A model from standard input.
check_count=$((check_count + 1))
"$rondo" run - --device host --set batch=2 <"$model" >"$work/stdout" 2>"$work/stderr" ||
    fail "a model from standard input"
expect_text '^z  f32 \[2, 3\]'
for command in bench inspect; do
    check_count=$((check_count + 1))
    "$rondo" $command - --device host <"$model" >"$work/stdout" 2>"$work/stderr" --json "$work/j" ||
        fail "$command of a model from standard input"
done
check_count=$((check_count + 1))
"$rondo" run - <"$here/models/cyclic.onnx" >"$work/stdout" 2>"$work/stderr" && fail "a bad model passed"
grep -q 'standard input' "$work/stderr" || fail "the error does not name standard input"

# Threads are the run's own.
expect_status 0 run "$model" --device host --threads 1
expect_error 2 'option --threads is 1 to 1024, not "5000"' run "$model" --threads 5000
finish_test
