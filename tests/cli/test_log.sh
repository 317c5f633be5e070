# RONDO_LOG on the host: what is told, by which room, when and where; a line for each transfer.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/../models/branch_and_loop/model.onnx
tail='  \[[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6} thread [0-9]+ [a-z]+ [a-z_]+\.c:[0-9]+\]$'
export RONDO_LOG

# At debug each line ends with time, thread, room, file and line; transfers name both sides and bytes.
RONDO_LOG=debug
expect_status 0 run "$model" --device host
[ -s "$work/stderr" ] || fail "RONDO_LOG=debug says nothing on the host"
grep -vqE "^rondo: (debug|info|warning): .*$tail" "$work/stderr" && fail "a line says not when or where"
grep -qE "^rondo: debug: transfer: a copy from host to host, [0-9]+ bytes, in the background$tail" \
    "$work/stderr" || fail "no transfer on the device"
grep -qE "^rondo: debug: transfer: a copy from host to the host, [0-9]+ bytes, waited for$tail" \
    "$work/stderr" || fail "no transfer to the host"

# As many threads as were asked for, where a model is loaded and where its weights become f16.
network=$here/../../examples/models/squeezenet1_1/model.onnx
for count in 1 3; do
    expect_status 0 run "$network" --device host --dtype fp16 --threads $count
    crews=$(grep -c "^rondo: debug: a crew of $count threads" "$work/stderr")
    others=$(grep "debug: a crew of" "$work/stderr" | grep -vc "a crew of $count threads")
    [ "$others" = 0 ] || fail "--threads $count: other crews"
    [ "$crews" -gt 0 ] || [ $count = 1 ] || fail "--threads $count: no crew"
done

# One room alone, and all the others at their own level.
RONDO_LOG=device=debug
expect_status 0 run "$model" --device host
grep -q 'transfer: ' "$work/stderr" || fail "the room device says nothing"
grep -vqE ' device [a-z_]+\.c:' "$work/stderr" && fail "another room speaks"
RONDO_LOG=debug,device=warn
expect_status 0 run "$model" --device host
grep -q 'transfer: ' "$work/stderr" && fail "the room device speaks"
RONDO_LOG=error
expect_status 0 run "$model" --device host
[ ! -s "$work/stderr" ] || fail "an error is told of"
finish_test
