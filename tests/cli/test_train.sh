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

# Weights that the body of a Loop uses are trained, and saved.
loop() {
    expect_status 0 train "$here/models/classes_loop.onnx" --device host --data "$data" --batch 27 --validation 0.2 --quiet "$@"
}
expect_status 0 train "$here/models/classes_loop.onnx" --device host --data "$data" --learning-rate 0.02 --epochs 60 \
    --batch 27 --validation 0.2 --output "$work/loop.onnx"
expect_text 'epoch 60 of 60: loss 0\.[01].* \((8|9)[0-9]\.[0-9]+ % right'
expect_status 0 run "$work/loop.onnx" --device host --set n=4
loop --train w --learning-rate 0.01 --output "$work/loop.onnx"
loop --train w --learning-rate 0.02 --output "$work/other.onnx"
cmp -s "$work/loop.onnx" "$work/other.onnx" && fail "the body's weights are as they were"

# Shapes that the model computes from its batch (Shape, Gather, Concat, Reshape) keep their ranks: a vision transformer as
# torch exports it learns.
mkdir "$work/pictures"
start_npy "$work/pictures/x.npy" "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 3, 12, 12), }"
head -c 13824 /dev/zero >>"$work/pictures/x.npy"
start_npy "$work/pictures/y.npy" "{'descr': '<i8', 'fortran_order': False, 'shape': (8,), }"
head -c 64 /dev/zero >>"$work/pictures/y.npy"
expect_status 0 train "$here/../models/vit_mini/model.onnx" --device host --data "$work/pictures" --target y --epochs 3 \
    --batch 3 --validation 0 --output "$work/vit.onnx"
expect_text 'epoch 3 of 3: loss 1\.[01][0-9]+; rate'

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
    train 0 --epochs 1 --checkpoint "$work/stopped" --resume --learning-rate 0.001
    expect_text 'nothing to train'
fi

# A page with a picture: a line through the loss of each batch, and one through what is held out.
train 0 --epochs 3 --batch 27 --report "$work/report.html" --output "$work/x.onnx"
points() {
    grep "<polyline.*$1" "$work/report.html" | grep -oE '[0-9.]+,[0-9.]+ ' | wc -l
}
[ "$(points 1667b7)" = 30 ] && [ "$(points c4520f)" = 3 ] || fail "the picture has other points"
grep -q 'epoch 3 of 3: loss 0\.' "$work/report.html" || fail "the report has no summary"

# What the README shows.
cd "$here/../.." || exit 1
sed -n '/^\$ build\/rondo train/,/[^\\]$/p' README.md | tr -d '\\\n' >"$work/readme"
eval "run_tool $(sed "s|^[$] build/rondo ||; s|trained.onnx|$work/readme.onnx|; s|state|$work/readme.state|; s|loss.html|$work/readme.html|" "$work/readme") --device host"
[ "$status" = 0 ] && [ -s "$work/readme.onnx" ] && [ -s "$work/readme.html" ] || fail "README.md: $(cat "$work/readme")"
expect_text 'epoch 40 of 40: loss 0\.1.*(8[5-9]|9[0-9])\.[0-9]+ % right'

# In half precision with a scaled loss; adapters; some parameters alone; micro-batches; a schedule.
train 0 --epochs 40 --dtype fp16 --output "$work/half.onnx"
expect_text 'epoch 40 of 40: loss 0\.'
train 0 --epochs 40 --dtype bf16 --schedule step --step-epochs 10 --step-factor 0.5 --output "$work/bf16.onnx"
expect_text 'epoch 40 of 40: loss 0\..*; rate 0\.0025, '
# What comes out of adapters is the model, with other weights of the same size.
train 0 --epochs 40 --lora 1 --train 'w*' --output "$work/adapted.onnx" --checkpoint "$work/adapted"
expect_text 'epoch 40 of 40: loss 0\.'
[ "$(wc -c <"$work/adapted.onnx")" = "$(wc -c <"$work/adam.onnx")" ] || fail "adapters are in the model"
! cmp -s "$work/adapted.onnx" "$work/adam.onnx" || fail "adapters came to what whole weights do"
grep -q 'lora_a' "$work/adapted/last.rondo" || fail "the state has no adapters"
expect_status 0 run "$work/adapted.onnx" --device host --set n=4
train 0 --epochs 2 --train 'w*' --accumulate 4 --schedule cosine --warm-up 3 --clip-norm 1 --weight-decay 0.01 --output "$work/x.onnx"
expect_text '^the last 2 batches of all make no step'

# Other losses, of numbers for each output.
for loss in mse bce; do
    expect_status 0 train "$model" --device host --data "$here/arrays/classes_rows.npz" --loss $loss --epochs 2 --output "$work/x.onnx"
    expect_text 'epoch 2 of 2: loss 0\.'
done

