# Bad models, feeds and devices: status 1, one line that names the file and the reason, no crash.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
models=$here/models
good=$models/add_relu.onnx

# Model files.
expect_error 1 'no_such_file\.onnx' run "$work/no_such_file.onnx"
: >"$work/empty.onnx"
expect_error 1 'empty\.onnx' run "$work/empty.onnx"
printf 'this is no model at all, only some text' >"$work/text.onnx"
expect_error 1 'text\.onnx' run "$work/text.onnx"
expect_error 1 "$(basename "$work")" run "$work"
for bytes in 1 10 40 80 120; do
    head -c $bytes "$good" >"$work/truncated.onnx"
    expect_error 1 'truncated\.onnx' run "$work/truncated.onnx"
done
# Several missing ops are all named, with how many nodes need them.
expect_status 1 run "$models/missing_ops.onnx"
for line in '^rondo: .*missing_ops\.onnx: 3 ops are not supported:$' \
    '^ +2 nodes  com\.example\.Frobnicate version 1: the op is unknown: rondo_op_register adds one$' '^ +1 node   Grobnicate version 13: the op is unknown$' \
    '^ +1 node   Relu version 13: attribute speed$'; do
    grep -qE -- "$line" "$work/stderr" || fail "stderr lacks /$line/"
done
[ ! -s "$work/stdout" ] || fail "missing ops: printed to stdout"
expect_error 1 'cyclic\.onnx.*(first|second)' run "$models/cyclic.onnx"
expect_error 1 'dangling\.onnx.*(ghost|haunted)' run "$models/dangling.onnx"
expect_error 1 'short_weight\.onnx.*"w"' run "$models/short_weight.onnx"
expect_error 1 'unknown_op\.onnx.*unsupported: op Frobnicate' run "$models/unknown_op.onnx"
expect_error 1 'future_opset\.onnx.*opset 999 .*--allow-newer-opset' run "$models/future_opset.onnx"
expect_status 0 run --device host --allow-newer-opset "$models/future_opset.onnx"
grep -q 'warning: op Relu version 999 is read as version 28 has it' "$work/stderr" ||
    fail 'nothing is said of the opset that came later'
expect_error 1 'missing_weights\.onnx.*no_such_weights\.bin' run "$models/missing_weights.onnx"
for model in huge_extent overflowing_product wrong_shapes wrong_types; do
    expect_error 1 '.' run "$models/$model.onnx"
done
for command in bench inspect profile; do
    expect_error 1 'cyclic\.onnx' "$command" "$models/cyclic.onnx"
done

# Devices.
expect_error 1 'toaster' run "$good" --device toaster
expect_error 1 'cuda:99' run "$good" --device cuda:99
expect_error 1 'toaster' test --device toaster "$models"
# The file is loaded while a device is opened, unless that is the host: the device's failure is told
# first, and alone; that of the file is the same on either way.
expect_error 1 'toaster' run "$work/no_such_file.onnx" --device toaster
expect_status 1 run "$models/cyclic.onnx" --device host
cp "$work/stderr" "$work/said_alone"
expect_status 1 run "$models/cyclic.onnx" --device auto
cmp -s "$work/stderr" "$work/said_alone" || fail "loaded beside the device: another message"

# Dimensions: what is malformed is misuse, what the model does not take is a failure.
for malformed in batch batch=two batch=-3 batch= =3 batch=99999999999999999999; do
    expect_error 2 '--set batch=4 \(see rondo run --help\)' run "$good" --set "$malformed"
done
expect_error 2 '--set: "batch" is given twice, as "2" and "3"' run "$good" --set batch=2 --set batch=3
expect_error 1 'no dimension "nobody"; there are: batch$' run "$good" --set nobody=2
expect_error 1 'no dimension "bacth"; did you mean "batch"\?' run "$good" --set bacth=2
expect_error 1 '.' run "$good" --set batch=4611686018427387904
for malformed in x x= x=1x x=x3 x=1xx3 x=axb x=-1x3; do
    expect_error 2 '--shape x=1x3x224x224' run "$good" --shape "$malformed"
done
expect_error 1 'the shape is \[4\], input "x" takes f32 \[batch, 3\]' run "$good" --shape x=4
expect_error 1 '"batch" would be 2 \(--set batch=2\) and 4 \(--shape x=4x3\)' \
    run "$good" --set batch=2 --shape x=4x3
expect_error 1 '"batch" would be 4 \(--shape x=4x3\) and 5 \(--shape y=5x3\)' \
    run "$good" --shape y=5x3 --shape x=4x3
