# ONNX's tests of ops whose results' shapes depend on data, on the emulated GPU, in both precisions:
# sh check_found.sh TOOL; all pass, and none is bypassed.
# SPDX-License-Identifier: Apache-2.0
set -u
rondo=$1
nodes=${RONDO_ONNX_NODES:-/usr/share/libonnx-testdata/data/node}
if [ ! -d "$nodes" ]; then
    echo "skipped: $nodes is not there (Debian and Ubuntu: libonnx-testdata)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for precision in fp32 fp16; do
    "$rondo" test --device cuda:0 --dtype $precision "$nodes"/test_nonzero_* "$nodes"/test_compress_* \
        "$nodes"/test_unique_* "$nodes"/test_nonmaxsuppression_* >"$work/out" 2>"$work/errors"
    if [ $? != 0 ] || [ -s "$work/errors" ] || grep -q bypassed "$work/out"; then
        failed=1
        grep -e bypassed -e FAILED "$work/out"
        cat "$work/errors"
    fi
    echo "$precision: $(tail -n 1 "$work/out")"
done
exit $failed
