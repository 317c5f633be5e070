// op/fused/append_attention.h — rondo.AppendAttention in numbers: one token's attention over a
// cache that grows by it.
//
//   inputs      row       [batch, ..., (heads + 2 kv_heads) * width]: q, k and v of the token,
//                         beside each other; q and k are not yet rotated
//               past_k    [batch, kv_heads, past, width]
//               past_v    likewise
//               cosines   `width` numbers, which all heads share; see rondo.Rotate
//               sines
//   outputs     y         of attribute shape, [batch, heads, width] in order:
//                         softmax(scale * q k^T) v, where neighbouring heads share keys
//               present_k [batch, kv_heads, past + 1, width]: past_k and the rotated k
//               present_v likewise, v as it is
//   attributes  heads, scale, shape
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "op/op.h"

enum { RONDO__APPEND_COUNT_MAX = 65535 };  // of batches, heads and columns

typedef struct rondo__append_attention {
    int64_t batch, heads, kv_heads, past, width;
    float scale;
    rondo_shape output, present;
} rondo__append_attention;

// Reads attributes and shapes.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__append_attention_init(const rondo__op *op,
                                                         const rondo_shape *row,
                                                         const rondo_shape *past_k,
                                                         const rondo_shape *past_v,
                                                         rondo__append_attention *out_attention);
