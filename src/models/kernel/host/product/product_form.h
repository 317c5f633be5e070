// kernel/host/product/product_form.h — MatMul, Gemm and rondo.MatMul in one form:
//
//   y = act(scale * (op(a) x op(b)) + bias + z)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"
#include "op/fused/fused.h"
#include "op/math/matrix.h"

typedef struct rondo__product_form {
    rondo__product product;  // a batch of a against one b is joined into one taller a
    int64_t b_count;         // different matrices b
    float scale;
    int32_t bias_input;  // one value for each column; -1: none
    int32_t z_input;     // of y's shape; -1: none
    rondo__activation activation;
    float alpha, beta;  // of the activation
} rondo__product_form;

// Errors:    UNSUPPORTED without a record (not all f32, beta of Gemm, a broadcast C), BAD_DATA.
rondo_status rondo__product_form_init(rondo__product_form *form,
                                      const rondo__kernel_request *request);

// Makes a batch of a against one b one taller a, where it can.
void rondo__product_join_batches(rondo__product *product);

// Offsets, in matrices, of a and b of one batch entry.
void rondo__product_locate_batch(const rondo__product *product, int64_t batch, int64_t *out_a,
                                 int64_t *out_b);
