#!/bin/bash
# A captured cublasSgemm makes memory nodes: such a graph is no child of another one and has one
# executable at a time. A workspace of one's own helps, until cublasSetStream takes it away again.
#
# What is done: cublasSgemm of 512 x 512 is captured as it is, with cublasSetWorkspace, and after a
# further cublasSetStream of the same stream; each graph is added to another one as a child.
# Seen: a memAlloc and a memFree node, none, and both again; the child is refused with
# cudaErrorNotSupported where there are memory nodes (H100, driver 580.159.04, CUDA 13.0).
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

#include <cublas_v2.h>

enum { N = 512, WORKSPACE = 32 << 20 };

static float *a, *b, *c;
static cudaStream_t stream;
static cublasHandle_t handle;

static void multiply() {
    const float one = 1, zero = 0;
    if (cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, N, b, N, &zero, c, N) !=
        CUBLAS_STATUS_SUCCESS) {
        printf("cublasSgemm failed\n");
        exit(1);
    }
}

static void ask(const char *what, bool has_memory) {
    cudaGraph_t graph, outer;
    cudaGraphExec_t first, second;
    cudaGraphNode_t nodes[64], child;
    size_t count = 64;
    int memory = 0;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    multiply();
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; ++i) {
        cudaGraphNodeType type;
        MUST(cudaGraphNodeGetType(nodes[i], &type));
        memory += type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree;
    }
    MUST(cudaGraphCreate(&outer, 0));
    const cudaError_t added = cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph);
    MUST(cudaGraphInstantiate(&first, graph, 0));
    const cudaError_t again = cudaGraphInstantiate(&second, graph, 0);
    cudaGetLastError();
    printf("%s: %zu nodes, %d of memory; as a child: %s; second executable: %s\n", what, count, memory,
           cudaGetErrorName(added), cudaGetErrorName(again));
    expect(what, has_memory ? memory == 2 && added == cudaErrorNotSupported && again == cudaErrorNotSupported
                            : memory == 0 && added == cudaSuccess && again == cudaSuccess);
}

int main() {
    void *workspace;
    MUST(cudaMalloc(&a, N * N * sizeof(float)));
    MUST(cudaMalloc(&b, N * N * sizeof(float)));
    MUST(cudaMalloc(&c, N * N * sizeof(float)));
    MUST(cudaMalloc(&workspace, WORKSPACE));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
        printf("cublasCreate failed\n");
        return 1;
    }
    printf("cuBLAS %d\n", (int)CUBLAS_VERSION);
    cublasSetStream(handle, stream);
    multiply();
    MUST(cudaStreamSynchronize(stream));
    ask("without a workspace there are memory nodes", true);
    cublasSetWorkspace(handle, workspace, WORKSPACE);
    ask("with one there are none", false);
    cublasSetStream(handle, stream);
    ask("after cublasSetStream they are back", true);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu" -lcublas
"$folder/finding"
