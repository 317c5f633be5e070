// kernel/cuda/product/cuda_matmul.h — one matrix product in numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/convolution/cuda_convolution.h"
#include "kernel/cuda/elementwise/cuda_epilogue.h"

enum { RONDO__MATMUL_BATCH_RANK = 4 };

// y[batch][m][n] = act(scale * sum_k a[m][k] * b[k][n] + factor * bias[m][n] + residual[m][n]).
typedef struct rondo__cuda_matmul {
    rondo_dtype dtype, y_dtype;  // y may be f32 where all else is f16
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
    bool turns_b;  // b is constant input 1, to be turned to [n, k] when the steps are made
} rondo__cuda_matmul;

// MatMul, Gemm and the products of op/fused/fused.h, as they are. False, and refused, for what the
// kernels do not take.
bool rondo__cuda_read_matmul(rondo__cuda_kernel *kernel, rondo__cuda_matmul *out_matmul);
// The same with a constant b of floats read as [n, k].
void rondo__cuda_turn_matmul(const rondo__cuda_kernel *kernel, rondo__cuda_matmul *matmul);

// What decides which way is the fastest, in words.
void rondo__cuda_write_matmul_key(const rondo__cuda_matmul *matmul, char *text, size_t text_bytes);

// The product as a 1 x 1 convolution over m pixels. False where it is none of half precision.
bool rondo__cuda_make_point_convolution(const rondo__cuda_matmul *matmul,
                                        rondo__cuda_convolution *out_convolution);

// A bare product of two inputs, neither of them transposed, into output 0. False, and refused, for
// scalars and batches that broadcast in more ways than the kernels take.
bool rondo__cuda_read_product(rondo__cuda_kernel *kernel, size_t input_a, size_t input_b,
                              rondo__cuda_matmul *out_matmul);

// The ways to make a product, the best guess first; bits of the way with that number.
typedef struct rondo__cuda_product_ways {
    size_t count;
    uint64_t fast, last, library;  // as in rondo__tuning
    uint64_t tensor;               // by our tensor core kernel
} rondo__cuda_product_ways;

rondo__cuda_product_ways rondo__cuda_list_product_ways(const rondo__cuda_kernel *kernel,
                                                       const rondo__cuda_matmul *matmul);
// The steps of one of them, and its name.
void rondo__cuda_add_product(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *matmul,
                             size_t way);
void rondo__cuda_describe_product(const rondo__cuda_kernel *kernel,
                                  const rondo__cuda_matmul *matmul, size_t way, char *text,
                                  size_t text_bytes);

// Whether columns of b are contiguous along k, with a bias of one number for each column or row.
static inline bool rondo__cuda_has_simple_columns(const rondo__cuda_matmul *p) {
    const bool is_bare = p->scale >= 1.0f && p->scale <= 1.0f;
    return p->batch_count == 1 && p->b_row == 1 && p->b_column == p->k && is_bare &&
           (!p->epilogue.has_bias || (p->factor >= 1.0f && p->factor <= 1.0f &&
                                      p->bias_row + p->bias_column == 1 && p->bias_row >= 0));
}

// The same, and rows of a contiguous along k: what our fused kernels take.
static inline bool rondo__cuda_has_simple_rows(const rondo__cuda_matmul *p) {
    return rondo__cuda_has_simple_columns(p) && p->a_column == 1 && p->a_row == p->k;
}
