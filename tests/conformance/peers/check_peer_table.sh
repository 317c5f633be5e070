#!/bin/sh
# check_peer_table.sh PROGRAM TABLE: each case named in the table is one of the program's, and each of
# the program's cases named after a peer's test is in the table.
# SPDX-License-Identifier: Apache-2.0
set -eu
known=$(mktemp)
named=$(mktemp)
trap 'rm -f "$known" "$named"' EXIT
"$1" --list | grep -E '^(torch|paddle)_[0-9]' | sort >"$known"
grep -oE '`(torch|paddle)_[0-9][a-z0-9_]*`' "$2" | tr -d '`' | sort >"$named"
status=0
if [ -n "$(uniq -d "$named")" ]; then
    echo "named twice in $2:" && uniq -d "$named"
    status=1
fi
sort -u -o "$named" "$named"
if [ -n "$(comm -23 "$named" "$known")" ]; then
    echo "in $2, but no case of $1:" && comm -23 "$named" "$known"
    status=1
fi
if [ -n "$(comm -13 "$named" "$known")" ]; then
    echo "a case of $1, but not in $2:" && comm -13 "$named" "$known"
    status=1
fi
[ "$(wc -l <"$named")" -gt 0 ] || { echo "$2 names no case"; status=1; }
echo "peer table: $(wc -l <"$named") cases"
exit $status
