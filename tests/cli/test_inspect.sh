# rondo inspect: ports, plan, DOT and JSON.
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx

expect_status 0 inspect "$model" --device host --dot "$work/plan.dot" --json "$work/plan.json"
expect_text '^inputs:$'
expect_text '^  x  f32 \[batch, 3\]$'
expect_text '^outputs:$'
expect_text '^  z  f32 \[batch, 3\]$'
expect_text 'segment'
grep -q '^digraph' "$work/plan.dot" || fail "the DOT file is no digraph"
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
expect_error 1 '--keep-f32 needs --dtype fp16' inspect "$model" --device host --keep-f32 Relu
expect_error 1 '--use-f16 needs --dtype fp16' test --device host --use-f16 Pow "$here/models/norm"

expect_status 0 inspect "$model" --device host --set batch=4
expect_text '^  x  f32 \[batch=4, 3\]$'
finish_test
