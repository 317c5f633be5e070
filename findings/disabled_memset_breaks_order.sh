#!/bin/bash
# A memset node that is switched off keeps no order: what stands behind it does not wait for what
# stands before it, and neither does whoever waits for the stream or the device: the launch counts
# as done while its first kernel runs. A kernel node that is switched off does keep the order.
#
# What is done: a graph of a slow kernel (x = 2x + 1), a memset elsewhere, a kernel (x = 3x), in a
# row; the memset is switched off by cudaGraphNodeSetEnabled; x = 1; launch.
# Seen: 7 instead of 9 in some launches, or all: the last kernel ran first (H100, driver
# 580.159.04, CUDA 13.0). With a kernel in the memset's place: 9 always.
# What one would expect: "disabled nodes are functionally equivalent to empty nodes" (the page on
# cudaGraphNodeSetEnabled), and empty nodes keep the order.
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
#include <cstring>
#include <cuda_runtime.h>
#include <unistd.h>

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

__global__ void slow(int *x) {
    for (long long start = clock64(); clock64() - start < 20000000;) {
    }
    *x = *x * 2 + 1;
}

__global__ void triple(int *x) {
    *x = *x * 3;
}

__global__ void idle(int *x) {
    *x = 3;
}

// How many of ten launches ran out of order.
static int count_lost(bool is_memset) {
    int *x, lost = 0;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaMalloc(&x, 1024));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    slow<<<1, 1, 0, stream>>>(x);
    if (is_memset) {
        MUST(cudaMemsetAsync(x + 64, 0, 4, stream));
    } else {
        idle<<<1, 1, 0, stream>>>(x + 64);
    }
    triple<<<1, 1, 0, stream>>>(x);
    MUST(cudaStreamEndCapture(stream, &graph));
    cudaGraphNode_t nodes[3];
    size_t count = 3;
    MUST(cudaGraphGetNodes(graph, nodes, &count));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphNodeSetEnabled(exec, nodes[1], 0));
    for (int i = 0; i < 10; ++i) {
        int value = 1;
        MUST(cudaMemcpy(x, &value, 4, cudaMemcpyHostToDevice));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaMemcpy(&value, x, 4, cudaMemcpyDeviceToHost));
        lost += value != 9;
    }
    return lost;
}

// What is read behind a launch and cudaDeviceSynchronize, and again behind a wait of the host.
static void read_twice(int *first, int *second) {
    int *x, value = 1;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t nodes[3];
    size_t count = 3;
    MUST(cudaMalloc(&x, 1024));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    slow<<<1, 1, 0, stream>>>(x);
    MUST(cudaMemsetAsync(x + 64, 0, 4, stream));
    triple<<<1, 1, 0, stream>>>(x);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphGetNodes(graph, nodes, &count));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphNodeSetEnabled(exec, nodes[1], 0));
    MUST(cudaMemcpy(x, &value, 4, cudaMemcpyHostToDevice));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(first, x, 4, cudaMemcpyDeviceToHost));
    sleep(1);
    MUST(cudaMemcpy(second, x, 4, cudaMemcpyDeviceToHost));
}

int main() {
    const int memset_lost = count_lost(true);
    const int kernel_lost = count_lost(false);
    printf("out of order: %d of 10 behind a memset, %d of 10 behind a kernel\n", memset_lost, kernel_lost);
    expect("behind a memset that is off the order is lost", memset_lost > 0);
    expect("behind a kernel that is off the order is kept", kernel_lost == 0);
    int first = 0, second = 0;
    read_twice(&first, &second);
    printf("behind cudaDeviceSynchronize: %d, a second later: %d\n", first, second);
    expect("nobody waits for the kernel before it", first == 3 && second == 7);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
