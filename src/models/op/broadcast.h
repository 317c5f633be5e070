// op/broadcast.h — numpy broadcasting: result shapes, and walking several operands at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "op/op.h"
#include "rondo/tensor.h"

enum { RONDO_OP_BROADCAST_MAX = 3 };

// Joins `shape` into *in_out_shape: extents are aligned at the end, and 1 stretches.
//
// Errors:    BAD_DATA (extents differ and neither is 1).
RONDO_MUST_USE rondo_status rondo__broadcast_join(const rondo__op *op, const rondo_shape *shape,
                                                  rondo_shape *in_out_shape);

// The broadcast shape of all present inputs of `infer`.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__broadcast_inputs(const rondo__infer *infer,
                                                    rondo_shape *out_shape);

// How to walk up to three operands in the order of a dense result. The result is row_count rows of
// row_length elements; in a row each operand moves by row_stride (0 or 1 after joining runs).
typedef struct rondo__broadcast {
    size_t operand_count;
    int64_t row_length;
    int64_t row_count;
    int64_t row_stride[RONDO_OP_BROADCAST_MAX];
    int32_t outer_rank;
    int64_t outer_extent[RONDO_RANK_MAX];
    int64_t outer_stride[RONDO_OP_BROADCAST_MAX][RONDO_RANK_MAX];
    int64_t index[RONDO_RANK_MAX];           // position of the current row
    int64_t offset[RONDO_OP_BROADCAST_MAX];  // element offset of each operand in the current row
} rondo__broadcast;

// Shapes are known to broadcast to `result`.
void rondo__broadcast_init(rondo__broadcast *broadcast, const rondo_shape *result,
                           const rondo_shape *const *operands, size_t operand_count);
// Moves offset[] to row number `row`.
void rondo__broadcast_seek(rondo__broadcast *broadcast, int64_t row);
// Moves offset[] to the next row.
void rondo__broadcast_advance(rondo__broadcast *broadcast);
