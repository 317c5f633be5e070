#!/bin/bash
# cudaGraphExecUpdate from a kernel with clusters of 2 to the same kernel with clusters of 4 says
# Success, and the executable goes on with clusters of 2.
#
# What is done: a kernel that stores its cluster's size is captured with cluster 2, with cluster 4,
# and without a cluster; an executable of one is updated with another, and launched.
# Seen: cudaSuccess and the former cluster, whichever the pair (H100 80GB HBM3, driver 580.159.04, and
# H200, driver 580.159; CUDA 13.0). A kernel that relies on its cluster computes something else, silently.
# What one would expect: the new cluster, or AttributesChanged, as for the cooperative attribute.
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

__global__ void store_cluster(unsigned *x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    unsigned blocks;
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
    if (blockIdx.x == 0) {
        *x = blocks;
    }
#endif
}

static unsigned *x;
static cudaStream_t stream;

static cudaGraph_t record(unsigned cluster) {
    cudaGraph_t graph;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    config.gridDim = dim3(16);
    config.blockDim = dim3(32);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = cluster > 0 ? 1 : 0;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(cudaLaunchKernelEx(&config, store_cluster, x));
    MUST(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static unsigned run(cudaGraphExec_t exec) {
    unsigned value = 99;
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&value, x, 4, cudaMemcpyDeviceToHost));
    return value;
}

static void ask(unsigned former, unsigned next) {
    char what[128];
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info = {};
    MUST(cudaGraphInstantiate(&exec, record(former), 0));
    const unsigned before = run(exec);
    const cudaError_t code = cudaGraphExecUpdate(exec, record(next), &info);
    cudaGetLastError();
    const unsigned after = run(exec);
    printf("cluster %u to %u: %s, result %d; %u, then %u in force\n", former, next, cudaGetErrorName(code),
           (int)info.result, before, after);
    snprintf(what, sizeof what, "an update from clusters of %u to %u succeeds and keeps %u", former, next, former);
    expect(what, code == cudaSuccess && before == former && after == former);
}

int main() {
    int major = 0;
    MUST(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (major < 9) {
        printf("skipped: this GPU has no clusters\n");
        return 77;
    }
    MUST(cudaMalloc(&x, 4));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ask(2, 4);
    ask(4, 2);
    ask(2, 0);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
