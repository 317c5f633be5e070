// kernel/host/simd/simd.h — inner loops, compiled once for each instruction set and chosen at run
// time.
//
// The files simd_*.c are plain C that compilers turn into vector code. The build compiles them
// several times (baseline, and on x86-64 also AVX2 and AVX-512) with RONDO_SIMD_LEVEL naming the
// table they fill; rondo__simd_get picks the best table that this processor can run.
//
// Accuracy: exp, tanh, sigmoid, erf and what is made of them stay within about 2e-7 of the true
// value (relative for exp and tanh, absolute for the others). NaN and infinities behave as in C.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/fused/fused.h"

// One block of a matrix product: y[rows, columns] = clamp(scale * a[rows, k] x b[k, columns] + bias
// + z). Row r of a is made of runs of numbers that follow each other: run i begins at
// starts[i * starts_row + r].
typedef struct rondo__tile {
    int64_t run_count;
    int64_t run_length;  // run_count of them are k
    const float *const *starts;
    int64_t starts_row;
    const int32_t *offsets;  // not NULL: of the numbers of the only run, from its start
    const float *b;  // b_row elements from one row to the next; panel_columns can be read of each
    int64_t b_row;
    int64_t b_ahead;    // from what is read of b to what is fetched into the cache meanwhile
    int32_t rows;       // 1 to tile_rows; where columns fit in one vector, to narrow_tile_rows
    int32_t columns;    // 1 to panel_columns
    bool is_split;      // up to three rows: k in several sums, which is quicker
    const float *sums;  // that k goes on from, panel_columns of each row; NULL: zeros
    float scale;
    float low, high;    // what lies beyond is set to them; NaN stays
    const float *bias;  // one value for each column, or NULL
    const float *z;     // z_row elements from one row to the next, or NULL
    int64_t z_row;
    float *y;
    int64_t y_row;
} rondo__tile;

// A tap of windows: where it stands from x on, and whose weights it has.
typedef struct rondo__tap {
    int64_t offset;
    int64_t number;
} rondo__tap;

// y[rows, channels] = clamp(sum over taps of x * weight + bias + z), for windows that have the same
// taps and are x_step elements apart.
typedef struct rondo__depthwise {
    int64_t channels;
    int64_t rows;
    const float *x;
    int64_t x_step;
    int32_t tap_count;
    const rondo__tap *taps;
    const float *weights;  // [number of the tap, channels]
    bool is_clamped;
    float low, high;
    const float *bias;  // one value for each channel, or NULL
    const float *z;     // z_row elements from one row to the next, or NULL
    int64_t z_row;
    float *y;
    int64_t y_row;
} rondo__depthwise;

enum { RONDO__WINOGRAD_N_MAX = 6 };

// A tile of m x m positions of a convolution with 3 x 3 taps (simd_winograd.c), n = m + 2.
// Channels and filters are whole vectors.
typedef struct rondo__winograd_tile {
    int32_t m;  // 2 or 4
    int64_t channels;
    const float *const *x;  // [n * n]: the channels of what the tile sees
    float *v;               // [n * n] times channels, v_step elements apart
    int64_t v_step;
    int64_t filters;
    const float *sums;  // [n * n] times filters, sums_step elements apart
    int64_t sums_step;
    const float *bias;      // one value for each filter, or NULL
    const float *const *z;  // [m * m], or NULL
    float low, high;        // what lies beyond is set to them; NaN stays
    float *const *y;        // [m * m], NULL where y ends before
} rondo__winograd_tile;

// Of the way back through a norm, for each number of a line: the moments of what it belongs to, and
// sums. Behind the sums sum and product are means.
typedef struct rondo__norm_lanes {
    const float *mean, *inverse, *factor;
    float *sum;      // of the changes g
    float *product;  // of g * (x - mean) * inverse
} rondo__norm_lanes;

enum { RONDO__BITS_ROWS = 4 };  // most rows of a tile of the following

// One panel of a product with numbers of 2, 4 or 8 bits: y[rows, columns] = a[rows, k] x b + bias.
// b, scales and zero points are panels, [..., panel_columns].
typedef struct rondo__bits_tile {
    int32_t bits;
    int32_t rows;         // 1 to 3, or RONDO__BITS_ROWS
    int32_t columns;      // 1 to panel_columns
    int64_t blocks;       // along k
    int64_t block_bytes;  // of one column
    const uint8_t *b;     // [blocks * block_bytes]: bytes of each column, low bits first along k
    const float *scales;  // [blocks]
    const uint8_t *byte_zeros;  // [blocks], or
    const float *zeros;         // [blocks], or neither: 2^(bits - 1)
    const float *a;             // a_row elements from one row to the next, all blocks whole
    const float *paired;  // the same, of 4 bits: numbers 2 i and 2 i + 1 are a - b / 16, b / 16
    int64_t a_row;
    const float *sums;  // of a's numbers in each block; sums_row elements from row to row
    int64_t sums_row;
    const float *bias;  // [panel_columns], or NULL
    float *y;
    int64_t y_row;
} rondo__bits_tile;

