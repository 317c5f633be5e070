# rondo decode on one small model in the forms of both builders, against the tokens that ONNX Runtime
# gives for it (make_decoders.py).
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/helper.sh"
models=$here/decoders
shared=$models/shared
growing=$models/growing

# check_ways DEVICE PATTERN: the ways of tokens.txt whose lines match, with both forms.
check_ways() {
    grep -E "$2" "$models/tokens.txt" >"$work/ways"
    while IFS='|' read -r name prompts options tokens; do
        for form in shared growing; do
            expect_status 0 decode "$models/$form" $prompts $options --count 24 --device "$1"
            [ "$(tr '\n' ' ' <"$work/stdout")" = "$tokens " ] || fail "$1: $form, $name: not $tokens"
            [ ! -s "$work/stderr" ] || fail "$1: $form, $name: $(cat "$work/stderr")"
        done
    done <"$work/ways"
}

check_ways host .

# One plan for the prompt and one for all steps, however they are run.
for graphs in auto off on; do
    expect_status 0 decode "$shared/model.onnx" --prompt 3,14,15 --stop 39 --count 40 --device host --verbose \
        --graphs "$graphs"
    expect_text '^prompt in .* 38 more in .* 2 plans'
    head -n 1 "$work/stdout" >"$work/$graphs"
done
cmp "$work/auto" "$work/off" && cmp "$work/auto" "$work/on" || fail "graphs change the tokens"

# Caches that grow are kept in a window, but where the model looks at where keys stand.
expect_status 0 decode "$growing" --prompt 3,14,15 --prompt 31 --stop 39 --count 40 --device host --verbose
expect_text '^prompt in .* 38 more in .* 3 plans, 38 runs replayed'
expect_text 'one length beside the model'
expect_status 0 decode "$models/sliding" --prompt 3,14,15,9,26 --prompt 31,8 --count 24 --device host
cmp "$work/stdout" "$models/sliding/tokens.txt" || fail "a sliding window: not its tokens"
expect_status 0 decode "$models/sliding" --prompt 3,14,15,9,26 --prompt 31,8 --count 24 --device host --verbose
expect_text 'caches of growing length'
for count in 1 2 3; do
    expect_status 0 decode "$models/sliding" --prompt 3,14,15,9,26 --count "$count" --device host
    [ "$(cat "$work/stdout")" = "$(head -n 1 "$models/sliding/tokens.txt" | cut -d, -f"1-$count")" ] || fail "$count tokens"
    expect_status 0 decode "$growing" --prompt 3,14,15,9,26 --count "$count" --device host
    [ "$(cat "$work/stdout")" = "$(echo 28,28,28 | cut -d, -f"1-$count")" ] || fail "$count tokens"
done

# A prompt that is cut in two gives what it gives as one: the second half is what the first made.
expect_status 0 decode "$growing" --prompt 3,14,15,9,26 --count 6 --device host
expect_text '^28,28,28,28,24,25$'
expect_status 0 decode "$growing" --prompt 3,14,15,9,26,28,28 --count 4 --device host
expect_text '^28,28,24,25$'
expect_status 0 decode "$shared" --prompt 3,14,15,9,26,28,28 --count 1 --device host
expect_text '^28$'

# Draws: the seed alone decides, the likeliest token is what --top-k 1 leaves.
expect_status 0 decode "$shared" --prompt 31,8 --sample --seed 3 --count 10 --device host
cp "$work/stdout" "$work/third"
expect_status 0 decode "$shared" --prompt 31,8 --sample --seed 3 --count 10 --device host
cmp "$work/stdout" "$work/third" || fail "one seed, two texts"
expect_status 0 decode "$shared" --prompt 31,8 --sample --seed 4 --count 10 --device host
! cmp -s "$work/stdout" "$work/third" || fail "two seeds, one text"
expect_status 0 decode "$shared" --prompt 31,8 --sample --top-k 1 --count 6 --device host
expect_text '^28,21,19,22,38,24$'
expect_status 0 decode "$shared" --prompt 31,8 --sample --top-p 0.000001 --count 6 --device host
expect_text '^28,21,19,22,38,24$'

