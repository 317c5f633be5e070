# rondo compile, and plan files in place of models.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx
plan=$work/model.rondo

expect_error 2 'compile --help' compile
expect_error 2 'say where the plan file goes' compile "$model" --device host
expect_error 1 'no/such' compile "$model" --device host -o "$work/no/such/model.rondo"
expect_status 0 compile "$model" --device host -o "$plan"
expect_text 'made by rondo .* for host \(.*\), dtype f32$'
expect_text '^  plans +version 2, .* 1 plan$'
expect_text '^  plan for '

# The same results, bit for bit.
expect_status 0 run "$model" --device host --output-dir "$work/from_model"
expect_status 0 run "$plan" --output-dir "$work/from_plan"
diff -r "$work/from_model" "$work/from_plan" || fail "another result than the model's"
for command in run inspect "bench --duration 0.01 --warm-up 0" "profile --runs 2"; do
    expect_status 0 $command "$plan" --device host
done
cp -r "$here/../../examples/models/squeezenet1_1/test_data_set_0" "$work/"
expect_status 0 compile "$here/../../examples/models/squeezenet1_1/model.onnx" --device host -o "$work/tested.rondo"
expect_status 0 test "$work/tested.rondo" --device host
expect_text '^1 passed, 0 failed, 0 skipped'
expect_status 0 inspect "$plan" --device host
expect_text '^plan file .*model.rondo, [0-9]+ bytes: made by rondo'
expect_status 0 inspect "$plan" --device host --json -
expect_text '"plan_file": \{"path": '

# A file from a file, more shapes than one.
product=$here/models/product.onnx
expect_status 0 compile "$product" --device host --shapes x=1x64 --shapes x=5x64 -o "$work/shapes.rondo"
[ "$(grep -c '^  plan for x f32' "$work/stdout")" = 2 ] || fail "not one plan for each shape"
expect_status 0 compile "$work/shapes.rondo" --device host --shapes x=2x64 -o "$work/shapes.rondo"
expect_text '^  plan for x f32 \[2, 64\]'
expect_status 0 compile "$product" --device host --shape x=3x64 -o "$work/fixed.rondo"
expect_text 'is 3 in the plan file \(--shape x=3x64\)'
cp "$work/fixed.rondo" "$work/former.rondo"
expect_status 0 compile "$product" --device host --shape x=3x64 -o "$work/fixed.rondo"
cmp "$work/former.rondo" "$work/fixed.rondo" || fail "two plan files of one model differ"
expect_status 0 run "$work/shapes.rondo" --shape x=3x64
shapes=
for rows in $(seq 100); do
    shapes="$shapes --shapes x=${rows}x64"
done
# shellcheck disable=SC2086  # a list of options
expect_status 0 compile "$product" --device host $shapes -o "$work/shapes.rondo"
[ "$(grep -c '^  plan for x f32' "$work/stdout")" = 100 ] || fail "not a plan for each of 100 shapes"
expect_error 2 'no input "z"' compile "$product" --device host --shapes z=1 -o "$work/shapes.rondo"
expect_error 2 'write x=' compile "$product" --device host --shapes x=1x -o "$work/shapes.rondo"
expect_error 2 'write x=' compile "$product" --device host --shapes x -o "$work/shapes.rondo"
many=$(i=0; while [ $i -lt 65 ]; do printf 'x=1x64,'; i=$((i + 1)); done)
expect_error 2 'more than 64 inputs' compile "$product" --device host --shapes "$many" -o "$work/shapes.rondo"

# What does not fit is refused, or made anew.
expect_error 1 'made with other options \(dtype f32\)' run "$plan" --device host --dtype fp16
expect_status 0 run "$plan" --device host --dtype fp16 --remake
expect_status 0 compile "$model" --device host --dtype fp16 -o "$work/half.rondo"
expect_text 'dtype f16$'
expect_status 0 run "$work/half.rondo" --device host
expect_error 1 'other options \(dtype f16' run "$work/half.rondo" --device host --dtype fp32
head -c 1000 "$plan" >"$work/cut.rondo"
expect_error 1 'cut short' run "$work/cut.rondo" --device host
expect_error 1 'cut short' run "$work/cut.rondo" --device host --remake
cp "$plan" "$work/altered.rondo"
printf 'X' | dd of="$work/altered.rondo" bs=1 seek=720 conv=notrunc 2>/dev/null
expect_error 1 'altered' inspect "$work/altered.rondo" --device host
printf 'RondoPln\002\000\000\000%060d' 0 >"$work/newer.rondo"
expect_error 1 'version 2' run "$work/newer.rondo" --device host

# What is no file is not replaced; a link stays one.
mkfifo "$work/pipe"
expect_error 1 'a regular file is to be written' compile "$product" --device host -o "$work/pipe"
[ -p "$work/pipe" ] || fail "a pipe was replaced"
: >"$work/behind.rondo"
ln -s behind.rondo "$work/link.rondo"
expect_status 0 compile "$product" --device host -o "$work/link.rondo"
[ -h "$work/link.rondo" ] && [ -s "$work/behind.rondo" ] || fail "a link was replaced"
ln -s nowhere.rondo "$work/dangling.rondo"
expect_error 1 'symbolic link to nothing' compile "$product" --device host -o "$work/dangling.rondo"
[ -h "$work/dangling.rondo" ] || fail "a link to nothing was replaced"

# On the emulated GPU (docs/testing.md), whose libraries are found beside the tool.
emulated=$(dirname "$rondo")/tests/emulated
if [ ! -e "$emulated/libcuda.so.1" ] || ! command -v g++ >/dev/null 2>&1; then
    echo "there is no emulated GPU here: plan files of one were not tried"
    finish_test
    exit
fi
export LD_LIBRARY_PATH="$emulated" RONDO_LIBRARY_PATH="$emulated" RONDO_CACHE_DIR="$work/cache"
gpu=$work/gpu.rondo
expect_status 0 compile "$product" --device cuda:0 -o "$gpu"
expect_text '^  kernels +version 1, .* [1-9][0-9]* modules?$'
expect_text '^  forms +version 1, .* 1 packed constant$'
rm -r "$work/from_model" "$work/from_plan"
expect_status 0 run "$product" --device cuda:0 --output-dir "$work/from_model"
# With an empty cache: nothing is compiled and no choice is made.
export RONDO_CACHE_DIR="$work/empty"
RONDO_LOG=debug "$rondo" run "$gpu" --device cuda:0 --output-dir "$work/from_plan" >"$work/stdout" 2>"$work/stderr" ||
    fail "the plan file does not run"
diff -r "$work/from_model" "$work/from_plan" || fail "another result than the model's on a GPU"
grep -q 'compiled' "$work/stderr" && fail "kernels were compiled"
grep -q "comes from the plan file" "$work/stderr" || fail "the plan was made anew"
expect_error 1 'made for the host' run "$plan" --device cuda:0
expect_status 0 run "$plan" --device cuda:0 --remake
expect_error 1 'made for a GPU .*, the device is host; make it anew, or load it with --remake' run "$gpu" --device host
expect_status 0 inspect "$gpu" --device host
expect_text '^plan file .* for cuda '
# Without a cache the modules keep their code.
RONDO_CACHE_DIR= expect_status 0 compile "$product" --device cuda:0 -o "$gpu"
expect_text '^  kernels +version 1, .* [1-9][0-9]* modules?$'
finish_test
