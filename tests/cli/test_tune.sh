# rondo tune and --tuning-file, as far as they go without a GPU.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx

expect_error 1 'nothing to tune on the host' tune "$model" --device host
expect_error 1 'nothing to tune on the host' tune "$model" --device host --save "$work/model.tuning"
[ ! -e "$work/model.tuning" ] || fail "a file was written all the same"
expect_error 1 'no/such' tune "$model" --device host --save "$work/no/such/model.tuning"
expect_error 2 'tune --help' tune

printf 'rondo tuning 1\nGPU, 4 multiprocessors\tmatmul 1\tplain\n' >"$work/model.tuning"
for command in run inspect "bench --duration 0.01 --warm-up 0" "profile --runs 2"; do
    expect_status 0 $command "$model" --device host --tuning-file "$work/model.tuning"
done
expect_error 1 'no tuning file' run "$model" --device host --tuning-file "$model"
expect_error 1 'missing.tuning' run "$model" --device host --tuning-file "$work/missing.tuning"
printf 'rondo tuning 2\n' >"$work/model.tuning"
expect_error 1 'version 2' run "$model" --device host --tuning-file "$work/model.tuning"
printf 'rondo tuning 1\nGPU only\n' >"$work/model.tuning"
expect_error 1 'line 2 of the tuning file' inspect "$model" --device host --tuning-file "$work/model.tuning"
finish_test
