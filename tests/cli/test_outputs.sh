# What the tool writes: whole files or none, in folders that are made, under names that are safe.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/add_relu.onnx
tricky=$here/models/tricky_names.onnx

expect_status 0 run "$model" --device host --output-dir "$work/a/b/c"
[ -f "$work/a/b/c/z.npy" ] || fail "no file in folders that had to be made"
[ -z "$(find "$work/a" -name '*.rondo-*')" ] || fail "a temporary file is left"

# Names that differ only in what a file name cannot hold: one file for each, all in the folder.
expect_status 0 run "$tricky" --device host --output-dir "$work/tricky"
for name in a_b a_b.2 a_b.3 a_b.2.2 __31mRED__0m_ _. ___abc__1m; do
    [ -f "$work/tricky/$name.npy" ] || fail "no file $name.npy: $(ls "$work/tricky")"
done
[ "$(ls -A "$work/tricky" | wc -l)" = 7 ] || fail "not seven files: $(ls -A "$work/tricky")"
expect_text 'a_b\.npy written \(output "a/b"\)'
expect_text 'a_b\.2\.npy written \(output "a_b"\)'

# A file that cannot be completed leaves none behind, and keeps the one that was there. The limit on
# the size of files stands for a full disk.
expect_limited() { # STATUS ARGUMENT...
    expected=$1
    shift
    check_count=$((check_count + 1))
    (ulimit -f 8; exec "$rondo" "$@" >"$work/stdout" 2>"$work/stderr")
    status=$?
    [ "$status" = "$expected" ] || fail "rondo $* with little room: status $status"
}
expect_status 0 run "$model" --device host --set batch=1000 --output-dir "$work/full" --seed 1
cp "$work/full/z.npy" "$work/before.npy"
expect_limited 1 run "$model" --device host --set batch=1000 --output-dir "$work/full" --seed 2
grep -q 'z\.npy: could not be written: ' "$work/stderr" || fail "no reason for the failed write"
cmp -s "$work/full/z.npy" "$work/before.npy" || fail "a failed write changed the file"
rm "$work/full/z.npy"
expect_limited 1 run "$model" --device host --set batch=1000 --output-dir "$work/full"
[ -z "$(ls -A "$work/full")" ] || fail "a failed write left $(ls -A "$work/full")"
expect_limited 1 bench "$model" --device host --duration 0.05 --samples "$work/full/samples.csv"
[ -z "$(ls -A "$work/full")" ] || fail "a failed bench left $(ls -A "$work/full")"
if [ -c /dev/full ]; then
    expect_status 1 inspect "$model" --device host --json /dev/full
    grep -q '/dev/full' "$work/stderr" || fail "a full device is not named"
    check_count=$((check_count + 1))
    "$rondo" inspect "$model" --device host >/dev/full 2>"$work/stderr" && fail "a full stdout passed"
    # A full standard output is named in every command and form.
    expect_full() { # ARGUMENT...
        check_count=$((check_count + 1))
        "$rondo" "$@" >/dev/full 2>"$work/stderr"
        status=$?
        [ "$status" = 1 ] || fail "rondo $* on a full device: status $status"
        grep -q 'the output could not be written' "$work/stderr" || fail "rondo $*: no reason"
    }
    quick="--device host --duration 0.05 --warm-up 0"
    expect_full inspect "$model" --device host --json -
    expect_full inspect "$model" --device host --svg -
    expect_full bench "$model" $quick --json -
    expect_full bench "$model" $quick --samples -
    expect_full profile "$model" --device host --runs 2 --html -
    expect_full profile "$model" --device host --runs 2 --json -
    expect_full profile "$model" --device host --runs 2 --trace -
    expect_full compare "$here/arrays/x.npy" "$here/arrays/y.npy" --json -
    expect_full run "$model" --device host
fi

# Places that cannot be written are known before anything is measured.
check_count=$((check_count + 1))
expect_error 1 'no/such' bench "$model" --duration 1000 --json "$work/no/such/file.json"

# A link stays one, and its target gets the text; the mask of the process holds.
printf old >"$work/target.json"
ln -s target.json "$work/link.json"
(umask 027; exec "$rondo" inspect "$model" --device host --json "$work/link.json" >/dev/null) ||
    fail "a link could not be written"
[ -L "$work/link.json" ] && grep -q '"plan"' "$work/target.json" || fail "the link was replaced"
case $(ls -l "$work/target.json") in
    -rw-r-----*) ;;
    *) fail "the mask of the process was not kept: $(ls -l "$work/target.json")" ;;
esac

# Standard output in place of the text.
expect_status 0 inspect "$model" --device host --json -
[ "$(head -c 1 "$work/stdout")" = '{' ] || fail "inspect --json - prints more than JSON"
[ ! -e ./- ] || fail "a file called - was made"
expect_status 0 inspect "$model" --device host --dot -
[ "$(head -c 7 "$work/stdout")" = digraph ] || fail "inspect --dot - prints more than the graph"
expect_status 0 bench "$model" --device host --duration 0.05 --warm-up 0 --json -
[ "$(head -c 1 "$work/stdout")" = '{' ] || fail "bench --json - prints more than JSON"
expect_status 0 bench "$model" --device host --duration 0.05 --warm-up 0 --samples -
[ "$(head -n 1 "$work/stdout" | cut -d, -f1-3)" = mode,run,turn ] || fail "bench --samples -"
expect_error 2 'cannot both go to standard output' bench "$model" --json - --samples -
expect_error 2 'only one of .* can go to standard output' inspect "$model" --json - --dot -
finish_test
