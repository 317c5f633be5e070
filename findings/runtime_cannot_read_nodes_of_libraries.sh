#!/bin/bash
# The runtime's own calls cannot read a captured kernel of cuBLAS, nor name the type of a captured cuStreamWriteValue32; the driver's can.
#
# What is done: a kernel of the program, a cublasSgemm (with a workspace of one's own) and cuStreamWriteValue32 are captured; the first
# node of each is asked for by cudaGraphKernelNodeGetParams or cudaGraphNodeGetType, and by the driver's calls.
# Seen (H200, driver 580.159.04, CUDA 13.0): cuBLAS's kernel is cudaErrorInvalidDeviceFunction, which cudaGetLastError then returns, too, and
# success by cuGraphKernelNodeGetParams; the written word's type is cudaErrorUnknown, and 12 (batch memory operation) by the driver.
# So a tool that walks through graphs by the runtime fails at the first kernel that is not the program's.
# What one would expect: one graph, the same answers.
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
#include <cublas_v2.h>
#include <cuda.h>
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

#define DO(call)                                              \
    do {                                                      \
        const int status = (int)(call);                       \
        if (status != 0) {                                    \
            printf("%s: status %d\n", #call, status);         \
            exit(1);                                          \
        }                                                     \
    } while (0)

__global__ void store(float *x) {
    *x = 1;
}

static cudaGraphNode_t first_node(cudaGraph_t graph) {
    cudaGraphNode_t nodes[8];
    size_t count = 8;
    MUST(cudaGraphGetNodes(graph, nodes, &count));
    return nodes[0];
}

// The parameters of a graph's first node by the runtime's call and by the driver's.
static cudaError_t read_both(const char *name, cudaGraph_t graph) {
    const cudaGraphNode_t node = first_node(graph);
    cudaKernelNodeParams params;
    CUDA_KERNEL_NODE_PARAMS driver;
    const cudaError_t code = cudaGraphKernelNodeGetParams(node, &params);
    const cudaError_t last = cudaGetLastError();
    const CUresult result = cuGraphKernelNodeGetParams(node, &driver);
    printf("%s: runtime %s, cudaGetLastError %s; driver %d, %u threads\n", name, cudaGetErrorName(code), cudaGetErrorName(last),
           (int)result, result == CUDA_SUCCESS ? driver.blockDimX : 0);
    if (result != CUDA_SUCCESS) {
        differences += 1;
    }
    return code;
}

int main() {
    float *x;
    void *workspace;
    cudaStream_t stream;
    cublasHandle_t handle;
    cudaGraph_t own, library, word;
    const float one = 1, zero = 0;
    const size_t bytes = 64 << 20;
    MUST(cudaMalloc(&x, 3 * 512 * 512 * 4));
    MUST(cudaMalloc(&workspace, bytes));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DO(cublasCreate(&handle));
    DO(cublasSetStream(handle, stream));
    DO(cublasSetWorkspace(handle, workspace, bytes));

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    store<<<1, 1, 0, stream>>>(x);
    MUST(cudaStreamEndCapture(stream, &own));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    DO(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 512, 512, 512, &one, x, 512, x + 512 * 512, 512, &zero, x + 2 * 512 * 512, 512));
    MUST(cudaStreamEndCapture(stream, &library));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    DO(cuStreamWriteValue32(stream, (CUdeviceptr)x, 7, 0));
    MUST(cudaStreamEndCapture(stream, &word));

    expect("a kernel of the program is read by both", read_both("own kernel", own) == cudaSuccess);
    expect("one of cuBLAS by the driver only", read_both("cuBLAS", library) == cudaErrorInvalidDeviceFunction);
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    CUgraphNodeType driver_type = CU_GRAPH_NODE_TYPE_EMPTY;
    const cudaError_t code = cudaGraphNodeGetType(first_node(word), &type);
    cudaGetLastError();
    DO(cuGraphNodeGetType(first_node(word), &driver_type));
    printf("a written word: the runtime's type %s, the driver's %d\n", cudaGetErrorName(code), (int)driver_type);
    expect("a written word has no type in the runtime", code == cudaErrorUnknown && driver_type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu" -lcublas -lcuda
"$folder/finding"
