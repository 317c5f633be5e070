// kernel/host/packed_matrix.h — the right operand of a matrix product, cut into panels as wide as a
// tile (simd.h), each stored row after row and padded with zeros.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_HOST_PACKED_MATRIX_H
#define RONDO_KERNEL_HOST_PACKED_MATRIX_H

#include <stdint.h>

#include "kernel/host/simd.h"
#include "kernel/weight_store.h"
#include "rondo/status.h"

typedef struct rondo__packed_matrix {
    const rondo__simd *simd;
    int64_t k;  // rows
    int64_t n;  // columns
    const float *panels;
} rondo__packed_matrix;

// Matrices in a constant: element (p, c) of number i stands at first + i * step + p * row +
// c * column.
typedef struct rondo__matrix_places {
    int64_t first, step, row, column;
    int64_t count;
    int64_t k, n;
} rondo__matrix_places;

// Packs one panel of b [k, n]; element (p, c) stands at p * b_row + c * b_column. `out` has
// k * panel_columns elements.
void rondo__pack_panel(const rondo__simd *simd, const float *b, int64_t b_row, int64_t b_column,
                       int64_t k, int64_t n, int64_t panel, float *out);

// All panels of all these matrices of a constant, one behind the other.
//
// Errors:    as rondo__weight_list_add.
// Ownership: the list's.
RONDO_MUST_USE rondo_status rondo__pack_constant(rondo__weight_list *list, const rondo__simd *simd,
                                                 const rondo_tensor *constant,
                                                 const rondo__matrix_places *places,
                                                 const float **out_panels);

// Packs one matrix of a constant.
//
// Errors:    as rondo__weight_list_add.
// Ownership: the panels are the list's.
RONDO_MUST_USE rondo_status rondo__packed_matrix_init(rondo__packed_matrix *matrix,
                                                      rondo__weight_list *list,
                                                      const rondo_tensor *constant,
                                                      const rondo__matrix_places *places);

// y [m, n] = a [m, k] x matrix + bias [n] + z [m, n], on this thread. Rows are a_row, z_row and
// y_row elements apart; bias and z may be NULL; y may be z.
void rondo__packed_multiply(const rondo__packed_matrix *matrix, const float *a, int64_t a_row,
                            int64_t m, const float *bias, const float *z, int64_t z_row, float *y,
                            int64_t y_row);

#endif  // RONDO_KERNEL_HOST_PACKED_MATRIX_H
