#!/bin/bash
# A product over nothing is zeros by cublasSgemm, and by cublasSgemv what stood there before: with n = 0 and beta = 0 y is not written,
# and the call succeeds.
#
# What is done: C = A B of 4 x 0 by 0 x 4 and y = A x of a 4 x 0 matrix, with alpha = 1, beta = 0 and with beta = 2, onto 3 3 3 3 and
# NaNs; the same by cublasGemmEx with one column, by cublasSgemvStridedBatched, and by gemv with the matrix transposed; as a check gemv of
# 4 x 2.
# Seen (H200, driver 580.159.04, cuBLAS of CUDA 13.0): gemm and GemmEx write zeros over 3 and NaN, and 6 for beta = 2. All forms of gemv
# return CUBLAS_STATUS_SUCCESS and leave 3, NaN and, with beta = 2, 3 as well. With two columns beta = 0 overwrites a NaN.
# What one would expect: y = beta y, as the formula of the manual says and gemm does. BLAS' reference has the early return, too; a library
# that takes gemv for a matrix with one column hands out old memory where an extent happens to be 0.
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
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
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

enum Kind { GEMM, GEMM_EX, GEMV, GEMV_TRANSPOSED, GEMV_BATCHED, GEMV_OF_TWO, KINDS };
static const char *const names[KINDS] = {"gemm", "GemmEx, one column", "gemv", "gemv, transposed", "gemv, strided batches",
                                         "gemv of two columns"};

// The first of four numbers that stood in memory, after the product, or -1 if the call fails.
static float multiply(cublasHandle_t handle, Kind kind, float beta, float old) {
    const float alpha = 1, ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    float *a, *x, *y, host[16];
    for (float &number : host) {
        number = old;
    }
    MUST(cudaMalloc(&a, sizeof ones));
    MUST(cudaMalloc(&x, sizeof ones));
    MUST(cudaMalloc(&y, sizeof host));
    MUST(cudaMemcpy(a, ones, sizeof ones, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(x, ones, sizeof ones, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(y, host, sizeof host, cudaMemcpyHostToDevice));
    const cublasOperation_t n = CUBLAS_OP_N, t = CUBLAS_OP_T;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    switch (kind) {
    case GEMM: status = cublasSgemm(handle, n, n, 4, 4, 0, &alpha, a, 4, x, 4, &beta, y, 4); break;
    case GEMM_EX:
        status = cublasGemmEx(handle, n, n, 4, 1, 0, &alpha, a, CUDA_R_32F, 4, x, CUDA_R_32F, 4, &beta, y, CUDA_R_32F, 4,
                              CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
        break;
    case GEMV: status = cublasSgemv(handle, n, 4, 0, &alpha, a, 4, x, 1, &beta, y, 1); break;
    case GEMV_TRANSPOSED: status = cublasSgemv(handle, t, 0, 4, &alpha, a, 4, x, 1, &beta, y, 1); break;
    case GEMV_BATCHED: status = cublasSgemvStridedBatched(handle, n, 4, 0, &alpha, a, 4, 0, x, 1, 0, &beta, y, 1, 4, 2); break;
    default: status = cublasSgemv(handle, n, 4, 2, &alpha, a, 4, x, 1, &beta, y, 1);
    }
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
    return status == CUBLAS_STATUS_SUCCESS ? host[0] : -1;
}

int main() {
    cublasHandle_t handle;
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
        return 1;
    }
    float seen[KINDS][3];
    for (int kind = 0; kind < KINDS; ++kind) {
        seen[kind][0] = multiply(handle, (Kind)kind, 0, 3);
        seen[kind][1] = multiply(handle, (Kind)kind, 0, NAN);
        seen[kind][2] = multiply(handle, (Kind)kind, 2, 3);
        printf("%s: beta 0 onto 3: %g, onto NaN: %g; beta 2 onto 3: %g\n", names[kind], seen[kind][0], seen[kind][1], seen[kind][2]);
    }
    for (int kind = GEMM; kind <= GEMM_EX; ++kind) {
        expect(names[kind], seen[kind][0] == 0 && seen[kind][1] == 0 && seen[kind][2] == 6);
    }
    for (int kind = GEMV; kind <= GEMV_BATCHED; ++kind) {
        expect(names[kind], seen[kind][0] == 3 && seen[kind][1] != seen[kind][1] && seen[kind][2] == 3);
    }
    expect(names[GEMV_OF_TWO], seen[GEMV_OF_TWO][0] == 2 && seen[GEMV_OF_TWO][1] == 2 && seen[GEMV_OF_TWO][2] == 8);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -lcublas -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
