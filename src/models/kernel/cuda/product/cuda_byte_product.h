// kernel/cuda/product/cuda_byte_product.h — products of 8-bit integers in numbers: operands, zero
// points and scales, what becomes of the sums, and the ways to make them; and how numbers become
// bytes.
//
//   cuda_byte_product.c   what the ways share: inputs, packed weights, the ends of the sums
//   cuda_byte_plain.c     four products an instruction: byte_product.cu
//   cuda_byte_tensor.c    on tensor cores: byte_tensor.cu, in the plans of cuda_byte_plan.h
//   cuda_byte_ways.c      the ops, and the choice among the ways
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/convolution/cuda_window.h"
#include "kernel/cuda/cuda_steps.h"
#include "op/fused/fused.h"

enum { RONDO__BYTE_BATCH_RANK = 4 };

// A scale, zero point or bias: one value, or several; count 0: it is absent.
typedef struct rondo__byte_parameter {
    int64_t count;
    rondo__address at;
} rondo__byte_parameter;

typedef struct rondo__byte_operand {
    rondo__address data;
    rondo_dtype dtype;
    rondo__byte_parameter zero, scale;
    bool is_off_middle;  // its zero point may be another than the middle of the type's range
    bool is_off_zero;    // or than 0
} rondo__byte_operand;

// x is what changes, and its parameters go by row of the result; w are the weights, whose
// parameters go by column. What becomes of a sum depends on the type of y: it is y (i32), it is
// brought to the steps of y_scale and y_zero (u8, i8), or multiplied by the scales, with bias,
// residual and activation (f32).
typedef struct rondo__byte_product {
    rondo__byte_operand x, w;
    rondo__address y;
    rondo_dtype y_dtype, scale_dtype;
    rondo__byte_parameter y_scale, y_zero, bias, residual;
    bool is_bias_in_steps;  // f32: the bias is rounded down to whole steps
    rondo__activation activation;
    float alpha, beta;
    int64_t rows, columns;  // of a convolution: pixels, and filters of a group
    int64_t depth;          // of a convolution: taps * channels of a group
    bool is_packed;         // w.data is of a form of our own: [columns][pitch]
    int64_t pitch;          // bytes of a packed column
    rondo__address w_sums;  // of packed columns, as i32
    int64_t batches;        // of matrices; 1: all are one product
    int64_t batch_extent[RONDO__BYTE_BATCH_RANK];                              // ones in front
    int64_t x_batch[RONDO__BYTE_BATCH_RANK], w_batch[RONDO__BYTE_BATCH_RANK];  // in matrices
    bool is_convolution;
    rondo__window window;            // of a convolution
    int64_t groups, channels, taps;  // channels of a group
} rondo__byte_product;

// Where the operands and parameters are among an op's inputs; negative: there is no such input.
typedef struct rondo__byte_places {
    int x, x_scale, x_zero;
    int w, w_scale, w_zero;
    int y_scale, y_zero, bias, residual;
} rondo__byte_places;

// ---- cuda_byte_product.c ----------------------------------------------------------------------

// Everything but the weights' form. False, and refused, for what the kernels lack.
bool rondo__byte_product_read(rondo__cuda_kernel *kernel, const rondo__byte_places *places,
                              bool is_convolution, rondo__byte_product *out_product);

// Puts the weights at input `index` into the form that kernels read along the depth: [matrices]
// [columns][pitch], signed, zeros behind the end of each column, then the sums of all columns. A
// column of a convolution is [taps][channels in words]. Computed weights, of one matrix, are packed
// by a launch. False after a failure.
bool rondo__byte_product_pack_weights(rondo__cuda_kernel *kernel, size_t index,
                                      rondo__byte_product *product);

// What becomes of a sum: for the compiler, and the last parameters of all kernels. `depth` may
// count padding. takes_raw: the kernel takes bytes of x as they are, not less 128.
void rondo__byte_product_define(rondo__defines *defines, const rondo__byte_product *product,
                                bool takes_raw);
void rondo__byte_product_push(rondo__step *step, const rondo__byte_product *product, int64_t depth);

// ---- the ways ---------------------------------------------------------------------------------

// Convolutions whose groups have few filters take no packed weights, and no tensor cores.
bool rondo__byte_product_is_direct(const rondo__byte_product *product);
// Packed matrices of few rows are bound by reading the weights, in any way.
bool rondo__byte_product_is_vector(const rondo__byte_product *product);
void rondo__byte_product_add_plain(rondo__cuda_kernel *kernel, const rondo__byte_product *product);

// How many plans there are for this device, the best by estimate first; 0 where the product is not
// for it. Those of a product with `is_packed`.
size_t rondo__byte_product_count_plans(const rondo__cuda_kernel *kernel,
                                       const rondo__byte_product *product);
void rondo__byte_product_add_plan(rondo__cuda_kernel *kernel, const rondo__byte_product *product,
                                  size_t plan);
void rondo__byte_product_describe_plan(const rondo__cuda_kernel *kernel,
                                       const rondo__byte_product *product, size_t plan, char *text,
                                       size_t text_bytes);

// Adds a product in the fastest way, or in the `forced`th of them (negative: the fastest).
void rondo__byte_product_add(rondo__cuda_kernel *kernel, const rondo__byte_product *product,
                             int64_t forced);

// ---- cuda_quantize.c --------------------------------------------------------------------------

// y, scale and zero (NULL: not wanted) of x as a whole, as DynamicQuantizeLinear has it. is_lstm:
// as DynamicQuantizeLSTM has it; NaN is passed over, the scale of nothing but zeros is 1.
typedef struct rondo__dynamic_quantize {
    int64_t count;
    rondo__address x;
    const rondo__address *y, *scale, *zero;
    bool is_lstm;
} rondo__dynamic_quantize;
void rondo__cuda_add_dynamic_quantize(rondo__cuda_kernel *kernel,
                                      const rondo__dynamic_quantize *dynamic);
