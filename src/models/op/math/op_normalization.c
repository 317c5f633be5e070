// op/math/op_normalization.c — batch, instance, layer and group normalisation, LRN and the norms.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/element_types.h"
#include "op/math/group_norm.h"
#include "op/op.h"
#include "op/reference.h"

// Mean and variance (over `count`, not `count - 1`) of a run of values.
static void get_moments(const double *values, int64_t count, double *out_mean,
                        double *out_variance) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
    }
    const double mean = sum / (double)count;
    double squares = 0.0;
    for (int64_t i = 0; i < count; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
    }
    *out_mean = mean;
    *out_variance = squares / (double)count;
}

static rondo_status check_vector(const rondo__infer *infer, size_t input, int64_t extent) {
    const rondo_shape *shape = &infer->inputs[input].shape;
    if (shape->rank != 1 || shape->extent[0] != extent) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu has shape %s, [%lld] is expected",
                             input, rondo_shape_format(shape, text, sizeof text),
                             (long long)extent);
    }
    return RONDO_STATUS_OK;
}

static int64_t get_channels(const rondo_shape *shape) {
    return shape->rank < 2 ? 1 : shape->extent[1];
}

static int64_t get_plane_span(const rondo_shape *shape) {
    return shape->rank < 2 ? 1 : rondo__shape_multiply(shape, 2, shape->rank);
}

// ---- BatchNormalization -----------------------------------------------------------------------
//
// Training is asked for in three ways: training_mode since version 14, or, where that is left out,
// by the executor; more outputs than one before it (7 and 9); and is_test = 0 before 7, which is
// refused. rondo.BatchNormalization trains; input 5 is added to y, and with relu = 1 y is not below
// 0, as if ops behind it did so.

static bool is_training(const rondo__op *op, size_t output_count) {
    return op->def->id == RONDO__FUSED_BatchNormalization ? true
           : op->opset >= 14                              ? rondo__op_trains(op)
                                                          : output_count > 1;
}

static rondo_status check_batch_6(const rondo__op *op) {
    return rondo__op_get_int(op, "is_test", 0) == 0
               ? rondo__op_fail_unsupported(op, "attribute is_test is 0")
           : rondo__op_get_int(op, "spatial", 1) == 0
               ? rondo__op_fail_unsupported(op, "attribute spatial is 0")
               : RONDO_STATUS_OK;
}

// [batch, channels, span]; channels that come last have a span of 1.
typedef struct channel_planes {
    int64_t batch, channels, span;
} channel_planes;

static channel_planes get_planes(const rondo__op *op, const rondo_shape *x) {
    if (rondo__op_get_int(op, "channels_last", 0) != 0 && x->rank > 1) {
        return (channel_planes){rondo__shape_multiply(x, 0, x->rank - 1), x->extent[x->rank - 1],
                                1};
    }
    return (channel_planes){x->rank == 0 ? 1 : x->extent[0], get_channels(x), get_plane_span(x)};
}

static rondo_status infer_batch(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    const int64_t channels = get_planes(infer->op, &inputs[0].shape).channels;
    for (size_t i = 1; i < 5; i++) {
        if (!rondo__dtype_is_float(inputs[i].dtype)) {
            return rondo__op_fail_dtype(infer->op, i, inputs[i].dtype);
        }
        RETURN_IF_ERROR(check_vector(infer, i, channels));
    }
    if (infer->output_count > 1 && !is_training(infer->op, infer->output_count)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "names %zu outputs, but attribute training_mode is 0",
                             infer->output_count);
    }
    if (rondo__infer_has_input(infer, 5) &&
        (inputs[5].dtype != inputs[0].dtype ||
         !rondo_shape_is_equal(&inputs[5].shape, &inputs[0].shape))) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "x and what is added do not fit");
    }
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, inputs[0].dtype, &inputs[0].shape));
    for (size_t i = 1; i < infer->output_count; i++) {
        RETURN_IF_ERROR(
            rondo__infer_set_output(infer, i, inputs[3 + (i - 1) % 2].dtype, &inputs[3].shape));
    }
    return RONDO_STATUS_OK;
}

