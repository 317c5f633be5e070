#!/bin/bash
# cudaMemcpyPeerAsync from a device to itself breaks a capture, also a relaxed one; outside of captures it copies.
#
# What is done: cudaMemcpyAsync, cudaMemcpyPeerAsync and cudaMemcpy3DPeerAsync from device 0 to device 0, plain and in a relaxed capture.
# Seen (H100 and H200, driver 580.159.04, CUDA 13.0): all three copy; captured, the first is a node, the others are
# cudaErrorStreamCaptureUnsupported, and the capture is lost. So code for several GPUs that is captured fails where it has one.
# What one would expect: a memcpy node, as for the plain copy of the same bytes.
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

typedef cudaError_t (*copy_call)(void *to, const void *from, cudaStream_t stream);

static cudaError_t copy_plain(void *to, const void *from, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, 4, cudaMemcpyDeviceToDevice, stream);
}

static cudaError_t copy_peer(void *to, const void *from, cudaStream_t stream) {
    return cudaMemcpyPeerAsync(to, 0, from, 0, 4, stream);
}

static cudaError_t copy_peer_3d(void *to, const void *from, cudaStream_t stream) {
    cudaMemcpy3DPeerParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr((void *)from, 4, 4, 1);
    copy.dstPtr = make_cudaPitchedPtr(to, 4, 4, 1);
    copy.extent = make_cudaExtent(4, 1, 1);
    return cudaMemcpy3DPeerAsync(&copy, stream);
}

// What the call says outside of a capture, in one, and what becomes of that capture.
static void ask(const char *name, copy_call copy, cudaStream_t stream, int *words, cudaError_t said[3]) {
    const int value = 7;
    int seen = 0;
    cudaGraph_t graph = nullptr;
    cudaStreamCaptureStatus status;
    MUST(cudaMemcpy(words, &value, 4, cudaMemcpyHostToDevice));
    said[0] = copy(words + 64, words, stream);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&seen, words + 64, 4, cudaMemcpyDeviceToHost));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    said[1] = copy(words + 64, words, stream);
    MUST(cudaStreamIsCapturing(stream, &status));
    said[2] = cudaStreamEndCapture(stream, &graph);
    printf("%s: eager %s, copied %d; captured %s, status %d; end %s\n", name, cudaGetErrorName(said[0]), seen, cudaGetErrorName(said[1]),
           (int)status, cudaGetErrorName(said[2]));
    cudaGetLastError();
}

int main() {
    cudaStream_t stream;
    int *words;
    cudaError_t plain[3], peer[3], volume[3];
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&words, 1024));
    ask("cudaMemcpyAsync", copy_plain, stream, words, plain);
    ask("cudaMemcpyPeerAsync", copy_peer, stream, words, peer);
    ask("cudaMemcpy3DPeerAsync", copy_peer_3d, stream, words, volume);
    expect("outside of a capture all three copy", plain[0] == cudaSuccess && peer[0] == cudaSuccess && volume[0] == cudaSuccess);
    expect("a plain copy can be captured", plain[1] == cudaSuccess && plain[2] == cudaSuccess);
    expect("a peer copy of one device breaks a relaxed capture", peer[1] != cudaSuccess && peer[2] == cudaErrorStreamCaptureInvalidated);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
