#!/usr/bin/env bash
# How long it takes from the start of a process to its first result: `rondo run MODEL`, on an empty cache
# of kernels and again with a warm one, without timing kernels (off) and with (fast); and of a plan file
# (rondo compile) with an empty cache. Prints a table, and where the time of the last run went.
#
# usage: bench/models/start_up.sh RONDO MODEL...      RONDO is the tool, MODEL an ONNX file
#
#   DEVICE=cuda:0 DTYPE=fp16 REPEATS=7 TUNE="off fast"
#
# Times are of the whole process, from fork to its end. "empty" is one run; the first row's is also the
# first use of the driver's and NVIDIA's libraries' files, if nobody read them before. "warm" is the
# median of REPEATS runs, and the least. All others are of the run whose time is the median, in
# milliseconds, as RONDO_LOG=debug tells them ("cpu": processor time of all threads, of that run too): driver (libcuda and cuInit), device (its context), file
# (the model; it is loaded on a thread of its own meanwhile), base (what all plans share), plan, and of
# the plan the weights; libraries: NVRTC, cuBLASLt and cuDNN, as far as they were loaded, within plan.
# SPDX-License-Identifier: Apache-2.0
set -u
rondo=${1:?usage: bench/models/start_up.sh RONDO MODEL...}
shift
device=${DEVICE:-cuda:0}
dtype=${DTYPE:-fp16}
repeats=${REPEATS:-7}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RONDO_CACHE_DIR=$work/cache

# run MODEL TUNE LOG: prints the seconds; what the library said is in LOG.
run() {
    local begin=$EPOCHREALTIME end
    local options=(--device "$device" --dtype "$dtype" --tune "$2")
    [ "$2" = plan ] && options=(--device "$device")
    times >"$work/before"
    RONDO_LOG=debug,device=info "$rondo" run "$1" "${options[@]}" --quiet >"$work/stdout" 2>"$3"
    local status=$?
    times >"$work/after"
    end=$EPOCHREALTIME
    if [ $status != 0 ]; then
        echo "$1 fails: $(grep -v debug: "$3" | tail -n 1)" >&2
        return 1
    fi
    awk -v a="${begin/,/.}" -v b="${end/,/.}" 'BEGIN { printf "%.3f", b - a }'
    # The second line of `times` is of children: "0m1.234s 0m0.056s".
    awk 'function s(t) { split(t, p, /[ms]/); return 60 * p[1] + p[2] }
        FNR == 2 { sum = s($1) + s($2) - sum } END { printf " %.3f\n", sum }' "$work/before" "$work/after"
}

# phases LOG: a cell for each column.
phases() {
    awk '
        function ms(text) { sub(/ ms.*/, "", text); sub(/.* /, "", text); return text + 0 }
        / debug: loaded .*libcuda/ { driver += ms($0); next }
        / debug: opened / { device += ms($0); next }
        / debug: loaded .* bytes, in / { file += ms($0); next }
        / debug: the base of a program in / { base += ms($0); next }
        / debug: a plan of / {
            plan += ms($0)
            weights = $0; sub(/.* ms, /, "", weights); sub(/ .*/, "", weights)
            all += weights; next
        }
        / debug: loaded / { libraries += ms($0) }
        END {
            printf "%.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f", driver, device, file, base, plan,
                all, libraries
        }' "$1"
}

echo "| model | tune | empty, s | warm, s | least | cpu, s | driver, ms | device | file | base | plan | weights | libraries |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for model in "$@"; do
    name=$(basename "$model" .onnx)
    [ "$name" = model ] && name=$(basename "$(dirname "$model")")
    for tune in ${TUNE:-off fast} plan; do
        file=$model
        if [ "$tune" = plan ]; then
            file=$work/model.rondo
            "$rondo" compile "$model" --device "$device" --dtype "$dtype" -o "$file" >"$work/stdout" || continue
        fi
        rm -rf "$RONDO_CACHE_DIR"
        empty=$(run "$file" "$tune" "$work/log" | cut -d' ' -f1) || continue
        : >"$work/times"
        for ((i = 0; i < repeats; i++)); do
            echo "$(run "$file" "$tune" "$work/log$i") $i" >>"$work/times"
        done
        sort -n "$work/times" >"$work/sorted"
        least=$(head -n 1 "$work/sorted" | cut -d' ' -f1)
        read -r median cpu number < <(sed -n "$((repeats / 2 + 1))p" "$work/sorted")
        echo "| $name | $tune | $empty | $median | $least | $cpu | $(phases "$work/log$number") |"
    done
done
