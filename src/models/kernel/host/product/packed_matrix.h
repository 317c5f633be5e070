// kernel/host/product/packed_matrix.h — the right operand of a matrix product, cut into panels as
// wide as a tile (simd.h), each stored row after row and padded with zeros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "kernel/host/simd/simd.h"
#include "kernel/weights/weight_store.h"
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

// y [m, n] = clamp(scale * a [m, k] x b [k, n] + bias [n] + z [m, n]), with b in panels.
typedef struct rondo__row_product {
    const rondo__simd *simd;
    int64_t m, k, n;
    const float *a;
    int64_t a_row;             // elements from one row to the next
    const int32_t *a_offsets;  // of the k numbers of a row from its first; NULL: neighbours
    const float *panels;
    int64_t panel_step;  // elements from one panel to the next
    int64_t b_row;       // and from one of its rows to the next
    bool streams;        // as rondo__cut says
    float scale, low, high;
    const float *bias;  // or NULL
    const float *z;     // or NULL; y may be z
    int64_t z_row;
    float *y;
    int64_t y_row;
} rondo__row_product;

// Multiplies, on this thread.
void rondo__multiply_rows(const rondo__row_product *product);

// The same for a few rows, given as a tile that is as high as a narrow one may be, and as wide as
// all panels.
void rondo__multiply_group(const rondo__simd *simd, const rondo__tile *group, const float *panels,
                           int64_t panel_step);

// Where panels stream (rondo__cut), a few are used for all rows while the next few are fetched: how
// many, of so many floats; and what a tile's b_ahead is, when it is of the `pass`-th rows.
int64_t rondo__panels_count_held(int64_t panel_floats);
int64_t rondo__panels_get_ahead(const rondo__simd *simd, int64_t panel_floats, int64_t pass);

// Into how many parts k of a panel of so many floats is cut, so that the cache holds one while all
// rows go by.
int64_t rondo__panels_count_parts(int64_t panel_floats);

// Multiplies by the whole matrix, on this thread: y [m, n] = a x matrix + bias + z. Rows are a_row,
// z_row and y_row elements apart; bias and z may be NULL; y may be z.
void rondo__packed_multiply(const rondo__packed_matrix *matrix, const float *a, int64_t a_row,
                            int64_t m, const float *bias, const float *z, int64_t z_row, float *y,
                            int64_t y_row);

// Bytes of panels that stay in the cache of one processor while rows go by.
int64_t rondo__panels_get_cache_bytes(void);
