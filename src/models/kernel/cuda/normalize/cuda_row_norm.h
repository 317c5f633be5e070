// kernel/cuda/normalize/cuda_row_norm.h — LayerNormalization of the rows of a product's left
// operand: as a step of its own, or folded into the product
// (kernel/cuda/cu/include/rondo_ending.cuh says how).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "kernel/cuda/cuda_steps.h"

typedef struct rondo__cuda_row_norm {
    rondo_dtype dtype, gain_dtype;  // the latter of shift, too
    int64_t rows, length;
    rondo__address x;
    rondo__address gain, shift;  // `length` numbers each
    bool has_shift;
    float epsilon;
    bool is_wanted;         // the normalised rows are an output
    rondo__address normal;  // where they go, if they are made
    bool has_moments;       // of x, as op/fused/fused.h has them
    rondo__address moments;
    // Folded: of the weights times gain, and one number that these are to be multiplied by.
    rondo__address weight_sums, offsets, weight_scale;
} rondo__cuda_row_norm;

// Writes the normalised rows.
void rondo__cuda_add_row_norm(rondo__cuda_kernel *kernel, const rondo__cuda_row_norm *norm);
// Writes the moments of `rows` rows of `columns` elements, as op/fused/fused.h has them.
void rondo__cuda_add_row_moments(rondo__cuda_kernel *kernel, rondo_dtype dtype, int64_t rows,
                                 int64_t columns, rondo__address x, rondo__address moments);
