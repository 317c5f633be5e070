# Models with real numbers on two emulated GPUs: ops placed on the second one, and weights that are
# brought in each run, give what one GPU that has everything gives, bit for bit, eager and replayed.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/helper.sh"
RONDO_EMULATED_DEVICES=2
RONDO_TUNE=off # the same kernels on both, whatever was measured before
RONDO_CACHE_DIR=$work/cache
export RONDO_EMULATED_DEVICES RONDO_TUNE RONDO_CACHE_DIR

# run_in FOLDER GRAPHS ARGUMENT...: leaves the outputs of $model there.
run_in() {
    folder=$work/$1
    rm -rf "$folder"
    graphs=$2
    shift 2
    expect_status 0 run "$model" --device cuda:0 --seed 3 --graphs "$graphs" --output-dir "$folder" "$@"
}

# expect_same FOLDER: as in the folder "all", which is made anew for each model.
expect_same() {
    for file in "$work"/all/*.npy; do
        cmp -s "$file" "$work/$1/$(basename "$file")" || fail "$model: $(basename "$file") differs"
    done
}

for name in bert_mini gpt_mini; do
    model=$here/../models/$name/model.onnx
    # Ops with a number are not fused, so those of both GPUs have the same kernels.
    run_in all on --place 'MatMul=gpu:0' --place 'Softmax=gpu:0' --place 'Add=cpu'
    for graphs in on off; do
        run_in two $graphs --place 'MatMul=gpu:1' --place 'Softmax=gpu:1' --place 'Add=cpu'
        expect_same two
    done
    run_in all on
    for graphs in on off; do
        run_in brought $graphs --weight-limit 1200KiB
        expect_same brought
    done
done

expect_status 0 inspect "$model" --device cuda:0 --place 'Softmax=gpu:1'
expect_text '^segment [0-9]+: .*on cuda:1, captured; the next op is on another device'
expect_text '^  gpu:1 Softmax .*: options.place asks for it \(--place\)$'
expect_status 0 inspect "$model" --device cuda:0 --weight-limit 1200KiB
expect_text '^spilled: [0-9]+ bytes of weights are in pinned memory \(weight_limit_bytes\)'
expect_error 1 'weight_limit_bytes \(--weight-limit\) is 1024: what has to be on the GPU' \
    inspect "$model" --device cuda:0 --weight-limit 1KiB
expect_error 1 'is placed on "gpu:2" by options.place: .*cuda:2' \
    run "$model" --device cuda:0 --place 'Softmax=gpu:2'
finish_test
