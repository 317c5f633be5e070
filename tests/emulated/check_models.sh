# Model directories on the emulated GPU, in both precisions: sh check_models.sh TOOL DIRECTORY...; all
# pass, and no kernel text fails to compile.
# SPDX-License-Identifier: Apache-2.0
set -u
rondo=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for precision in fp32 fp16; do
    "$rondo" test --device cuda:0 --dtype $precision "$@" >"$work/out" 2>"$work/errors"
    if [ $? != 0 ] || [ -s "$work/errors" ]; then
        failed=1
        grep -v '^passed' "$work/out"
        cat "$work/errors"
    fi
    echo "$precision: $(tail -n 1 "$work/out")"
done
exit $failed
