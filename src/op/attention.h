// op/attention.h — rondo.Attention in numbers: for each head softmax(scale * q k^T + mask) v.
//
// Inputs q, k, v, mask?. Output y = [batch..., m, v_width] where all extents lie as ONNX products
// have them; attribute layouts says for q, k, v and y how they lie in memory instead:
//
//   ROWS    [batch, heads, rows, width], or [heads, rows, width]
//   SPLIT   [batch, rows, heads, width]    as a product leaves it, seen with its heads apart
//   TURNED  [batch, heads, width, rows], or [heads, width, rows]; not for y
//
// The mask is added before softmax; it broadcasts to [batch, heads, m, n].
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_OP_ATTENTION_H
#define RONDO_OP_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

enum {
    RONDO__ATTENTION_WIDTH_MAX = 256,   // of a head
    RONDO__ATTENTION_COUNT_MAX = 65535  // of heads, and of batches
};

typedef enum rondo__attention_layout {
    RONDO__ATTENTION_ROWS,
    RONDO__ATTENTION_SPLIT,
    RONDO__ATTENTION_TURNED,
} rondo__attention_layout;

typedef struct rondo__attention_strides {  // in elements
    int64_t batch, head, row, column;
} rondo__attention_strides;

typedef struct rondo__attention {
    int64_t batch, heads, m, n;  // m rows of q and y, n of k and v
    int64_t width, v_width;
    float scale;
    rondo__attention_strides q, k, v, y;
    rondo__attention_strides mask;  // its columns are keys; 0 where it repeats
    rondo_shape output;
} rondo__attention;

// Reads attributes and shapes. `mask` NULL: none.
//
// Errors:    BAD_DATA (shapes, layouts and limits).
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__attention_init(const rondo__op *op, const rondo_shape *q,
                                                  const rondo_shape *k, const rondo_shape *v,
                                                  const rondo_shape *mask,
                                                  rondo__attention *out_attention);

#endif  // RONDO_OP_ATTENTION_H
