// op/math/rotary.h — RotaryEmbedding in numbers: pairs of each head turn by angles of its position.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

// X as batches, positions and heads. Of each head the first `turned` elements turn, in pairs.
typedef struct rondo__rotary {
    int64_t batches, places, heads, size, turned;
    int64_t batch_step, place_step, head_step;  // in elements of X
    bool is_interleaved;
    size_t cosines, sines, ids;  // inputs
} rondo__rotary;

// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__rotary_read(const rondo__op *op, const rondo_shape *x,
                                               const rondo_shape *cosines, rondo__rotary *out_form);

// The sum of a position and a number of rows; -1, which is no position, where it cannot be counted.
static inline int64_t rondo__rotary_add(int64_t place, int64_t rows) {
    return place < 0 || place > INT64_MAX - rows ? -1 : place + rows;
}
