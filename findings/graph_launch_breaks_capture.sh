#!/bin/bash
# cudaGraphLaunch into a stream that is being captured makes no child graph: it fails, and the capture
# is lost.
#
# What is done: a stream is captured, and another graph launched into it.
# Seen: cudaErrorStreamCaptureUnsupported, the capture is invalidated, its end says so (H100, driver
# 580.159.04, CUDA 13.0).
# What one would expect: a child graph node, as a launch is work on a stream like any other.
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

int main() {
    int *x;
    cudaStream_t stream;
    cudaGraph_t inner, outer = nullptr;
    cudaGraphExec_t exec;
    cudaStreamCaptureStatus status;
    MUST(cudaMalloc(&x, 4));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    work<<<1, 1, 0, stream>>>(x);
    MUST(cudaStreamEndCapture(stream, &inner));
    MUST(cudaGraphInstantiate(&exec, inner, 0));

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    const cudaError_t launched = cudaGraphLaunch(exec, stream);
    MUST(cudaStreamIsCapturing(stream, &status));
    const cudaError_t ended = cudaStreamEndCapture(stream, &outer);
    printf("launch: %s; end: %s\n", cudaGetErrorName(launched), cudaGetErrorName(ended));
    expect("the launch is refused", launched == cudaErrorStreamCaptureUnsupported);
    expect("the capture is invalidated", status == cudaStreamCaptureStatusInvalidated);
    expect("its end yields no graph", ended == cudaErrorStreamCaptureInvalidated && outer == nullptr);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