// Mean and variance of each channel over batch and spatial axes.
static void get_channel_moments(const double *x, int64_t batch, int64_t channels, int64_t span,
                                double *mean, double *variance) {
    const double count = (double)(batch * span);
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0.0;
        for (int64_t n = 0; n < batch; n++) {
            const double *plane = x + (n * channels + c) * span;
            for (int64_t i = 0; i < span; i++) {
                sum += plane[i];
            }
        }
        mean[c] = sum / count;
        double squares = 0.0;
        for (int64_t n = 0; n < batch; n++) {
            const double *plane = x + (n * channels + c) * span;
            for (int64_t i = 0; i < span; i++) {
                squares += (plane[i] - mean[c]) * (plane[i] - mean[c]);
            }
        }
        variance[c] = squares / count;
    }
}

// What the ops behind it do that the node has taken in; `added` may be NULL.
static void end_batch(const rondo__compute *compute, const double *added, double *y) {
    const int64_t count = rondo_shape_get_count(&compute->inputs[0]->shape);
    const bool is_relu = rondo__op_get_int(compute->op, "relu", 0) != 0;
    for (int64_t i = 0; i < count && (added != NULL || is_relu); i++) {
        y[i] += added != NULL ? added[i] : 0.0;
        y[i] = is_relu && y[i] < 0.0 ? 0.0 : y[i];
    }
}

static rondo_status compute_batch(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const channel_planes planes = get_planes(op, shape);
    const int64_t batch = planes.batch, channels = planes.channels, span = planes.span;
    const bool trains = is_training(op, compute->output_count);
    rondo__scratch scratch = {0};
    double *wide[5];
    for (size_t i = 0; i < 5; i++) {
        wide[i] = rondo__scratch_widen(&scratch, compute->inputs[i]);
    }
    const bool adds = compute->input_count > 5 && compute->inputs[5] != NULL;
    const double *added = adds ? rondo__scratch_widen(&scratch, compute->inputs[5]) : NULL;
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(shape));
    double *mean = rondo__scratch_create(&scratch, channels);
    double *variance = rondo__scratch_create(&scratch, channels);
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    if (trains) {
        get_channel_moments(wide[0], batch, channels, span, mean, variance);
    }
    const double *used_mean = trains ? mean : wide[3];
    const double *used_variance = trains ? variance : wide[4];
    const double epsilon = (double)rondo__op_get_float(op, "epsilon", 1e-5f);
    for (int64_t n = 0; n < batch; n++) {
        for (int64_t c = 0; c < channels; c++) {
            const double scale = wide[1][c] / sqrt(used_variance[c] + epsilon);
            const int64_t first = (n * channels + c) * span;
            for (int64_t i = first; i < first + span; i++) {
                y[i] = (wide[0][i] - used_mean[c]) * scale + wide[2][c];
            }
        }
    }
    end_batch(compute, added, y);
    scratch.status = rondo__narrow(compute, 0, y);
    if (trains) {
        // Outputs 1 and 2 are the running values; 3 and 4 (before version 14) the batch's own.
        const double momentum = (double)rondo__op_get_float(op, "momentum", 0.9f);
        for (int64_t c = 0; c < channels; c++) {
            wide[3][c] = wide[3][c] * momentum + mean[c] * (1.0 - momentum);
            wide[4][c] = wide[4][c] * momentum + variance[c] * (1.0 - momentum);
        }
        const double *outputs[4] = {wide[3], wide[4], mean, variance};
        for (size_t i = 1; i < compute->output_count && scratch.status == RONDO_STATUS_OK; i++) {
            scratch.status = rondo__narrow(compute, i, outputs[i - 1]);
        }
    }
    return rondo__scratch_end(&scratch);
}

// ---- the way back ------------------------------------------------------------------------------
//
// rondo.NormGradient(dy, x, scale, mean, variance, y): the changes of x, scale and shift. With the
// moments of a batch it goes back through BatchNormalization, without through LayerNormalization,
// whose rows are as long as scale. y of a batch, where it is given, is behind a Relu: dy counts
// where it is not at most 0.

