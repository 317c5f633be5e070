#!/bin/bash
# A function of a literal is another number than the same function of the same value at run time: nvcc computes it while it compiles, by
# another formula than the device.
#
# What is done: __sinf, __expf, __logf, sinf, expf, logf, powf, tanhf and rsqrtf of sixteen literals in a kernel, and of the same sixteen
# numbers handed over as an argument; both beside the double's result rounded to float. No fast-math option is given. sinf of
# literals, too, where it stands in a function of the program.
# Seen (H200, driver 580.159.04, CUDA 13.0.88): of sixteen differ __sinf 11, __expf 9, __logf 8, expf 6, tanhf 3, rsqrtf 3 and logf 1; sinf
# and powf none. __sinf of literals is exact, that of values off by up to 33 units; __logf by 1 and by 9, expf, logf, tanhf and
# rsqrtf by 0 and by 1, __expf by 12 both ways. So a kernel into which a number was compiled (a template, a runtime compiler
# with scales as constants) does not agree bit for bit with one that takes it as an argument, and a test with literals does
# not show the errors of the fast functions.
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
#include <cmath>
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

// Sixteen numbers, once as literals in the source and once as values that only the launch knows.
#define NUMBERS(of)                                                                                                     \
    of(0, 0.3f) of(1, 0.7f) of(2, 1.1f) of(3, 1.7f) of(4, 1.9f) of(5, 2.3f) of(6, 2.9f) of(7, 3.7f)                      \
    of(8, 4.3f) of(9, 5.3f) of(10, 6.1f) of(11, 7.9f) of(12, 9.7f) of(13, 11.3f) of(14, 13.9f) of(15, 17.3f)

enum { COUNT = 16 };

struct list {
    float x[COUNT];
};

#define KERNEL(name, function)                                                          \
    __global__ void of_literals_##name(float *result) { NUMBERS(STORE_##name) }         \
    __global__ void of_values_##name(float *result, list numbers) {                     \
        result[threadIdx.x] = function(numbers.x[threadIdx.x]);                         \
    }
#define STORE_fast_sin(i, x) result[i] = __sinf(x);
#define STORE_fast_exp(i, x) result[i] = __expf(x);
#define STORE_fast_log(i, x) result[i] = __logf(x);
#define STORE_sin(i, x) result[i] = sinf(x);
#define STORE_exp(i, x) result[i] = expf(x);
#define STORE_log(i, x) result[i] = logf(x);
#define STORE_power(i, x) result[i] = power(x);
#define STORE_tanh(i, x) result[i] = tanhf(x);
#define STORE_rsqrt(i, x) result[i] = rsqrtf(x);
#define STORE_wrapped(i, x) result[i] = wrapped(x);
#define power(x) powf(x, 2.7f)

__device__ float wrapped(float x) {
    return sinf(x);
}

KERNEL(fast_sin, __sinf)
KERNEL(fast_exp, __expf)
KERNEL(fast_log, __logf)
KERNEL(sin, sinf)
KERNEL(exp, expf)
KERNEL(log, logf)
KERNEL(power, power)
KERNEL(tanh, tanhf)
KERNEL(rsqrt, rsqrtf)
KERNEL(wrapped, wrapped)

static int units(float a, float b) {
    int x, y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    return abs(x - y);
}

static double raise(double x) {
    return pow(x, (double)2.7f);
}

static double inverse_root(double x) {
    return 1 / sqrt(x);
}

// How many results of the literals differ from those of the values; the exact function tells whose error is whose.
static int compare(const char *name, void (*of_literals)(float *), void (*of_values)(float *, list), double (*exact)(double)) {
    static const list numbers = {{
#define VALUE(i, x) x,
        NUMBERS(VALUE)}};
    float *x, a[COUNT], b[COUNT];
    MUST(cudaMalloc(&x, 2 * sizeof a));
    of_literals<<<1, 1>>>(x);
    of_values<<<1, COUNT>>>(x + COUNT, numbers);
    MUST(cudaMemcpy(a, x, sizeof a, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(b, x + COUNT, sizeof b, cudaMemcpyDeviceToHost));
    int different = 0, worst_literal = 0, worst_value = 0;
    for (int i = 0; i < COUNT; ++i) {
        const float best = (float)exact(numbers.x[i]);
        different += a[i] != b[i];
        worst_literal = std::max(worst_literal, units(a[i], best));
        worst_value = std::max(worst_value, units(b[i], best));
    }
    printf("%-14s %2d of %d differ; off by at most %d units for literals, %d for values\n", name, different, COUNT, worst_literal,
           worst_value);
    return different;
}

int main() {
    const int fast_sine = compare("__sinf", of_literals_fast_sin, of_values_fast_sin, sin);
    const int fast_exponential = compare("__expf", of_literals_fast_exp, of_values_fast_exp, exp);
    const int fast_logarithm = compare("__logf", of_literals_fast_log, of_values_fast_log, log);
    const int sine = compare("sinf", of_literals_sin, of_values_sin, sin);
    const int exponential = compare("expf", of_literals_exp, of_values_exp, exp);
    const int logarithm = compare("logf", of_literals_log, of_values_log, log);
    const int power = compare("powf(x, 2.7f)", of_literals_power, of_values_power, raise);
    const int tangent = compare("tanhf", of_literals_tanh, of_values_tanh, tanh);
    const int root = compare("rsqrtf", of_literals_rsqrt, of_values_rsqrt, inverse_root);
    const int within = compare("wrapped sinf", of_literals_wrapped, of_values_wrapped, sin);
    expect("fast functions of literals are other numbers", fast_sine > 4 && fast_exponential > 4 && fast_logarithm > 4);
    expect("so are expf, logf, tanhf and rsqrtf of some", exponential > 0 && logarithm > 0 && tangent > 0 && root > 0);
    expect("sinf and powf of these are the same", sine == 0 && power == 0 && within == 0);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
