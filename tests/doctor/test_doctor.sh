# `rondo doctor` on programs that know nothing of it, on the emulated GPU:
#   sh test_doctor.sh RONDO DOCTOR_PROGRAM FOLDER        the folder has a libcupti.so.13
# SPDX-License-Identifier: Apache-2.0
program=$2
RONDO_LIBRARY_PATH=$3
export RONDO_LIBRARY_PATH
. "$(dirname "$0")/../cli/helper.sh"
there="$(ls -d /dev/shm/rondo-doctor-* 2>/dev/null | tr '\n' ' ')"
DOCTOR_PROGRAM_IMAGE=$work/image
export DOCTOR_PROGRAM_IMAGE

# Each fault is found in the middle of its step, at its place; a step without one has none.
expect_status 0 doctor --no-times -- "$program" none
expect_text 'step +3 launches, 0 graphs, 2 copies, 0 fills'
expect_text 'Nothing stands in the way of a capture'
expect_text 'not judged'
for fault in wait-device wait-stream wait-event read-back query pageable-copy allocate host-memory \
    load-module make-stream host-function legacy-stream unjoined-fork counter moving-address changing-shape; do
    expect_status 0 doctor --no-times -- "$program" $fault
    expect_text "^$fault: cu"
done
expect_status 0 doctor --no-times -- "$program" read-back
expect_text 'at .*doctor_program'
expect_status 0 doctor --no-times -- "$program" joined-fork
expect_text 'Nothing stands in the way of a capture'

# Processes that run collectives in another order, or in the same one; steps that NVTX names.
expect_status 0 doctor --no-times -- "$program" ranks
expect_text '^collective-ranks: cuLaunchKernel, 1 a step'
expect_status 0 doctor --no-times -- "$program" equal-ranks
expect_text 'Nothing stands in the way of a capture'
expect_status 0 doctor --no-times --record "$work/ranges.stream" -- "$program" ranges
expect_text '^step +whole step: 2 launches, 0 graphs, 1 copies'
expect_text '^    in the range look$'
expect_status 0 doctor --from "$work/ranges.stream"
expect_text '^step +whole step: 2 launches'

# A signal to the doctor alone goes to the program; what was seen until then is told.
"$rondo" doctor --no-times -- "$program" endless >"$work/stdout" 2>"$work/stderr" &
watcher=$!
until grep -q running "$work/stdout"; do sleep 0.05; done
kill -INT $watcher
program_status=0
wait $watcher || program_status=$?
check_count=$((check_count + 1))
[ "$program_status" = 130 ] || fail "a signal to the doctor: status $program_status"
expect_text 'step +3 launches'

# The program's own end is kept, and what was seen until then is told.
for end in abort:134 killed:137 crash:139 status:5 fork:0 exec:0 threads:0; do
    expect_status "${end#*:}" doctor --no-times -- "$program" "${end%:*}"
    expect_text 'step +3 launches'
done
expect_status 0 doctor --no-times -- "$program" exec
expect_text '1 more of its processes'
expect_status 0 doctor --no-times -- sh -c "\"$program\" none; true"
expect_text 'step +3 launches'

# The line of a Python program, also where the call has let go of the interpreter.
if python3 -c 'import ctypes' 2>"$work/stderr"; then
    expect_status 0 doctor --no-times -- python3 "$here/step.py"
    expect_text 'step\.py:[0-9]+ in read_loss$'
fi

# Device times are taken for a moment once the step is known. Where CUPTI refuses, the reason is told.
DOCTOR_PROGRAM_UNTIL=$work/until
export DOCTOR_PROGRAM_UNTIL
expect_status 0 doctor --json "$work/times.json" -- "$program" none
expect_text '^device +works 5\.00 us of a step'
expect_text 'as one graph a replay would take about'
grep -q '"device_us": 5,' "$work/times.json" || fail "the report lacks the device's time"
rm "$DOCTOR_PROGRAM_UNTIL"