static rondo_status infer_norm_gradient(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const rondo_shape *x = &inputs[1].shape;
    const bool is_batch = rondo__infer_has_input(infer, 3);
    const int64_t channels =
        is_batch ? get_planes(infer->op, x).channels : rondo_shape_get_count(&inputs[2].shape);
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 1, 1));
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    if (!rondo_shape_is_equal(&inputs[0].shape, x) || channels < 1 ||
        rondo_shape_get_count(x) % channels != 0 || is_batch != rondo__infer_has_input(infer, 4) ||
        rondo_shape_get_count(&inputs[2].shape) != channels) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "dy, x and the scale do not fit");
    }
    for (size_t i = 3; i < 5 && is_batch; i++) {
        RETURN_IF_ERROR(check_vector(infer, i, channels));
    }
    if (rondo__infer_has_input(infer, 5) &&
        (!is_batch || !rondo_shape_is_equal(&inputs[5].shape, x) ||
         inputs[5].dtype != inputs[1].dtype)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "x and what it became do not fit");
    }
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, inputs[1].dtype, x));
    const rondo_shape vector = {.rank = 1, .extent = {channels}};
    for (size_t i = 1; i < infer->output_count; i++) {
        RETURN_IF_ERROR(rondo__infer_set_output(infer, i, inputs[2].dtype, &vector));
    }
    return RONDO_STATUS_OK;
}

// Of the elements that share moments: a row, or a channel. Elements of a row have a scale each.
static void change_line(const double *g, const double *n, const double *scale,
                        const channel_planes *p, int64_t line, bool is_row, double inverse,
                        double *dx) {
    const int64_t count = is_row ? p->channels : p->batch * p->span;
    const double factor = is_row ? inverse : inverse * scale[line];
    double one = 0.0, two = 0.0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = is_row ? line * count + i
                                      : (i / p->span * p->channels + line) * p->span + i % p->span;
            const double change = is_row ? g[at] * scale[i] : g[at];
            if (pass == 0) {
                one += change;
                two += change * n[at];
            } else {
                dx[at] = factor * (change - one / (double)count - n[at] * two / (double)count);
            }
        }
    }
}

static double find_inverse(const double *x, int64_t count, double epsilon, double *out_mean) {
    double mean = 0.0, squares = 0.0;
    for (int64_t i = 0; i < count; i++) {
        mean += x[i] / (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        squares += (x[i] - mean) * (x[i] - mean);
    }
    *out_mean = mean;
    return 1.0 / sqrt(squares / (double)count + epsilon);
}

static rondo_status compute_norm_gradient(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[1]->shape;
    const bool is_row = !rondo__compute_has_input(compute, 3);
    const double epsilon = (double)rondo__op_get_float(compute->op, "epsilon", 1e-5f);
    const int64_t all = rondo_shape_get_count(shape);
    channel_planes p = get_planes(compute->op, shape);
    if (is_row) {
        p.channels = rondo_shape_get_count(&compute->inputs[2]->shape);
        p.batch = all / p.channels;
        p.span = 1;
    }
    rondo__scratch scratch = {0};
    const double *in[6];
    for (size_t i = 0; i < 6; i++) {
        in[i] = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, i));
    }
    double *g = rondo__scratch_create(&scratch, all), *n = rondo__scratch_create(&scratch, all);
    double *dx = rondo__scratch_create(&scratch, all);
    double *sums[2] = {rondo__scratch_create(&scratch, p.channels),
                       rondo__scratch_create(&scratch, p.channels)};
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    for (int64_t line = 0; line < (is_row ? p.batch : p.channels); line++) {
        double mean = is_row ? 0.0 : in[3][line];
        const double inverse =
            is_row ? find_inverse(in[1] + line * p.channels, p.channels, epsilon, &mean)
                   : 1.0 / sqrt(in[4][line] + epsilon);
        for (int64_t i = 0; i < all / (is_row ? p.batch : p.channels); i++) {
            const int64_t at = is_row ? line * p.channels + i
                                      : (i / p.span * p.channels + line) * p.span + i % p.span;
            const int64_t c = is_row ? i : line;
            g[at] = in[5] != NULL && in[5][at] <= 0.0 ? 0.0 : in[0][at];
            n[at] = (in[1][at] - mean) * inverse;
            sums[0][c] += g[at] * n[at];
            sums[1][c] += g[at];
        }
        change_line(g, n, in[2], &p, line, is_row, inverse, dx);
    }
    scratch.status = rondo__narrow(compute, 0, dx);
    for (size_t i = 1; i < compute->output_count && scratch.status == RONDO_STATUS_OK; i++) {
        scratch.status = rondo__narrow(compute, i, sums[i - 1]);
    }
    return rondo__scratch_end(&scratch);
}

// ---- InstanceNormalization and GroupNormalization ---------------------------------------------