typedef void (*rondo__unary_loop)(const float *x, float *y, int64_t count, float alpha, float beta);
typedef void (*rondo__binary_loop)(const float *a, const float *b, float *y, int64_t count);

// Loops of one op over elements of any type, named by op and type.
#define RONDO__PLAIN_MAP(X) \
    X(Sin_f32)              \
    X(Cos_f32)              \
    X(Atan_f32)             \
    X(Mish_f32)             \
    X(Round_f32)            \
    X(Sign_f32)             \
    X(PRelu_f32)            \
    X(IsNaN_f32)            \
    X(IsInf_f32)            \
    X(Not_bool)             \
    X(And_bool)             \
    X(Or_bool)              \
    X(Xor_bool)             \
    X(Less_f32)             \
    X(LessOrEqual_f32)      \
    X(Greater_f32)          \
    X(GreaterOrEqual_f32)   \
    X(Equal_f32)            \
    X(Less_i64)             \
    X(LessOrEqual_i64)      \
    X(Greater_i64)          \
    X(GreaterOrEqual_i64)   \
    X(Equal_i64)            \
    X(Less_i32)             \
    X(LessOrEqual_i32)      \
    X(Greater_i32)          \
    X(GreaterOrEqual_i32)   \
    X(Equal_i32)            \
    X(Add_i64)              \
    X(Sub_i64)              \
    X(Mul_i64)              \
    X(Add_i32)              \
    X(Sub_i32)              \
    X(Mul_i32)              \
    X(Cast_f32_i64)         \
    X(Cast_f32_i32)         \
    X(Cast_i64_f32)         \
    X(Cast_i64_i32)         \
    X(Cast_i32_i64)         \
    X(Cast_bool_f32)        \
    X(Cast_bool_i64)        \
    X(Cast_f32_bool)        \
    X(Cast_i64_bool)

#define RONDO__PLAIN_NAME(name) RONDO__PLAIN_##name,
typedef enum rondo__plain { RONDO__PLAIN_MAP(RONDO__PLAIN_NAME) RONDO__PLAIN_COUNT } rondo__plain;
#undef RONDO__PLAIN_NAME

// y may be an operand of its own width. Steps are 1, or 0 for one element that stands for all; a
// loop of one operand does not read b.
typedef void (*rondo__plain_loop)(const void *a, const void *b, int64_t a_step, int64_t b_step,
                                  void *y, int64_t count);