# What is wrong is said in one line.
cp "$work/state/last.rondo" "$work/kept"
expect_error 1 'the loss is .*nan.*last good state is in' train "$model" --device host --data "$data" --optimizer sgd --learning-rate 1e30 --epochs 9 --quiet --checkpoint "$work/state"
cmp -s "$work/kept" "$work/state/last.rondo" || fail "a spoilt training wrote its state"
expect_error 1 'the target "y" has 3 at sample 17' train "$model" --device host --data "$here/arrays/classes_out_of_range.npz" --epochs 1 --validation 0 --quiet --checkpoint "$work/state"
cmp -s "$work/kept" "$work/state/last.rondo" || fail "a failed training wrote its state"
expect_error 1 'no such|cannot|No such' train "$model" --device host --data "$data" --output "$work/no/such/x.onnx"

# A training goes on as it began, or not at all; what changes no bits may change.
resume() {
    pattern=$1
    shift
    expect_error 2 "was made with $pattern" train "$model" --device host --data "$data" --learning-rate 0.02 --batch 40 --quiet --checkpoint "$work/state" --resume "$@"
    cmp -s "$work/kept" "$work/state/last.rondo" || fail "a refused training wrote its state"
}
resume '--optimizer adam, and this is --optimizer sgd' --optimizer sgd
resume '--learning-rate 0.02, ' --learning-rate 0.020000000001
resume '--seed 0, ' --seed 1
resume '--batch 40, ' --batch 41
resume '--loss cross_entropy, ' --loss mse --data "$here/arrays/classes_rows.npz"
resume '--dtype fp32, ' --dtype fp16
resume '--accumulate 1, ' --accumulate 2
resume '--weight-decay 0, ' --weight-decay 0.1
resume '--clip-norm 0, ' --clip-norm 1
resume '--clip-value 0, ' --clip-value 1
resume '--schedule constant, ' --schedule cosine
resume '--warm-up 0, ' --warm-up 3
resume '--validation 0.1, ' --validation 0.2
resume '--lora 0, ' --lora 1
resume '--train -, and this is --train w1,b1' --train w1 --train b1
resume '--data with the hash' --data "$here/arrays/classes_spoilt.npz"
train 0 --epochs 9 --batch 40 --checkpoint "$work/state" --resume --output "$work/part.onnx" --report "$work/x.html" --recompute Relu --threads 2 --target y --result p
cp "$work/kept" "$work/state/last.rondo"
expect_error 2 'was made with MODEL with the hash' train "$work/adam.onnx" --device host --data "$data" --learning-rate 0.02 --batch 40 --quiet --checkpoint "$work/state" --resume
train 0 --epochs 2 --schedule cosine --checkpoint "$work/cosine"
expect_error 2 '--epochs .* 2, and this is .* 3' train "$model" --device host --data "$data" --learning-rate 0.02 --schedule cosine --epochs 3 --quiet --checkpoint "$work/cosine" --resume
train 0 --epochs 2 --optimizer momentum --schedule step --checkpoint "$work/steps"
train 0 --epochs 3 --optimizer momentum --schedule step --checkpoint "$work/steps" --resume
expect_error 2 '--step-factor 0.1, ' train "$model" --device host --data "$data" --learning-rate 0.02 --optimizer momentum --schedule step --step-factor 0.2 --quiet --checkpoint "$work/steps" --resume
expect_error 2 '--momentum 0.9, ' train "$model" --device host --data "$data" --learning-rate 0.02 --optimizer momentum --momentum 0.8 --schedule step --quiet --checkpoint "$work/steps" --resume
printf 'RONDO CHECKPOINT' >"$work/cosine/last.rondo"
expect_error 1 'damaged' train "$model" --device host --data "$data" --quiet --checkpoint "$work/cosine" --resume

# A model of one number of samples: the rest of an epoch is left out, and said; whole batches are held out.
for fixed in classes_fixed classes_inside; do
    expect_status 0 train "$here/models/$fixed.onnx" --device host --data "$data" --epochs 2 --validation 0.4 --output "$work/x.onnx"
    expect_text '^96 samples are held out, where 120 were to be: the model takes 32 at once'
    expect_text '^each epoch leaves out 12 samples'
    expect_text '^epoch 2 of 2: loss 0\.[0-9]*, validation 0\.'
done
for fixed in classes_fixed classes_inside; do
    for batch in 16 400; do
        expect_error 2 "--batch $batch: the model takes 32 samples at once; give --batch 32" train "$here/models/$fixed.onnx" --device host --data "$data" --batch $batch --quiet --output "$work/x.onnx"
    done
    expect_error 1 'classes.npz: 12 samples are left to train with, and the model takes 32 at once; give more' train "$here/models/$fixed.onnx" --device host --data "$data" --validation 0.98 --quiet --output "$work/x.onnx"
done

# Numbers that are none, among those to train with and those held out, of targets and of inputs.
for type in fp32 fp16; do
    expect_error 1 'the loss is nan .*--data' train "$model" --device host --data "$here/arrays/classes_spoilt.npz" --validation 0 --dtype $type --quiet --output "$work/x.onnx"
    expect_error 1 'the loss of what is held out is nan .*--data' train "$model" --device host --data "$here/arrays/classes_spoilt.npz" --validation 0.5 --seed 1 --dtype $type --quiet --output "$work/x.onnx"
    expect_error 1 'the target "t" has inf at sample 7' train "$model" --device host --data "$here/arrays/classes_rows_spoilt.npz" --loss mse --dtype $type --quiet --output "$work/x.onnx"