expect_error 1 'no such input; the inputs are: x f32 \[batch, 3\], y f32 \[batch, 3\]$' run "$good" --shape q=1x2

# Feeds.
write_npy() { # FILE DESCR SHAPE BYTES...
    header="{'descr': '$2', 'fortran_order': False, 'shape': $3, }"
    start_npy "$1" "$header"
    printf "$4" >>"$1"
}
zeros12='\0\0\0\0\0\0\0\0\0\0\0\0'
write_npy "$work/x.npy" '<f4' '(1, 3)' "$zeros12"
write_npy "$work/wrong_shape.npy" '<f4' '(3,)' "$zeros12"
write_npy "$work/wrong_type.npy" '<i4' '(1, 3)' "$zeros12"
write_npy "$work/short.npy" '<f4' '(1, 3)' '\0\0\0\0'
write_npy "$work/absurd.npy" '<f4' '(4611686018427387904, 4)' '\0\0\0\0'
write_npy "$work/object.npy" '|O' '(1, 3)' "$zeros12"
printf '\223NUMPY\001\000\377\377' >"$work/header.npy"
expect_error 1 'no_such\.npy' run "$good" --input "x=$work/no_such.npy"
expect_error 1 'short\.npy.*shorter' run "$good" --input "x=$work/short.npy"
expect_error 1 'absurd\.npy' run "$good" --input "x=$work/absurd.npy"
expect_error 1 'object\.npy: holds Python objects' run "$good" --input "x=$work/object.npy"
expect_error 1 'header\.npy' run "$good" --input "x=$work/header.npy"
expect_error 1 'good\.onnx|add_relu\.onnx.*npy|not a \.npy' run "$good" --input "x=$good"
expect_error 1 'inputs are: x f32 \[batch, 3\], y f32' run "$good" --input "q=$work/x.npy"
expect_error 2 '--input x=FILE\.npy' run "$good" --input x
expect_error 2 '--input: "x" is given twice' run "$good" --input x=random --input "x=$work/x.npy"
expect_error 1 'wrong_shape\.npy: the shape is \[3\], input "x" takes f32 \[batch, 3\]' \
    run "$good" --input "x=$work/wrong_shape.npy"
expect_error 1 'wrong_type\.npy: holds i32, input "x" takes f32 \[batch, 3\]; --cast converts it' \
    run "$good" --input "x=$work/wrong_type.npy"
# What --set said stands in the message.
expect_error 1 '"batch" would be 4 \(--set batch=4\) and 1 \(.*x\.npy\)' \
    run "$good" --set batch=4 --input "x=$work/x.npy"

# Places that cannot be written.
expect_error 1 'x\.npy: Not a directory' run "$good" --output-dir "$work/x.npy"

# A folder is no model; the one that is in it is named.
mkdir "$work/folder"
cp "$good" "$work/folder/model.onnx"
for command in run inspect bench; do
    expect_error 1 "folder: it is a directory, not a regular file; name the model in it: .*folder/model\.onnx" $command "$work/folder"
done
expect_error 1 "it is a directory, not a regular file; name the model in it: " train "$work/folder" --data "$here/arrays/line.npz" \
    --output "$work/trained.onnx"
expect_error 1 'it is a directory, not a regular file$' run "$work"
expect_error 1 'x\.npy' run "$good" --output-dir "$work/x.npy/below"
expect_error 1 'folder\.json' bench "$good" --json "$work/no/such/folder.json"
expect_error 1 'folder\.csv' bench "$good" --samples "$work/no/such/folder.csv"
expect_error 1 'folder\.dot' inspect "$good" --dot "$work/no/such/folder.dot"
expect_error 1 "$(basename "$work")" inspect "$good" --json "$work"

# Weights that are cut while a program reads them: an end with a word, and no crash.
cp "$here/models/weights_beside.onnx" "$work/model.onnx"
head -c 4194304 /dev/zero >"$work/weights.bin"
check_count=$((check_count + 1))
"$rondo" bench "$work/model.onnx" --device host --threads 1 --duration 60 >"$work/stdout" \
    2>"$work/stderr" &
bench=$!
while ! grep -q weights.bin /proc/$bench/maps 2>/dev/null && is_running $bench; do
    sleep 0.05
done
: >"$work/weights.bin"
wait $bench
status=$?
[ "$status" = 1 ] || fail "a file cut while it is read: status $status"
grep -q 'a file became shorter while it was read' "$work/stderr" || fail "a cut file is not named"
finish_test
