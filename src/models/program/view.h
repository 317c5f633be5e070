// program/view.h — a value that is another value's elements in another order.
//
//   x [2, 197, 576] ── Reshape ── Transpose ── Gather ── Mul ── value
//
// Such moves copy; a kernel that reads with strides can read x instead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "program/edit.h"

typedef struct rondo__view {
    int32_t base;    // the value that is read
    int64_t offset;  // in elements of the base
    int32_t rank;
    int64_t extent[RONDO_RANK_MAX];
    int64_t stride[RONDO_RANK_MAX];  // of extents of 1: any
    float factor;                    // of all elements
} rondo__view;

// Looks through the moves that made `value`, as far as strides can tell what they do. The extents
// are those of `value`, whose shape is known.
//
// take_factors  looks through products with a constant number, too
void rondo__view_trace(const rondo_program *program, int32_t value, bool take_factors,
                       rondo__view *out_view);

// The same, looking through Expand, too: an axis may repeat with a stride of 0. Along `axis`,
// counted from the end (-1 is the last), each element may stand several times in turn, as keys do
// that heads share; the extent is then that without repeats.
void rondo__view_trace_repeats(const rondo_program *program, int32_t value, bool take_factors,
                               int32_t axis, int64_t *out_repeats, rondo__view *out_view);

// Whether it is the whole base, in order.
bool rondo__view_is_whole(const rondo_program *program, const rondo__view *view);
