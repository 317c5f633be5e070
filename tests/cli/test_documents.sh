# The README's first snippet is examples/first.c, and what documents link to or name is there.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
cd "$here/../.."
: >"$work/stderr"

check_count=$((check_count + 1))
sed -n '/^#include/,$p' examples/first.c >"$work/stdout"
awk '/^```c$/ { n++; next } /^```/ && n == 1 { exit } n == 1' README.md | diff "$work/stdout" - ||
    fail "the first snippet of README.md is not examples/first.c"
awk '/^\/\/ ---- what is told/ { on = 1; next } /^\/\/ ---- and what checks/ { exit } on' examples/learned_cuda.cu |
    sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >"$work/stdout"
awk '/^```c$/ { n++; next } /^```/ && n == 2 { exit } n == 2' README.md | diff "$work/stdout" - ||
    fail "the second snippet of README.md is not the step of examples/learned_cuda.cu"

for page in *.md docs/*.md docs/site/*.md docs/site/*/*.md; do
    for target in $(grep -oE '\]\([^)#: ]+[)#]' "$page" | sed 's/^](//; s/[)#]$//'); do
        check_count=$((check_count + 1))
        [ -e "$(dirname "$page")/$target" ] || fail "$page links to $target, which is not there"
    done
done

# Names in backticks: files (alone, or with folders, also without src/ or include/), and functions.
folders="bench cli cmake docs examples include python rust src tests tools"
words() {
    grep -ohE "\`$1\`" *.md docs/*.md docs/site/*.md docs/site/*/*.md | tr -d '\`' | sort -u
}
find $folders -type f >"$work/files"
ls -p | grep -v / >>"$work/files"
for name in $(words '[A-Za-z0-9_/.]+\.(c|h|cu|sh|py|awk|md|txt|toml|supp|cmake)'); do
    case $name in
    cuda.h | test/test_cuda.py | test_cuda_graph.py) continue ;; # of others
    esac
    check_count=$((check_count + 1))
    grep -qE "(^|/)$(printf '%s' "$name" | sed 's/\./\\./g')\$" "$work/files" || fail "documents name $name, which is not there"
done
cat $(grep -E '^(include|src|tests|cli)/.*\.[ch]$|^(tests/)?CMakeLists.txt$' "$work/files") |
    grep -oE 'rondo_[a-z0-9_]+' | sort -u >"$work/names"
for name in $(words 'rondo_[a-z0-9_]*[a-z0-9]'); do
    check_count=$((check_count + 1))
    grep -qx "$name" "$work/names" || fail "documents name $name, which is not there"
done

# Tables of functions (or locks) and files in architecture.md: each name is in its file.
grep -oE '^[|] `[a-z_`, 0-9]+` [|] `[a-z0-9_/]+[.][ch]`' docs/architecture.md | tr -d '`|,' >"$work/rows"
[ -s "$work/rows" ] || fail "docs/architecture.md has no walks"
while read -r row; do
    for file in src/core/"${row##* }" src/models/"${row##* }" "${row##* }"; do
        [ -e "$file" ] && break
    done
    for name in ${row% *}; do
        check_count=$((check_count + 1))
        grep -qw "$name" "$file" || fail "docs/architecture.md has $name in $file, which it is not"
    done
done <"$work/rows"
finish_test