static rondo_status infer_instance(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 3));
    const rondo_shape *shape = &infer->inputs[0].shape;
    if (shape->rank < 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input has rank %d, at least 2 is needed",
                             shape->rank);
    }
    RETURN_IF_ERROR(check_vector(infer, 1, shape->extent[1]));
    RETURN_IF_ERROR(check_vector(infer, 2, shape->extent[1]));
    return rondo__infer_like_input(infer);
}

void rondo__normalize_groups(const rondo__group_norm *norm, const double *scale,
                             const double *shift, double *values) {
    const int64_t group_channels = norm->channels / norm->groups;
    for (int64_t group = 0; group < norm->batch * norm->groups; group++) {
        double *own = values + group * group_channels * norm->span;
        double mean, variance;
        get_moments(own, group_channels * norm->span, &mean, &variance);
        const double factor = 1.0 / sqrt(variance + norm->epsilon);
        for (int64_t i = 0; i < group_channels * norm->span; i++) {
            const int64_t c = group % norm->groups * group_channels + i / norm->span;
            const int64_t at = norm->is_by_group ? group % norm->groups : c;
            own[i] = (own[i] - mean) * factor * scale[at] + shift[at];
        }
    }
}

static rondo_status compute_groups(rondo__compute *compute, int64_t groups, bool is_by_group) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const rondo__group_norm norm = {
        .batch = shape->extent[0],
        .channels = shape->extent[1],
        .span = get_plane_span(shape),
        .groups = groups,
        .is_by_group = is_by_group,
        .epsilon = (double)rondo__op_get_float(compute->op, "epsilon", 1e-5f),
    };
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *scale = rondo__scratch_widen(&scratch, compute->inputs[1]);
    const double *bias = rondo__scratch_widen(&scratch, compute->inputs[2]);
    if (scratch.status == RONDO_STATUS_OK && norm.channels > 0 && norm.span > 0) {
        rondo__normalize_groups(&norm, scale, bias, x);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x);
}

static rondo_status compute_instance(rondo__compute *compute) {
    return compute_groups(compute, compute->inputs[0]->shape.extent[1], false);
}

static rondo_status infer_group(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 3));
    const rondo_shape *shape = &infer->inputs[0].shape;
    const int64_t groups = rondo__op_get_int(infer->op, "num_groups", 0);
    if (shape->rank < 2 || groups < 1 || shape->extent[1] % groups != 0) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "attribute num_groups is %lld for an input of shape %s",
                             (long long)groups, rondo_shape_format(shape, text, sizeof text));
    }
    const int64_t extent = infer->op->opset >= 21 ? shape->extent[1] : groups;
    RETURN_IF_ERROR(check_vector(infer, 1, extent));
    RETURN_IF_ERROR(check_vector(infer, 2, extent));
    return rondo__infer_like_input(infer);
}

static rondo_status compute_group(rondo__compute *compute) {
    return compute_groups(compute, rondo__op_get_int(compute->op, "num_groups", 1),
                          compute->op->opset < 21);
}

// ---- LayerNormalization -----------------------------------------------------------------------

// Scale and bias must broadcast to X without stretching it.
static rondo_status check_stretch(const rondo__infer *infer, size_t input) {
    const rondo_shape *x = &infer->inputs[0].shape;
    const rondo_shape *shape = &infer->inputs[input].shape;
    for (int32_t i = 1; i <= shape->rank; i++) {
        const int64_t extent = shape->extent[shape->rank - i];
        if (extent != 1 && (i > x->rank || extent != x->extent[x->rank - i])) {
            char text[96];
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu of shape %s does not fit X", input,
                                 rondo_shape_format(shape, text, sizeof text));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_layer(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    const rondo__tensor_info *x = &infer->inputs[0];
    int32_t axis;
    RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", -1),
                                           x->shape.rank, &axis));
    for (size_t i = 1; i < 3; i++) {
        if (rondo__infer_has_input(infer, i)) {
            RETURN_IF_ERROR(check_stretch(infer, i));
        }
    }
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, x->dtype, &x->shape));
    rondo_shape reduced = x->shape;
    for (int32_t i = axis; i < reduced.rank; i++) {
        reduced.extent[i] = 1;
    }
    // The statistics have the type that stash_type asks for, whatever x has.
    const int64_t stash_number = rondo__op_get_int(infer->op, "stash_type", 1);
    const rondo_dtype stash = rondo__dtype_from_onnx(stash_number);
    if (stash != RONDO_DTYPE_F32 && stash != RONDO_DTYPE_BF16) {
        return rondo__op_fail_element_type(infer->op, "stash_type", stash_number);
    }
    for (size_t i = 1; i < infer->output_count; i++) {
        RETURN_IF_ERROR(rondo__infer_set_output(infer, i, stash, &reduced));
    }
    return RONDO_STATUS_OK;
}

