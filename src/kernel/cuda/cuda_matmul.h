// kernel/cuda/cuda_matmul.h — one matrix product in numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_CUDA_MATMUL_H
#define RONDO_KERNEL_CUDA_MATMUL_H

#include "kernel/cuda/cuda_epilogue.h"

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

#endif  // RONDO_KERNEL_CUDA_MATMUL_H
