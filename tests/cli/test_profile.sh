# rondo profile: the report, the files it writes, what it refuses, and comparisons.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx

expect_status 0 profile "$model" --device host --runs 4 --json "$work/a.json" --trace "$work/a.trace" \
    --html "$work/a.html"
expect_text '^---- profile: .*add_relu.onnx, eager, 4 runs ----$'
expect_text '^---- profile: .*add_relu.onnx, replay, 4 runs ----$'
expect_text '^Total time: [0-9.]+$'
expect_text '^eager +a run takes [0-9.]+ ms \(median of 4\)$'
expect_text '^replay +a run takes [0-9.]+ ms \(median of 4\)$'
expect_text 'a\.trace written$'
grep -q '"traceEvents":\[' "$work/a.trace" || fail "no trace"
grep -q '"name":"prepare replay"' "$work/a.trace" || fail "the trace lacks what came before"
grep -q '^<!doctype html>' "$work/a.html" || fail "no page"
[ "$(tail -n 1 "$work/a.html")" = '</html>' ] || fail "the page does not end"
grep -q 'segment 0: 1 op, captured' "$work/a.html" || fail "the page has no segments"
grep -qE '(src|href)="?(https?:)?//' "$work/a.html" && fail "the page needs a network"
grep -q '"runs": 4' "$work/a.json" || fail "the JSON lacks the runs"

# One mode, other orders, tables by thread.
expect_status 0 profile "$model" --device host --graphs off --runs 2 --sort calls --per-thread
expect_text '^Sorted by: number of calls$'
expect_text '^---- Event summary of thread 0'
grep -q 'replay' "$work/stdout" && fail "replayed although graphs are off"
expect_status 0 profile "$model" --device host --graphs off --runs 2
expect_text '^Sorted by: GPU time$'

# A few events of many: the largest under each, and the sum of the rest in one line.
bert="$here/../models/bert_mini/model.onnx"
expect_status 0 profile "$bert" --device host --runs 1 --warm-up 0 --graphs off --top 2
expect_text '^  \([0-9]* more\) '
[ "$(sed -n '/^Event /,$p' "$work/stdout" | grep -c '^  [^ ]')" = 3 ] || fail "--top 2 shows other than two events and the rest"
grep -q '^(outside of events)' "$work/stdout" || fail "--top 2 leaves out the time outside of events"
expect_status 0 profile "$bert" --device host --runs 1 --warm-up 0 --graphs off
grep -q ' more) ' "$work/stdout" && fail "without --top something is left out"
expect_error 2 'option --top needs a whole number' profile "$model" --top x

expect_status 0 profile "$model" --device host --runs 2 --source none --quiet
[ "$(wc -l <"$work/stdout")" = 2 ] || fail "--quiet says more than the conclusion"
expect_status 0 profile "$model" --device host --runs 2 --json -
[ "$(head -c 1 "$work/stdout")" = '{' ] || fail "stdout is not JSON"

# Files: known before the runs where they cannot be made, and afterwards nothing half is left.
expect_error 1 'no/such/a.json: No such file' profile "$model" --device host --json "$work/no/such/a.json"
if [ -c /dev/full ]; then
    for option in --trace --json; do
        expect_status 1 profile "$model" --device host --runs 2 $option /dev/full --html "$work/b.html"
        expect_text '^replay +a run takes'
        grep -q '/dev/full: could not be written: No space' "$work/stderr" || fail "$option: no reason"
        [ -s "$work/b.html" ] || fail "$option: the other file was not written"
        rm "$work/b.html"
    done
    expect_status 1 profile "$model" --device host --runs 2 --html /dev/full
    grep -q '/dev/full: could not be written: No space' "$work/stderr" || fail "--html: no reason"
fi

# Misuse.
expect_error 2 '--runs is 1 to 1000000' profile "$model" --runs 0
expect_error 2 'only one of --json, --trace and --html' profile "$model" --json - --trace -
expect_error 2 '--compare wants two files' profile --compare "$work/a.json"
expect_error 2 'two files are compared with --compare' profile "$work/a.json" "$work/a.json"
expect_error 2 'option --sort is one of gpu, total|--sort.*gpu\|total' profile "$model" --sort time

