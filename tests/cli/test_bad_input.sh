# Bad models, feeds and devices: status 1, one line that names the file and the reason, no crash.
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
expect_error 1 'cyclic\.onnx.*(first|second)' run "$models/cyclic.onnx"
expect_error 1 'dangling\.onnx.*(ghost|haunted)' run "$models/dangling.onnx"
expect_error 1 'short_weight\.onnx.*"w"' run "$models/short_weight.onnx"
expect_error 1 'unknown_op\.onnx.*unsupported: op Frobnicate' run "$models/unknown_op.onnx"
expect_error 1 'future_opset\.onnx.*999' run "$models/future_opset.onnx"
expect_error 1 'missing_weights\.onnx.*no_such_weights\.bin' run "$models/missing_weights.onnx"
for model in huge_extent overflowing_product wrong_shapes wrong_types; do
    expect_error 1 '.' run "$models/$model.onnx"
done
for command in bench inspect; do
    expect_error 1 'cyclic\.onnx' "$command" "$models/cyclic.onnx"
done

# Devices.
expect_error 1 'toaster' run "$good" --device toaster
expect_error 1 'cuda:99' run "$good" --device cuda:99
expect_error 1 'toaster' test --device toaster "$models"

# Dimensions.
expect_error 1 'write NAME=NUMBER' run "$good" --set batch
expect_error 1 'not a whole number' run "$good" --set batch=two
expect_error 1 'nobody' run "$good" --set nobody=2
expect_error 1 '.' run "$good" --set batch=-3
expect_error 1 '.' run "$good" --set batch=4611686018427387904

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
expect_error 1 'object\.npy.*not a \.npy file of numbers' run "$good" --input "x=$work/object.npy"
expect_error 1 'header\.npy' run "$good" --input "x=$work/header.npy"
expect_error 1 'good\.onnx|add_relu\.onnx.*npy|not a \.npy' run "$good" --input "x=$good"
expect_error 1 'inputs are: x, y' run "$good" --input "q=$work/x.npy"
expect_error 1 'inputs are: x, y' run "$good" --input x
expect_error 1 'given 2 times' run "$good" --input x=random --input "x=$work/x.npy"
expect_error 1 'x' run "$good" --input "x=$work/wrong_shape.npy"
expect_error 1 'x' run "$good" --input "x=$work/wrong_type.npy"

# Places that cannot be written.
expect_status 1 run "$good" --output-dir "$work/x.npy"
expect_status 1 bench "$good" --duration 0 --warm-up 0 --json "$work/no/such/folder.json"
expect_status 1 inspect "$good" --dot "$work/no/such/folder.dot"
finish_test