# Without a file that says how wide a head is.
cp "$shared/model.onnx" "$work/model.onnx"
expect_error 1 'give --head-size' decode "$work/model.onnx" --prompt 3 --device host
expect_status 0 decode "$work" --head-size 16 --prompt 31,8 --count 6 --device host
expect_text '^28,21,19,22,38,24$'
# What genai_config.json calls the ports, the file and the ids that end a text.
mkdir "$work/named"
cp "$shared/model.onnx" "$work/named/other.onnx"
sed 's/"filename": "model.onnx"/"filename": "other.onnx", "inputs": {"past_key_names": "past_key_values.%d.key"}/
    s/"eos_token_id": 7/"eos_token_id": [19, 3]/' "$shared/genai_config.json" >"$work/named/genai_config.json"
expect_status 0 decode "$work/named" --prompt 31,8 --count 6 --device host
expect_text '^28,21$'
sed -i 's/\[19, 3\]/[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]/' "$work/named/genai_config.json"
expect_error 1 '17 ids of eos_token_id; leave 16' decode "$work/named" --prompt 31,8 --device host
sed -i 's/\[1,2.*17\]/[19, 3]/' "$work/named/genai_config.json"
sed -i 's/past_key_values.%d.key/past/' "$work/named/genai_config.json"
expect_error 1 '"past" .* lacks %d' decode "$work/named" --prompt 31,8 --device host
sed -i 's/"past"/"p.%d"/' "$work/named/genai_config.json"
expect_error 1 'does not know what to feed to "past_key_values.0.key"' decode "$work/named" --prompt 31,8 --device host
sed -i 's/"model"/model/' "$work/named/genai_config.json"
expect_error 1 'genai_config.json: line 2: not JSON' decode "$work/named" --prompt 31,8 --device host

# Misuse, and what is refused.
expect_error 2 'there is no --prompt' decode "$shared"
expect_error 2 'takes ids' decode "$shared" --prompt 3,,4
expect_error 2 'takes ids' decode "$shared" --prompt 3,-4
expect_error 2 'takes ids' decode "$shared" --prompt ''
expect_error 2 'takes an id' decode "$shared" --prompt 3 --stop 3,4 --device host
expect_error 2 'need --sample' decode "$shared" --prompt 3 --top-k 3
expect_error 2 'top-p is above 0' decode "$shared" --prompt 3 --sample --top-p 1.5
expect_error 2 'temperature is above 0' decode "$shared" --prompt 3 --sample --temperature 0
expect_error 2 'count is a number from 1' decode "$shared" --prompt 3 --count 0
expect_error 1 "5 tokens and 60 more are beyond the model's 64" decode "$shared" --prompt 1,2,3,4,5 --count 60 \
    --device host
expect_error 1 'no language model .* no input "input_ids"' decode "$here/models/add_relu.onnx" --prompt 3 --device host
expect_error 1 'nothing_there' decode "$work/nothing_there" --prompt 3 --device host
expect_status 1 decode "$shared" --prompt 4000 --device host

# On the emulated GPU (docs/testing.md), whose libraries are found beside the tool.
emulated=$(dirname "$rondo")/tests/emulated
if [ ! -e "$emulated/libcuda.so.1" ] || ! command -v g++ >/dev/null 2>&1; then
    echo "there is no emulated GPU here: decoding on one was not tried"
    finish_test
    exit
fi
export LD_LIBRARY_PATH="$emulated" RONDO_LIBRARY_PATH="$emulated" RONDO_CACHE_DIR="${RONDO_CACHE_DIR:-$work/cache}"
check_ways cuda:0 "^(batch|both)"
finish_test