// How far an operand moves for each axis of `x`, by broadcasting.
static void get_broadcast_steps(const rondo_tensor *tensor, const rondo_shape *x, int64_t *steps) {
    memset(steps, 0, RONDO_RANK_MAX * sizeof *steps);
    if (tensor == NULL) {
        return;
    }
    int64_t step = 1;
    for (int32_t i = 1; i <= tensor->shape.rank && i <= x->rank; i++) {
        const int64_t extent = tensor->shape.extent[tensor->shape.rank - i];
        steps[x->rank - i] = extent == 1 ? 0 : step;
        step *= extent;
    }
}

static int64_t get_place(int64_t index, const rondo_shape *shape, const int64_t *steps) {
    int64_t at = 0;
    for (int32_t i = shape->rank - 1; i >= 0; i--) {
        at += index % shape->extent[i] * steps[i];
        index /= shape->extent[i];
    }
    return at;
}

static rondo_status compute_layer(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inputs[0]->shape;
    int32_t axis;
    RETURN_IF_ERROR(
        rondo__op_resolve_axis(op, rondo__op_get_int(op, "axis", -1), shape->rank, &axis));
    const int64_t rows = rondo__shape_multiply(shape, 0, axis);
    const int64_t length = rondo__shape_multiply(shape, axis, shape->rank);
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *scale = rondo__scratch_widen(&scratch, compute->inputs[1]);
    const double *bias = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 2));
    double *means = rondo__scratch_create(&scratch, rows);
    double *inverses = rondo__scratch_create(&scratch, rows);
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    int64_t scale_steps[RONDO_RANK_MAX];
    int64_t bias_steps[RONDO_RANK_MAX];
    get_broadcast_steps(compute->inputs[1], shape, scale_steps);
    get_broadcast_steps(rondo__compute_get_input(compute, 2), shape, bias_steps);
    const double epsilon = (double)rondo__op_get_float(op, "epsilon", 1e-5f);
    for (int64_t row = 0; row < rows && length > 0; row++) {
        double variance;
        get_moments(x + row * length, length, &means[row], &variance);
        inverses[row] = 1.0 / sqrt(variance + epsilon);
        for (int64_t i = row * length; i < (row + 1) * length; i++) {
            double value = (x[i] - means[row]) * inverses[row];
            value *= scale[get_place(i, shape, scale_steps)];
            if (bias != NULL) {
                value += bias[get_place(i, shape, bias_steps)];
            }
            x[i] = value;
        }
    }
    const double *outputs[3] = {x, means, inverses};
    for (size_t i = 0; i < compute->output_count && scratch.status == RONDO_STATUS_OK; i++) {
        scratch.status = rondo__narrow(compute, i, outputs[i]);
    }
    return rondo__scratch_end(&scratch);
}

// ---- RMSNormalization -------------------------------------------------------------------------

static rondo_status infer_rms(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    int32_t axis;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 1, 1));
    RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", -1),
                                           inputs[0].shape.rank, &axis));
    RETURN_IF_ERROR(check_stretch(infer, 1));
    const int64_t stash = rondo__op_get_int(infer->op, "stash_type", 1);
    if (!rondo__dtype_is_float(rondo__dtype_from_onnx(stash))) {
        return rondo__op_fail_element_type(infer->op, "stash_type", stash);
    }
    return rondo__infer_set_output(infer, 0, inputs[1].dtype, &inputs[0].shape);
}

static rondo_status compute_rms(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inputs[0]->shape;
    int32_t axis;
    RETURN_IF_ERROR(
        rondo__op_resolve_axis(op, rondo__op_get_int(op, "axis", -1), shape->rank, &axis));
    const int64_t rows = rondo__shape_multiply(shape, 0, axis);
    const int64_t length = rondo__shape_multiply(shape, axis, shape->rank);
    const double epsilon = (double)rondo__op_get_float(op, "epsilon", 1e-5f);
    int64_t steps[RONDO_RANK_MAX];
    get_broadcast_steps(compute->inputs[1], shape, steps);
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *scale = rondo__scratch_widen(&scratch, compute->inputs[1]);
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t row = 0; row < rows && length > 0; row++) {
            double squares = 0.0;
            for (int64_t i = row * length; i < (row + 1) * length; i++) {
                squares += x[i] * x[i];
            }
            const double inverse = 1.0 / sqrt(squares / (double)length + epsilon);
            for (int64_t i = row * length; i < (row + 1) * length; i++) {
                x[i] *= inverse * scale[get_place(i, shape, steps)];
            }
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x);
}

