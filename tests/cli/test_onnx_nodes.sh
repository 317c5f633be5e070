# All of ONNX's own operator tests on the host: at least 900 pass, none fails, at most 15 are
# skipped, nothing crashes.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
nodes=${RONDO_ONNX_NODES:-/usr/share/libonnx-testdata/data/node}
if [ ! -d "$nodes" ]; then
    echo "skipped: $nodes is not there (Debian and Ubuntu: libonnx-testdata)"
    exit 77
fi

known_wrong=$here/../support/models/onnx_known_wrong.txt
set --
for directory in "$nodes"/*; do
    grep -qx "${directory##*/}" "$known_wrong" || set -- "$@" "$directory"
done
run_tool test --device host --quiet "$@"
tail -n 1 "$work/stdout"
passed=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$work/stdout")
[ "${passed:-0}" -ge 900 ] || fail "only ${passed:-0} of the node tests pass"
expect_text ' 0 failed, '
skipped=$(sed -n 's/^.* failed, \([0-9]*\) skipped.*/\1/p' "$work/stdout")
[ "${skipped:-99}" -le 15 ] || fail "${skipped:-all} of the node tests are skipped"
[ "$status" = 0 ] || fail "status $status"

# In half precision, too: types hold, ops that take no f16 stay in f32. Only logits of 10 000, which f16
# knows to the nearest 8, come out otherwise.
set --
for directory in "$nodes"/*; do
    case $directory in *softmax_large_number*) continue ;; esac
    grep -qx "${directory##*/}" "$known_wrong" || set -- "$@" "$directory"
done
run_tool test --device host --dtype fp16 --quiet "$@"
tail -n 1 "$work/stdout"
expect_text ' 0 failed, '
[ "$status" = 0 ] || fail "fp16: status $status"
finish_test