done
expect_error 1 'the target "t" has 1.5 at sample 7, which is no chance' train "$model" --device host --data "$here/arrays/classes_no_chance.npz" --loss bce --quiet --output "$work/x.onnx"
expect_error 1 'an element of "w1" is -?(inf|nan) .*last good state' train "$model" --device host --data "$data" --optimizer adamw --learning-rate 1e30 --weight-decay 1e30 --batch 300 --validation 0 --quiet --checkpoint "$work/state"
cmp -s "$work/kept" "$work/state/last.rondo" || fail "spoilt weights were written"

# Options that cannot be, say nothing, or contradict each other.
misuse() {
    pattern=$1
    shift
    expect_error 2 "$pattern" train "$model" --device host --data "$data" --output "$work/x.onnx" "$@"
}
for rate in 0 nan inf -1 1e31 1e-400 x ''; do misuse '--learning-rate' --learning-rate "$rate"; done
for option in weight-decay clip-norm clip-value; do
    for number in -1 nan 1e31 x; do misuse "--$option" --$option $number; done
done
for option in epochs batch accumulate; do
    for number in 0 -1 1.5 nan 99999999999 99999999999999999999; do misuse "--$option" --$option $number; done
done
for number in 1 2 -1 nan; do
    misuse '--momentum' --optimizer momentum --momentum $number
    misuse '--validation' --validation $number
done
for number in 1.1 -1 nan; do misuse '--least-rate' --schedule cosine --least-rate $number; done
for number in 0 -1 nan 1e31; do misuse '--step-factor' --schedule step --step-factor $number; done
for number in 0 -1 99999999999; do misuse '--step-epochs' --schedule step --step-epochs $number; done
for number in -1 x 99999999999; do misuse '--warm-up' --warm-up $number; done
for number in 0 -1 3 99 99999999999; do misuse '--lora' --lora $number; done
for number in -1 1025 x; do misuse '--threads' --threads $number; done
for number in -1 x 18446744073709551616; do misuse '--seed' --seed $number; done
for option in loss optimizer schedule dtype graphs; do misuse "--$option is one of" --$option nothing; done
misuse '--accumulate 10 is above the 9 batches' --accumulate 10
misuse '--warm-up 100 is above the 90 steps' --warm-up 100
misuse '--momentum goes with' --momentum 0.9
misuse '--step-epochs goes with' --schedule cosine --step-epochs 1
misuse '--step-factor goes with' --step-factor 0.1
misuse '--least-rate goes with' --schedule step --least-rate 0
misuse '--lora .*--rows' --lora 1 --rows 'w*'
misuse '--lora 1: .*matches' --lora 1 --train b1
misuse '--rows: .*one Gather' --rows w1
for option in train rows recompute; do misuse "--$option: no .* matches \"nothing\\*\"; it has" --$option 'nothing*'; done
misuse '--train: .*"zz"' --train w1 --train zz
misuse '--result: .*"nothing"' --result nothing
misuse '--resume needs' --resume
for option in data target result device checkpoint output report; do misuse "--$option is empty" --$option ''; done
misuse '--report and --output are the same' --report "$work/x.onnx"
misuse '--output and MODEL are the same' --output "$model"
misuse '--output and --data are the same' --output "$data"
misuse '--output is a file' --output -
# A device is refused before the work, not behind it.
expect_error 1 '/dev/null: a device' train "$model" --device host --data "$data" --epochs 1 --output /dev/null
expect_error 2 '--data' train "$model" --output x
expect_error 2 '--output' train "$model" --data "$data"
expect_error 1 'no array' train "$model" --device host --data "$data" --target z --output "$work/x.onnx"
expect_error 1 'labels' train "$model" --device host --data "$data" --target x --output "$work/x.onnx"
expect_error 1 '"y" has 1 number.* "p" has 3' train "$model" --device host --data "$data" --loss mse --output "$work/x.onnx"

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
# Of the model, and of the page, where the state still found room.
cp "$work/adam.onnx" "$work/before.onnx"
check_count=$((check_count + 1))
run_limited train "$model" --device host --data "$data" --epochs 1 --quiet --output "$work/adam.onnx"
[ $? = 1 ] && grep -q 'adam.onnx' "$work/stderr" || fail "a full disk is no error"
cmp -s "$work/adam.onnx" "$work/before.onnx" || fail "a full disk took the model"
check_count=$((check_count + 1))
run_limited train "$model" --device host --data "$data" --epochs 90 --quiet --checkpoint "$work/late" --report "$work/late.html"
[ $? = 1 ] || fail "a full disk is no error"
[ -z "$(ls -A "$work/late")" ] && [ ! -e "$work/late.html" ] || fail "a full disk left a part"
finish_test