// ---- LRN --------------------------------------------------------------------------------------

static rondo_status infer_lrn(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    const int64_t size = rondo__op_get_int(infer->op, "size", 0);
    if (size < 1 || infer->inputs[0].shape.rank < 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "attribute size is %lld (at least 1), input X has rank %d "
                             "(at least 2)",
                             (long long)size, infer->inputs[0].shape.rank);
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_lrn(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const int64_t channels = shape->extent[1];
    const int64_t span = get_plane_span(shape);
    const int64_t size = rondo__op_get_int(op, "size", 1);
    const double alpha = (double)rondo__op_get_float(op, "alpha", 1e-4f);
    const double beta = (double)rondo__op_get_float(op, "beta", 0.75f);
    const double bias = (double)rondo__op_get_float(op, "bias", 1.0f);
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(shape));
    if (scratch.status == RONDO_STATUS_OK) {
        const int64_t before = (size - 1) / 2;
        const int64_t after = size - 1 - before;
        for (int64_t plane = 0; plane < shape->extent[0] * channels; plane++) {
            const int64_t c = plane % channels;
            const int64_t first = c < before ? 0 : c - before;
            const int64_t last = after >= channels - c ? channels - 1 : c + after;
            for (int64_t i = 0; i < span; i++) {
                double squares = 0.0;
                for (int64_t k = first; k <= last; k++) {
                    const double value = x[(plane - c + k) * span + i];
                    squares += value * value;
                }
                y[plane * span + i] =
                    x[plane * span + i] / pow(bias + alpha / (double)size * squares, beta);
            }
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- LpNormalization --------------------------------------------------------------------------

static rondo_status infer_lp(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    const int64_t p = rondo__op_get_int(infer->op, "p", 2);
    int32_t axis;
    RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", -1),
                                           infer->inputs[0].shape.rank, &axis));
    if (p != 1 && p != 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute p is %lld, it must be 1 or 2",
                             (long long)p);
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_lp(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inputs[0]->shape;
    int32_t axis;
    RETURN_IF_ERROR(
        rondo__op_resolve_axis(op, rondo__op_get_int(op, "axis", -1), shape->rank, &axis));
    const bool is_first = rondo__op_get_int(op, "p", 2) == 1;
    const int64_t outer = rondo__shape_multiply(shape, 0, axis);
    const int64_t length = shape->extent[axis];
    const int64_t inner = rondo__shape_multiply(shape, axis + 1, shape->rank);
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t line = 0; line < outer * inner; line++) {
            double *values = x + line / inner * length * inner + line % inner;
            double sum = 0.0;
            for (int64_t i = 0; i < length; i++) {
                const double value = values[i * inner];
                sum += is_first ? fabs(value) : value * value;
            }
            const double norm = is_first ? sum : sqrt(sum);
            for (int64_t i = 0; i < length; i++) {
                values[i * inner] = norm == 0.0 ? 0.0 : values[i * inner] / norm;
            }
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x);
}

// ---- MeanVarianceNormalization ----------------------------------------------------------------

static rondo_status read_mvn_axes(const rondo__op *op, int32_t rank, uint32_t *out_mask) {
    static const int64_t defaults[] = {0, 2, 3};
    size_t count;
    const int64_t *axes = rondo__op_get_ints(op, "axes", &count);
    if (axes == NULL) {
        axes = defaults;
        count = sizeof defaults / sizeof defaults[0];
    }
    return rondo__op_resolve_axes(op, axes, count, rank, out_mask);
}

static rondo_status infer_mvn(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    uint32_t mask;
    RETURN_IF_ERROR(read_mvn_axes(infer->op, infer->inputs[0].shape.rank, &mask));
    return rondo__infer_like_input(infer);
}

static rondo_status compute_mvn(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    uint32_t mask;
    RETURN_IF_ERROR(read_mvn_axes(compute->op, shape->rank, &mask));
    // Each element belongs to the group that the kept axes name.
    int64_t steps[RONDO_RANK_MAX] = {0};
    int64_t groups = 1;
    for (int32_t i = shape->rank - 1; i >= 0; i--) {
        if ((mask >> i & 1u) == 0) {
            steps[i] = groups;
            groups *= shape->extent[i];
        }
    }
    const int64_t count = rondo_shape_get_count(shape);
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *mean = rondo__scratch_create(&scratch, groups);
    double *variance = rondo__scratch_create(&scratch, groups);
    if (scratch.status == RONDO_STATUS_OK) {
        const double members = count == 0 ? 1.0 : (double)(count / groups);
        for (int64_t i = 0; i < count; i++) {
            mean[get_place(i, shape, steps)] += x[i] / members;
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t group = get_place(i, shape, steps);
            variance[group] += (x[i] - mean[group]) * (x[i] - mean[group]) / members;
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t group = get_place(i, shape, steps);
            x[i] = (x[i] - mean[group]) / (sqrt(variance[group]) + 1e-9);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x);
}

static const char *const batch_attributes[] = {"epsilon", "momentum", "spatial", "training_mode",
                                               NULL};
static const char *const batch_6_attributes[] = {"epsilon", "is_test", "momentum", "spatial", NULL};
static const char *const epsilon_attributes[] = {"epsilon", NULL};
static const char *const group_attributes[] = {"epsilon", "num_groups", "stash_type", NULL};
static const char *const layer_attributes[] = {"axis", "epsilon", "stash_type", NULL};
static const char *const lrn_attributes[] = {"alpha", "beta", "bias", "size", NULL};
static const char *const lp_attributes[] = {"axis", "p", NULL};
static const char *const mvn_attributes[] = {"axes", NULL};

const rondo__op_def rondo__op_table_normalization[] = {
    RONDO_OP_ROW(OP, BatchNormalization, 6, 6, 5, 5, 1, 1, .capture = RONDO__CAPTURE_YES,
                 .attributes = batch_6_attributes, .infer = infer_batch, .compute = compute_batch,
                 .check = check_batch_6, .wide_inputs = RONDO__INPUT_1 | RONDO__INPUT_2 | 8 | 16,
                 .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(BatchNormalization, 9, 13, 5, 5, 1, 5, batch_attributes, infer_batch,
                   compute_batch, .wide_inputs = RONDO__INPUT_1 | RONDO__INPUT_2 | 8 | 16,
                   .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(BatchNormalization, 14, 28, 5, 5, 1, 3, batch_attributes, infer_batch,
                   compute_batch, .wide_inputs = RONDO__INPUT_1 | RONDO__INPUT_2 | 8 | 16,
                   .half.kind = HALF_BOUNDED),
    RONDO_OP_ROW(FUSED, BatchNormalization, 1, RONDO_OP_OPSET_MAX, 5, 6, 1, 5,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES, .infer = infer_batch,
                 .compute = compute_batch, .half.kind = HALF_BOUNDED,
                 .wide_inputs = RONDO__INPUT_1 | RONDO__INPUT_2 | 8 | 16),
    RONDO_OP_ROW(FUSED, NormGradient, 1, RONDO_OP_OPSET_MAX, 3, 6, 1, 3,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_norm_gradient, .compute = compute_norm_gradient,
                 .half.kind = HALF_PRODUCT, .wide_inputs = RONDO__INPUT_2 | 8 | 16),
    RONDO_OP_ENTRY(InstanceNormalization, 6, 28, 3, 3, 1, 1, epsilon_attributes, infer_instance,
                   compute_instance, .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(GroupNormalization, 18, 28, 3, 3, 1, 1, group_attributes, infer_group,
                   compute_group, .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(LayerNormalization, 17, 28, 2, 3, 1, 3, layer_attributes, infer_layer,
                   compute_layer, .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(RMSNormalization, 23, 28, 2, 2, 1, 1, layer_attributes, infer_rms, compute_rms,
                   .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(LRN, 1, 28, 1, 1, 1, 1, lrn_attributes, infer_lrn, compute_lrn),
    RONDO_OP_ENTRY(LpNormalization, 1, 28, 1, 1, 1, 1, lp_attributes, infer_lp, compute_lp,
                   .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(MeanVarianceNormalization, 9, 28, 1, 1, 1, 1, mvn_attributes, infer_mvn,
                   compute_mvn, .half.kind = HALF_BOUNDED),
    {.name = NULL},
};
