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

// A bare product of two inputs, neither of them transposed, into output 0. False, and refused, for
// scalars and batches that broadcast in more ways than the kernels take.
bool rondo__cuda_read_product(rondo__cuda_kernel *kernel, size_t input_a, size_t input_b,
                              rondo__cuda_matmul *out_matmul);

// The ways to make a product, the best guess first, and the steps of one of them.
size_t rondo__cuda_count_product_ways(const rondo__cuda_kernel *kernel,
                                      const rondo__cuda_matmul *matmul);
void rondo__cuda_add_product(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *matmul,
                             size_t way);

#endif  // RONDO_KERNEL_CUDA_MATMUL_H
