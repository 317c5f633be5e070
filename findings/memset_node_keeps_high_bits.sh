#!/bin/bash
# A memset node does not cut its value to the size of its elements: bits above them reach the memory.
# cudaMemset and captures of cudaMemsetAsync do cut.
#
# What is done: memset nodes of 4 bytes with elementSize 1 and the value 0x1234567c, and with
# elementSize 2 and 0x00030200; the same by cudaGraphExecMemsetNodeSetParams; cudaMemset with 0x1234567c.
# Seen: 7e7e7e7c and 02030200 (H100 and H200, driver 580.159, CUDA 13.0): the value is repeated at each
# element's distance over a word, and the copies are or-ed. cudaMemset: 7c7c7c7c.
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

static unsigned *x;

static cudaMemsetParams describe(unsigned element_bytes, unsigned value) {
    cudaMemsetParams params = {};
    params.dst = x;
    params.elementSize = element_bytes;
    params.value = value;
    params.width = 4 / element_bytes;
    params.height = 1;
    return params;
}

static unsigned run(cudaGraphExec_t exec) {
    unsigned word = 0;
    MUST(cudaGraphLaunch(exec, 0));
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&word, x, 4, cudaMemcpyDeviceToHost));
    return word;
}

static void ask(unsigned element_bytes, unsigned value, unsigned wanted) {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    cudaMemsetParams params = describe(element_bytes, value);
    const cudaMemsetParams zero = describe(element_bytes, 0);
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    const unsigned added = run(exec);
    MUST(cudaGraphExecMemsetNodeSetParams(exec, node, &zero));
    const unsigned cleared = run(exec);
    MUST(cudaGraphExecMemsetNodeSetParams(exec, node, &params));
    const unsigned patched = run(exec);
    printf("element of %u, value %08x: node %08x, zero %08x, patch %08x\n", element_bytes, value, added, cleared,
           patched);
    expect("the node writes what is above its element", added == wanted && cleared == 0);
    expect("so does a patch", patched == wanted);
}

int main() {
    unsigned word = 0;
    MUST(cudaMalloc(&x, 4));
    ask(1, 0x1234567c, 0x7e7e7e7c);
    ask(2, 0x00030200, 0x02030200);
    MUST(cudaMemset(x, 0x1234567c, 4));
    MUST(cudaMemcpy(&word, x, 4, cudaMemcpyDeviceToHost));
    printf("cudaMemset: %08x\n", word);
    expect("cudaMemset cuts", word == 0x7c7c7c7c);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
