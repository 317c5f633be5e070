#!/bin/bash
# Some calls fail in a capture and leave it alive: its end succeeds, and the work is missing in every
# launch. Who looks at the end of the capture only never learns of it.
#
# What is done, each in a capture of its own: cudaFreeAsync of memory from before the capture;
# cudaEventElapsedTime of two events of the capture; cudaMemcpyBatchAsync (CUDA 12.8 and later).
# Seen: cudaErrorInvalidValue, cudaErrorCapturedEvent, cudaErrorStreamCaptureUnsupported; the captures
# go on and end with success, without a node for the call (H100, driver 580.159.04, CUDA 13.0).
# What one would expect: as with most calls, a capture that is invalidated.
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

static cudaStream_t stream;

static void judge(const char *what, cudaError_t code, cudaError_t wanted) {
    cudaStreamCaptureStatus status;
    cudaGraph_t graph = nullptr;
    size_t count = 99;
    MUST(cudaStreamIsCapturing(stream, &status));
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (ended == cudaSuccess) {
        MUST(cudaGraphGetNodes(graph, nullptr, &count));
    }
    cudaGetLastError();
    printf("%s: %s; end: %s, %zu nodes\n", what, cudaGetErrorName(code), cudaGetErrorName(ended), count);
    expect("the call fails in the known way", code == wanted);
    expect("the capture goes on, and ends without it",
           status == cudaStreamCaptureStatusActive && ended == cudaSuccess && count == 0);
}

int main() {
    char *block, *device;
    static char host[256];
    cudaEvent_t first, second;
    float milliseconds;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaEventCreate(&first));
    MUST(cudaEventCreate(&second));
    MUST(cudaMalloc(&device, 1024));
    MUST(cudaMallocAsync(&block, 4096, stream));
    MUST(cudaStreamSynchronize(stream));

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    judge("cudaFreeAsync of an earlier block", cudaFreeAsync(block, stream), cudaErrorInvalidValue);
    MUST(cudaFreeAsync(block, stream));

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(cudaEventRecord(first, stream));
    MUST(cudaEventRecord(second, stream));
    judge("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, first, second), cudaErrorCapturedEvent);

#if CUDART_VERSION >= 12080
    void *destinations[] = {device, device + 512};
    void *sources[] = {device + 256, device + 768};
    size_t sizes[] = {64, 64}, index = 0, failed = 0;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
#if CUDART_VERSION >= 13000
    const cudaError_t code =
        cudaMemcpyBatchAsync(destinations, (const void **)sources, sizes, 2, &attributes, &index, 1, stream);
#else
    const cudaError_t code =
        cudaMemcpyBatchAsync(destinations, sources, sizes, 2, &attributes, &index, 1, &failed, stream);
#endif
    judge("cudaMemcpyBatchAsync", code, cudaErrorStreamCaptureUnsupported);
#endif
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
