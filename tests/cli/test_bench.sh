# rondo bench: the block, and its JSON with eager and replay at the top.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx

expect_status 0 bench "$model" --device host --duration 0.05 --warm-up 5 --json "$work/bench.json"
expect_text '^throughput +eager [0-9.]+ runs/s, replay [0-9.]+ runs/s$'
expect_text '^ms +min +max +mean +median +p90 +p95 +p99$'
for row in latency enqueue 'host to device' 'device compute' 'device to host'; do
    expect_text "^$row\$"
done
[ "$(grep -c '^  eager ' "$work/stdout")" = 5 ] || fail "not five eager rows"
[ "$(grep -c '^  replay ' "$work/stdout")" = 5 ] || fail "not five replay rows"
for row in graph 'making it' memory break-even speedup; do
    expect_text "^$row  "
done
[ ! -s "$work/stderr" ] || fail "bench prints to stderr when piped"

# The JSON: both modes at the top, every time with all of its statistics.
for key in eager replay verdict speedup noise_ms break_even_runs graph memory_bytes warnings conclusion; do
    grep -q "^  \"$key\": " "$work/bench.json" || fail "the JSON has no $key at the top"
done
for key in latency_ms enqueue_ms host_to_device_ms compute_ms device_to_host_ms; do
    [ "$(grep -c "^    \"$key\": {" "$work/bench.json")" = 2 ] || fail "the JSON lacks $key"
done
for key in min max mean median p90 p95 p99; do
    [ "$(grep -c "^      \"$key\": " "$work/bench.json")" = 10 ] || fail "the JSON lacks $key"
done
awk '/"eager": / { mode = "eager" } /"replay": / { mode = "replay" }
     /"runs": / { gsub(/[^0-9]/, ""); if ($0 + 0 < 10) exit 1; found[mode] = 1 }
     END { exit !(found["eager"] && found["replay"]) }' "$work/bench.json" ||
    fail "fewer than ten runs of a mode"

expect_status 0 bench "$model" --device host --graphs off --duration 0 --warm-up 0 --iterations 3
expect_text '^runs +eager 3 in'
expect_text '^Graphs were off \(--graphs off\), so there is nothing to compare\.$'
grep -q '^  replay' "$work/stdout" && fail "--graphs off measured replays"

# The governor's choice and reason.
expect_status 0 bench "$model" --device host --graphs measured --duration 0.05 --warm-up 5 --json "$work/measured.json"
expect_text '^measured +(replay|eager)[a-z ]*: '
grep -Eq '^  "choice": "(replay|eager)' "$work/measured.json" || fail "the JSON has no choice"

# RONDO_GRAPHS is for who says nothing; what it cannot be is warned about, with what it can be.
RONDO_GRAPHS=off
export RONDO_GRAPHS
expect_status 0 bench "$model" --device host --duration 0.01 --warm-up 0
expect_text '^Graphs were off \(RONDO_GRAPHS=off\)'
expect_status 0 bench "$model" --device host --duration 0.01 --warm-up 0 --graphs auto
expect_text '^  replay '
RONDO_GRAPHS=on
expect_status 0 run "$model" --device host
expect_text '^replayed on host'
expect_status 0 run "$model" --device host --graphs auto
expect_text '^ran eagerly on host'
RONDO_GRAPHS=perhaps
RONDO_LOG=loud
export RONDO_LOG
expect_status 0 run "$model" --device host
[ "$(grep -c 'warning: RONDO_GRAPHS is "perhaps", which is none of auto|on|off' "$work/stderr")" = 1 ] ||
    fail "no warning of RONDO_GRAPHS"
[ "$(grep -c 'warning: RONDO_LOG is "loud": "loud" is none of error, warning, info and debug' "$work/stderr")" = 1 ] ||
    fail "no warning of RONDO_LOG"
[ "$(wc -l <"$work/stderr")" = 2 ] || fail "other warnings"
unset RONDO_GRAPHS RONDO_LOG

# Too few runs say so instead of a speedup; percentages never stand for ratios.
expect_status 0 bench "$model" --device host --duration 0 --warm-up 0 --iterations 2
expect_text '^speedup      none measurable$'
expect_text '^Too few runs to compare: '
grep -q '"speedup"' "$work/bench.json" || fail "the JSON has no ratio"

# Chosen percentiles, and every run.
expect_status 0 bench "$model" --device host --duration 0.05 --warm-up 0 --percentiles 50,99.9 \
    --json "$work/bench.json" --samples "$work/runs.csv"
