# rondo compare: two runs, another runtime's outputs, two measurements.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx
arrays=$here/arrays

expect_status 0 run "$model" --device host --input "x=$arrays/x.npy" --input "y=$arrays/y.npy" \
    --output-dir "$work/a"
expect_status 0 run "$model" --device host --graphs on --input "x=$arrays/x.npy" \
    --input "y=$arrays/y.npy" --output-dir "$work/b"
expect_status 0 run "$model" --device host --seed 5 --output-dir "$work/c"
expect_status 0 run "$model" --device host --set batch=2 --output-dir "$work/d"

expect_status 0 compare "$work/a" "$work/b" --rtol 0 --atol 0
expect_text '^same      z  f32 \[1, 3\]: largest difference 0, relative 0$'
expect_text '^1 tensor, 0 different$'
expect_status 1 compare "$work/a" "$work/c"
expect_text '^DIFFERENT z '
expect_text '[0-9] of 3 elements differ, the first at \[0, [0-2]\]: element [0-2] is .*, expected '
expect_status 0 compare "$work/a" "$work/c" --atol 100
expect_status 1 compare "$work/a" "$work/d"
expect_text 'got f32 \[1, 3\], expected f32 \[2, 3\]'

# Names: a .pb carries its own, an archive too; one tensor on each side needs none.
mkdir "$work/pb" "$work/two"
cp "$arrays/another_name.pb" "$work/pb/output_0.pb"
expect_status 0 compare "$work/a" "$work/pb"
expect_status 0 compare "$work/a/z.npy" "$arrays/another_name.pb"
expect_status 1 compare "$work/a" "$arrays/stored.npz"
expect_text '^MISSING   z  is not in .*stored\.npz$'
expect_text '^MISSING   x  is not in .*/a$'
expect_status 0 compare "$arrays/stored.npz" "$arrays/stored.npz" --json "$work/result.json"
expect_text '^2 tensors, 0 different$'
grep -q '"different": 0' "$work/result.json" || fail "the JSON has no count"
expect_status 1 compare "$work/a" "$work/c" --json -
[ "$(head -c 1 "$work/stdout")" = '{' ] || fail "compare --json - prints more than JSON"
grep -q '"first_differing": [0-9]' "$work/stdout" || fail "the JSON has no first place"
expect_status 1 compare "$work/a" "$work/c" --quiet
expect_text '^DIFFERENT z '
expect_status 0 compare "$work/a" "$work/b" --quiet
[ "$(wc -l <"$work/stdout")" = 1 ] || fail "--quiet prints more than the closing line"

# Two of one name cannot be told apart.
LC_ALL=C sed 's/y\.npy/x.npy/g' "$arrays/stored.npz" >"$work/twice.npz"
expect_error 1 'twice\.npz: holds two tensors that are called "x"' compare "$work/twice.npz" \
    "$arrays/stored.npz"
expect_error 1 'twice\.npz: holds two tensors that are called "x"' compare "$arrays/stored.npz" \
    "$work/twice.npz"

# Element types.
expect_status 1 compare "$arrays/x.npy" "$arrays/x_double.npy"
expect_text 'got f32 \[1, 3\], expected f64 \[1, 3\]'
expect_status 0 compare --cast "$arrays/x.npy" "$arrays/x_double.npy"
expect_error 1 'element 1 is 2.5, which i64 cannot hold' compare --cast "$arrays/x_fraction.npy" \
    "$arrays/x_int.npy"

# Nothing to compare.
mkdir "$work/empty"
expect_error 1 'holds no \.npy, \.npz or \.pb files' compare "$work/empty" "$work/a"
expect_error 1 'nowhere' compare "$work/a" "$work/nowhere"

# Measurements, made up so that chance plays no part.
measure() { # FILE MEDIAN NOISE
    cat >"$1" <<END
{"model": "m.onnx", "dtype": "fp32", "device": {"name": "host"},
 "eager": {"noise_ms": $3, "latency_ms": {"median": $2}, "compute_ms": {"median": 0.5}}}
END
}
measure "$work/one.json" 1.0 0.01
measure "$work/near.json" 1.01 0.01
measure "$work/slow.json" 1.5 0.01
measure "$work/short.json" 1.5 null
expect_status 0 compare "$work/one.json" "$work/near.json"
expect_text '^eager +latency 1\.0000 ms and 1\.0100 ms: no difference beyond chance \(0\.0141 ms\)$'
expect_status 1 compare "$work/one.json" "$work/slow.json"
expect_text '^eager +latency .*: the second is 1\.500 times as slow \(chance: 0\.0141 ms\)$'
expect_status 0 compare "$work/one.json" "$work/slow.json" --slowdown 60
expect_status 0 compare "$work/slow.json" "$work/one.json"
expect_text 'the second is 1\.500 times as fast'
expect_status 0 compare "$work/one.json" "$work/short.json"
expect_text 'too few runs to compare'
expect_status 0 bench "$model" --device host --duration 0.1 --warm-up 0 --json "$work/real.json"
expect_status 0 compare "$work/real.json" "$work/real.json"
expect_text '^replay +latency .*no difference beyond chance'
expect_error 1 'result\.json: not a measurement' compare "$work/one.json" "$work/result.json"
printf '{"eager": [' >"$work/broken.json"
expect_error 1 'broken\.json: line 1: not JSON' compare "$work/one.json" "$work/broken.json"
yes 0, | head -n 8400000 | tr -d '\n' | sed 's/^/[/' >"$work/zeros.json"
expect_error 1 'zeros\.json: not a report: it has more than 16 MiB' compare "$work/one.json" "$work/zeros.json"
expect_error 2 'compared with another one only' compare "$work/one.json" "$work/a"
expect_error 2 'missing operand' compare "$work/one.json"
finish_test
