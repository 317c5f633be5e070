// op/broadcast.c — see broadcast.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/broadcast.h"

#include <stdbool.h>

#include "base/error.h"

rondo_status rondo__broadcast_join(const rondo__op *op, const rondo_shape *shape,
                                   rondo_shape *in_out_shape) {
    rondo_shape joined = shape->rank > in_out_shape->rank ? *shape : *in_out_shape;
    const rondo_shape *other = shape->rank > in_out_shape->rank ? in_out_shape : shape;
    int32_t shift = joined.rank - other->rank;
    for (int32_t d = 0; d < other->rank; ++d) {
        int64_t *mine = &joined.extent[d + shift];
        int64_t theirs = other->extent[d];
        if (*mine == 1) {
            *mine = theirs;
        } else if (theirs != 1 && theirs != *mine) {
            char a[80];
            char b[80];
            return RONDO_OP_FAIL(op, BAD_DATA, "shapes %s and %s do not broadcast",
                                 rondo_shape_format(in_out_shape, a, sizeof a),
                                 rondo_shape_format(shape, b, sizeof b));
        }
    }
    *in_out_shape = joined;
    return RONDO_STATUS_OK;
}

// Before version 7 an attribute says at which axis of the first operand the second begins. Numpy's
// rule, which every kernel follows, is the case where both end at the same axis.
static rondo_status check_begin(const rondo__infer *infer) {
    const rondo__attribute *axis = rondo__op_find(infer->op, "axis");
    if (infer->op->opset >= 7 || axis == NULL || infer->input_count != 2) {
        return RONDO_STATUS_OK;
    }
    const rondo_shape *a = &infer->inputs[0].shape, *b = &infer->inputs[1].shape;
    const int64_t first = axis->int_value < 0 ? axis->int_value + a->rank : axis->int_value;
    return rondo_shape_get_count(b) == 1 || first == a->rank - b->rank
               ? RONDO_STATUS_OK
               : rondo__op_fail_unsupported(infer->op, "attribute axis away from the end");
}

rondo_status rondo__broadcast_inputs(const rondo__infer *infer, rondo_shape *out_shape) {
    RETURN_IF_ERROR(check_begin(infer));
    rondo_shape shape = {0};
    for (size_t i = 0; i < infer->input_count; ++i) {
        if (infer->inputs[i].dtype != RONDO_DTYPE_NONE) {
            RETURN_IF_ERROR(rondo__broadcast_join(infer->op, &infer->inputs[i].shape, &shape));
        }
    }
    *out_shape = shape;
    return RONDO_STATUS_OK;
}

// Element strides of `operand` when walked in the extents of `result`.
static void get_strides(const rondo_shape *result, const rondo_shape *operand, int64_t *strides) {
    int32_t shift = result->rank - operand->rank;
    int64_t stride = 1;
    for (int32_t d = result->rank - 1; d >= 0; --d) {
        int64_t extent = d >= shift ? operand->extent[d - shift] : 1;
        strides[d] = extent == 1 ? 0 : stride;
        stride *= extent;
    }
}

void rondo__broadcast_init(rondo__broadcast *broadcast, const rondo_shape *result,
                           const rondo_shape *const *operands, size_t operand_count) {
    *broadcast = (rondo__broadcast){.operand_count = operand_count};
    int64_t strides[RONDO_OP_BROADCAST_MAX][RONDO_RANK_MAX];
    for (size_t k = 0; k < operand_count; ++k) {
        get_strides(result, operands[k], strides[k]);
    }
    // Drop extents of 1; join an extent with the one before it where every operand goes on evenly.
    int32_t rank = 0;
    int64_t extent[RONDO_RANK_MAX];
    int64_t joined[RONDO_OP_BROADCAST_MAX][RONDO_RANK_MAX];
    for (int32_t d = 0; d < result->rank; ++d) {
        if (result->extent[d] == 1) {
            continue;
        }
        bool is_run = rank > 0;
        for (size_t k = 0; is_run && k < operand_count; ++k) {
            is_run = joined[k][rank - 1] == strides[k][d] * result->extent[d];
        }
        if (is_run) {
            extent[rank - 1] *= result->extent[d];
        } else {
            extent[rank++] = result->extent[d];
        }
        for (size_t k = 0; k < operand_count; ++k) {
            joined[k][rank - 1] = strides[k][d];
        }
    }
    int32_t outer = rank > 0 ? rank - 1 : 0;
    broadcast->outer_rank = outer;
    broadcast->row_length = rank > 0 ? extent[outer] : 1;
    broadcast->row_count = broadcast->row_length == 0 ? 0 : 1;
    for (int32_t d = 0; d < outer; ++d) {
        broadcast->outer_extent[d] = extent[d];
        broadcast->row_count *= extent[d];
    }
    for (size_t k = 0; k < operand_count; ++k) {
        broadcast->row_stride[k] = rank > 0 ? joined[k][outer] : 0;
        for (int32_t d = 0; d < outer; ++d) {
            broadcast->outer_stride[k][d] = joined[k][d];
        }
    }
}

void rondo__broadcast_seek(rondo__broadcast *broadcast, int64_t row) {
    for (size_t k = 0; k < broadcast->operand_count; ++k) {
        broadcast->offset[k] = 0;
    }
    for (int32_t d = broadcast->outer_rank - 1; d >= 0; --d) {
        broadcast->index[d] = row % broadcast->outer_extent[d];
        row /= broadcast->outer_extent[d];
        for (size_t k = 0; k < broadcast->operand_count; ++k) {
            broadcast->offset[k] += broadcast->index[d] * broadcast->outer_stride[k][d];
        }
    }
}

void rondo__broadcast_advance(rondo__broadcast *broadcast) {
    for (int32_t d = broadcast->outer_rank - 1; d >= 0; --d) {
        bool is_inside = ++broadcast->index[d] < broadcast->outer_extent[d];
        int64_t steps = is_inside ? 1 : 1 - broadcast->outer_extent[d];
        for (size_t k = 0; k < broadcast->operand_count; ++k) {
            broadcast->offset[k] += steps * broadcast->outer_stride[k][d];
        }
        if (is_inside) {
            return;
        }
        broadcast->index[d] = 0;
    }
}
