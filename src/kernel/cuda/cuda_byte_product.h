// kernel/cuda/cuda_byte_product.h — what products of 8-bit integers share: where operands, zero
// points and scales are among an op's inputs, and the parameters of its kernels; and how
// numbers become bytes.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_CUDA_BYTE_PRODUCT_H
#define RONDO_KERNEL_CUDA_BYTE_PRODUCT_H

#include "kernel/cuda/cuda_steps.h"

enum { RONDO__BYTE_NONE = -1 };  // no such input

// One operand by the places of its inputs.
typedef struct rondo__byte_operand {
    int index, zero, scale;
    bool is_unsigned;
    bool has_zero;  // once 128 is taken off unsigned bytes
} rondo__byte_operand;

// a's parameters go by row of the result, b's by column.
typedef struct rondo__byte_product {
    rondo__byte_operand a, b;
    int y_scale, y_zero, bias;
    int64_t depth;
} rondo__byte_product;

// Completes both operands. False, and refused, when a scale is of another type than the others.
bool rondo__byte_product_read(rondo__cuda_kernel *kernel, rondo__byte_product *product);

// A launch from byte_product.cu, compiled for the operands' types and the output's.
rondo__step *rondo__byte_product_add(rondo__cuda_kernel *kernel, const rondo__byte_product *product,
                                     rondo__defines *defines, const char *name, int64_t blocks);
// Its last parameters: what happens to a sum.
void rondo__byte_product_push(rondo__step *step, const rondo__cuda_kernel *kernel,
                              const rondo__byte_product *product);

// Puts constant matrices [count][k][n] at input `index` into the form that the kernels read along k:
// [count][n][words of k], signed, zeros behind the end of each row. False after a failure.
bool rondo__byte_product_pack(rondo__cuda_kernel *kernel, size_t index, int64_t k, int64_t n,
                              rondo__address *out_packed);

// y, scale and zero (NULL: not wanted) of x as a whole, as DynamicQuantizeLinear has it. is_lstm: as
// DynamicQuantizeLSTM has it, where NaN is passed over and the scale of nothing but zeros is 1.
typedef struct rondo__dynamic_quantize {
    int64_t count;
    rondo__address x;
    const rondo__address *y, *scale, *zero;
    bool is_lstm;
} rondo__dynamic_quantize;
void rondo__cuda_add_dynamic_quantize(rondo__cuda_kernel *kernel,
                                      const rondo__dynamic_quantize *dynamic);

#endif  // RONDO_KERNEL_CUDA_BYTE_PRODUCT_H
