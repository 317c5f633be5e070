// kernel/host/product/byte_matrix.h — matrices of 8-bit numbers in the form of byte_simd.h, and
// products of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/host/product/packed_matrix.h"
#include "kernel/host/simd/byte_simd.h"
#include "kernel/weights/weight_store.h"
#include "rondo/status.h"

// The table for right operands of i8 or u8: this processor's best, or its wide one where they are
// not known, or hold too many large weights to be cut. Looks at a sample of them.
const rondo__byte_simd *rondo__byte_simd_choose(const rondo_tensor *constant);

// Extents of the right operands of a product, all of one size.
typedef struct rondo__byte_form {
    const rondo__byte_simd *simd;
    int64_t k, n;
    bool is_signed;  // as given
    int64_t blocks;  // of the depth
    int64_t panel_count;
    size_t panel_bytes;
    int32_t cut_limit;    // of each panel; 0: nothing is cut
    size_t matrix_bytes;  // panels, then the sums of the columns [panel_count * panel_columns] i32,
                          // and where a panel may be cut, counts [panel_count] i32 and cuts
} rondo__byte_form;

// is_kept   the matrices are packed once: it is worth while to cut them (byte_simd.h).
rondo__byte_form rondo__byte_form_make(const rondo__byte_simd *simd, int64_t k, int64_t n,
                                       bool is_signed, bool is_kept);

// Packs panel number `panel` of b, where element (p, c) stands at p * b_row + c * b_column.
//
// matrix     of form->matrix_bytes, aligned to 64.
void rondo__byte_pack_panel(const rondo__byte_form *form, const uint8_t *b, int64_t b_row,
                            int64_t b_column, int64_t panel, void *matrix);

// All these matrices of a constant, one behind the other.
//
// Errors:    as rondo__weight_list_add.
// Ownership: the list's.
RONDO_MUST_USE rondo_status rondo__byte_pack_constant(rondo__weight_list *list,
                                                      const rondo__byte_form *form,
                                                      const rondo_tensor *constant,
                                                      const rondo__matrix_places *places,
                                                      const void **out_matrices);

// Zero points of b's columns as products want them: signed, one for each column of all panels.
// `zeros` has `count` elements of b's type, 1 or n; NULL: 0.
//
// Returns:   whether any is not 0.
bool rondo__byte_spread_zeros(const rondo__byte_form *form, const uint8_t *zeros, int64_t count,
                              int32_t *out_zeros);

// The left operand, prepared.
typedef struct rondo__byte_rows {
    const void *data;
    int64_t row_bytes;
    const int32_t *factors;  // of each row (byte_simd.h)
    bool has_factors;        // one is not 0; otherwise no sums of columns are read
    const int32_t *rests;
    rondo__byte_row_cuts cuts;
} rondo__byte_rows;

// Work for the preparation of `count` rows, aligned to 64.
size_t rondo__byte_rows_get_bytes(const rondo__byte_simd *simd, int64_t k, int64_t count);

// Prepares x [count, k]; `zeros` has `zero_count` elements of x's type, 1 or a divisor of count;
// NULL: 0. Rows whose bytes serve as they are stay where they are.
//
// needs_sums   whether zero points of b are not 0.
rondo__byte_rows rondo__byte_rows_prepare(const rondo__byte_simd *simd, const uint8_t *x,
                                          bool is_signed, int64_t k, int64_t count,
                                          const uint8_t *zeros, int64_t zero_count, bool needs_sums,
                                          void *work);

// How rows [count, k] are kept.
typedef struct rondo__byte_rows_form {
    const rondo__byte_simd *simd;
    bool is_signed;
    int64_t k, count;
    int32_t cut_limit;  // most cuts of a row; -1: rows are not cut
} rondo__byte_rows_form;

// Of a constant, and with products of which tables: rows are cut where that is quicker.
rondo__byte_rows_form rondo__byte_rows_choose(const rondo_tensor *constant, int64_t k,
                                              int64_t count);

// Prepares a constant once for the program, for rondo__byte_rows_use.
//
// Errors:    as rondo__weight_list_add.
// Ownership: the list's.
RONDO_MUST_USE rondo_status rondo__byte_rows_keep(rondo__weight_list *list,
                                                  const rondo__byte_rows_form *form,
                                                  const rondo_tensor *constant,
                                                  const void **out_prepared);

// What rondo__byte_rows_prepare yields, from a kept constant; zero points may come with each run.
rondo__byte_rows rondo__byte_rows_use(const rondo__byte_rows_form *form, const void *prepared,
                                      const uint8_t *zeros, int64_t zero_count, void *work);

// y [rows, n] from rows [first, first + rows) of a. scales, addend, addend_row: as of a tile, for
// all columns (scales: of all panels).
typedef struct rondo__byte_product {
    const rondo__byte_form *form;
    const void *matrix;
    const int32_t *b_zeros;  // of all panels; NULL: all are 0
    bool has_one_zero;       // they are the same
    const rondo__byte_rows *a;
    int64_t first, rows;
    const float *scales;
    const float *addend;
    int64_t addend_row;
    void *y;
    int64_t y_row;
} rondo__byte_product;

void rondo__byte_product_run(const rondo__byte_product *product);

// One value of i8 or u8.
static inline int32_t rondo__byte_get(const uint8_t *values, bool is_signed, int64_t index) {
    return is_signed ? (int8_t)values[index] : values[index];
}
