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
expect_status 0 inspect "$model" --device host --set batch=4
expect_text '^  x  f32 \[batch=4, 3\]$'
finish_test
