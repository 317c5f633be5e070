// op/attention/linear_attention.h — LinearAttention in numbers: a state [width, v_width] for each
// head of key and value, which each row changes and each row of query reads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

typedef struct rondo__linear_attention {
    int64_t batch, rows, heads, kv_heads, width, v_width;
    int64_t decay_width;  // 1, or width
    bool has_decay, has_beta;
    bool has_betas;  // one for each head
    float scale;
} rondo__linear_attention;

// `decay` and `beta` NULL: absent.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__linear_attention_read(const rondo__op *op, const rondo_shape *q,
                                                         const rondo_shape *v,
                                                         const rondo_shape *decay,
                                                         const rondo_shape *beta,
                                                         rondo__linear_attention *out_form);
