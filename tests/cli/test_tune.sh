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

# A kernel that is fast where a contest times it, and slow in the network: what was there before
# stays, in the file and in the cache.
export RONDO_CACHE_DIR="$work/kept"
expect_status 0 tune "$product" --device cuda:0 --tune fast --save -
had=$(sed -n 's/.*	matmul f32 m1 .*	//p' "$work/stdout")
case $had in
plain) slow=vector_product other=vector ;;
*) slow=matmul_plain other=plain ;;
esac
export RONDO_EMULATED_SLOW=$slow
expect_status 0 tune "$product" --device cuda:0 --save "$work/kept.tuning"
expect_text '^kept what it had: [0-9.]+ us, [0-9.]+ with the new choices$'
grep -q "	matmul f32 m1 .*	$had\$" "$work/kept.tuning" || fail "the slower network was taken"
expect_status 0 tune "$product" --device cuda:0
expect_text '^the new choices are those that it had$'
for mode in off fast full; do
    expect_status 0 tune "$product" --device cuda:0 --tune $mode --save -
    expect_text "	matmul f32 m1 .*	$had\$"
done
# One that is slow everywhere, which a contest under the other plant has chosen, is left for the new.
export RONDO_CACHE_DIR="$work/new"
expect_status 0 tune "$product" --device cuda:0 --tune fast --save -
expect_text "	matmul f32 m1 .*	$other\$"
export RONDO_EMULATED_SLOW="+$slow"
expect_status 0 tune "$product" --device cuda:0
expect_text '^took the new choices: [0-9.]+ us with what it had, [0-9.]+ with them$'
expect_status 0 tune "$product" --device cuda:0 --tune off --save -
expect_text "	matmul f32 m1 .*	$had\$"
# What a file chooses is no contest's matter.
sed "s/\(	matmul f32 m1 .*	\).*/\1$other/" "$work/kept.tuning" >"$work/filed.tuning"
expect_status 0 tune "$product" --device cuda:0 --tuning-file "$work/filed.tuning" --save -
expect_text "	matmul f32 m1 .*	$other\$"
# What cannot be fed is tuned as it is, and the line says so.
expect_status 0 tune "$here/../models/words_and_lists/model.onnx" --device cuda:0
expect_text '^the whole network was not compared: nothing is known to feed it$'
finish_test