expect_text '^ms +min +max +mean +median +p50 +p99\.9$'
[ "$(grep -c '^      "p99\.9": ' "$work/bench.json")" = 10 ] || fail "the JSON lacks p99.9"
[ "$(head -n 1 "$work/runs.csv")" = \
    mode,run,turn,latency_ms,enqueue_ms,host_to_device_ms,compute_ms,device_to_host_ms,replayed ] ||
    fail "the CSV begins with $(head -n 1 "$work/runs.csv")"
for mode in eager replay; do
    counted=$(awk -v mode=$mode '$0 ~ "\"" mode "\": {" { here = 1 } here && /"runs"/ {
        gsub(/[^0-9]/, ""); print; exit }' "$work/bench.json")
    [ "$(grep -c "^$mode," "$work/runs.csv")" = "$counted" ] || fail "not $counted rows of $mode"
done
# Five turns of each mode at least, however long the machine was away for: below that nothing is compared.
awk -F, 'NR > 1 { turns[$1 " " $3] = 1 } END { for (t in turns) { split(t, part, " "); count[part[1]]++ }
    exit !(count["eager"] >= 5 && count["replay"] >= 5) }' "$work/runs.csv" || fail "fewer than five turns"
awk -F, 'NR > 1 && (NF != 9 || $4 <= 0) { exit 1 }' "$work/runs.csv" || fail "a row is malformed"
expect_status 0 bench "$model" --device host --duration 0.02 --warm-up 0 --samples "$work/runs.json"
grep -q '^  "replay": \[$' "$work/runs.json" || fail "the samples are no JSON"
expect_error 2 '--percentiles "0": up to 8 numbers above 0' bench "$model" --percentiles 0
expect_error 2 'nothing would be measured' bench "$model" --iterations 0 --duration 0

# Less and more.
expect_status 0 bench "$model" --device host --duration 0.05 --warm-up 0 --quiet
[ "$(wc -l <"$work/stdout")" = 1 ] || fail "--quiet prints more than the conclusion"
expect_text '^Graphs '
expect_status 0 bench "$model" --device host --duration 0.02 --warm-up 0 --verbose --threads 1
expect_text '^model .*add_relu\.onnx: 2 inputs, 1 output$'
expect_text '^device       host .*, fp32, 1 thread$'
expect_error 2 'exclude each other' bench "$model" --quiet --verbose

# Ctrl-C prints what there is, saves it, and says so. (sh starts what runs beside it with SIGINT
# ignored, so env gives it back where it can.)
if env --default-signal=INT true 2>/dev/null; then
    check_count=$((check_count + 1))
    env --default-signal=INT "$rondo" bench "$model" --device host --duration 100 --warm-up 0 \
        --json "$work/early.json" >"$work/stdout" 2>"$work/stderr" &
    pid=$!
    wait_for_work $pid 100
    kill -INT $pid
    wait $pid
    [ $? = 130 ] || fail "Ctrl-C: status $?, expected 130"
    expect_text '^runs +eager [0-9]+ in [0-9.]+ s, replay [0-9]+ in .*; interrupted$'
    grep -q '"interrupted": true' "$work/early.json" || fail "the JSON does not tell of Ctrl-C"
    [ ! -s "$work/stderr" ] || fail "Ctrl-C prints to stderr"
    # A run that does not end by itself is ended.
    for command in bench profile; do
        check_count=$((check_count + 1))
        env --default-signal=INT "$rondo" $command "$here/models/endless_loop.onnx" --device host \
            >"$work/stdout" 2>"$work/stderr" &
        pid=$!
        wait_for_work $pid 20
        kill -INT $pid
        (sleep 60; kill -KILL $pid) >/dev/null 2>&1 &  # a sleep that is left holds nobody's pipe
        guard=$!
        wait $pid
        [ $? = 130 ] || fail "Ctrl-C during a run of $command"
        kill $guard 2>/dev/null
        grep -q 'interrupted before anything was measured' "$work/stderr" || fail "$command: no word"
    done
fi

# Progress is for terminals.
if script -qec true /dev/null >/dev/null 2>&1; then
    check_count=$((check_count + 1))
    script -qec "'$rondo' bench '$model' --device host --duration 0.3 --warm-up 0 >/dev/null" \
        /dev/null >"$work/stdout" 2>&1 </dev/null
    grep -q 'measuring, [0-9.]* of 0\.6 s: eager [0-9]* runs, replay [0-9]* runs' "$work/stdout" ||
        fail "no progress on a terminal"
fi
finish_test