typedef struct rondo__simd {
    const char *name;

    const rondo__plain_loop *plain;  // by rondo__plain

    // By rondo__scalar_op; y may be an operand. NULL for ops of another operand count.
    rondo__unary_loop unary[RONDO__SCALAR_COUNT];
    rondo__binary_loop binary[RONDO__SCALAR_COUNT];
    rondo__binary_loop binary_scalar_a[RONDO__SCALAR_COUNT];  // a is one value
    rondo__binary_loop binary_scalar_b[RONDO__SCALAR_COUNT];  // b is one value

    // The way back. g is dy, or 0 where y, if there is one, is at most 0.
    void (*add_changes)(const float *dy, const float *y, const float *x,
                        const rondo__norm_lanes *lanes, int64_t count);
    // dx = factor * (g - sum - normal * product)
    void (*apply_changes)(const float *dy, const float *y, const float *x,
                          const rondo__norm_lanes *lanes, float *dx, int64_t count);
    // normal = (x - mean) * inverse, change = dy * scale, product = change * normal
    void (*list_row_changes)(const float *dy, const float *x, const float *scale, float mean,
                             float inverse, float *normal, float *change, float *product,
                             int64_t count);
    // dx = inverse * (change - one - normal * two)
    void (*apply_row_changes)(const float *change, const float *normal, float one, float two,
                              float inverse, float *dx, int64_t count);
    void (*add_products)(const float *a, const float *b, float *y, int64_t count);  // y += a * b
    // dy goes to the target of the tap that is the first of the largest, NaN winning; the others
    // are set to 0, or with `adds` stay.
    void (*place_changes)(const float *const *taps, int64_t tap_count, const float *dy,
                          float *const *targets, bool adds, int64_t count);

    // Rows of `count` values. Sums are of blocks in f32 that are added up in double, so that long
    // rows lose no more than short ones.
    double (*sum)(const float *x, int64_t count);
    // The sums of x - center and of its square.
    void (*moments)(const float *x, int64_t count, float center, double *out_sum,
                    double *out_squares);
    float (*maximum)(const float *x, int64_t count);  // NaN wins; -infinity when empty
    float (*minimum)(const float *x, int64_t count);
    double (*sum_exp)(const float *x, int64_t count, float shift);  // of exp(x - shift)
    void (*softmax)(const float *x, float *y, int64_t count);
    void (*log_softmax)(const float *x, float *y, int64_t count);
    // Each of the columns of [length, columns].
    void (*columns_softmax)(const float *x, float *y, int64_t length, int64_t columns);
    // One step of an LSTM from its gates' sums i, o, f and c, [4, count]; h and c in place.
    void (*lstm_step)(const float *gates, float *h, float *c, int64_t count);
    // y = (x - mean) * scale * gain + bias; the mean is center + rest; gain and bias may be NULL.
    void (*normalize)(const float *x, float *y, int64_t count, float center, float rest,
                      float scale, const float *gain, const float *bias);
    // y = (x - mean) * scale + shift; the mean is center + rest.
    void (*center_scale)(const float *x, float *y, int64_t count, float center, float rest,
                         float scale, float shift);
    // The same, each a row of its own; rest may be NULL.
    void (*scale_shift)(const float *x, const float *center, const float *rest, const float *scale,
                        const float *shift, float *y, int64_t count);
    void (*accumulate)(const float *x, float *y, int64_t count);  // y += x
    // sums += x, and y = the sums: those before with is_exclusive.
    void (*sum_lines)(const float *x, float *y, double *sums, int64_t count, bool is_exclusive);
    // sum += x - center, squares += (x - center)^2
    void (*accumulate_moments)(const float *x, const float *center, float *sum, float *squares,
                               int64_t count);
    void (*accumulate_maximum)(const float *x, float *y, int64_t count);  // y = max(y, x)
    // y = the maximum over rows; y may be one of them.
    void (*maximum_of_rows)(const float *const *rows, int64_t row_count, float *y, int64_t count);

    // y = the sum of weight * row over rows.
    void (*sum_of_rows)(const float *const *rows, const float *weights, int64_t row_count, float *y,
                        int64_t count);

    // y[r] = x times row r; and y += the sum of weight * row. Rows are row_step elements apart.
    void (*dot_rows)(const float *x, const float *rows, int64_t row_step, int64_t row_count,
                     float *y, int64_t count);
    void (*add_rows)(const float *weights, const float *rows, int64_t row_step, int64_t row_count,
                     float *y, int64_t count);
    // Pairs of a and b are turned by the angles whose cosines and sines these are.
    void (*turn)(const float *cosines, const float *sines, float *a, float *b, int64_t count);

    int32_t tile_rows;         // most rows of one tile
    int32_t narrow_tile_rows;  // where its columns fit in one vector; a multiple of the above
    int32_t panel_columns;     // columns of one panel of b: two vectors
    int32_t tile_steps;        // of k, for which a tile fetches one line of what is b_ahead
    void (*multiply_tile)(const rondo__tile *tile);
    void (*convolve_depthwise)(const rondo__depthwise *depthwise);
    // x to v; and sums to y, false if one of them (before bias, z and clamp) is not finite.
    void (*winograd_in)(const rondo__winograd_tile *tile);
    bool (*winograd_back)(const rondo__winograd_tile *tile);
    void (*multiply_bits)(const rondo__bits_tile *tile);
    // y [k, panel_columns] = b as real numbers; of the tile, the panel.
    void (*widen_bits)(const rondo__bits_tile *tile, float *y);
} rondo__simd;

// The widest instructions that the user allows, as RONDO_MAX_CPU_ISA says; NULL: all.
const char *rondo__simd_get_limit(void);

// The best table for this processor that is allowed.  Threads: safe.
const rondo__simd *rondo__simd_get(void);

// Whether the activation is a clamp, which tiles do: between *out_low and *out_high, which are
// infinite otherwise. NONE is one.
bool rondo__simd_get_clamp(rondo__activation activation, float alpha, float beta, float *out_low,
                           float *out_high);

// Applies an activation in place; NONE does nothing.
void rondo__simd_activate(const rondo__simd *simd, rondo__activation activation, float alpha,
                          float beta, float *y, int64_t count);

#define RONDO_SIMD_JOIN_(name, level) name##_##level
#define RONDO_SIMD_JOIN(name, level) RONDO_SIMD_JOIN_(name, level)
#define RONDO_SIMD_NAME(name) RONDO_SIMD_JOIN(name, RONDO_SIMD_LEVEL)