# Comparing: with itself all is the same; with what was made faster, slower, new and gone.
expect_status 0 profile --compare "$work/a.json" "$work/a.json"
expect_text '^eager: 4 runs and 4 runs$'
expect_text '^  within noise '
grep -qE 'faster|slower|appeared|went' "$work/stdout" && fail "a file differs from itself"
make_report() {
    printf '{"model": "m", "profiles": {"eager": {"runs": 10, "profile": {"rows": ['
    printf '{"parent": -1, "is_device_work": false, "name": "run", "calls": 10, "total_ns": %s, "min_ns": %s, "max_ns": %s},\n' $1 $2 $3
    printf '{"parent": 0, "is_device_work": true, "name": "%s", "calls": 10, "total_ns": %s, "min_ns": %s, "max_ns": %s}' "$4" $5 $6 $7
    printf ']}}}}'
}
make_report 1000000 99000 101000 'Conv a' 500000 49000 51000 >"$work/first.json"
make_report 500000 49000 51000 'Conv a' 505000 40000 61000 >"$work/second.json"
make_report 1000000 99000 101000 'Conv b' 1 0 1 >"$work/third.json"
expect_status 0 profile --compare "$work/first.json" "$work/second.json"
expect_text '^  faster 2.00x +0.1000 \+-0.0006 +0.0500 \+-0.0006 +1  run$'
expect_text '^  within noise .* run > \* Conv a$'
expect_status 0 profile --compare "$work/second.json" "$work/first.json"
expect_text '^  slower 2.00x '
expect_status 0 profile --compare "$work/first.json" "$work/third.json"
expect_text '^  went .* run > \* Conv a$'
expect_text '^  appeared .* run > \* Conv b$'
# The median decides where the file has it: one call that was held up does not hide what got slower.
make_quartiles() {
    printf '{"model": "m", "profiles": {"eager": {"runs": 10, "profile": {"rows": ['
    printf '{"parent": -1, "is_device_work": false, "name": "run", "calls": 40, "total_ns": %s, "min_ns": 99000, "max_ns": %s, ' $1 $2
    printf '"lower_quartile_ns": %s, "median_ns": %s, "upper_quartile_ns": %s}]}}}}' $3 $4 $5
}
make_quartiles 9000000 5000000 99000 100000 101000 >"$work/held_up.json"
make_quartiles 4800000 121000 119000 120000 121000 >"$work/fifth.json"
expect_status 0 profile --compare "$work/held_up.json" "$work/fifth.json"
expect_text '^  slower 1.20x +0.4000 \+-0.0035 +0.4800 \+-0.0035 +4  run$'
expect_status 0 profile --compare "$work/held_up.json" "$work/held_up.json"
expect_text '^  within noise '
echo '{"eager": 1}' >"$work/other.json"
expect_error 1 'other.json: not a report of rondo profile --json' profile --compare "$work/first.json" "$work/other.json"
sed 's/"parent": 0/"parent": 7/' "$work/first.json" >"$work/bad.json"
expect_status 1 profile --compare "$work/first.json" "$work/bad.json"
grep -q 'bad.json: eager: row 1 is not like those' "$work/stderr" || fail "a row without its parent was taken"
# A report that a program wrote (rondo_profile_write) is one run of one mode.
sed 's/^{.*"profile": {/{"title": "", /; s/}}}}$/}/' "$work/first.json" >"$work/own.json"
expect_status 0 profile --compare "$work/own.json" "$work/own.json"
expect_text '^profile: 1 run and 1 run$'
expect_status 0 profile --compare "$work/own.json" "$work/first.json"
expect_text "^profile: only in $work/own.json\$"
expect_text "^eager: only in $work/first.json\$"

# Copies that control flow makes have rows, and work in a trace always has a name.
/usr/bin/printf '\223NUMPY\001\000\066\000%-53s\n\004\000\000\000\000\000\000\000' \
    "{'descr': '<i8', 'fortran_order': False, 'shape': ()}" >"$work/four.npy"
expect_status 0 profile "$here/models/stacked_loop.onnx" --device host --runs 2 --graphs off \
    --input "four=$work/four.npy" --trace "$work/loop.trace"
expect_text '^ +copy host to host '
grep -q '"cat":"copy"' "$work/loop.trace" || fail "no copies in the trace"
grep -q '"name":""' "$work/loop.trace" && fail "work without a name in the trace"

# Ctrl-C reports what there is. (sh starts what runs beside it with SIGINT ignored, so env gives it
# back where it can.)
if env --default-signal=INT true 2>/dev/null; then
    check_count=$((check_count + 1))
    env --default-signal=INT "$rondo" profile "$model" --device host --runs 1000000 --graphs off \
        --trace "$work/early.trace" >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    wait_for_work $pid 30
    kill -INT $pid
    wait $pid
    early=$?
    [ $early = 130 ] || [ $early = 0 ] || fail "Ctrl-C: status $early, expected 130"
    expect_text '^eager +a run takes '
    grep -q '^]}$' "$work/early.trace" || fail "no whole trace"
fi
finish_test
