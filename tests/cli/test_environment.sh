# docs/environment.md holds the variables of `rondo help environment` word for word, and these are the
# ones that the sources ask for.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
root=$here/../..
page=$root/docs/environment.md

expect_status 0 help environment
awk -f "$root/tools/help_to_table.awk" "$work/stdout" >"$work/rows"
sed -n '/^| `/p; /^## For building/q' "$page" >"$work/written"
cmp -s "$work/rows" "$work/written" || {
    fail "docs/environment.md is not what rondo help environment says"
    diff "$work/rows" "$work/written"
}

# Those that others define and that the help names in passing, and those that rondo doctor sets for the
# program that it watches.
known="HOME PATH XDG_CACHE_HOME LD_PRELOAD RONDO_DOCTOR_FOLDER $(sed 's/^| `\([A-Z0-9_]*\)`.*/\1/' "$work/rows")"
for variable in $(cat $(find "$root/src" "$root/cli" -name '*.c') |
    grep -oE '(getenv|read_count)\("[A-Z0-9_]+"|variables\[\] = \{"[A-Z0-9_", ]+\}' |
    grep -oE '"[A-Z0-9_]+"' | tr -d '"' | sort -u); do
    check_count=$((check_count + 1))
    case " $(echo $known) " in
        *" $variable "*) ;;
        *) fail "rondo help environment does not name $variable, which the sources read" ;;
    esac
done
finish_test
