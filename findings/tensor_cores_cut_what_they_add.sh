#!/bin/bash
# Tensor cores add f16 products into f32 by cutting bits off: 1 plus 1.75 units of f32 is 1 plus 1 unit, 2^26 + 1 - 2^26 in one instruction
# is 0. The instruction for TF32 cuts its operands, too: 1 + 1.9 half units of TF32 is 1.
#
# What is done: one mma.sync of 16 x 8 x 16 (f16, f32) and one of 16 x 8 x 8 (tf32, f32), with one row of A, one column of B and an
# accumulator chosen so that the exact sum is known; beside it a fused multiply-add in f32, element by element.
# Seen (H200, driver 580.159.04, CUDA 13.0): 1 + 1.5, 1 + 1.75 and -1 - 1.75 units (of 2^-23) end at one unit, where rounding to the nearest
# gives two; sixteen eighths of a unit are lost, sixteen quarters are not; 2^24 + 1 + 1 + 1 is 2^24 + 2; 2^24 + 0.5 - 2^24 is 0.5, with 0.25
# it is 0. So terms are lined up with the largest one, two bits below a unit are kept, the rest is cut, and the sum is cut again. A
# sum in f32 in turn has 1.00000024, 1, 2^24 and 0. tf32 of 1.00093 and a subnormal f32 are 1 and 0.
# What one would expect: the compute type's rounding to the nearest. Cutting moves each sum towards zero, so long sums of numbers of
# one sign are too small in the mean, which no tolerance by a random walk allows for.
# Exit status: 0 the same, 1 something differs, 77 no GPU of compute capability 9.0 or no nvcc here.
# SPDX-License-Identifier: Apache-2.0
set -eu
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || true
if [ ! -x "$nvcc" ] || [ "$capability" != 90 ]; then
    echo "skipped: this needs nvcc and a GPU of compute capability 9.0"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$nvcc" --version | grep release
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1
cat >"$folder/finding.cu" <<'END'
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <vector>

#define MUST(call)                                                                 \
    do {                                                                           \
        cudaError_t code = (call);                                                 \
        if (code != cudaSuccess) {                                                 \
            printf("%s: %s\n", #call, cudaGetErrorName(code));                     \
            exit(code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? 77 : 1); \
        }                                                                          \
    } while (0)

enum { TERMS = 16 };

struct terms {
    float a[TERMS], b[TERMS], c;
};

/* Row 0 of A and column 0 of B hold the terms; thread t of a group of four holds pairs of columns t. */
static __device__ unsigned two_halves(float low, float high) {
    return __half_as_ushort(__float2half(low)) | (unsigned)__half_as_ushort(__float2half(high)) << 16;
}

static __global__ void add_half(terms x, float *sum) {
    const unsigned group = threadIdx.x / 4, t = threadIdx.x % 4 * 2;
    const float is_used = group == 0;
    const unsigned a0 = two_halves(is_used * x.a[t], is_used * x.a[t + 1]), a2 = two_halves(is_used * x.a[t + 8], is_used * x.a[t + 9]);
    const unsigned b0 = two_halves(is_used * x.b[t], is_used * x.b[t + 1]), b1 = two_halves(is_used * x.b[t + 8], is_used * x.b[t + 9]);
    float d0 = x.c, d1 = 0, d2 = 0, d3 = 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(0), "r"(a2), "r"(0), "r"(b0), "r"(b1));
    if (threadIdx.x == 0) {
        *sum = d0;
    }
}

static __global__ void add_tf32(terms x, float *sum) {
    const unsigned t = threadIdx.x % 4;
    const float is_used = threadIdx.x < 4;
    const unsigned a0 = is_used ? __float_as_uint(x.a[t]) : 0, a2 = is_used ? __float_as_uint(x.a[t + 4]) : 0;
    const unsigned b0 = is_used ? __float_as_uint(x.b[t]) : 0, b1 = is_used ? __float_as_uint(x.b[t + 4]) : 0;
    float d0 = x.c, d1 = 0, d2 = 0, d3 = 0;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(0), "r"(a2), "r"(0), "r"(b0), "r"(b1));
    if (threadIdx.x == 0) {
        *sum = d0;
    }
}

static float *device_sum;
static int differences;

static void ask(const char *what, bool is_half, float c, const std::vector<float> &a, const std::vector<float> &b, float expected,
                float expected_in_turn) {
    terms x = {};
    x.c = c;
    float in_turn = c;
    for (size_t i = 0; i < a.size(); ++i) {
        x.a[i] = a[i], x.b[i] = b[i];
        in_turn = fmaf(a[i], b[i], in_turn);
    }
    if (is_half) {
        add_half<<<1, 32>>>(x, device_sum);
    } else {
        add_tf32<<<1, 32>>>(x, device_sum);
    }
    float sum;
    MUST(cudaMemcpy(&sum, device_sum, sizeof sum, cudaMemcpyDeviceToHost));
    const bool is_so = sum == expected && in_turn == expected_in_turn;
    printf("%-10s %-28s tensor core %.9g, f32 in turn %.9g\n", is_so ? "as before" : "DIFFERS", what, sum, in_turn);
    differences += !is_so;
}

int main() {
    MUST(cudaMalloc(&device_sum, sizeof *device_sum));
    const float unit = 1.0f / (1 << 23), part = 1.0f / 2048;
    ask("1 + 1.5 units", true, 1, {1.5f / 4096}, {part}, 1 + unit, 1 + 2 * unit);
    ask("1 + 1.75 units", true, 1, {1.75f / 4096}, {part}, 1 + unit, 1 + 2 * unit);
    ask("-1 - 1.75 units", true, -1, {-1.75f / 4096}, {part}, -1 - unit, -1 - 2 * unit);
    ask("1 + 16 quarters of a unit", true, 1, std::vector<float>(16, 0.25f / 4096), std::vector<float>(16, part), 1 + 4 * unit, 1);
    ask("1 + 16 eighths of a unit", true, 1, std::vector<float>(16, 0.125f / 4096), std::vector<float>(16, part), 1, 1);
    ask("2^24 + 1 + 1 + 1", true, 0, {4096, 1, 1, 1}, {4096, 1, 1, 1}, 16777218, 16777216);
    ask("2^24 + 0.5 - 2^24", true, 0, {4096, 0.5f, -4096}, {4096, 1, 4096}, 0.5f, 0);
    ask("2^24 + 0.25 - 2^24", true, 0, {4096, 0.25f, -4096}, {4096, 1, 4096}, 0, 0);
    ask("2^26 + 1 - 2^26", true, 0, {8192, 1, -8192}, {8192, 1, 8192}, 0, 0);
    const float near_next = 1 + 1.9f / 2048;
    ask("tf32: 1.00093 * 1", false, 0, {near_next}, {1}, 1, near_next);
    const float subnormal = 1e-41f;
    ask("tf32: 1e-41 * 1000", false, 0, {subnormal}, {1000}, 0, subnormal * 1000);
    return differences != 0;
}
END
"$nvcc" -arch=sm_90 -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
