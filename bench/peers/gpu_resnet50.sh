#!/usr/bin/env bash
# ResNet-50, fp16, one image: Rondo's replay against PyTorch's CUDA graph, in one session on one GPU.
#
# usage: bench/peers/gpu_resnet50.sh RONDO MODEL_DIR [RESULT_FILE]
#
#   RONDO        the tool, build/rondo
#   MODEL_DIR    holds model.onnx (making it: docs/testing.md, "Networks")
#   RESULT_FILE  a copy of what is printed
#
# Needs python3 with torch and torchvision. Rondo's latency is that of a whole run from host memory to host
# memory, transfers included; PyTorch's leaves the transfers out, so the ratio is against ourselves.
# Goal: at most 0.55.
# SPDX-License-Identifier: Apache-2.0
set -eu
rondo=$1
model=$2
result=${3:-/dev/null}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

{
    echo "command    bench/peers/gpu_resnet50.sh"
    echo "commit     ${RONDO_COMMIT:-$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)}"
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/^/gpu        /'
    # The first run tunes and fills the kernel cache; the second is measured.
    "$rondo" bench "$model/model.onnx" --device cuda:0 --dtype fp16 --json "$work/first.json" \
        > /dev/null
    "$rondo" bench "$model/model.onnx" --device cuda:0 --dtype fp16 --json "$work/rondo.json" \
        > "$work/rondo.txt"
    python3 "$here/torch_resnet50.py" > "$work/torch.json"
    python3 - "$work" <<'P'
import json, sys
rondo = json.load(open(sys.argv[1] + "/rondo.json"))
torch = json.load(open(sys.argv[1] + "/torch.json"))
us = lambda mode, what: 1e3 * rondo[mode][what]["median"]
print(f"peer       PyTorch {torch['torch']}, cuDNN {torch['cudnn']}")
print()
print("median, us                                     eager   graph")
print(f"PyTorch, with sync                           {torch['eager_us']:7.1f} {torch['graph_us']:7.1f}")
print(f"Rondo, host to host with sync                {us('eager', 'latency_ms'):7.1f} {us('replay', 'latency_ms'):7.1f}")
print(f"Rondo, device compute                        {us('eager', 'compute_ms'):7.1f} {us('replay', 'compute_ms'):7.1f}")
print()
print(f"ratio, graph to graph: {us('replay', 'latency_ms') / torch['graph_us']:.3f} (goal 0.55)")
P
    echo
    cat "$work/rondo.txt"
} | tee "$result"
