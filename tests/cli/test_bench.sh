# rondo bench: the block, and its JSON with eager and replay at the top.
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
for key in eager replay speedup break_even_runs graph memory_bytes warnings conclusion; do
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
grep -q '^  replay' "$work/stdout" && fail "--graphs off measured replays"
finish_test
