# rondo completion: the scripts hold every command and option of the help, and complete in the shells
# that are here.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"

expect_error 2 'the shell is one of bash\|zsh\|fish, not "csh"' completion csh
for shell in bash zsh fish; do
    expect_status 0 completion $shell
    cp "$work/stdout" "$work/completion.$shell"
    for command in devices run bench profile doctor test inspect tune compile train decode compare completion; do
        grep -q "$command" "$work/completion.$shell" || fail "$shell: no $command"
        for option in $("$rondo" $command --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
            [ $option = help ] && [ $shell = fish ] ||
                grep -q -- "$option" "$work/completion.$shell" || fail "$shell: no --$option"
        done
    done
    command -v $shell >/dev/null 2>&1 || echo "$shell is not here: its script was not run"
done

# complete WORD...: what bash offers for the last one.
complete_words() {
    check_count=$((check_count + 1))
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rondo; printf "%s\n" "${COMPREPLY[@]}"' \
        complete "$work/completion.bash" "$@" >"$work/stdout" 2>"$work/stderr" || fail "bash: $*"
    [ ! -s "$work/stderr" ] || fail "bash: $*: printed to stderr"
}
if command -v bash >/dev/null 2>&1; then
    complete_words rondo be
    expect_text '^bench$'
    complete_words rondo run --gr
    expect_text '^--graphs$'
    complete_words rondo run --graphs ''
    [ "$(tr '\n' ' ' <"$work/stdout")" = 'auto on off measured ' ] || fail "not the choices of --graphs"
    complete_words rondo help env
    expect_text '^environment$'
    complete_words rondo completion z
    expect_text '^zsh$'
    touch "$work/some_model.onnx"
    mkdir "$work/some_folder"
    complete_words rondo run "$work/some_m"
    expect_text 'some_model\.onnx$'
    complete_words rondo run m.onnx --output-dir "$work/some"
    [ "$(basename "$(cat "$work/stdout")")" = some_folder ] || fail "not only folders"
fi
for shell in zsh fish; do
    if command -v $shell >/dev/null 2>&1; then
        check_count=$((check_count + 1))
        $shell -n "$work/completion.$shell" 2>"$work/stderr" || fail "$shell does not understand its script"
    fi
done
finish_test
