# mpirun -n 2 rondo train: what it learns, by Open MPI's and MPICH's own sums and by sockets; what
# differs, is missing, or is killed.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/classes.onnx
data=$here/arrays/classes.npz
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR="$work"
# Both MPIs keep memory to their ends, from modules that are unloaded by then.
[ -z "${ASAN_OPTIONS:-}" ] || export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm_rsh_agent=/bin/false RONDO_LOG=info

# train_by NAME COUNT LAUNCHER... -- OPTION...: leaves NAME.onnx and the log of all ranks.
train_by() {
    name=$1
    launcher=
    shift
    while [ "$1" != -- ]; do
        launcher="$launcher $1"
        shift
    done
    shift
    check_count=$((check_count + 1))
    timeout 100 $launcher "$rondo" train "$model" --device host --data "$data" --learning-rate 0.02 \
        --threads 1 --output "$work/$name.onnx" "$@" >"$work/stdout" 2>"$work/stderr"
    status=$?
    [ "$status" = 0 ] || fail "$name: status $status"
}

expect_words() {
    grep -qE -- "$1" "$work/stderr" || fail "stderr lacks /$1/"
}

options="--epochs 4 --batch 27 --validation 0.2"
train_by alone -- $options
last=$(grep '^epoch 4' "$work/stdout" | sed 's/;.*//')

