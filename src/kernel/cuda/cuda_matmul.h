// kernel/cuda/cuda_matmul.h — one matrix product in numbers, and the ways to do it.
#ifndef RONDO_KERNEL_CUDA_MATMUL_H
#define RONDO_KERNEL_CUDA_MATMUL_H

#include "kernel/cuda/cuda_convolution.h"

enum { RONDO__MATMUL_BATCH_RANK = 4 };

// y[batch][m][n] = act(scale * sum_k a[m][k] * b[k][n] + factor * bias[m][n] + residual[m][n]).
typedef struct rondo__cuda_matmul {
    rondo_dtype dtype;
    int64_t m, n, k;
    int64_t a_row, a_column;  // strides, in elements
    int64_t b_row, b_column;
    int64_t batch_count;
    int64_t batch_extent[RONDO__MATMUL_BATCH_RANK];  // ones in front
    int64_t a_batch[RONDO__MATMUL_BATCH_RANK];
    int64_t b_batch[RONDO__MATMUL_BATCH_RANK];
    rondo__address a, b, y;
    float scale, factor;
    int64_t bias_row, bias_column;
    rondo__cuda_epilogue epilogue;
} rondo__cuda_matmul;

enum { RONDO__CUBLASLT_PLANS = 6 };

// cuBLASLt's candidate `plan` (0 is what its heuristic likes best), with what its epilogues lack as
// a second step. Refuses when the library is absent or has no such plan.
void rondo__cuda_add_cublaslt_plan(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *matmul,
                                   size_t plan);
// Whether strides and types are such as cuBLASLt takes.
bool rondo__cuda_suits_cublaslt(const rondo__cuda_matmul *matmul);
// The version, 0 when the library is absent; part of tuning keys.
size_t rondo__cuda_get_cublaslt_version(const rondo__cuda_kernel *kernel);

#endif  // RONDO_KERNEL_CUDA_MATMUL_H
