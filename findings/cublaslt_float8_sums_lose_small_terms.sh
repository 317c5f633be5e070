#!/bin/bash
# A product of float8 matrices by cuBLASLt loses terms of a 16384th of the largest one, though its compute type is f32: 128 * 128 and
# thirty-one ones add up to 16384, and 256 * 256 + 30 - 256 * 256 is 0. The same numbers as f16 give 16415 and 30.
#
# What is done: cublasLtMatmul (CUBLAS_COMPUTE_32F, output f32) of 64 x k by k x 64 for k from 32 to 4096, all rows of A and columns of B
# alike, of numbers that e4m3 and f16 hold exactly: ones, but for one 128, or a first 256 and a last -256 against 256; as f16, as e4m3,
# and as e4m3 with CUBLASLT_MATMUL_DESC_FAST_ACCUM, which is off by default.
# Seen (H200, driver 580.159.04, CUDA 13.0, cuBLAS 13.1.0): f16 is exact. e4m3 gives 16384 up to k = 128, and from there on the ones of
# the first 128 terms stay lost: 17280 for 17407 at k = 1024. With fast accumulation none of 4095 ones is left. Ones alone, and ones beside
# 64 * 128, an 8192th of it, are exact.
# What one would expect: a sum of the compute type, as for f16; off should mean that. One large activation takes the small ones of its
# 128 neighbours away, and blocks of 128, by which such models are scaled, are as long as that.
# Exit status: 0 the same, 1 something differs, 77 no GPU with float8 or no nvcc here.
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
#include <cublasLt.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <vector>

#define MUST(call)                                        \
    do {                                                  \
        int status = (int)(call);                         \
        if (status != 0) {                                \
            printf("%s: status %d\n", #call, status);     \
            exit(1);                                      \
        }                                                 \
    } while (0)

enum { ROWS = 64 };

static cublasLtHandle_t library;

/* The first element of the product of `ROWS` rows `a` by `ROWS` columns `b`; all elements must be alike. */
template <class T>
static float product(cudaDataType_t type, const std::vector<float> &a, const std::vector<float> &b, bool is_fast) {
    const size_t k = a.size();
    std::vector<T> rows, columns;
    for (int i = 0; i < ROWS; ++i) {
        for (size_t j = 0; j < k; ++j) {
            rows.push_back(T(a[j]));
            columns.push_back(T(b[j]));
        }
    }
    T *device_a, *device_b;
    float *device_c;
    MUST(cudaMalloc(&device_a, rows.size() * sizeof(T)));
    MUST(cudaMalloc(&device_b, rows.size() * sizeof(T)));
    MUST(cudaMalloc(&device_c, ROWS * ROWS * sizeof(float)));
    MUST(cudaMemcpy(device_a, rows.data(), rows.size() * sizeof(T), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(device_b, columns.data(), rows.size() * sizeof(T), cudaMemcpyHostToDevice));
    cublasLtMatmulDesc_t call;
    MUST(cublasLtMatmulDescCreate(&call, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    MUST(cublasLtMatmulDescSetAttribute(call, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    const int8_t fast = is_fast;
    if (is_fast) {
        MUST(cublasLtMatmulDescSetAttribute(call, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
    }
    cublasLtMatrixLayout_t layout_a, layout_b, layout_c;
    MUST(cublasLtMatrixLayoutCreate(&layout_a, type, k, ROWS, k));
    MUST(cublasLtMatrixLayoutCreate(&layout_b, type, k, ROWS, k));
    MUST(cublasLtMatrixLayoutCreate(&layout_c, CUDA_R_32F, ROWS, ROWS, ROWS));
    cublasLtMatmulPreference_t preference;
    MUST(cublasLtMatmulPreferenceCreate(&preference));
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    MUST(cublasLtMatmulAlgoGetHeuristic(library, call, layout_a, layout_b, layout_c, layout_c, preference, 1, &found, &count));
    const float one = 1, zero = 0;
    MUST(cublasLtMatmul(library, call, &one, device_a, layout_a, device_b, layout_b, &zero, device_c, layout_c, device_c, layout_c,
                        &found.algo, NULL, 0, 0));
    std::vector<float> c(ROWS * ROWS);
    MUST(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (float element : c) {
        if (element != c[0]) {
            return NAN;
        }
    }
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(layout_a), cublasLtMatrixLayoutDestroy(layout_b), cublasLtMatrixLayoutDestroy(layout_c);
    cublasLtMatmulDescDestroy(call);
    MUST(cudaFree(device_a));
    MUST(cudaFree(device_b));
    MUST(cudaFree(device_c));
    return c[0];
}

int main() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        return 77;
    }
    MUST(cublasLtCreate(&library));
    printf("cublasLt %zu\n", cublasLtGetVersion());
    bool is_as_before = true;
    for (size_t k : {32, 128, 256, 1024, 4096}) {
        const std::vector<float> ones(k, 1.0f);
        std::vector<float> large = ones, there = ones, back = ones;
        large[0] = 128;
        there[0] = 256, there[k - 1] = -256;
        back[0] = back[k - 1] = 256;
        const float exact = 16384 + (float)(k - 1), rest = (float)(k - 2);
        const float half = product<__half>(CUDA_R_16F, large, large, false);
        const float eight = product<__nv_fp8_e4m3>(CUDA_R_8F_E4M3, large, large, false);
        const float fast = product<__nv_fp8_e4m3>(CUDA_R_8F_E4M3, large, large, true);
        const float half_rest = product<__half>(CUDA_R_16F, there, back, false);
        const float eight_rest = product<__nv_fp8_e4m3>(CUDA_R_8F_E4M3, there, back, false);
        const float eight_ones = product<__nv_fp8_e4m3>(CUDA_R_8F_E4M3, ones, ones, false);
        std::vector<float> half_large = ones;
        half_large[0] = 64;
        const float closer = product<__nv_fp8_e4m3>(CUDA_R_8F_E4M3, half_large, large, false);
        printf("k = %4zu: %g is by f16 %g, by e4m3 %g, fast %g; %g is by f16 %g, by e4m3 %g; ones alone %g, 8192 and ones %g\n", k,
               exact, half, eight, fast, rest, half_rest, eight_rest, eight_ones, closer);
        is_as_before = is_as_before && half == exact && half_rest == rest && eight_ones == (float)k && fast == 16384;
        is_as_before = is_as_before && closer == 8192 + (float)(k - 1);
        is_as_before = is_as_before && eight == (k <= 128 ? 16384 : exact - 127) && (eight_rest == 0) == (k <= 128) && eight_rest < rest;
    }
    puts(is_as_before ? "as before" : "DIFFERS");
    return !is_as_before;
}
END
"$nvcc" -arch=sm_90 -o "$folder/finding" "$folder/finding.cu" -lcublasLt
"$folder/finding"
