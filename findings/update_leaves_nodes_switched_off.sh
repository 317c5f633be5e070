#!/bin/bash
# cudaGraphExecUpdate leaves a node off that was switched off, though the graph that it updates to never had it so.
#
# What is done: a kernel that stores 1 is captured, instantiated and switched off by cudaGraphNodeSetEnabled; the executable is updated
# with another capture, which stores 2; launched; switched on again and launched.
# Seen (H100 and H200, driver 580.159.04, CUDA 13.0): nothing is stored behind the update, cudaGraphNodeGetEnabled says 0; switched on, 2 is
# stored, so the update has taken place. Code that records anew and updates to get everything back loses what was off.
# What one would expect: the executable does what the graph does that it was updated with.
# Exit status: 0 the same, 1 something differs, 77 no GPU or no nvcc here.
# SPDX-License-Identifier: Apache-2.0
set -eu
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || true
if [ ! -x "$nvcc" ] || [ -z "$capability" ]; then
    echo "skipped: this needs nvcc and a GPU"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$nvcc" --version | grep release
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1
cat >"$folder/finding.cu" <<'END'
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define MUST(call)                                                                 \
    do {                                                                           \
        cudaError_t code = (call);                                                 \
        if (code != cudaSuccess) {                                                 \
            printf("%s: %s\n", #call, cudaGetErrorName(code));                     \
            exit(code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? 77 : 1); \
        }                                                                          \
    } while (0)

static int differences;

static void expect(const char *what, bool is_so) {
    printf("%-10s %s\n", is_so ? "as before" : "DIFFERS", what);
    differences += !is_so;
}

__global__ void store(int *x, int value) {
    *x = value;
}

static cudaGraph_t record(int *x, int value, cudaStream_t stream) {
    cudaGraph_t graph;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    store<<<1, 1, 0, stream>>>(x, value);
    MUST(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static cudaGraphNode_t only_node(cudaGraph_t graph) {
    cudaGraphNode_t node;
    size_t count = 1;
    MUST(cudaGraphGetNodes(graph, &node, &count));
    return node;
}

static int launch(cudaGraphExec_t exec, int *x, cudaStream_t stream) {
    int seen = 0;
    MUST(cudaMemcpy(x, &seen, 4, cudaMemcpyHostToDevice));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&seen, x, 4, cudaMemcpyDeviceToHost));
    return seen;
}

int main() {
    int *x;
    cudaStream_t stream;
    MUST(cudaMalloc(&x, 4));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraph_t first = record(x, 1, stream), second = record(x, 2, stream);
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info;
    unsigned int is_on = 9;
    MUST(cudaGraphInstantiate(&exec, first, 0));
    MUST(cudaGraphNodeSetEnabled(exec, only_node(first), 0));
    const int off = launch(exec, x, stream);
    MUST(cudaGraphExecUpdate(exec, second, &info));
    const int updated = launch(exec, x, stream);
    MUST(cudaGraphNodeGetEnabled(exec, only_node(first), &is_on));
    MUST(cudaGraphNodeSetEnabled(exec, only_node(first), 1));
    const int on = launch(exec, x, stream);
    printf("stored by a node that is off: %d, behind the update %d (enabled: %u), switched on again %d\n", off, updated, is_on, on);
    expect("an update leaves a node off", off == 0 && updated == 0 && is_on == 0);
    expect("its new arguments are there", on == 2);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
