# Misuse ends with status 2 and one line on stderr that says what is wrong and where help is.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx

expect_status 2
[ -s "$work/stderr" ] || fail "rondo without a command says nothing"
[ ! -s "$work/stdout" ] || fail "rondo without a command prints to stdout"
expect_error 2 'no command "frobnicate".*rondo --help' frobnicate
expect_error 2 'no command "frobnicate"' help frobnicate
expect_error 2 'no command "bnech"; did you mean "bench"\? \(see rondo --help\)' bnech
expect_error 2 'no command "inspct"; did you mean "inspect"\?' help inspct
expect_error 2 'unknown option "--devcie"; did you mean "--device"\?' run "$model" --devcie host
expect_error 2 'unknown option "--itterations=3"; did you mean "--iterations"\?' bench "$model" \
    --itterations=3
expect_error 2 'missing operand: "MODEL".*rondo run --help' run
expect_error 2 'missing operand: "MODEL"' bench
expect_error 2 'missing operand: "MODEL"' inspect
expect_error 2 'missing operand: "DIR\.\.\."' test
expect_error 2 'unexpected operand "twice"' run "$model" twice
expect_error 2 'unexpected operand "host"' devices host
expect_error 2 'unknown option "--frobnicate"' run "$model" --frobnicate
expect_error 2 'unknown option "-x"' bench "$model" -x
expect_error 2 'a value is missing after option "--device"' run "$model" --device
expect_error 2 '--graphs is one of auto\|on\|off\|measured, not "maybe"' run "$model" --graphs maybe
expect_error 2 '--dtype is one of fp32\|fp16, not "fp8"' run "$model" --dtype fp8
expect_error 2 '--seed needs a whole number from 0, not "-1"' run "$model" --seed -1
expect_error 2 '--seed needs a whole number' run "$model" --seed 1x
expect_error 2 '--duration needs a number from 0, not "long"' bench "$model" --duration long
expect_error 2 '--duration needs a number from 0' bench "$model" --duration nan
expect_error 2 '--iterations needs a whole number' bench "$model" --iterations 1.5
expect_error 2 'takes no value' test --list-unsupported=yes "$here"
finish_test
