# The README's first snippet is examples/first.c, and what documents link to is there.
. "$(dirname "$0")/helper.sh"
cd "$here/../.."
: >"$work/stderr"

check_count=$((check_count + 1))
sed -n '/^#include/,$p' examples/first.c >"$work/stdout"
awk '/^```c$/ { n++; next } /^```/ && n == 1 { exit } n == 1' README.md | diff "$work/stdout" - ||
    fail "the first snippet of README.md is not examples/first.c"

for page in *.md docs/*.md; do
    for target in $(grep -oE '\]\([^)#: ]+[)#]' "$page" | sed 's/^](//; s/[)#]$//'); do
        check_count=$((check_count + 1))
        [ -e "$(dirname "$page")/$target" ] || fail "$page links to $target, which is not there"
    done
done
finish_test
