# Models of strings, sequences and optionals on the command line: what goes in comes from files of every
# kind, what comes out can go in again.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
folder=$here/../models/words_and_lists
model=$folder/model.onnx
set=$folder/test_data_set_0
arrays=$here/arrays

expect_status 0 inspect "$model" --device host
expect_text '^  words  *string \[n=1\]$'
expect_text '^  list  *sequence of f32$'
expect_text '^  maybe  *optional of f32$'
expect_text 'strings and sequences stay on the host'
expect_status 0 inspect "$model" --device host --json "$work/plan.json"
grep -q '"item_dtype": "f32"' "$work/plan.json" || fail "no item type in the JSON"

# Test data as it is, then what it made.
expect_status 0 run "$model" --device host --input "words=$set/input_0.pb" \
    --input "list=$set/input_1.pb" --input "maybe=$set/input_2.pb" --output-dir "$work/first"
expect_text '^shouted  string \[3\]$'
expect_text '^  "RED!" "BLUE!" "UNKNOWN!"$'
expect_text '^grown  sequence \[2\]$'
expect_text '^  f32 \[2\], f32 \[1\]$'
expect_text 'first/grown written \(output "grown"\)'
for file in shouted.npy grown/0.npy grown/1.npy wrapped.npy; do
    [ -f "$work/first/$file" ] || fail "no file $file: $(find "$work/first")"
done
expect_status 0 run "$model" --device host --graphs on --input "words=$work/first/shouted.npy" \
    --input "list=$work/first/grown" --input "maybe=$work/first/grown/0.npy" \
    --output-dir "$work/second"
expect_text '^  "RED!!" "BLUE!!" "UNKNOWN!!"$'
expect_status 0 compare "$work/first" "$work/first"
expect_text '^9 tensors, 0 different$'
expect_status 1 compare "$work/first" "$work/second"
expect_text '^DIFFERENT grown/0 '
expect_text 'element 0 is "RED!", expected "RED!!"'

# Items of a longer sequence that was there do not stay.
mkdir "$work/one"
cp "$work/first/grown/0.npy" "$work/one/0.npy"
expect_status 0 run "$model" --device host --input "words=$arrays/strings.npy" \
    --input "list=$work/one" --output-dir "$work/first"
[ -f "$work/first/grown/0.npy" ] && [ ! -e "$work/first/grown/1.npy" ] ||
    fail "the items are $(ls "$work/first/grown")"

# Words are made up, an optional that is not given holds nothing, a sequence must be given.
expect_status 0 run "$model" --device host --input "list=$work/one" --set n=3
expect_text '^shouted  string \[3\]$'
expect_status 0 bench "$model" --device host --input "list=$work/one" --duration 0.05 --iterations 1
expect_error 1 'input "list" is a sequence; give it with --input: a \.pb file, or a folder' \
    run "$model" --device host
expect_error 1 '--shape list=2: input "list" is a sequence of f32, which has no shape' \
    run "$model" --device host --shape list=2
expect_error 1 'x\.npy: holds f32, input "words" takes string \[n\]' run "$model" --device host --cast \
    --input "words=$arrays/x.npy"
expect_error 1 'x\.npy: holds f32, input "list" takes sequence of f32' run "$model" --device host \
    --input "list=$arrays/x.npy"
expect_error 1 'x\.pb: a tensor, where a sequence is expected' run "$model" --device host \
    --input "list=$arrays/x.pb"

# A classifier's scores, with the names that its ZipMap gave them.
trees=$here/../models/flower_trees/model.onnx
expect_status 0 inspect "$trees" --device host --json "$work/plan.json"
expect_text 'probabilities  *f32 \[1, 3\]  columns: setosa, versicolor, virginica$'
grep -q '"labels": \["setosa", "versicolor", "virginica"\]' "$work/plan.json" ||
    grep -q '"setosa"' "$work/plan.json" || fail "no labels in the JSON"
expect_status 0 run "$trees" --device host
expect_text '^  columns: "setosa" "versicolor" "virginica"$'
finish_test
