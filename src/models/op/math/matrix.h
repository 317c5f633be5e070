// op/math/matrix.h — the arithmetic of MatMul and its relatives: broadcast batches of matrix
// products.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

// Products [m, k] x [k, n] over broadcast batch extents, with the rules of numpy.matmul for rank 1.
typedef struct rondo__product {
    int64_t m, n, k;
    bool trans_a, trans_b;  // the last two extents of the operand are stored swapped
    int32_t batch_rank;
    int64_t batch[RONDO_RANK_MAX];   // broadcast batch extents
    int64_t a_step[RONDO_RANK_MAX];  // in matrices; 0 where a is broadcast
    int64_t b_step[RONDO_RANK_MAX];
    int64_t batch_count;
    rondo_shape output;
} rondo__product;

// Checks the operands of a product.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__product_init(const rondo__op *op, const rondo_shape *a,
                                                const rondo_shape *b, bool trans_a, bool trans_b,
                                                rondo__product *out_product);

// Adds the products to c, which is dense [batch..., m, n].
void rondo__product_run(const rondo__product *product, const double *a, const double *b, double *c);

// The same modulo 2^64, for integers of any width.
void rondo__product_run_integer(const rondo__product *product, const uint64_t *a, const uint64_t *b,
                                uint64_t *c);

// The same of bytes from which their zero points are subtracted (-255 to 255), where k is at most
// RONDO__BYTE_PRODUCT_K_MAX: sums then fit.
enum { RONDO__BYTE_PRODUCT_K_MAX = INT32_MAX / (255 * 255) };
void rondo__product_run_byte(const rondo__product *product, const int16_t *a, const int16_t *b,
                             int32_t *c);
