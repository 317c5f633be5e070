// kernel/host/simd.h — inner loops, compiled once for each instruction set and chosen at run time.
//
// The files simd_*.c are plain C that compilers turn into vector code. The build compiles them
// several times (baseline, and on x86-64 also AVX2 and AVX-512) with RONDO_SIMD_LEVEL naming the
// table they fill; rondo__simd_get picks the best table that this processor can run.
//
// Accuracy: exp, tanh, sigmoid, erf and what is made of them stay within about 2e-7 of the true
// value (relative for exp and tanh, absolute for the others). NaN and infinities behave as in C.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_KERNEL_HOST_SIMD_H
#define RONDO_KERNEL_HOST_SIMD_H

#include <stdbool.h>
#include <stdint.h>

#include "op/fused.h"

// One block of a matrix product: y[rows, columns] = scale * a[rows, k] x b[k, columns] + bias + z.
typedef struct rondo__tile {
    int64_t k;
    const float *a;
    int64_t a_row;     // elements from one row to the next
    int64_t a_column;  // elements from one column to the next
    const float *b;    // b_row elements from one row to the next; panel_columns can be read of each
    int64_t b_row;
    int32_t rows;     // 1 to tile_rows
    int32_t columns;  // 1 to panel_columns
    float scale;
    const float *bias;  // one value for each column, or NULL
    const float *z;     // z_row elements from one row to the next, or NULL
    int64_t z_row;
    float *y;
    int64_t y_row;
} rondo__tile;

typedef void (*rondo__unary_loop)(const float *x, float *y, int64_t count, float alpha, float beta);
typedef void (*rondo__binary_loop)(const float *a, const float *b, float *y, int64_t count);

typedef struct rondo__simd {
    const char *name;

    // By rondo__scalar_op; y may be an operand. NULL for ops of another operand count.
    rondo__unary_loop unary[RONDO__SCALAR_COUNT];
    rondo__binary_loop binary[RONDO__SCALAR_COUNT];
    rondo__binary_loop binary_scalar_a[RONDO__SCALAR_COUNT];  // a is one value
    rondo__binary_loop binary_scalar_b[RONDO__SCALAR_COUNT];  // b is one value

    // Rows of `count` values. Sums are of blocks in f32 that are added up in double, so that long
    // rows lose no more than short ones.
    double (*sum)(const float *x, int64_t count);
    // The sums of x - center and of its square.
    void (*moments)(const float *x, int64_t count, float center, double *out_sum,
                    double *out_squares);
    float (*maximum)(const float *x, int64_t count);  // NaN wins; -infinity when empty
    float (*minimum)(const float *x, int64_t count);
    void (*softmax)(const float *x, float *y, int64_t count);
    void (*log_softmax)(const float *x, float *y, int64_t count);
    // y = (x - mean) * scale * gain + bias; gain and bias may be NULL.
    void (*normalize)(const float *x, float *y, int64_t count, float mean, float scale,
                      const float *gain, const float *bias);
    void (*center_scale)(const float *x, float *y, int64_t count, float mean, float scale,
                         float shift);  // y = (x - mean) * scale + shift
    // y = (x - center) * scale + shift, each a row of its own.
    void (*scale_shift)(const float *x, const float *center, const float *scale, const float *shift,
                        float *y, int64_t count);
    void (*accumulate)(const float *x, float *y, int64_t count);  // y += x
    // sum += x - center, squares += (x - center)^2
    void (*accumulate_moments)(const float *x, const float *center, float *sum, float *squares,
                               int64_t count);
    void (*accumulate_maximum)(const float *x, float *y, int64_t count);  // y = max(y, x)
    // y = the maximum over rows; y may be one of them.
    void (*maximum_of_rows)(const float *const *rows, int64_t row_count, float *y, int64_t count);

    // y = the sum of weight * row over rows.
    void (*sum_of_rows)(const float *const *rows, const float *weights, int64_t row_count, float *y,
                        int64_t count);

    int32_t tile_rows;      // most rows of one tile
    int32_t panel_columns;  // columns of one panel of b
    void (*multiply_tile)(const rondo__tile *tile);
} rondo__simd;

// The best table for this processor that ONEDNN_MAX_CPU_ISA allows.  Threads: safe.
const rondo__simd *rondo__simd_get(void);

// Applies an activation in place; NONE does nothing.
void rondo__simd_activate(const rondo__simd *simd, rondo__activation activation, float alpha,
                          float beta, float *y, int64_t count);

#define RONDO_SIMD_JOIN_(name, level) name##_##level
#define RONDO_SIMD_JOIN(name, level) RONDO_SIMD_JOIN_(name, level)
#define RONDO_SIMD_NAME(name) RONDO_SIMD_JOIN(name, RONDO_SIMD_LEVEL)

#endif  // RONDO_KERNEL_HOST_SIMD_H
