# rondo devices: the host is always there; without a GPU the reason stands in its place.
. "$(dirname "$0")/helper.sh"

expect_status 0 devices
expect_text '^host +[^ ]'
expect_text '^cuda'
if grep -q '^cuda[^ ]* +not available' "$work/stdout"; then
    expect_text '^cuda[^ ]* +not available: .+'
fi
finish_test
