#!/bin/bash
# While CUPTI records kernels, a replayed graph of small kernels takes more than twice as long.
#
# What is done: a graph of 100 small kernels in a row, replayed and waited for, and the same 100 on a stream behind others,
# timed by events on the device; again while activity records (CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) are taken.
# Seen (H200, driver 580.159.04, CUDA 13.0): a replay takes 78 us without records and 178 with them, the row on the stream
# 332 and 408. So a profile says that graphs gain less than they do.
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
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cuda_runtime.h>
#include <cupti.h>

#define MUST(call)                                                                 \
    do {                                                                           \
        cudaError_t code = (call);                                                 \
        if (code != cudaSuccess) {                                                 \
            printf("%s: %s\n", #call, cudaGetErrorName(code));                     \
            exit(code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? 77 : 1); \
        }                                                                          \
    } while (0)

static double now_us() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

template <class F> static double median_us(F &&work) {
    double times[201];
    for (int i = 0; i < 50; ++i) work();
    for (double &t : times) {
        const double begin = now_us();
        work();
        t = now_us() - begin;
    }
    std::sort(times, times + 201);
    return times[100];
}

__global__ void add_one(float *x) { x[threadIdx.x] += 1; }

static void CUPTIAPI give(uint8_t **buffer, size_t *size, size_t *count) {
    *size = 1 << 22;
    *buffer = static_cast<uint8_t *>(aligned_alloc(8, *size));
    *count = 0;
}

static void CUPTIAPI take(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t) { free(buffer); }

static void row(float *x, cudaStream_t s) {
    for (int i = 0; i < 100; ++i) add_one<<<1, 256, 0, s>>>(x);
}

// Of 100 launches behind 400 others, so that the processor is not waited for.
static double stream_us(cudaStream_t s, float *x) {
    cudaEvent_t begin, end;
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    float times[51];
    for (float &t : times) {
        for (int i = 0; i < 4; ++i) row(x, s);
        MUST(cudaEventRecord(begin, s));
        row(x, s);
        MUST(cudaEventRecord(end, s));
        MUST(cudaEventSynchronize(end));
        MUST(cudaEventElapsedTime(&t, begin, end));
        t *= 1000;
    }
    std::sort(times, times + 51);
    return times[25];
}

int main() {
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float *x;
    MUST(cudaStreamCreate(&s));
    MUST(cudaMalloc(&x, 1024));
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    row(x, s);
    MUST(cudaStreamEndCapture(s, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    auto replay = [&] {
        MUST(cudaGraphLaunch(exec, s));
        MUST(cudaStreamSynchronize(s));
    };
    const double replayed = median_us(replay), streamed = stream_us(s, x);
    if (cuptiActivityRegisterCallbacks(give, take) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) {
        puts("skipped: CUPTI takes no records here");
        return 77;
    }
    const double replayed_now = median_us(replay), streamed_now = stream_us(s, x);
    printf("100 kernels, without and with records: a replay %.0f and %.0f us, on a stream %.0f and %.0f us\n", replayed,
           replayed_now, streamed, streamed_now);
    const bool is_as_before = replayed_now > 1.4 * replayed;
    puts(is_as_before ? "as before" : "DIFFERS");
    return !is_as_before;
}
END
"$nvcc" -O2 -arch="sm_$capability" -o "$folder/finding" "$folder/finding.cu" \
    -I"$(dirname "$nvcc")/../extras/CUPTI/include" -L"$(dirname "$nvcc")/../extras/CUPTI/lib64" -lcupti || {
    echo "skipped: no CUPTI beside nvcc"
    exit 77
}
export LD_LIBRARY_PATH="$(dirname "$nvcc")/../extras/CUPTI/lib64:${LD_LIBRARY_PATH:-}"
"$folder/finding"
