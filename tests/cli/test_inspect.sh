# rondo inspect: ports, plan, DOT and JSON.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx

expect_status 0 inspect "$model" --device host --dot "$work/plan.dot" --json "$work/plan.json" \
    --svg "$work/plan.svg"
expect_text '^inputs$'
expect_text '^  x +f32 \[batch=1, 3\]$'
expect_text '^outputs$'
expect_text '^  z +f32 \[batch=1, 3\]$'
expect_text '^device host, 1 op in 1 segment, 0 bypassed$'
expect_text '^run by: simd \(vector code\)'
[ "$(grep -c ' f32 \[batch=1, 3\]$' "$work/stdout")" = 3 ] || fail "ports are not printed once"
grep -q '^digraph' "$work/plan.dot" || fail "the DOT file is no digraph"
grep -q 'segment 0: 1 op, captured</text>' "$work/plan.svg" || fail "the picture has no segment"
[ "$(tail -n 1 "$work/plan.svg")" = '</svg>' ] || fail "the picture does not end"
expect_status 0 inspect "$model" --device host --svg -
expect_text '^<svg '
expect_error 1 'no/such' inspect "$model" --device host --svg "$work/no/such/plan.svg"
grep -q '"opset": [0-9]' "$work/plan.json" || fail "the JSON has no opset"
grep -q '"program": {' "$work/plan.json" || fail "the JSON has no nodes of the model"
grep -q '"plan": ' "$work/plan.json" || fail "the JSON has no plan"
# Every bracket that opens closes.
for pair in '{}' '[]'; do
    open=$(tr -cd "${pair%?}" <"$work/plan.json" | wc -c)
    close=$(tr -cd "${pair#?}" <"$work/plan.json" | wc -c)
    [ "$open" = "$close" ] && [ "$open" -gt 0 ] || fail "unbalanced $pair in the JSON"
done
# Half precision: what stayed in f32, each with the reason.
expect_status 0 inspect "$here/models/norm/model.onnx" --device host --dtype fp16 --json "$work/half.json"
expect_text '^half precision: [0-9]+ ops of the model compute in f16, [0-9]+ stay in f32$'
expect_text '^  f32 Pow +square +powers leave the range of f16$'
grep -q '"op": "Pow", "name": "square", "reason": "powers' "$work/half.json" || fail "no Pow in the JSON"
expect_status 0 inspect "$model" --device host --dtype fp16 --keep-f32 Relu
expect_text '^  f32 Relu .*asked for by keep_f32$'
expect_error 1 'keep_f32 "Frob\*" matches no op' inspect "$model" --device host --dtype fp16 --keep-f32 'Frob*'
expect_error 2 '--keep-f32 needs --dtype fp16' inspect "$model" --device host --keep-f32 Relu
expect_error 2 '--use-f16 needs --dtype fp16' test --device host --use-f16 Pow "$here/models/norm"

expect_status 0 inspect "$model" --device host --set batch=4
expect_text '^  x +f32 \[batch=4, 3\]$'

# Shapes from --shape and from files, as for run; unnamed dimensions, too.
expect_status 0 inspect "$model" --device host --shape x=7x3
expect_text '^  y +f32 \[batch=7, 3\]$'
expect_status 0 inspect "$model" --device host --input "x=$here/arrays/fortran.npy"
expect_text '^  z +f32 \[batch=2, 3\]$'
expect_status 0 inspect "$here/models/unnamed.onnx" --device host --shape x=1x1x9
expect_text '^  x +f32 \[1, 1, \?=9\]$'
expect_text '^  z +f32 \[1, 1, \?=8\]$'

# Nothing half before an error.
expect_error 1 'window' inspect "$here/models/window.onnx" --device host

# Bodies of control flow, with types; one word for what is bypassed, in bench too.
flow=$here/../models/branch_and_loop/model.onnx
expect_status 0 inspect "$flow" --device host
expect_text '^device host, 6 ops in 1 segment, 0 bypassed$'
expect_text '^  Loop +control '
expect_text '^    body: 5 ops in 1 segment, 0 bypassed$'
expect_text '^          then_branch: 3 ops in 1 segment, 0 bypassed$'
expect_text '^    else_branch: 1 op in 1 segment, 0 bypassed$'
grep -qE ' none |conventional' "$work/stdout" && fail "a type is \"none\", or something runs conventionally"
expect_status 0 bench "$flow" --device host --duration 0.02 --warm-up 0
expect_text '^graph +6 ops in 1 segment, 0 bypassed; [0-9]+ nodes$'
finish_test
