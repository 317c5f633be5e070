#!/usr/bin/env bash
# Seven networks on one GPU: Rondo eager and replayed beside PyTorch eager and from its CUDA graph, in
# single and half precision, one table.
#
# usage: bench/peers/gpu_models.sh [ARCHIVE] [DEVICE]      default: build-gpu/pack.tar.xz cuda:0
#
# ARCHIVE is what tools/gpu-pack makes; it has squeezenet1_1 and the networks of tests/models.
# mobilenet_v2 and resnet50 come with RONDO_MODELS or RONDO_SKELETONS (see there); a network that it
# lacks is left out. The table goes to $OUT/gpu_models.md, too (or build-gpu/out). Needs python3;
# PyTorch's columns need torch, torchvision and transformers there, and are empty without them.
#
#   RONDO_LIMIT_S=540   no network is begun after so many seconds
#
# All four are the median wall time of a run on inputs that lie on the device, until the device is
# idle. cold is Rondo's preparation with an empty kernel cache; later networks find kernels that
# earlier ones made.
# SPDX-License-Identifier: Apache-2.0
set -u
cd "$(dirname "$0")/../.." || exit 1
archive=${1:-build-gpu/pack.tar.xz}
device=${2:-cuda:0}
out=${OUT:-build-gpu/out}
limit=${RONDO_LIMIT_S:-540}
mkdir -p "$out"
pack=$(mktemp -d)
trap 'rm -rf "$pack"' EXIT
tar -C "$pack" -xJf "$archive" || exit 1
export RONDO_CACHE_DIR=${RONDO_CACHE_DIR:-$pack/cache}
export LD_LIBRARY_PATH=$pack/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for skeleton in "$pack"/skeletons/*.onnx; do
    [ -f "$skeleton" ] || continue
    name=$(basename "$skeleton" .onnx)
    python3 "$pack"/skeletons/*.py fill "$skeleton" "$pack/models/$name" >"$out/skeleton_$name.log" 2>&1 ||
        echo "$name cannot be made: $(tail -n 1 "$out/skeleton_$name.log")" >&2
done

# inputs NAME: the names of the inputs, in the order of input_0.pb, input_1.pb ...
inputs() {
    case $1 in
        bert_mini) echo ids mask ;;
        gpt_mini) echo ids position past ;;
        lstm_tagger) echo ids ;;
        branch_and_loop) echo x steps ;;
        *) echo image ;;
    esac
}

# measure NAME DTYPE: one row.
measure() {
    local name=$1 dtype=$2 data=$pack/models/$1/test_data_set_0 number=0 input
    local arguments=()
    for input in $(inputs "$name"); do
        arguments+=(--input "$input=$data/input_$number.pb")
        number=$((number + 1))
    done
    "$pack/rondo" bench "$pack/models/$name/model.onnx" --device "$device" --dtype "$dtype" \
        "${arguments[@]}" --no-transfers --duration "${RONDO_SECONDS:-1.5}" --json "$pack/rondo.json" \
        >"$out/bench_${name}_$dtype.log" 2>&1 || echo '{}' >"$pack/rondo.json"
    python3 - "$name" "$dtype" "$pack" <<'P'
import json, sys
name, dtype, pack = sys.argv[1:]
rondo = json.load(open(pack + "/rondo.json"))
rows = [json.loads(line) for line in open(pack + "/torch.jsonl")]
torch = next((row for row in rows if row["name"] == name and row["dtype"] == dtype), {})
us = lambda mode: 1e3 * rondo[mode]["latency_ms"]["median"] if mode in rondo else None
show = lambda value: f"{value:.1f}" if value else "-"
graph = rondo.get("graph", {})
best = min((t for t in (torch.get("eager_us"), torch.get("graph_us")) if t), default=None)
replay = us("replay")
cells = [name, dtype, show(torch.get("eager_us")), show(torch.get("graph_us")), show(us("eager")), show(replay),
         f"{replay / best:.2f}" if replay and best else "-", graph.get("ops", "-"), graph.get("nodes", "-"),
         graph.get("bypassed_ops", "-"), f"{graph['prepare_ms'] / 1e3:.1f}" if graph else "-",
         torch.get("reason", "") or ""]
print("| " + " | ".join(str(cell) for cell in cells) + " |")
P
}

networks="squeezenet1_1 mobilenet_v2 resnet50 bert_mini gpt_mini lstm_tagger branch_and_loop"
# shellcheck disable=SC2086  # a list; the last one cannot be captured, which may end the process
timeout 200 python3 bench/peers/torch_nets.py $networks >"$pack/torch.jsonl" 2>"$out/torch.log"

{
    echo "command: bench/peers/gpu_models.sh; commit ${RONDO_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}"
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
    python3 -c 'import torch; print("PyTorch", torch.__version__, "cuDNN", torch.backends.cudnn.version())' 2>/dev/null
    echo
    echo "| network | dtype | PyTorch eager, us | PyTorch graph | Rondo eager | Rondo replay | replay / best PyTorch | ops | nodes | bypassed | cold, s | why PyTorch has no graph |"
    echo "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    for name in $(printf '%s\n' $networks | tac); do  # the small ones first
        [ -f "$pack/models/$name/model.onnx" ] || continue
        for dtype in fp32 fp16; do
            if [ $SECONDS -gt "$limit" ]; then
                echo "| $name | $dtype | no time | | | | | | | | | |"
            else
                measure "$name" "$dtype"
            fi
        done
    done
} | tee "$out/gpu_models.md"
