#!/bin/bash
# A NaN is 0 as an int on a GPU and the least number as a long long; from a double it is the least number as an int as well. 300 as a byte
# is 44 from a float, and 127 from a half.
#
# What is done: NaN, infinity, 3e9, 300 and -1 as float, double and __half, converted to signed char, unsigned char, int, unsigned and
# long long by casts in a kernel (nvcc, no flags), of values that the compiler does not know.
# Seen (H200, driver 580.159.04, CUDA 13.0): NaN is 0 in all types up to 32 bits from a float and a half; from a double it is -2147483648
# as an int, 2147483648 as an unsigned, and 0 in a byte; as a long long it is the least number from all three. Numbers beyond a type stop
# at its ends for 32 and 64 bits; bytes are cut out of an int, so that 300 is 44 and infinity -1, but from a half they stop at 127, 255
# and -128. -1 as an unsigned char is 0. On an x86-64 NaN and all that does not fit are the least number. PyTorch on a GPU (2.11.0) has
# the first rule: an index that was a NaN in f32 is 0 as int32 and the least number as int64.
# What one would expect: one answer for NaN. PTX defines it for cvt by the widths of the types; C++ leaves it open, and two kernels that
# differ in a type take the row 0 or one far outside for the same missing number.
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
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_fp16.h>
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

struct Whole {
    signed char i8;
    unsigned char u8;
    int i32;
    unsigned u32;
    long long i64;
};

template <typename Real>
__global__ void convert(const Real *x, Whole *y) {
    const Real value = x[threadIdx.x];
    y[threadIdx.x] = {(signed char)value, (unsigned char)value, (int)value, (unsigned)value, (long long)value};
}

static const int count = 5;
static const float values[count] = {NAN, INFINITY, 3e9f, 300, -1};

template <typename Real>
static void run(const char *name, Whole *results) {
    Real host[count], *x;
    Whole *y;
    for (int i = 0; i < count; ++i) {
        host[i] = (Real)values[i];
    }
    MUST(cudaMalloc(&x, sizeof host));
    MUST(cudaMalloc(&y, count * sizeof(Whole)));
    MUST(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    convert<<<1, count>>>(x, y);
    MUST(cudaMemcpy(results, y, count * sizeof(Whole), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i) {
        const Whole &w = results[i];
        printf("%s %g: i8 %d u8 %d i32 %d u32 %u i64 %lld\n", name, values[i], w.i8, w.u8, w.i32, w.u32, w.i64);
    }
}

static bool is(const Whole &w, int i8, int u8, int i32, unsigned u32, long long i64) {
    return w.i8 == i8 && w.u8 == u8 && w.i32 == i32 && w.u32 == u32 && w.i64 == i64;
}

int main() {
    Whole f[count], d[count], h[count];
    run<float>("f32", f);
    run<double>("f64", d);
    run<__half>("f16", h);
    expect("NaN of f32 and f16 is 0, as i64 the least number", is(f[0], 0, 0, 0, 0, LLONG_MIN) && is(h[0], 0, 0, 0, 0, LLONG_MIN));
    expect("NaN of f64 is the least number as i32, too", is(d[0], 0, 0, INT_MIN, 2147483648u, LLONG_MIN));
    expect("infinity stops at 32 bits, and a byte of it is -1; from f16 127",
           is(f[1], -1, 255, INT_MAX, UINT_MAX, LLONG_MAX) && is(h[1], 127, 255, INT_MAX, UINT_MAX, LLONG_MAX));
    expect("300 is 44 as a byte, from f16 127", f[3].i8 == 44 && d[3].i8 == 44 && h[3].i8 == 127 && h[3].u8 == 255);
    expect("3e9 stops as i32, -1 as unsigned", f[2].i32 == INT_MAX && f[4].u8 == 0 && f[4].u32 == 0 && d[4].u32 == 0);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
