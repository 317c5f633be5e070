# The first hours of the site (docs/site/start): each line of their shell blocks that calls the tool is
# run as it stands, in one folder, and succeeds; but for bench and test, which take long and have tests of
# their own. Examples that they name are built by the tree.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
root=$(cd "$here/../.." && pwd)
: >"$work/stderr"
rondo=$(cd "$(dirname "$rondo")" && pwd)/$(basename "$rondo")
mkdir "$work/clone" && cd "$work/clone" || exit 1
ln -s "$root/tests" "$root/examples" .

for page in "$root"/docs/site/start/*.md; do
    awk '/^```$/ { on = !on; next } on' "$page" | sed 's/ #.*//; s|^build/rondo |rondo |' >"$work/lines"
    while read -r line; do
        case $line in
        model=*) eval "$line" ;;
        "rondo bench "* | "rondo test "*) ;;
        "rondo "*)
            eval "run_tool ${line#rondo }" </dev/null
            [ "$status" = 0 ] || fail "$(basename "$page"): $line: status $status"
            ;;
        build/examples/example_*)
            check_count=$((check_count + 1))
            name=${line#build/examples/example_}
            [ -n "$(ls "$root/examples/${name%% *}".c* 2>/dev/null)" ] || fail "$(basename "$page"): $line is not there"
            ;;
        esac
    done <"$work/lines"
done
[ "$check_count" -ge 9 ] || fail "only $check_count commands were found"
finish_test