# The ranks speak with one voice, and say what one process says. 27 samples are no multiple of 2.
expect_learned() {
    grep -qF -- "$last" "$work/stdout" || fail "$1: not \"$last\""
    [ "$(grep -c '^epoch' "$work/stdout")" = 4 ] || fail "$1: not one line an epoch"
}
modules=$(dirname "$rondo")
if command -v mpirun.openmpi >/dev/null 2>&1; then
    train_by two mpirun.openmpi -n 2 -- $options
    expect_learned two
    [ ! -f "$modules/librondo-mpi-openmpi.so" ] || expect_words 'rank 1 of 2, by mpi'
    train_by again mpirun.openmpi -n 2 -- $options
    cmp -s "$work/two.onnx" "$work/again.onnx" || fail "two ranks came to something else the second time"
    # State and resume: rank 0 writes, all read.
    train_by part mpirun.openmpi -n 2 -- --epochs 2 --batch 27 --validation 0.2 --checkpoint "$work/state"
    train_by part mpirun.openmpi -n 2 -- $options --checkpoint "$work/state" --resume
    cmp -s "$work/two.onnx" "$work/part.onnx" || fail "a resumed training of two ranks came to something else"
    # In half precision, with adapters, micro-batches and clipping.
    train_by half mpirun.openmpi -n 2 -- $options --dtype fp16 --clip-norm 1 --accumulate 2
    train_by adapted mpirun.openmpi -n 2 -- $options --lora 1
    # A model of 32 samples at once takes 64 of two ranks; rank 0 measures 32 at once.
    own=$model
    model=$here/models/classes_fixed.onnx
    train_by fixed mpirun.openmpi -n 2 -- --epochs 2 --validation 0.4
    expect_text '^96 samples are held out, where 120 were to be: the model takes 32 at once'
    expect_text '^each epoch leaves out 12 samples, .* 64 at once'
    model=$own
    # One that is killed ends the whole, and the last good state stays.
    check_count=$((check_count + 1))
    mpirun.openmpi -n 2 "$rondo" train "$model" --device host --data "$data" --learning-rate 0.02 \
        --epochs 1000000 --checkpoint "$work/ended" >"$work/stdout" 2>"$work/stderr" &
    whole=$!
    tries=0
    while [ ! -s "$work/ended/last.rondo" ] && [ $tries -lt 300 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    kill -KILL "$(grep -lE "^PPid:[[:space:]]*$whole\$" /proc/[0-9]*/status 2>/dev/null | sed -n '$s|/proc/\([0-9]*\)/.*|\1|p')"
    wait $whole && fail "mpirun: a killed rank is no error"
    cp "$work/ended/last.rondo" "$work/ended.kept"
    train_by ended mpirun.openmpi -n 2 -- --epochs 1 --checkpoint "$work/ended" --resume
    cmp -s "$work/ended.kept" "$work/ended/last.rondo" || fail "the state after a kill does not load"
else
    echo "no mpirun of Open MPI: left out"
fi
if command -v mpirun.mpich >/dev/null 2>&1; then
    train_by mpich mpirun.mpich -n 2 -- $options
    expect_learned mpich
    [ ! -f "$modules/librondo-mpi-mpich.so" ] || expect_words 'rank 1 of 2, by mpi'
else
    echo "no mpirun of MPICH: left out"
fi

# Without MPI: three ranks by the variables alone, that meet at a file. $1: rank; the rest is for it.
start_rank() {
    rank=$1
    shift
    RONDO_RANK=$rank RONDO_RANKS=${ranks:-2} RONDO_MEETING=$work/meeting "$rondo" train "$model" \
        --device host --data "$data" --learning-rate 0.02 --threads 1 --output "$work/rank$rank.onnx" \
        "$@" >"$work/stdout.$rank" 2>"$work/stderr.$rank" &
}
ranks=3
for r in 0 1 2; do
    start_rank $r $options
    eval "pid$r=$!"
done
check_count=$((check_count + 1))
for r in 0 1 2; do
    eval "wait \$pid$r" || fail "rank $r: $(cat "$work/stderr.$r")"
done
cp "$work/stdout.0" "$work/stdout"
expect_learned sockets
[ ! -e "$work/rank1.onnx" ] || fail "rank 1 wrote its model"
grep -q 'rank 2 of 3, by sockets' "$work/stderr.2" || fail "not by sockets"

# Ranks of other models say so before they train.
ranks=2
own=$model
start_rank 0 $options
zero=$!
model=$work/rank0.onnx
start_rank 1 $options
one=$!
model=$own
check_count=$((check_count + 1))
wait $zero && fail "rank 0 trained with another model"
wait $one && fail "rank 1 trained with another model"
grep -q "has MODEL with the hash" "$work/stderr.1" || fail "rank 1: $(cat "$work/stderr.1")"

# Ranks that do not train the same say so, and end. (Programs that differ: test_training_ranks.)
start_rank 0 $options
zero=$!
start_rank 1 $options --train 'w*'
one=$!
check_count=$((check_count + 1))
wait $zero && fail "rank 0 went on"
wait $one && fail "rank 1 went on"
for r in 0 1; do
    grep -q 'rank 1 has --train w\*, rank 0 has --train -' "$work/stderr.$r" ||
        fail "rank $r: $(cat "$work/stderr.$r")"
done

# Options that differ are named before the first step, by both.
start_rank 0 $options
zero=$!
start_rank 1 $options --batch 28
one=$!
check_count=$((check_count + 1))
wait $zero && fail "rank 0 went on with another batch"
wait $one && fail "rank 1 went on with another batch"
for r in 0 1; do
    grep -q 'rank 1 has --batch 28, rank 0 has --batch 27' "$work/stderr.$r" ||
        fail "rank $r: $(cat "$work/stderr.$r")"
done

# One that waits says so; an end of it (Ctrl-C, or SIGTERM) leaves no file.
start_rank 0 $options
zero=$!
tries=0
while ! grep -q '^rondo: rank 0 of 2 waits for rank 1, for [0-9]* s$' "$work/stderr.0" && [ $tries -lt 300 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
check_count=$((check_count + 1))
[ -e "$work/meeting" ] || fail "no file to meet at"
kill -TERM $zero
wait $zero
[ $? = 130 ] || fail "waiting did not stop"
grep -q 'stopped before all ranks were there' "$work/stderr.0" || fail "rank 0: $(cat "$work/stderr.0")"
[ ! -e "$work/meeting" ] || fail "the file to meet at is left"

# One that is killed ends the other, with a word, and the last good state stays.
start_rank 0 --epochs 1000000 --checkpoint "$work/killed"
zero=$!
start_rank 1 --epochs 1000000 --checkpoint "$work/killed"
one=$!
tries=0
while [ ! -s "$work/killed/last.rondo" ] && [ $tries -lt 300 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
check_count=$((check_count + 1))
kill -KILL $one
wait $zero
[ $? = 1 ] || fail "rank 0 did not end with a failure"
wait $one
grep -q 'rank 1 of 2 has ended.* the last good state is in .*killed/last.rondo' "$work/stderr.0" ||
    fail "rank 0: $(cat "$work/stderr.0")"
[ -s "$work/killed/last.rondo" ] || fail "the state is gone"

# Ctrl-C to one of them stops all after the same step, and keeps the work.
start_rank 0 --epochs 1000000 --accumulate 4 --checkpoint "$work/stopped"
zero=$!
start_rank 1 --epochs 1000000 --accumulate 4 --checkpoint "$work/stopped"
one=$!
tries=0
while [ ! -s "$work/stopped/last.rondo" ] && [ $tries -lt 300 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
check_count=$((check_count + 1))
kill -TERM $one
wait $zero
[ $? = 130 ] || fail "rank 0 did not stop"
wait $one
stopped=$(sed -n 's/^stopped after \([0-9]*\) batches$/\1/p' "$work/stdout.0")
[ -n "$stopped" ] && [ $((stopped % 4)) = 0 ] || fail "stopped after \"$stopped\" batches"
[ -s "$work/rank0.onnx" ] || fail "no model"

# Ranks that share the updates come to the same model and state; either goes on from the other's.
# The sum of two has one order.
own_model=$model
own_data=$data
model=$here/models/classes_wide.onnx
data=$here/arrays/classes_wide.npz
train_two() { # NAME OPTION...
    name=$1
    shift
    check_count=$((check_count + 1))
    start_rank 0 --batch 8 --optimizer adamw --validation 0.2 "$@"
    zero=$!
    start_rank 1 --batch 8 --optimizer adamw --validation 0.2 "$@"
    one=$!
    wait $zero || fail "$name: rank 0: $(cat "$work/stderr.0")"
    wait $one || fail "$name: rank 1: $(cat "$work/stderr.1")"
    cp "$work/rank0.onnx" "$work/$name.onnx"
}
train_two whole --epochs 4 --checkpoint "$work/whole"
train_two parts --epochs 2 --checkpoint "$work/parts" --shard-updates
train_two parts --epochs 4 --checkpoint "$work/parts" --shard-updates --resume
cmp -s "$work/whole.onnx" "$work/parts.onnx" || fail "parts: another model"
cmp -s "$work/whole/last.rondo" "$work/parts/last.rondo" || fail "parts: another state"
train_two mixed --epochs 6 --checkpoint "$work/parts" --resume
train_two whole --epochs 6 --checkpoint "$work/whole" --shard-updates --resume
cmp -s "$work/whole.onnx" "$work/mixed.onnx" || fail "mixed: another model"
# A step that begins in one epoch and ends in the next: of three batches two make a step.
train_two summed --epochs 3 --accumulate 2
train_two begun --epochs 1 --accumulate 2 --checkpoint "$work/begun"
train_two begun --epochs 3 --accumulate 2 --checkpoint "$work/begun" --resume
cmp -s "$work/summed.onnx" "$work/begun.onnx" || fail "begun: another model"
train_two half --epochs 2 --dtype fp16 --shard-updates --half-averages
start_rank 0 --batch 8 --epochs 2
zero=$!
start_rank 1 --batch 8 --epochs 2 --shard-updates
one=$!
check_count=$((check_count + 1))
wait $zero && fail "rank 0 went on beside one that shares"
wait $one && fail "rank 1 went on beside one that does not share"
for r in 0 1; do
    grep -q 'rank 1 has shared updates of f32 x 4096' "$work/stderr.$r" || fail "rank $r: $(cat "$work/stderr.$r")"
done
unset RONDO_RANK RONDO_RANKS RONDO_MEETING
expect_error 2 '--shard-updates is of several ranks' train "$model" --device host --data "$data" \
    --shard-updates --output "$work/lone.onnx"
expect_error 2 '--half-averages goes with --dtype fp16' train "$model" --device host --data "$data" \
    --half-averages --output "$work/lone.onnx"
model=$own_model
data=$own_data

# One variable of two; a file of the user's where the ranks were to meet.
unset RONDO_RANK RONDO_RANKS RONDO_MEETING
RONDO_LOG=warning
export RONDO_RANK=0
expect_error 1 'RONDO_RANK is set and RONDO_RANKS is not' train "$model" --device host --data "$data" \
    --output "$work/lone.onnx"
echo mine >"$work/mine"
export RONDO_RANKS=2 RONDO_MEETING="$work/mine"
expect_error 1 'something else is there' train "$model" --device host --data "$data" --output "$work/lone.onnx"
[ "$(cat "$work/mine")" = mine ] || fail "the user's file is gone"
finish_test
