#!/bin/bash
# cudaGraphExecUpdate goes by the order in which nodes were made, and by that of a node's list of
# dependencies: the same graph, built in another order, is "of another type".
#
# What is done: a kernel and a memset without an edge, made in one order and in the other; a kernel
# behind both, its dependencies listed in one order and in the other; then the update of each pair.
# Seen: cudaErrorGraphExecUpdateFailure, NodeTypeChanged, both times (H100, driver 580.159.04, CUDA
# 13.0). Graphs built from hash maps or by several threads fall back to instantiation at random.
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

__global__ void work(int *x) {
    *x = 3;
}

static int *x;

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t *before, size_t count) {
    void *arguments[] = {&x};
    cudaKernelNodeParams params = {};
    params.func = (void *)work;
    params.gridDim = dim3(1);
    params.blockDim = dim3(1);
    params.kernelParams = arguments;
    cudaGraphNode_t node;
    MUST(cudaGraphAddKernelNode(&node, graph, before, count, &params));
    return node;
}

static cudaGraphNode_t add_memset(cudaGraph_t graph) {
    cudaMemsetParams params = {};
    params.dst = x + 64;
    params.elementSize = 4;
    params.width = 1;
    params.height = 1;
    cudaGraphNode_t node;
    MUST(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
    return node;
}

static cudaGraph_t make(bool is_turned, bool is_joined) {
    cudaGraph_t graph;
    cudaGraphNode_t kernel, memset;
    MUST(cudaGraphCreate(&graph, 0));
    if (is_turned && !is_joined) {
        memset = add_memset(graph);
        kernel = add_kernel(graph, nullptr, 0);
    } else {
        kernel = add_kernel(graph, nullptr, 0);
        memset = add_memset(graph);
    }
    if (is_joined) {
        const cudaGraphNode_t before[2] = {is_turned ? memset : kernel, is_turned ? kernel : memset};
        add_kernel(graph, before, 2);
    }
    return graph;
}

static void ask(const char *what, bool is_joined, bool is_turned, cudaGraphExecUpdateResult wanted) {
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info = {};
    MUST(cudaGraphInstantiate(&exec, make(false, is_joined), 0));
    const cudaError_t code = cudaGraphExecUpdate(exec, make(is_turned, is_joined), &info);
    cudaGetLastError();
    printf("%s: %s, result %d\n", what, cudaGetErrorName(code), (int)info.result);
    expect(what, info.result == wanted &&
                     code == (wanted == cudaGraphExecUpdateSuccess ? cudaSuccess
                                                                   : cudaErrorGraphExecUpdateFailure));
}

int main() {
    MUST(cudaMalloc(&x, 1024));
    ask("the same order of nodes succeeds", false, false, cudaGraphExecUpdateSuccess);
    ask("another order of nodes is NodeTypeChanged", false, true, cudaGraphExecUpdateErrorNodeTypeChanged);
    ask("the same order of dependencies succeeds", true, false, cudaGraphExecUpdateSuccess);
    ask("another order of dependencies is NodeTypeChanged", true, true, cudaGraphExecUpdateErrorNodeTypeChanged);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
