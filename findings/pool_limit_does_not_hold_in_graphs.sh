#!/bin/bash
# The limit of a memory pool does not hold in a graph: a captured allocation from the pool comes from the graphs' own memory.
#
# What is done: cudaMallocFromPoolAsync of 256 MB of a pool whose maxSize is 64 MB, plain and captured with a fill and cudaFreeAsync; the
# graph is launched, and the counters of the pool and of graph memory are read.
# Seen (H200, driver 580.159.04, CUDA 13.0): plain it is cudaErrorMemoryAllocation; captured it is a node, and the launch succeeds. The most
# that the pool ever lent is 0; cudaGraphMemAttrReservedMemHigh is 256 MB; the node's parameters have a maxSize of 0. So a share of
# the device that a program gives itself by a pool, and its statistics, do not count what it captures.
# What one would expect: the refusal at the call, or at the launch.
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

static const size_t MEGABYTE = 1 << 20;

static size_t pool_bytes(cudaMemPool_t pool) {
    unsigned long long high = 0;
    MUST(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    return high;
}

int main() {
    cudaMemPoolProps properties = {};
    cudaMemPool_t pool;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *block = nullptr;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.maxSize = 64 * MEGABYTE;
    MUST(cudaMemPoolCreate(&pool, &properties));
    const cudaError_t eager = cudaMallocFromPoolAsync(&block, 256 * MEGABYTE, pool, stream);
    cudaGetLastError();
    printf("256 MB of a pool of 64 MB, not captured: %s\n", cudaGetErrorName(eager));
    expect("without a capture the pool's limit holds", eager == cudaErrorMemoryAllocation);

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    const cudaError_t captured = cudaMallocFromPoolAsync(&block, 256 * MEGABYTE, pool, stream);
    printf("captured: %s\n", cudaGetErrorName(captured));
    if (captured == cudaSuccess) {
        MUST(cudaMemsetAsync(block, 1, 256 * MEGABYTE, stream));
        MUST(cudaFreeAsync(block, stream));
    }
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    const cudaError_t launched = cudaGraphLaunch(exec, stream);
    const cudaError_t done = cudaStreamSynchronize(stream);
    unsigned long long high = 0;
    MUST(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &high));
    printf("launch: %s, wait: %s; most that the pool lent: %zu MB, that graphs took: %llu MB\n", cudaGetErrorName(launched),
           cudaGetErrorName(done), pool_bytes(pool) / MEGABYTE, high / MEGABYTE);
    expect("in a graph it does not", captured == cudaSuccess && launched == cudaSuccess && done == cudaSuccess);
    expect("the pool knows nothing of it", pool_bytes(pool) == 0 && high >= 256 * MEGABYTE);

    cudaGraphNode_t nodes[3];
    size_t count = 3;
    cudaMemAllocNodeParams params;
    memset(&params, 0, sizeof params);
    MUST(cudaGraphGetNodes(graph, nodes, &count));
    MUST(cudaGraphMemAllocNodeGetParams(nodes[0], &params));
    printf("the node says: limit %zu MB, %zu MB asked\n", params.poolProps.maxSize / MEGABYTE, params.bytesize / MEGABYTE);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
