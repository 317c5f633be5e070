// op/fused/attention.h — rondo.Attention in numbers: for each head softmax(scale * q k^T + mask) v.
//
// Inputs q, k, v, mask?, factors?. Without further attributes q, k, v and y are [batch, heads,
// rows, width] or [heads, rows, width]. With attribute extents they lie anyhow in tensors of any
// shape, such as the result of one product that holds q, k and v side by side:
//
//   extents   batch, heads, m, n, width, v_width
//   q, k, v   offset, then the strides of batch, head, row and column, in elements
//   y         the strides of batch, head and row; columns lie side by side
//   shape     y's; its elements are those of the result
//
// The mask is added before softmax; it broadcasts to [batch, heads, m, n]. A row that sees
// nothing, as where the mask is -inf for all keys, gives NaN; with attribute zero_rows its weights
// are zeros. With attribute unit_rows rows of q and k are divided by their lengths (those of length
// 0 stay), and scores of a head are multiplied by its number of factors [heads].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

enum {
    RONDO__ATTENTION_WIDTH_MAX = 256,   // of a head
    RONDO__ATTENTION_COUNT_MAX = 65535  // of heads, and of batches
};

typedef struct rondo__attention_strides {  // in elements
    int64_t batch, head, row, column;
    int64_t offset;  // of the first
} rondo__attention_strides;

typedef struct rondo__attention {
    int64_t batch, heads, m, n;  // m rows of q and y, n of k and v
    int64_t width, v_width;
    float scale;
    bool zero_rows;
    bool unit_rows;
    rondo__attention_strides q, k, v, y;
    rondo__attention_strides mask;  // its columns are keys; 0 where it repeats
    rondo_shape output;
} rondo__attention;

// Reads attributes and shapes. `mask` NULL: none.
//
// Errors:    BAD_DATA (shapes, strides and limits).
RONDO_MUST_USE rondo_status rondo__attention_init(const rondo__op *op, const rondo_shape *q,
                                                  const rondo_shape *k, const rondo_shape *v,
                                                  const rondo_shape *mask,
                                                  rondo__attention *out_attention);
