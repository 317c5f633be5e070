# rondo train: what it learns, what it keeps, what it goes on from, and what it refuses.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
model=$here/models/classes.onnx
data=$here/arrays/classes.npz
train() {
    expected=$1
    shift
    expect_status "$expected" train "$model" --device host --data "$data" --learning-rate 0.02 "$@"
}

# It learns, by every optimiser; the validation says how well.
for optimizer in momentum adam adamw adagrad; do
    rate=0.02
    [ $optimizer != adagrad ] || rate=0.2
    train 0 --optimizer $optimizer --learning-rate $rate --epochs 60 --batch 27 --validation 0.2 --output "$work/$optimizer.onnx"
    expect_text 'epoch 60 of 60: loss 0\.[0-9]+, validation 0\.[0-9]+ \((8[5-9]|9[0-9]|100)\.[0-9]+ % right\); rate 0\.[0-9]+, .* s left'
done

# A target of [n] beside a result of [n, 1] is no table of n x n; a bias of one element is trained.
expect_status 0 train "$here/models/line.onnx" --device host --data "$here/arrays/line.npz" --loss mse \
    --optimizer momentum --learning-rate 0.05 --epochs 60 --batch 10 --output "$work/line.onnx"
expect_text 'epoch 60 of 60: loss ([0-9.]+e-[0-9]+|0\.00[0-9]+)'

# What comes out is the model, with other weights.
expect_status 0 run "$work/adam.onnx" --device host --set n=4
expect_text '^p +f32'

# A training that ended and went on has the same bits as one that did not.
train 0 --epochs 7 --batch 40 --output "$work/whole.onnx"
train 0 --epochs 3 --batch 40 --checkpoint "$work/state" --output "$work/part.onnx"
train 0 --epochs 7 --batch 40 --checkpoint "$work/state" --resume --output "$work/part.onnx"
expect_text 'goes on after 21 batches'
cmp -s "$work/whole.onnx" "$work/part.onnx" || fail "a resumed training came to something else"
train 0 --graphs off --epochs 7 --batch 40 --output "$work/eager.onnx"
cmp -s "$work/whole.onnx" "$work/eager.onnx" || fail "an eager training came to something else"

# ONNX's own Gradient, at another point than y is computed at.
expect_status 0 run "$here/models/gradient.onnx" --device host --input "x=$here/arrays/x.npy" --input "p=$here/arrays/y.npy"
expect_text 'values 1.75 -7.25 75'

# Ctrl-C keeps the work. (Children of a script ignore SIGINT unless they say otherwise.)
if command -v python3 >/dev/null; then
    check_count=$((check_count + 1))
    python3 - "$rondo" "$model" "$data" "$work" <<'END' || fail "Ctrl-C did not keep the work"
import os, signal, subprocess, sys, time
tool, model, data, work = sys.argv[1:]
state = os.path.join(work, "stopped", "last.rondo")
process = subprocess.Popen(
    [tool, "train", model, "--device", "host", "--data", data, "--epochs", "1000000",
     "--checkpoint", os.path.dirname(state), "--output", os.path.join(work, "stopped.onnx")],
    stdout=open(os.path.join(work, "stopped.txt"), "w"),
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
for _ in range(600):
    if os.path.exists(state):
        break
    time.sleep(0.05)
process.send_signal(signal.SIGINT)
sys.exit(process.wait(timeout=60) != 130 or not os.path.exists(os.path.join(work, "stopped.onnx")))
END
    sed -n '$p' "$work/stopped.txt" | grep -q '^stopped after [0-9]* batches$' || fail "Ctrl-C: no word"
    tail -n 2 "$work/stopped.txt" | grep -q '^epoch [0-9]* of 1000000.*: loss 0\.' || fail "Ctrl-C: no loss"
    train 0 --epochs 1 --checkpoint "$work/stopped" --resume
fi

# A page with a picture.
train 0 --epochs 2 --report "$work/report.html" --output "$work/x.onnx"
grep -q '<polyline' "$work/report.html" || fail "the report has no picture"

# In half precision with a scaled loss; adapters; some parameters alone; micro-batches; a schedule.
train 0 --epochs 40 --dtype fp16 --output "$work/half.onnx"
expect_text 'epoch 40 of 40: loss 0\.'
train 0 --epochs 40 --dtype bf16 --schedule step --step-epochs 10 --step-factor 0.5 --output "$work/bf16.onnx"
expect_text 'epoch 40 of 40: loss 0\..*; rate 0\.0025, '
train 0 --epochs 2 --lora 1 --output "$work/adapted.onnx"
train 0 --epochs 2 --train 'w*' --accumulate 2 --schedule cosine --warm-up 3 --clip-norm 1 --weight-decay 0.01 --output "$work/x.onnx"

# Other losses, of numbers for each output.
for loss in mse bce; do
    expect_status 0 train "$model" --device host --data "$here/arrays/classes_rows.npz" --loss $loss --epochs 2 --output "$work/x.onnx"
    expect_text 'epoch 2 of 2: loss 0\.'
done

# What is wrong is said in one line.
cp "$work/state/last.rondo" "$work/kept"
expect_error 1 'the loss is .*nan.*last good state is in' train "$model" --device host --data "$data" --optimizer sgd --learning-rate 1e30 --epochs 9 --quiet --checkpoint "$work/state"
cmp -s "$work/kept" "$work/state/last.rondo" || fail "a spoilt training wrote its state"
expect_error 1 'label|index|target' train "$model" --device host --data "$here/arrays/classes_out_of_range.npz" --epochs 1 --validation 0 --quiet --checkpoint "$work/state"
cmp -s "$work/kept" "$work/state/last.rondo" || fail "a failed training wrote its state"
expect_error 1 'no such|cannot|No such' train "$model" --device host --data "$data" --output "$work/no/such/x.onnx"
expect_error 1 'variables|no variable' train "$model" --device host --data "$data" --optimizer sgd --checkpoint "$work/state" --resume
expect_error 2 'learning-rate' train "$model" --data "$data" --output x --learning-rate 0
expect_error 2 'learning-rate' train "$model" --data "$data" --output x --learning-rate nan
expect_error 2 'step-factor' train "$model" --data "$data" --output x --schedule step --step-factor 0
expect_error 1 'one Gather' train "$model" --device host --data "$data" --rows 'w*' --output "$work/x.onnx"
expect_error 2 '--data' train "$model" --output x
expect_error 2 '--output' train "$model" --data "$data"
expect_error 1 'no array' train "$model" --device host --data "$data" --target z --output "$work/x.onnx"
expect_error 1 'matches' train "$model" --device host --data "$data" --train 'nothing*' --output "$work/x.onnx"

# Where the disk is full the state before stays. (A limit of file sizes stands for that.)
run_limited() (
    trap '' XFSZ
    ulimit -f 1
    run_tool "$@"
    exit $status
)
check_count=$((check_count + 1))
run_limited train "$model" --device host --data "$data" --learning-rate 0.02 --batch 40 --epochs 9 --quiet --checkpoint "$work/state" --resume
[ $? = 1 ] && grep -q 'last.rondo' "$work/stderr" || fail "a full disk is no error"
cmp -s "$work/kept" "$work/state/last.rondo" || fail "a full disk took the state"
finish_test
