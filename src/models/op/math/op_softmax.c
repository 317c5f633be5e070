// op/math/op_softmax.c — Softmax, LogSoftmax and Hardmax; and rondo.Softmax, where a row that is no
// number (all of it was masked out) becomes zeros.
//
// Before version 13 the input is flattened to two axes at `axis` (default 1) and each row counts as
// a whole; since then only the one axis (default -1) counts.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "op/math/scan.h"
#include "op/op.h"
#include "op/reference.h"

// Lines of `length` elements that are `inner` apart; `outer` * `inner` of them.
typedef struct line_set {
    int64_t outer;
    int64_t length;
    int64_t inner;
} line_set;

static rondo_status find_lines(const rondo__op *op, const rondo_shape *shape, line_set *out_lines) {
    const bool is_flattened = op->opset < 13;
    int32_t axis = 0;
    const int64_t given = rondo__op_get_int(op, "axis", is_flattened ? 1 : -1);
    if (is_flattened && given == shape->rank) {
        axis = shape->rank;  // allowed: rows of one element
    } else if (shape->rank > 0 || given < -1 || given > 1) {
        RETURN_IF_ERROR(rondo__op_resolve_axis(op, given, shape->rank, &axis));
    }
    out_lines->outer = rondo__shape_multiply(shape, 0, axis);
    if (is_flattened || shape->rank == 0) {
        out_lines->length = rondo__shape_multiply(shape, axis, shape->rank);
        out_lines->inner = 1;
    } else {
        out_lines->length = shape->extent[axis];
        out_lines->inner = rondo__shape_multiply(shape, axis + 1, shape->rank);
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_lines(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    line_set ignored;
    RETURN_IF_ERROR(find_lines(infer->op, &infer->inputs[0].shape, &ignored));
    return rondo__infer_like_input(infer);
}

typedef void (*line_function)(double *values, int64_t length, int64_t step);

static double get_maximum(const double *values, int64_t length, int64_t step) {
    double best = values[0];
    for (int64_t i = 1; i < length; i++) {
        best = values[i * step] > best ? values[i * step] : best;
    }
    return best;
}

static void run_softmax(double *values, int64_t length, int64_t step) {
    const double maximum = get_maximum(values, length, step);
    double sum = 0.0;
    for (int64_t i = 0; i < length; i++) {
        values[i * step] = exp(values[i * step] - maximum);
        sum += values[i * step];
    }
    for (int64_t i = 0; i < length; i++) {
        values[i * step] /= sum;
    }
}

static void run_zeroed_softmax(double *values, int64_t length, int64_t step) {
    run_softmax(values, length, step);
    for (int64_t i = 0; i < length; i++) {
        values[i * step] = isnan(values[i * step]) ? 0.0 : values[i * step];
    }
}

static void run_log_softmax(double *values, int64_t length, int64_t step) {
    const double maximum = get_maximum(values, length, step);
    double sum = 0.0;
    for (int64_t i = 0; i < length; i++) {
        sum += exp(values[i * step] - maximum);
    }
    // Added up, a large maximum would swallow the logarithm.
    const double logarithm = log(sum);
    for (int64_t i = 0; i < length; i++) {
        values[i * step] = values[i * step] - maximum - logarithm;
    }
}

// The first of the greatest values is picked, or the first NaN, as ArgMax does.
static void run_hardmax(double *values, int64_t length, int64_t step) {
    int64_t best = 0;
    for (int64_t i = 1; i < length && !isnan(values[best * step]); i++) {
        if (!(values[i * step] <= values[best * step])) {
            best = i;
        }
    }
    for (int64_t i = 0; i < length; i++) {
        values[i * step] = i == best ? 1.0 : 0.0;
    }
}

static rondo_status compute_lines(rondo__compute *compute, line_function run) {
    line_set lines;
    RETURN_IF_ERROR(find_lines(compute->op, &compute->inputs[0]->shape, &lines));
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t i = 0; i < lines.outer * lines.inner && lines.length > 0; i++) {
            run(x + i / lines.inner * lines.length * lines.inner + i % lines.inner, lines.length,
                lines.inner);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x);
}

static rondo_status compute_softmax(rondo__compute *compute) {
    return compute_lines(compute, run_softmax);
}

static rondo_status compute_zeroed_softmax(rondo__compute *compute) {
    return compute_lines(compute, run_zeroed_softmax);
}

static rondo_status compute_log_softmax(rondo__compute *compute) {
    return compute_lines(compute, run_log_softmax);
}

// Rows of f32 that lie together need no copy.
static rondo_status run_hardmax_rows(rondo__compute *compute, const line_set *lines) {
    void *output;
    const float *x = compute->inputs[0]->data;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    float *y = output;
    for (int64_t row = 0; row < lines->outer; ++row, x += lines->length, y += lines->length) {
        memset(y, 0, (size_t)lines->length * sizeof *y);
        y[rondo__find_greatest(x, lines->length)] = 1.0f;
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_hardmax(rondo__compute *compute) {
    line_set lines;
    RETURN_IF_ERROR(find_lines(compute->op, &compute->inputs[0]->shape, &lines));
    return compute->inputs[0]->dtype == RONDO_DTYPE_F32 && lines.inner == 1 && lines.length > 0
               ? run_hardmax_rows(compute, &lines)
               : compute_lines(compute, run_hardmax);
}

static const char *const axis_attributes[] = {"axis", NULL};

const rondo__op_def rondo__op_table_softmax[] = {
    RONDO_OP_ENTRY(Softmax, 1, 28, 1, 1, 1, 1, axis_attributes, infer_lines, compute_softmax,
                   .half.kind = HALF_BOUNDED),
    RONDO_OP_ROW(FUSED, Softmax, 1, RONDO_OP_OPSET_MAX, 1, 1, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .attributes = axis_attributes, .infer = infer_lines,
                 .compute = compute_zeroed_softmax, .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(LogSoftmax, 1, 28, 1, 1, 1, 1, axis_attributes, infer_lines, compute_log_softmax,
                   .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(Hardmax, 1, 28, 1, 1, 1, 1, axis_attributes, infer_lines, compute_hardmax,
                   .half.kind = HALF_BOUNDED),
    {.name = NULL},
};
