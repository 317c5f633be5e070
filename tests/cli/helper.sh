# helper.sh — sourced by the CLI tests: . "$(dirname "$0")/helper.sh"; $1 is the tool.
#
# Each check runs the tool once and looks at status, stdout and stderr. A test goes on after a failure
# and ends with `finish_test`, which prints how many checks there were.
# SPDX-License-Identifier: Apache-2.0
set -u
rondo=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check_count=0
failure_count=0

fail() {
    failure_count=$((failure_count + 1))
    echo "FAILED: $*"
    echo "  stdout: $(head -c 600 "$work/stdout")"
    echo "  stderr: $(head -c 600 "$work/stderr")"
}

# run_tool ARGUMENT...: leaves the status in $status, the output in $work/stdout and $work/stderr.
run_tool() {
    check_count=$((check_count + 1))
    "$rondo" "$@" >"$work/stdout" 2>"$work/stderr"
    status=$?
}

# expect_status N ARGUMENT...
expect_status() {
    expected=$1
    shift
    run_tool "$@"
    [ "$status" = "$expected" ] || fail "rondo $*: status $status, expected $expected"
}

# expect_error N PATTERN ARGUMENT...: status N, nothing on stdout, one line on stderr that matches.
expect_error() {
    expected=$1
    pattern=$2
    shift 2
    expect_status "$expected" "$@"
    [ ! -s "$work/stdout" ] || fail "rondo $*: printed to stdout"
    [ "$(wc -l <"$work/stderr")" = 1 ] || fail "rondo $*: not one line on stderr"
    grep -qE -- "$pattern" "$work/stderr" || fail "rondo $*: stderr lacks /$pattern/"
}

# expect_text PATTERN: the last run's stdout matches.
expect_text() {
    grep -qE -- "$1" "$work/stdout" || fail "stdout lacks /$1/"
}

# start_npy FILE HEADER: a .npy file of format 1.0 up to its elements, which the caller appends.
start_npy() {
    printf '\223NUMPY\001\000' >"$1"
    printf "\\$(printf '%03o' ${#2})\\000" >>"$1"
    printf '%s' "$2" >>"$1"
}

# wait_for_work PID TICKS: until the process catches SIGINT and has computed for so many hundredths
# of a second since, however busy the machine is; or until it has ended.
wait_for_work() {
    until grep -q '^SigCgt:.*[2367abef]$' "/proc/$1/status" 2>/dev/null; do
        is_running "$1" || return 0
        sleep 0.05
    done
    ticks_wanted=$(($(count_ticks "$1") + $2))
    while [ "$(count_ticks "$1")" -lt $ticks_wanted ] && is_running "$1"; do
        sleep 0.05
    done
}

is_running() {
    grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null
}

# count_ticks PID: of processor time, of all its threads.
count_ticks() {
    awk '{sum = $14 + $15} END {print sum + 0}' "/proc/$1/stat" 2>/dev/null || echo 0
}

finish_test() {
    echo "$check_count checks, $failure_count failed"
    [ "$failure_count" = 0 ]
    exit $?
}
