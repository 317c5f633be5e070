# rondo devices: the host is always there; without a GPU the reason stands in its place.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"

expect_status 0 devices
expect_text '^host +[^ ]'
expect_text '^cuda'
if grep -q '^cuda[^ ]* +not available' "$work/stdout"; then
    expect_text '^cuda[^ ]* +not available: .+'
fi
expect_status 0 devices --json
[ "$(head -n 1 "$work/stdout")" = '{' ] || fail "not JSON"
expect_text '^      "name": "host",$'
expect_text '^      "available": true,$'
expect_text '^      "compute_units": [1-9]'
finish_test
