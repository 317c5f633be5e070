# rondo test: the models that ship, and those that RONDO_MODELS names, pass eagerly and replayed; a
# wrong expectation fails; what is unsupported is skipped with its reason.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
source_directory=$here/../..

set -- "$source_directory"/examples/models/* "$source_directory"/tests/models/*
for directory in ${RONDO_MODELS:-}; do
    [ -f "$directory/model.onnx" ] && set -- "$@" "$directory"
done
expect_status 0 test --device host "$@"
expect_text "^$# passed, 0 failed, 0 skipped\$"
cat "$work/stdout"

# In half precision, too, where no pattern names an op and where one keeps all of them.
expect_status 0 test --device host --dtype fp16 "$@"
expect_text "^$# passed, 0 failed, 0 skipped\$"
expect_status 0 test --device host --dtype fp16 --keep-f32 '*' --rtol 1e-3 "$@"

# What half precision breaks is said with the op that does it, and what helps: Pow is kept by rule.
expect_status 1 test --device host --dtype fp16 --use-f16 Pow "$here/models/norm"
expect_text '^FAILED +norm '
expect_text 'precision is lost in Pow "square"'
expect_text "passes with --keep-f32 'square'"
expect_status 0 test --device host --dtype fp16 "$here/models/norm"

# The same model against another model's outputs must fail, or the comparison compares nothing.
mkdir -p "$work/wrong/test_data_set_0"
cp "$source_directory/tests/models/lstm_tagger/model.onnx" "$work/wrong/"
cp "$source_directory/tests/models/lstm_tagger/test_data_set_0/input_0.pb" \
    "$work/wrong/test_data_set_0/"
cp "$source_directory/tests/models/bert_mini/test_data_set_0/output_0.pb" \
    "$work/wrong/test_data_set_0/"
expect_status 1 test --device host "$work/wrong"
expect_text '^FAILED +wrong '
expect_text '^0 passed, 1 failed, 0 skipped$'

# A value changed in one byte fails, too (the last byte holds sign and exponent of the last element).
cp -r "$source_directory/tests/models/lstm_tagger" "$work/changed"
chmod -R u+w "$work/changed"
output=$work/changed/test_data_set_0/output_0.pb
size=$(wc -c <"$output")
head -c $((size - 1)) "$output" >"$work/cut"
printf '\101' | cat "$work/cut" - >"$output"
expect_status 1 test --device host "$work/changed"
expect_text '^FAILED +changed .*expected'

# A test says itself what it allows, as ONNX's own do; the command line says it louder.
echo '{"rtol": 1e9, "atol": 1e9}' >"$work/changed/data.json"
expect_status 0 test --device host "$work/changed"
expect_status 1 test --device host --rtol 1e-3 --atol 1e-7 "$work/changed"

# A network that is in half precision itself is held to half precision.
expect_status 0 test --device host "$here/models/half_chain"
cp -r "$here/models/half_chain" "$work/half"
chmod -R u+w "$work/half"
output=$work/half/test_data_set_0/output_0.pb
size=$(wc -c <"$output")
head -c $((size - 3)) "$output" >"$work/cut"
printf '\101B\101' | cat "$work/cut" - >"$output"
expect_status 1 test --device host "$work/half"
expect_text '^FAILED +half .*expected'

# An expectation that nothing is compared with is no success.
cp -r "$source_directory/tests/models/lstm_tagger" "$work/surplus"
chmod -R u+w "$work/surplus"
cp "$work/surplus/test_data_set_0/output_0.pb" "$work/surplus/test_data_set_0/output_3.pb"
expect_status 1 test --device host --threads 1 "$work/surplus"
expect_text '^FAILED +surplus +test_data_set_0 has output_3\.pb, but the model has 1 output$'

mkdir -p "$work/odd"
cp "$here/models/unknown_op.onnx" "$work/odd/model.onnx"
expect_status 0 test --device host "$work/odd"
expect_text '^skipped +odd .*unsupported: op Frobnicate'
expect_text '^0 passed, 0 failed, 1 skipped$'
expect_status 0 test --list-unsupported "$work/odd"
expect_text '^ +1 +1 +Frobnicate'

expect_status 1 test --device host "$work/nowhere"
expect_text '^FAILED +nowhere '
finish_test
