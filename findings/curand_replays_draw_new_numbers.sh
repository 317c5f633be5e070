#!/bin/bash
# A captured draw of cuRAND makes new numbers at each replay, for XORWOW, MRG32k3a and Philox; that of Sobol32 repeats its own. From
# the second replay on they are not those that the same seed gives without a graph.
#
# What is done: a generator of each kind draws 1024 numbers, then once in a capture, which is replayed three times; a second generator of
# the same seed draws four times without a graph.
# Seen (H200, driver 580.159.04, CUDA 13.0, cuRAND 10.4.0): no two replays are alike but those of Sobol32, though nothing in the graph was
# changed; the first replay has the numbers of the plain generator's second draw, the next ones have others than its third and fourth.
# A draw behind the replays is new. So a replayed dropout by cuRAND is none that repeats, and no run without graphs repeats it.
# What one would expect: the same numbers each time, as of kernels whose seed and offset are arguments, or the plain sequence.
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
#include <curand.h>

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

#define DRAW(call)                                                \
    do {                                                          \
        curandStatus_t status = (call);                           \
        if (status != CURAND_STATUS_SUCCESS) {                    \
            printf("%s: status %d\n", #call, (int)status);        \
            exit(1);                                              \
        }                                                         \
    } while (0)

enum { NUMBERS = 1024, BATCHES = 4 };

static float lists[2][BATCHES][NUMBERS];

static curandGenerator_t make(curandRngType_t type, cudaStream_t stream) {
    curandGenerator_t generator;
    DRAW(curandCreateGenerator(&generator, type));
    if (type < CURAND_RNG_QUASI_DEFAULT) {
        DRAW(curandSetPseudoRandomGeneratorSeed(generator, 1));
    }
    DRAW(curandSetStream(generator, stream));
    return generator;
}

static void read(float *list, const float *x, cudaStream_t stream) {
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(list, x, NUMBERS * 4, cudaMemcpyDeviceToHost));
}

static bool equal(const float *a, const float *b) {
    return memcmp(a, b, NUMBERS * 4) == 0;
}

// Is a second replay of a captured draw equal to the first one?
static bool repeats(const char *name, curandRngType_t type) {
    float *x;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaMalloc(&x, NUMBERS * 4));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    curandGenerator_t plain = make(type, stream);
    for (int i = 0; i < BATCHES; ++i) {
        DRAW(curandGenerateUniform(plain, x, NUMBERS));
        read(lists[0][i], x, stream);
    }
    curandGenerator_t generator = make(type, stream);
    DRAW(curandGenerateUniform(generator, x, NUMBERS));
    read(lists[1][0], x, stream);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    DRAW(curandGenerateUniform(generator, x, NUMBERS));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 1; i < BATCHES; ++i) {
        MUST(cudaGraphLaunch(exec, stream));
        read(lists[1][i], x, stream);
    }
    const bool is_repeated = equal(lists[1][1], lists[1][2]) && equal(lists[1][2], lists[1][3]);
    printf("%-8s replays %s; without a graph batch", name, is_repeated ? "repeat" : "differ");
    for (int i = 0; i < BATCHES; ++i) {
        printf(" %d %s", i, equal(lists[0][i], lists[1][i]) ? "the same" : "another");
    }
    DRAW(curandGenerateUniform(generator, x, NUMBERS));
    static float last[NUMBERS];
    read(last, x, stream);
    int at = -1;
    for (int i = 0; i < BATCHES; ++i) {
        at = equal(last, lists[1][i]) ? i : at;
    }
    printf("; an eager draw behind the replays is that of replay %d (-1: new)\n", at);
    return is_repeated;
}

int main() {
    int version = 0;
    DRAW(curandGetVersion(&version));
    printf("cuRAND %d\n", version);
    expect("XORWOW draws new numbers in each replay", !repeats("XORWOW", CURAND_RNG_PSEUDO_XORWOW));
    expect("MRG32k3a does", !repeats("MRG32k3a", CURAND_RNG_PSEUDO_MRG32K3A));
    expect("Philox does", !repeats("Philox", CURAND_RNG_PSEUDO_PHILOX4_32_10));
    expect("Sobol32 repeats its numbers", repeats("Sobol32", CURAND_RNG_QUASI_SOBOL32));
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu" -lcurand
"$folder/finding"
