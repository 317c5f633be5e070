#!/bin/bash
# A kernel node that was captured on a stream of a green context cannot be patched, not even with what
# was read from it.
#
# What is done: half of the multiprocessors become a green context; a kernel is captured on its stream,
# the graph instantiated and launched; cuGraphExecKernelNodeSetParams with the node's own parameters.
# The same on a stream of the primary context.
# Seen: CUDA_ERROR_INVALID_VALUE on the green context's node, success on the other (H100, driver
# 580.159.04, CUDA 13.0). Programs that divide a GPU instantiate anew for each change.
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

#include <cuda.h>

#define MUST_CU(call)                           \
    do {                                        \
        CUresult code = (call);                 \
        if (code != CUDA_SUCCESS) {             \
            printf("%s: %d\n", #call, (int)code); \
            exit(1);                            \
        }                                       \
    } while (0)

__global__ void work(int *x) {
    *x = 3;
}

static int *x;

// What the patch says; the graph is launched before and after.
static CUresult patch(cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    size_t count = 1;
    CUDA_KERNEL_NODE_PARAMS params;
    memset(&params, 0, sizeof params);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    work<<<1, 1, 0, stream>>>(x);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphGetNodes(graph, &node, &count));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST_CU(cuGraphKernelNodeGetParams(node, &params));
    const CUresult code = cuGraphExecKernelNodeSetParams(exec, node, &params);
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    return code;
}

int main() {
    CUdevice device;
    CUdevResource all, half, rest;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUstream green_stream;
    cudaStream_t stream;
    unsigned groups = 1;
    MUST(cudaMalloc(&x, 4));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST_CU(cuDeviceGet(&device, 0));
    MUST_CU(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    MUST_CU(cuDevSmResourceSplitByCount(&half, &groups, &all, &rest, 0, all.sm.smCount / 2));
    MUST_CU(cuDevResourceGenerateDesc(&description, &half, 1));
    MUST_CU(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST_CU(cuGreenCtxStreamCreate(&green_stream, green, CU_STREAM_NON_BLOCKING, 0));
    const CUresult on_green = patch((cudaStream_t)green_stream);
    const CUresult on_primary = patch(stream);
    printf("%u of %u multiprocessors; patch of the green context's node: %d; of the primary's: %d\n",
           half.sm.smCount, all.sm.smCount, (int)on_green, (int)on_primary);
    expect("the green context's node cannot be patched", on_green == CUDA_ERROR_INVALID_VALUE);
    expect("the primary context's node can", on_primary == CUDA_SUCCESS);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu" -lcuda -L"$(dirname "$nvcc")/../lib64/stubs"
"$folder/finding"