# What it would take is rehearsed once the program has ended, and the file of its calls keeps that.
export DOCTOR_WORKS
# The page has a row for each of the device's streams, the third and the fourth of all.
for works in none:casac:1 joined-fork:caAsac:2; do
    fault=${works%%:*}
    DOCTOR_WORKS=${works#*:}
    DOCTOR_WORKS=${DOCTOR_WORKS%:*}
    expect_status 0 doctor --record "$work/rehearsed.stream" --html "$work/$fault.html" -- "$program" "$fault"
    expect_text '^ +rehearsed: a graph of its shape'
    rm "$DOCTOR_PROGRAM_UNTIL"
    "$rondo" doctor --from "$work/rehearsed.stream" --quiet --html "$work/$fault.from.html"
    pages="$fault $fault.from"
    # A step is kept, too, behind which device times ended.
    if python3 -c 'import struct' 2>"$work/stderr"; then
        python3 "$here/end_times.py" "$work/rehearsed.stream" "$work/ended.stream"
        "$rondo" doctor --from "$work/ended.stream" --quiet --record "$work/kept.stream"
        "$rondo" doctor --from "$work/kept.stream" --quiet --html "$work/$fault.kept.html"
        pages="$pages $fault.kept"
    fi
    for page in $pages; do
        found=$(grep -oE 'y="(38|56|74)" .*<title> (add|scale|\[copy)' "$work/$page.html" | cut -d' ' -f1 | sort -u | wc -l)
        [ "$found" = "${works##*:}" ] || fail "$page.html has $found rows of streams"
    done
    expect_status 0 doctor --from "$work/rehearsed.stream" --json "$work/rehearsed.json"
    expect_text '^ +rehearsed: a graph of its shape'
    grep -q '"rehearsed": true' "$work/rehearsed.json" || fail "the report says nothing of a rehearsal"
done
expect_status 0 doctor --no-rehearsal -- "$program" none
expect_text 'as one graph a replay would take about'
grep -q rehearsed "$work/stdout" && fail "it was rehearsed nevertheless"
rm "$DOCTOR_PROGRAM_UNTIL"
DOCTOR_CUPTI=taken
export DOCTOR_CUPTI
expect_status 0 doctor -- "$program" none
expect_text 'not known \(device times: cuptiSubscribe failed \(39\): another tool has taken CUPTI'
rm "$DOCTOR_PROGRAM_UNTIL"
DOCTOR_CUPTI=refused
expect_status 0 doctor -- "$program" none
expect_text 'not known \(device times: cuptiActivityEnable failed \(35\): the driver lets only administrators'

unset DOCTOR_PROGRAM_UNTIL

# Files: the stream, examined again, says the same; reports beside each other.
expect_status 1 doctor --no-times --fail-on read-back --json "$work/a.json" --record "$work/a.stream" -- "$program" read-back
expect_text '^read-back'
expect_status 0 doctor --no-times --fail-on allocate -- "$program" read-back
expect_status 1 doctor --no-times --fail-on any -- "$program" read-back
expect_status 5 doctor --no-times --fail-on any -- "$program" status
expect_status 0 doctor --from "$work/a.stream"
expect_text '^read-back: cuStreamSynchronize, 1 a step'
expect_status 0 doctor --from "$work/a.stream" --json - --quiet
expect_text '"rule": "read-back"'
expect_status 0 doctor --from "$work/a.stream" --html "$work/a.html"
grep -q '<td>read-back</td><td>cuStreamSynchronize</td>' "$work/a.html" || fail "the page lacks the finding"
grep -q '<title>read-back cuStreamSynchronize ' "$work/a.html" || fail "the page lacks the finding's mark"
grep -q '<title>cuLaunchKernel add ' "$work/a.html" || fail "the page lacks a launch"
[ "$(grep -c '</html>' "$work/a.html")" = 1 ] || fail "the page has no end"
expect_status 0 doctor --no-times --compare "$work/a.json" -- "$program" counter
expect_text '^gone +read-back: 0 a step, was 1'
expect_text '^new +counter: 1 a step, was 0'
expect_status 0 doctor --from "$work/a.stream" --compare "$work/a.json"
expect_text '^findings as before'

# Steps of real programs that were recorded on an H200 (bench/results/core/doctor.md), what their captures took there, and
# every rule that they break: what a capture refused, or would have frozen, and nothing else.
while read -r name launches truth verdict rules; do
    gunzip -c "$here/streams/$name.stream.gz" >"$work/$name.stream"
    expect_status 0 doctor --from "$work/$name.stream" --json "$work/$name.json"
    expect_text "^step +([a-z ]+: )?$launches launches"
    expect_text "^verdict +$(echo "$verdict" | tr _ ' ')"
    found=$(sed -n 's/.*"rule": "\([a-z-]*\)".*/\1/p' "$work/$name.json" | grep -v unwritten-word | sort -u | tr '\n' ' ')
    [ "$found" = "${rules:+$rules }" ] || fail "$name breaks $found, not $rules"
    awk -v truth="$truth" '/"graph": \{/ { is_next = 1; next }
        !is_next || /"rehearsed"/ { is_next = 0; next }
        { split($0, pair, /: */); value[++count] = pair[2] + 0 }
        END { off = truth == 0 ? 0 : value[1] / truth - 1
              exit !(truth == 0 || (off < 0.15 && off > -0.15 && value[2] <= truth && truth <= value[3])) }' \
        "$work/$name.json" || fail "$name takes $truth us as a graph: $(grep -A 3 '"graph"' "$work/$name.json")"
done <<EOF
row 100 106.4 launch-bound
fork 80 142.5 launch-bound
large 5 520.2 bound_by_its_kernels
dynamic 32 38.3 launch-bound counter moving-address
copies 20 61.6 launch-bound
mix 64 119.6 launch-bound
cupy 41 54.4 launch-bound
dlrm 65 151.9 launch-bound legacy-stream
gpt2 200 693.5 launch-bound legacy-stream
gpt2-item 200 0 launch-bound read-back
vit 129 653.8 launch-bound legacy-stream
train 571 2627.8 launch-bound legacy-stream
matmul 2 3394.6 bound_by_its_kernels legacy-stream
resnet50 342 1032.3 launch-bound legacy-stream
jax 143 596.3 launch-bound host-function moving-address
EOF

# What cannot be watched.
expect_error 127 'cannot be started: No such file' doctor -- "$work/no_such_program"
: >"$work/not_executable"
: >"$work/train.py"
expect_error 126 'cannot be started: Permission denied' doctor -- "$work/not_executable"
expect_error 126 'cannot be started: Permission denied; a script .* python3' doctor -- "$work/train.py"
expect_error 1 'status 0 and made no call of the CUDA driver' doctor -- true
expect_error 7 'status 7 and made no call of the CUDA driver' doctor sh -c 'exit 7' --json x
if echo 'int main(void) { return 0; }' | cc -static -x c -o "$work/static" - 2>"$work/stderr"; then
    expect_error 1 'linked statically' doctor -- "$work/static"
fi
program_status=$(
    ulimit -f 64
    "$rondo" doctor --no-times -- "$program" none >"$work/stdout" 2>"$work/stderr"
    echo $?
)
check_count=$((check_count + 1))
[ "$program_status" = 1 ] || fail "a full disk: status $program_status"
grep -q 'could not be recorded: ' "$work/stderr" || fail "a full disk is not told"
if [ -c /dev/full ]; then
    expect_status 1 doctor --no-times --json /dev/full -- "$program" none
fi

# Misuse, and files that are none.
expect_error 2 'missing operand' doctor
expect_error 2 'instead of a program' doctor --from x -- true
expect_error 2 'no rule "read-bak".*read-back' doctor --fail-on read-bak -- true
expect_error 1 'No such file' doctor --from "$work/none.stream"
echo text >"$work/text"
expect_error 1 'too short' doctor --from "$work/text"
expect_error 1 'no stream of calls' doctor --from /dev/zero
head -c 5000 /dev/zero >"$work/zeros"
expect_error 1 'no stream of calls' doctor --from "$work/zeros"
head -c 1000 "$work/a.stream" >"$work/cut"
expect_error 1 'ends inside a record' doctor --from "$work/cut"
expect_status 1 doctor --from "$work/a.stream" --compare "$work/text"
# Those of another run of this test go by themselves.
tries=0
for folder in $(ls -d /dev/shm/rondo-doctor-* 2>/dev/null); do
    case $there in *"$folder "*) continue ;; esac
    while [ -e "$folder" ] && [ $tries -lt 600 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    [ ! -e "$folder" ] || fail "records were left in $folder"
done
finish_test
