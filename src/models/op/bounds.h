// op/bounds.h — the most that an op can find whose result's shape depends on data.
//
// One number decides all output shapes of such an op: the count of elements, rows or boxes that it
// found. The inputs' shapes bound this count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op.h"

typedef struct rondo__op_bound {
    rondo_shape shape;  // the largest
    int32_t axis;       // whose extent is the count; -1: none, the shape is always this one
} rondo__op_bound;

typedef struct rondo__bounding {
    const rondo__op *op;
    const rondo__tensor_info *inputs;
    size_t input_count;
    size_t output;
} rondo__bounding;

// Input 0 as the op sees it, with the axis that is counted: without the attribute a list. For rows.
bool rondo__bound_axis(const rondo__bounding *bounding, rondo__op_bound *out_bound);

// Bounds output `output`. False where the op is none of these, an input's shape is not known, or
// the largest shape has more elements than can be counted.
bool rondo__op_get_bound(const rondo__op *op, const rondo__tensor_info *inputs, size_t input_count,
                         size_t output, rondo__op_bound *out_bound);

// A kernel of such an op writes its results into rooms, memory for the largest shapes, packed as if
// each had its final shape, and the count, i64 [1], as a further output.
static inline size_t rondo__op_get_count_output(const rondo__op_def *def) {
    return def->output_max;
}
