#!/bin/bash
# A graph that is launched into a stream of a green context runs on the multiprocessors of the context in which it was captured: a plain
# one takes the whole device, and one that was captured in a green context stays in it, wherever it is launched.
#
# What is done: a green context with 16 multiprocessors or so; a kernel of 1024 blocks that notes the multiprocessor of each; plainly in a
# stream of the device's own and in one of the green context; captured in the one, and launched in the other, both ways.
# Seen (H200, driver 580.159.04, CUDA 13.0): in the plain stream the blocks are on all 132 multiprocessors, in the green one on 16. The
# plain graph in the green stream: 132. The green graph in the plain stream: 16. Nothing is said; in the green context the attribute
# "multiprocessor count" is 132, too.
# What one would expect: the stream's share, as it is for a kernel that is launched into it: a partition of the device that keeps two
# programs apart does not hold for a graph that was captured elsewhere.
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
#include <cuda.h>
#include <cuda_runtime.h>
#include <set>
#include <vector>

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

static const int blocks = 1024;

__global__ void note(unsigned *place) {
    unsigned mine;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(mine));
    for (long long start = clock64(); clock64() - start < 40000;) {
    }
    if (threadIdx.x == 0) {
        place[blockIdx.x] = mine;
    }
}

static void must(CUresult code, const char *what) {
    if (code != CUDA_SUCCESS) {
        const char *name = "?";
        cuGetErrorName(code, &name);
        printf("%s: %s\n", what, name);
        exit(1);
    }
}

// How many multiprocessors the work took.
static size_t count(unsigned *place, cudaStream_t stream) {
    std::vector<unsigned> seen(blocks);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(seen.data(), place, blocks * sizeof(unsigned), cudaMemcpyDeviceToHost));
    return std::set<unsigned>(seen.begin(), seen.end()).size();
}

static cudaGraphExec_t capture(cudaStream_t stream, unsigned *place) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    note<<<blocks, 1024, 0, stream>>>(place);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

int main() {
    unsigned *place, groups = 1;
    CUdevResource all, part, rest;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUstream narrow;
    cudaStream_t wide;
    MUST(cudaMalloc(&place, blocks * sizeof(unsigned)));
    MUST(cudaStreamCreateWithFlags(&wide, cudaStreamNonBlocking));
    must(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
    must(cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 16), "cuDevSmResourceSplitByCount");
    must(cuDevResourceGenerateDesc(&description, &part, 1), "cuDevResourceGenerateDesc");
    must(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
    must(cuGreenCtxStreamCreate(&narrow, green, CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
    const size_t whole = all.sm.smCount, share = part.sm.smCount;
    note<<<blocks, 1024, 0, wide>>>(place);
    const size_t plain = count(place, wide);
    note<<<blocks, 1024, 0, narrow>>>(place);
    const size_t in_green = count(place, narrow);
    MUST(cudaGraphLaunch(capture(wide, place), narrow));
    const size_t plain_in_green = count(place, narrow);
    MUST(cudaGraphLaunch(capture(narrow, place), wide));
    const size_t green_in_plain = count(place, wide);
    printf("multiprocessors: %zu of the device, %zu of the green context; kernel in the plain stream %zu, in the green one %zu;\n"
           "plain graph in the green stream %zu, green graph in the plain stream %zu\n",
           whole, share, plain, in_green, plain_in_green, green_in_plain);
    expect("kernels take what their stream has", plain == whole && in_green == share && share < whole);
    expect("a plain graph in the green stream takes the whole device", plain_in_green == whole);
    expect("a green graph in the plain stream takes its share", green_in_plain == share);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -lcuda -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
