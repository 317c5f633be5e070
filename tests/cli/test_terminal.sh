# No command prints what a terminal would obey, whatever the names in a model are: no control
# characters (also U+0080 to U+009F), nothing that turns the direction of text, on neither stream, in
# text and in JSON.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
tricky=$here/models/tricky_names.onnx

# expect_harmless: the last run printed none of them. tr cannot see U+009B (302 233) and U+202E
# (342 200 256), so these are looked for as bytes.
expect_harmless() {
    for stream in stdout stderr "$@"; do
        [ "${stream#/}" != "$stream" ] || stream=$work/$stream
        LC_ALL=C tr -d '\n\040-\176\200-\377' <"$stream" >"$work/controls"
        [ ! -s "$work/controls" ] || fail "control characters in $stream: $(od -c "$work/controls" | head -n 2)"
        for bytes in '\302\233' '\342\200\256'; do
            if LC_ALL=C grep -q "$(printf "$bytes")" "$stream"; then
                fail "$bytes in $stream"
            fi
        done
    done
}

expect_status 0 run "$tricky" --device host --output-dir "$work/out" --verbose
expect_harmless
expect_text '\\x1b\[31mRED'
expect_status 0 run "$tricky" --device host --graphs on --quiet
expect_harmless
expect_status 0 inspect "$tricky" --device host --json "$work/plan.json" --dot "$work/plan.dot" \
    --svg "$work/plan.svg"
expect_harmless "$work/plan.json" "$work/plan.dot" "$work/plan.svg"
grep -q '\\u001b\[31mRED\\u001b\[0m\\u0007' "$work/plan.json" || fail "the JSON lacks the escaped name"
grep -q '\\u202eabc\\u009b1m' "$work/plan.json" || fail "the JSON lacks the other escaped name"
expect_status 0 inspect "$tricky" --device host --json -
expect_harmless
expect_status 0 bench "$tricky" --device host --duration 0.01 --warm-up 0 --json "$work/bench.json"
expect_harmless "$work/bench.json"
expect_status 0 profile "$tricky" --device host --runs 1 --json "$work/p.json" --trace "$work/p.trace" --html "$work/p.html"
expect_harmless "$work/p.json" "$work/p.trace" "$work/p.html"
expect_text '\\x1b\[31mRED'
expect_status 0 profile --compare "$work/p.json" "$work/p.json" --verbose
expect_harmless
expect_error 1 '.' run "$tricky" --set q=2
expect_harmless
expect_error 1 '.' run "$tricky" --shape x=3x3x3
expect_harmless
expect_error 1 'no_\\x1b\[1msuch' run "$(printf 'no_\033[1msuch.onnx')"
expect_harmless
expect_error 2 '.' "$(printf 'frob\033[2Jnicate')"
expect_harmless

# rondo test: names in a model and in the reason of a failure or a skip.
mkdir -p "$work/test/test_data_set_0"
cp "$tricky" "$work/test/model.onnx"
cp "$here/arrays/x.pb" "$work/test/test_data_set_0/input_0.pb"
for i in 0 1 2 3 4 5 6; do
    cp "$here/arrays/x.pb" "$work/test/test_data_set_0/output_$i.pb"
done
run_tool test --device host "$work/test"
[ "$status" = 1 ] || [ "$status" = 0 ] || fail "rondo test: status $status"
expect_harmless
expect_status 0 test --list-unsupported "$here/models/missing_ops.onnx"
expect_harmless
mv "$work/test" "$(printf '%s/te\033[7mst' "$work")"
run_tool test --device host "$(printf '%s/te\033[7mst' "$work")"
expect_harmless
expect_status 0 compare "$work/out" "$work/out"
expect_harmless
finish_test
