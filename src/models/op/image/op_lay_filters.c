// op/image/op_lay_filters.c — rondo.LayFilters; see op/fused/fused.h.
// SPDX-License-Identifier: Apache-2.0
#include "op/fused/fused.h"
#include "op/reference.h"

enum { FILTER_RANK = 4 };

static rondo_status infer_lay_filters(rondo__infer *infer) {
    const rondo_dtype dtype = rondo__dtype_from_onnx(rondo__op_get_int(infer->op, "to", 0));
    if (dtype != RONDO_DTYPE_F16 && dtype != RONDO_DTYPE_F32) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute to is neither f32 nor f16");
    }
    if (infer->output_count > 2 * infer->input_count) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "%zu outputs, at most two for each of %zu inputs",
                             infer->output_count, infer->input_count);
    }
    for (size_t i = 0; i < infer->input_count; ++i) {
        const rondo_shape *w = &infer->inputs[i].shape, *first = &infer->inputs[0].shape;
        RETURN_IF_ERROR(rondo__infer_check_float(infer, i, i + 1));
        if (w->rank != FILTER_RANK || w->extent[2] != first->extent[2] ||
            w->extent[3] != first->extent[3]) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA,
                                 "input %zu has no two axes of taps, as many as the first", i);
        }
        for (size_t k = 0; k < 2 && 2 * i + k < infer->output_count; ++k) {
            const rondo_shape y = {
                .rank = FILTER_RANK,
                .extent = {w->extent[k], w->extent[2], w->extent[3], w->extent[1 - k]}};
            RETURN_IF_ERROR(rondo__infer_set_output(infer, 2 * i + k, dtype, &y));
        }
    }
    return RONDO_STATUS_OK;
}

// Input `i` as output 2 i + `turned`.
static rondo_status lay_one(rondo__compute *compute, size_t i, bool turned) {
    const int64_t *extent = compute->inputs[i]->shape.extent;
    const int64_t taps = extent[2] * extent[3], all = extent[0] * extent[1] * taps;
    const bool saturates = rondo__op_get_int(compute->op, "saturate", 0) != 0;
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[i]);
    double *y = rondo__scratch_create(&scratch, all);
    for (int64_t at = 0; at < all && scratch.status == RONDO_STATUS_OK; ++at) {
        const int64_t tap = at % taps, in = at / taps % extent[1], out = at / taps / extent[1];
        const int64_t to = turned ? (in * taps + taps - 1 - tap) * extent[0] + out
                                  : (out * taps + tap) * extent[1] + in;
        y[to] = saturates ? (double)rondo__scalar_op_apply(RONDO__SCALAR_Saturate, 0.0f, 0.0f,
                                                           (float)x[at], 0.0f)
                          : x[at];
    }
    return rondo__scratch_end_as(&scratch, compute, 2 * i + (turned ? 1 : 0), y);
}

static rondo_status compute_lay_filters(rondo__compute *compute) {
    for (size_t o = 0; o < compute->output_count; ++o) {
        if (rondo__compute_wants_output(compute, o)) {
            RETURN_IF_ERROR(lay_one(compute, o / 2, o % 2 != 0));
        }
    }
    return RONDO_STATUS_OK;
}

const rondo__op_def rondo__op_table_lay_filters[] = {
    RONDO_OP_ROW(FUSED, LayFilters, 1, RONDO_OP_OPSET_MAX, 1, RONDO_OP_ANY_COUNT, 1,
                 RONDO_OP_ANY_COUNT, .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_lay_filters, .compute = compute_lay_filters),
    {.name = NULL},
};
