// kernel/host/simd/byte_simd.h — inner loops on 8-bit numbers, compiled once for each instruction
// set, as those of simd.h are; AVX-512 with VNNI has a level of its own.
//
// A product is made of numbers as they are stored, and put right by sums that are known beforehand:
//
//   sum (a - za)(b - zb) = sum a b - za * sum b - zb * (sum a - k * za)
//
// b is signed: of unsigned bytes 128 is taken, and of their zero points, too. a is stored as the
// level wants it: bytes, of signed ones with 128 more, or 16-bit numbers (baseline). Every level
// yields the same sums, which wrap at 32 bits:
//
//   VNNI             vpdpbusd is exact
//   AVX2, AVX-512    vpmaddubsw adds two products of bytes and saturates at 16 bits, which cannot
//                    happen where two neighbours of b of one sign have a sum within +-128. The few
//                    weights beyond that are cut, and what was cut is a list for each panel. Other
//                    panels are widened and take vpmaddwd, which is exact, as the baseline does.
//                    For operands of which most would be that, there is a table `wide` with a form
//                    of its own.
//                    Where a has the constants, its rows are cut instead: they are kept as signed
//                    bytes, and b is turned into unsigned ones,
//                    sum a b = sum (a - 128)(b + 128) - 128 sum a + 128 sum b + 16384 k.
//
//   panel of b   [depth / group][panel_columns][group] bytes: neighbours of a column together,
//                zeros behind the depth
//   row of a     depth / group times 4 bytes
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    RONDO__BYTE_COLUMNS_MAX = 32,  // of a panel, at any level
    RONDO__BYTE_GROUP_MAX = 4,
    RONDO__BYTE_LEVEL_MAX = 6,  // tables there are
};

// What was cut from a weight.
typedef struct rondo__byte_cut {
    int32_t k;
    int16_t column;  // of the panel; of rows 0
    int16_t rest;
} rondo__byte_cut;

// Of rows of a that are cut. A table that wants cuts takes them.
typedef struct rondo__byte_row_cuts {
    const int32_t *counts;        // of each row; NULL: rows are not cut
    const rondo__byte_cut *cuts;  // those of row r from r * limit on
    int32_t limit;
    const int32_t *constants;  // 16384 k - 128 sum a, of each row
} rondo__byte_row_cuts;

// y[rows, columns]: sums, or where there are scales (float)sum * scale + addend, each step rounded.
typedef struct rondo__byte_tile {
    int64_t blocks;  // of the depth, each of `group` numbers
    const void *a;   // prepared rows
    int64_t a_row;   // bytes from one row to the next
    const int8_t *b;
    const rondo__byte_cut *cuts;
    int32_t cut_count;  // -1: b may be anything
    rondo__byte_row_cuts row_cuts;
    int32_t rows;              // 1 to tile_rows
    int32_t columns;           // 1 to panel_columns; what follows has values for a whole panel
    const int32_t *b_sums;     // what each row's a_factor is multiplied with
    const int32_t *a_factors;  // -za of each row; of cut ones 128 - za
    const int32_t *b_zeros;    // what each row's rest is multiplied with; NULL: all are 0
    bool has_one_zero;         // the first of them is that of all columns
    const int32_t *a_rests;    // -(sum a - k * za) of each row
    const float *scales;       // one for each column; NULL: y is of i32
    const float *addend;       // for `columns` columns, or NULL
    int64_t addend_row;        // 0: the same for all rows
    void *y;                   // i32 or f32
    int64_t y_row;             // elements
} rondo__byte_tile;

typedef struct rondo__byte_simd rondo__byte_simd;
struct rondo__byte_simd {
    const char *name;
    const rondo__byte_simd *wide;  // quicker where most panels cannot be cut; NULL: the same
    int32_t group;
    int32_t panel_columns;
    int32_t tile_rows;
    bool wants_cuts;
    int32_t signed_offset;  // what prepare_row adds to signed numbers, and so to their zero point

    void (*multiply)(const rondo__byte_tile *tile);
    // Writes one prepared row; returns the sum of its numbers.
    int32_t (*prepare_row)(const uint8_t *x, bool is_signed, int64_t count, void *row);
    // Writes one block of a panel: rows is [group][panel_columns]. Adds its columns to sums; NULL:
    // they are not wanted.
    void (*pack_block)(const uint8_t *rows, bool is_signed, int8_t *block, int32_t *sums);

    // The least and the greatest value, 0 among them. False, and no values, where one is NaN or
    // infinite.
    bool (*range)(const float *x, int64_t count, float *out_low, float *out_high);
    // rint(x / scale) + zero, kept within the type; NaN becomes 0. Steps of 0 or 1: one scale for
    // all, or one for each.
    void (*quantize)(const float *x, const float *scale, int64_t scale_step, const int32_t *zero,
                     bool is_signed, int64_t count, void *y);
    // (x - zero) * scale.
    void (*dequantize)(const void *x, bool is_signed, const float *scale, int64_t scale_step,
                       const int32_t *zero, int64_t count, float *y);
    // The same of 16 bits.
    void (*quantize_words)(const float *x, const float *scale, int64_t scale_step,
                           const int32_t *zero, bool is_signed, int64_t count, void *y);
    void (*dequantize_words)(const void *x, bool is_signed, const float *scale, int64_t scale_step,
                             const int32_t *zero, int64_t count, float *y);
    // rint((sum + bias) * (row_scale * column_scale / y_scale)) + y_zero, each step rounded to f32
    // and the result kept within the type; column_scale NULL: all are 1.
    void (*requantize)(const int32_t *sums, int32_t bias, float row_scale,
                       const float *column_scale, float y_scale, int32_t y_zero, bool is_signed,
                       int64_t count, void *y);
    // sums[i] = start + the sum over taps of weight * x[place + i]; count is a multiple of 16.
    void (*add_taps)(const void *x, bool is_signed, const int64_t *places, const int32_t *weights,
                     int64_t tap_count, int32_t start, int64_t count, int32_t *sums);
    void (*widen_i32)(const int32_t *x, float *y, int64_t count);
    // y[i] = x[2 i]; x has 2 count - 1 bytes.
    void (*take_every_second)(const uint8_t *x, uint8_t *y, int64_t count);
};

// y[p * y_row + i] = x[4 i + p] for p < 4 and i < count, which is at least 4.
void rondo__byte_take_fourths(const uint8_t *x, uint8_t *y, int64_t y_row, int64_t count);

// The best table for this processor that RONDO_MAX_CPU_ISA allows.  Threads: safe.
const rondo__byte_simd *rondo__byte_simd_get(void);

// All tables that this processor can run, the best last.  Returns: how many.
// out_tables has room for RONDO__BYTE_LEVEL_MAX.
int rondo__byte_simd_list(const rondo__byte_simd **out_tables);
