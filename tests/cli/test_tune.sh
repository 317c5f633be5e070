# rondo tune and --tuning-file, as far as they go without a GPU.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx

expect_error 1 'nothing to tune on the host' tune "$model" --device host
expect_error 1 'nothing to tune on the host' tune "$model" --device host --save "$work/model.tuning"
[ ! -e "$work/model.tuning" ] || fail "a file was written all the same"
expect_error 1 'no/such' tune "$model" --device host --save "$work/no/such/model.tuning"
expect_error 2 'tune --help' tune

printf 'rondo tuning 1\nGPU, 4 multiprocessors\tmatmul 1\tplain\n' >"$work/model.tuning"
for command in run inspect "bench --duration 0.01 --warm-up 0" "profile --runs 2"; do
    expect_status 0 $command "$model" --device host --tuning-file "$work/model.tuning"
done
expect_error 1 'no tuning file' run "$model" --device host --tuning-file "$model"
expect_error 1 'missing.tuning' run "$model" --device host --tuning-file "$work/missing.tuning"
printf 'rondo tuning 2\n' >"$work/model.tuning"
expect_error 1 'version 2' run "$model" --device host --tuning-file "$work/model.tuning"
printf 'rondo tuning 1\nGPU only\n' >"$work/model.tuning"
expect_error 1 'line 2 of the tuning file' inspect "$model" --device host --tuning-file "$work/model.tuning"

# On the emulated GPU (docs/testing.md), whose libraries are found beside the tool.
emulated=$(dirname "$rondo")/tests/emulated
if [ ! -e "$emulated/libcuda.so.1" ] || ! command -v g++ >/dev/null 2>&1; then
    echo "there is no emulated GPU here: tuning one was not tried"
    finish_test
    exit
fi
export LD_LIBRARY_PATH="$emulated" RONDO_LIBRARY_PATH="$emulated" RONDO_CACHE_DIR="$work/cache"
product=$here/models/product.onnx
file=$work/emulated.tuning
expect_status 0 tune "$product" --device cuda:0 --save "$file"
expect_text 'emulated.tuning written'
expect_status 0 tune "$product" --device cuda:0 --set n=2 --save "$file"
[ "$(grep -c '	matmul f32 m[12] ' "$file")" = 2 ] || fail "not one choice for each shape"
expect_status 0 tune "$product" --device cuda:0 --save -
expect_text '^Emulated GPU 0, [0-9]+ multiprocessors	matmul f32 m1 .*	(plain|vector)$'
# The file's choice goes before the one that was kept, and one that is unknown is no choice.
for choice in plain vector; do
    sed -i "s/\(	matmul f32 m1 .*	\).*/\1$choice/" "$file"
    expect_status 0 tune "$product" --device cuda:0 --tuning-file "$file" --save -
    expect_text "	matmul f32 m1 .*	$choice\$"
    expect_status 0 run "$product" --device cuda:0 --tuning-file "$file"
done
sed -i "s/\(	matmul f32 m1 .*	\).*/\1cublaslt 1 of version 9/" "$file"
expect_status 0 tune "$product" --device cuda:0 --tuning-file "$file" --save -
expect_text '	matmul f32 m1 .*	(plain|vector)$'
finish_test
