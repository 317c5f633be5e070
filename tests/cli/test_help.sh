# Every command's help is what golden/ holds, goes to stdout, and ends well. After a wanted change:
#   RONDO_ACCEPT=1 sh tests/cli/test_help.sh build/rondo
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"

expect_golden() {
    golden=$here/golden/$1.txt
    shift
    expect_status 0 "$@"
    [ ! -s "$work/stderr" ] || fail "rondo $*: printed to stderr"
    [ "${RONDO_ACCEPT:-0}" = 1 ] && cp "$work/stdout" "$golden"
    cmp -s "$golden" "$work/stdout" || {
        fail "rondo $*: not as in $golden"
        diff "$golden" "$work/stdout"
    }
    longest=$(awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }' "$work/stdout")
    [ "$longest" -le 100 ] || fail "rondo $*: a line of $longest characters"
    twice=$(sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' "$work/stdout" | sort | uniq -d)
    [ -z "$twice" ] || fail "rondo $*: twice in there: $twice"
}

expect_golden help --help
expect_golden help help
expect_golden help -h
for command in devices run bench profile doctor test inspect tune compile train decode compare completion; do
    expect_golden "help_$command" "$command" --help
    expect_golden "help_$command" help "$command"
    expect_golden "help_$command" "$command" -h
done
expect_golden help_environment help environment
expect_status 0 --version
expect_text '^rondo [0-9]+\.[0-9]+\.[0-9]+$'
expect_status 0 -V
expect_text '^rondo [0-9]+\.[0-9]+\.[0-9]+$'
finish_test
