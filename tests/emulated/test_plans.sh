# A model from a plan file on the emulated GPU gives what it gives from its own file, bit for bit,
# eager and replayed, and has its kernels from the file.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../cli/helper.sh"
RONDO_TUNE=off # the same kernels in both, whatever was measured before
export RONDO_TUNE

model=$here/../models/bert_mini/model.onnx
options="--device cuda:0 --seed 3 --shape ids=2x7 --shape mask=2x7 --quiet"
expect_status 0 compile "$model" --device cuda:0 --dtype fp16 --shapes ids=2x7,mask=2x7 -o "$work/model.rondo"
for graphs in on off; do
    # shellcheck disable=SC2086  # a list of options
    expect_status 0 run "$model" $options --dtype fp16 --graphs $graphs --output-dir "$work/own"
    RONDO_LOG=debug
    export RONDO_LOG
    # shellcheck disable=SC2086
    expect_status 0 run "$work/model.rondo" $options --graphs $graphs --output-dir "$work/plan"
    unset RONDO_LOG
    grep -q ' [1-9][0-9]* kernels come from the plan file' "$work/stderr" || fail "no kernels from the file"
    for file in "$work"/own/*.npy; do
        cmp -s "$file" "$work/plan/$(basename "$file")" || fail "$(basename "$file") differs"
    done
done
finish_test
