// op/image/op_convolution.c — Conv, ConvTranspose, DeformConv and the quantised convolutions.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/image/convolution.h"
#include "op/op.h"
#include "op/reference.h"
#include "op/support.h"

// Adds the bias, when there is one, to a fresh output.
static void start_output(const rondo__convolution *convolution, const double *bias, double *y) {
    if (bias != NULL) {
        rondo__convolution_fill_bias(convolution, bias, y);
    }
}

// ---- Conv and ConvTranspose -------------------------------------------------------------------

static rondo_status infer_either(rondo__infer *infer, bool is_transposed) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 3));
    rondo__convolution convolution;
    if (is_transposed) {
        RETURN_IF_ERROR(rondo__convolution_init_transposed(infer->op, &inputs[0].shape,
                                                           &inputs[1].shape, &convolution));
    } else {
        RETURN_IF_ERROR(rondo__convolution_init(infer->op, &inputs[0].shape, &inputs[1].shape,
                                                false, &convolution));
    }
    if (rondo__infer_has_input(infer, 2)) {
        RETURN_IF_ERROR(
            rondo__convolution_check_bias(infer->op, &inputs[2].shape, convolution.filters));
    }
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &convolution.output);
}

static rondo_status infer_conv(rondo__infer *infer) {
    return infer_either(infer, false);
}

static rondo_status infer_conv_transpose(rondo__infer *infer) {
    return infer_either(infer, true);
}

static rondo_status compute_conv(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    rondo__convolution convolution;
    RETURN_IF_ERROR(rondo__convolution_init(compute->op, &inputs[0]->shape, &inputs[1]->shape,
                                            false, &convolution));
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, inputs[0]);
    const double *w = rondo__scratch_widen(&scratch, inputs[1]);
    const double *b = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 2));
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&convolution.output));
    if (scratch.status == RONDO_STATUS_OK) {
        start_output(&convolution, b, y);
        rondo__convolution_run(&convolution, x, w, y);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static rondo_status compute_conv_transpose(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    rondo__convolution convolution;
    RETURN_IF_ERROR(rondo__convolution_init_transposed(compute->op, &inputs[0]->shape,
                                                       &inputs[1]->shape, &convolution));
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, inputs[0]);
    const double *w = rondo__scratch_widen(&scratch, inputs[1]);
    const double *b = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 2));
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&convolution.output));
    if (scratch.status == RONDO_STATUS_OK) {
        start_output(&convolution, b, y);
        rondo__convolution_run_transposed(&convolution, x, w, y);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- the way back to the weights ---------------------------------------------------------------
//
// rondo.ConvWeights(dy, x) with the attributes of the Conv, and channels_last: the change of the
// weights [filters, channels, kernel...] of one group, in f32 where the images are f16.

static bool is_channels_last(const rondo__op *op) {
    return rondo__op_get_int(op, "channels_last", 0) != 0;
}

static rondo_status init_weights(const rondo__op *op, const rondo_shape *dy, const rondo_shape *x,
                                 rondo__window *out_window, rondo_shape *out_weights) {
    const int32_t first = is_channels_last(op) ? 1 : 2;
    const int32_t channel = first == 1 ? x->rank - 1 : 1;
    if (x->rank < 3 || dy->rank != x->rank || dy->extent[0] != x->extent[0]) {
        return RONDO_OP_FAIL(op, BAD_DATA, "dy and x are no images of one batch");
    }
    RETURN_IF_ERROR(rondo__window_init(op, x->rank - 2, x->extent + first, NULL, out_window));
    *out_weights =
        (rondo_shape){.rank = x->rank, .extent = {dy->extent[channel], x->extent[channel]}};
    for (int32_t d = 0; d < x->rank - 2; ++d) {
        out_weights->extent[2 + d] = out_window->kernel[d];
        if (out_window->output[d] != dy->extent[first + d]) {
            return RONDO_OP_FAIL(op, BAD_DATA, "dy has not the extents of the result");
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_conv_weights(rondo__infer *infer) {
    rondo__window window;
    rondo_shape weights;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 2));
    RETURN_IF_ERROR(init_weights(infer->op, &infer->inputs[0].shape, &infer->inputs[1].shape,
                                 &window, &weights));
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &weights);
}

// Of one tap, filter and channel: the sum over images and pixels. dy and x are planes.
static double sum_tap(const rondo__window *w, const double *dy, const double *x, int64_t dy_step,
                      int64_t x_step, int64_t batch, int64_t tap) {
    const int32_t rank = w->rank;
    int64_t taps[RONDO__SPATIAL_MAX];
    int64_t pixels = 1;
    double sum = 0.0;
    for (int32_t d = rank - 1; d >= 0; --d) {
        taps[d] = tap % w->kernel[d];
        tap /= w->kernel[d];
        pixels *= w->output[d];
    }
    for (int64_t p = 0; p < pixels; ++p) {
        int64_t rest = p, at = 0, step = 1;
        bool is_inside = true;
        for (int32_t d = rank - 1; d >= 0; --d) {
            const int64_t in =
                rest % w->output[d] * w->stride[d] + taps[d] * w->dilation[d] - w->pad_begin[d];
            rest /= w->output[d];
            is_inside = is_inside && in >= 0 && in < w->input[d];
            at += in * step;
            step *= w->input[d];
        }
        for (int64_t n = 0; n < batch; ++n) {  // pads are zeros, which make NaN of an infinity
            sum += dy[n * dy_step + p] * (is_inside ? x[n * x_step + at] : 0.0);
        }
    }
    return sum;
}

// An image's planes, [batch, channels, pixels].
static double *widen_planes(rondo__scratch *scratch, const rondo__op *op, const rondo_tensor *image,
                            int64_t channels) {
    double *wide = rondo__scratch_widen(scratch, image);
    if (!is_channels_last(op)) {
        return wide;
    }
    const int64_t count = rondo_shape_get_count(&image->shape), batch = image->shape.extent[0];
    double *planes = rondo__scratch_create(scratch, count);
    if (scratch->status == RONDO_STATUS_OK && count > 0) {
        rondo__transpose_planes(wide, batch, count / batch / channels, channels, planes);
    }
    return planes;
}

static rondo_status compute_conv_weights(rondo__compute *compute) {
    const rondo_shape *dy_shape = &compute->inputs[0]->shape, *x_shape = &compute->inputs[1]->shape;
    rondo__window window;
    rondo_shape weights;
    RETURN_IF_ERROR(init_weights(compute->op, dy_shape, x_shape, &window, &weights));
    const int64_t filters = weights.extent[0], channels = weights.extent[1];
    const int64_t count = rondo_shape_get_count(&weights), batch = x_shape->extent[0];
    rondo__scratch scratch = {0};
    const double *dy = widen_planes(&scratch, compute->op, compute->inputs[0], filters);
    const double *x = widen_planes(&scratch, compute->op, compute->inputs[1], channels);
    double *dw = rondo__scratch_create(&scratch, count);
    const int64_t dy_all = rondo_shape_get_count(dy_shape), x_all = rondo_shape_get_count(x_shape);
    for (int64_t i = 0; i < count && batch > 0 && scratch.status == RONDO_STATUS_OK; ++i) {
        const int64_t taps = count / (filters * channels);
        const int64_t filter = i / taps / channels, channel = i / taps % channels;
        dw[i] = sum_tap(&window, dy + filter * (dy_all / batch / filters),
                        x + channel * (x_all / batch / channels), dy_all / batch, x_all / batch,
                        batch, i % taps);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, dw);
}

// rondo.Unfold(x) with the attributes of a Conv: what each tap of its windows sees, tap by tap of
// all channels, 0 outside: [N, taps * C, out...].

static rondo_status init_unfold(const rondo__op *op, const rondo_shape *x,
                                rondo__window *out_window, rondo_shape *out_y) {
    if (x->rank != 4) {
        return RONDO_OP_FAIL(op, BAD_DATA, "x is no image");
    }
    RETURN_IF_ERROR(rondo__window_init(op, 2, x->extent + 2, NULL, out_window));
    const rondo__window *w = out_window;
    *out_y = (rondo_shape){
        4, {x->extent[0], w->kernel[0] * w->kernel[1] * x->extent[1], w->output[0], w->output[1]}};
    return RONDO_STATUS_OK;
}

static rondo_status infer_unfold(rondo__infer *infer) {
    rondo__window w;
    rondo_shape y;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    RETURN_IF_ERROR(init_unfold(infer->op, &infer->inputs[0].shape, &w, &y));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &y);
}

static rondo_status compute_unfold(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    rondo__window w;
    rondo_shape y_shape;
    RETURN_IF_ERROR(init_unfold(compute->op, shape, &w, &y_shape));
    const int64_t channels = shape->extent[1], all = rondo_shape_get_count(&y_shape);
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, all);
    for (int64_t i = 0; i < all && scratch.status == RONDO_STATUS_OK; ++i) {
        const int64_t at[2] = {i / w.output[1] % w.output[0], i % w.output[1]};
        const int64_t row = i / w.output[1] / w.output[0],
                      tap = row / channels % (w.kernel[0] * w.kernel[1]);
        const int64_t taps[2] = {tap / w.kernel[1], tap % w.kernel[1]};
        int64_t place = row / channels / (w.kernel[0] * w.kernel[1]) * channels + row % channels;
        bool is_inside = true;
        for (int d = 0; d < 2; ++d) {
            const int64_t in = at[d] * w.stride[d] + taps[d] * w.dilation[d] - w.pad_begin[d];
            is_inside = is_inside && in >= 0 && in < w.input[d];
            place = place * w.input[d] + in;
        }
        y[i] = is_inside ? x[place] : 0.0;
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// rondo.InsertZeros: images with zeros between their pixels, each of which is the first of a block
// of `strides`.

static rondo_status infer_insert_zeros(rondo__infer *infer) {
    rondo_shape y = infer->inputs[0].shape;
    const int32_t first = is_channels_last(infer->op) ? 1 : 2;
    size_t count = 0;
    const int64_t *strides = rondo__op_get_ints(infer->op, "strides", &count);
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    if (y.rank != 4 || count != 2 || strides[0] < 1 || strides[1] < 1) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "x is no image, or strides are not two");
    }
    y.extent[first] *= strides[0];
    y.extent[first + 1] *= strides[1];
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &y);
}

static rondo_status compute_insert_zeros(rondo__compute *compute) {
    const int64_t *x_extent = compute->inputs[0]->shape.extent;
    const bool is_last = is_channels_last(compute->op);
    size_t count = 0;
    const int64_t *strides = rondo__op_get_ints(compute->op, "strides", &count);
    const int64_t inner = is_last ? x_extent[3] : 1;
    const int64_t height = x_extent[is_last ? 1 : 2], wide = x_extent[is_last ? 2 : 3];
    const int64_t all = rondo_shape_get_count(&compute->inputs[0]->shape);
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, all * strides[0] * strides[1]);
    for (int64_t i = 0; i < all && scratch.status == RONDO_STATUS_OK; ++i) {
        const int64_t column = i / inner % wide, row = i / inner / wide % height;
        const int64_t outer = i / inner / wide / height;
        y[((outer * height + row) * strides[0] * wide + column) * strides[1] * inner + i % inner] =
            x[i];
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// rondo.TurnFilters: filters of a convolution that goes back, [out, in, taps...] as
// [in, out, taps...] with the taps turned round.

static rondo_status infer_turn_filters(rondo__infer *infer) {
    rondo_shape y = infer->inputs[0].shape;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    if (y.rank != 4) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "x has no two axes of taps");
    }
    y.extent[0] = infer->inputs[0].shape.extent[1];
    y.extent[1] = infer->inputs[0].shape.extent[0];
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &y);
}

static rondo_status compute_turn_filters(rondo__compute *compute) {
    const int64_t *extent = compute->inputs[0]->shape.extent;
    const int64_t taps = extent[2] * extent[3], all = extent[0] * extent[1] * taps;
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, all);
    for (int64_t i = 0; i < all && scratch.status == RONDO_STATUS_OK; ++i) {
        const int64_t tap = i % taps, in = i / taps % extent[1], out = i / taps / extent[1];
        y[(in * extent[0] + out) * taps + taps - 1 - tap] = x[i];
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- ConvInteger and QLinearConv --------------------------------------------------------------
//
// Passes give both the attribute channels_last, under domain "rondo" (op/fused/fused.h); a file
// cannot.

// The elements of an image, [N, C, spatial...] in either layout.
static double *widen_image(rondo__scratch *scratch, const rondo__op *op, const rondo_tensor *image,
                           const rondo__convolution *convolution) {
    double *wide = rondo__scratch_widen(scratch, image);
    if (!is_channels_last(op)) {
        return wide;
    }
    double *planes = rondo__scratch_create(scratch, rondo_shape_get_count(&image->shape));
    if (scratch->status == RONDO_STATUS_OK) {
        rondo__transpose_planes(wide, convolution->batch, convolution->input_span,
                                convolution->channels, planes);
    }
    return planes;
}

// Writes y, which is channels-first, in the layout that is asked for.
static void narrow_image(rondo__scratch *scratch, rondo__compute *compute,
                         const rondo__convolution *convolution, double *y) {
    if (is_channels_last(compute->op)) {
        double *last = rondo__scratch_create(scratch, rondo_shape_get_count(&convolution->output));
        if (scratch->status != RONDO_STATUS_OK) {
            return;
        }
        rondo__transpose_planes(y, convolution->batch, convolution->filters,
                                convolution->output_span, last);
        y = last;
    }
    scratch->status = rondo__narrow(compute, 0, y);
}

// An optional scale or zero point: one value, or (when `filters` is not 1) one for each filter.
static rondo_status check_parameter(const rondo__infer *infer, size_t input, int64_t filters) {
    if (!rondo__infer_has_input(infer, input)) {
        return RONDO_STATUS_OK;
    }
    const rondo_shape *shape = &infer->inputs[input].shape;
    const int64_t count = rondo_shape_get_count(shape);
    if (count != 1 && !(shape->rank == 1 && count == filters)) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu has shape %s, %lld values are fit",
                             input, rondo_shape_format(shape, text, sizeof text),
                             (long long)filters);
    }
    return RONDO_STATUS_OK;
}

static int64_t get_count(const rondo_tensor *tensor) {
    return tensor == NULL ? 0 : rondo_shape_get_count(&tensor->shape);
}

// values[i] -= zero, where values consist of `lines` equal parts and zero has 1 or `lines` values.
static void subtract_zero(double *values, int64_t count, int64_t lines, const double *zero,
                          int64_t zero_count) {
    if (zero == NULL || count == 0) {
        return;
    }
    const int64_t span = count / lines;
    for (int64_t i = 0; i < count; i++) {
        values[i] -= zero[zero_count == 1 ? 0 : i / span];
    }
}

static rondo_status infer_conv_integer(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 0));
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 1));
    rondo__convolution convolution;
    RETURN_IF_ERROR(rondo__convolution_init(infer->op, &inputs[0].shape, &inputs[1].shape,
                                            is_channels_last(infer->op), &convolution));
    RETURN_IF_ERROR(check_parameter(infer, 2, 1));
    RETURN_IF_ERROR(check_parameter(infer, 3, convolution.filters));
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_I32, &convolution.output);
}

static rondo_status compute_conv_integer(rondo__compute *compute) {
    const rondo_tensor *x_zero = rondo__compute_get_input(compute, 2);
    const rondo_tensor *w_zero = rondo__compute_get_input(compute, 3);
    rondo__convolution convolution;
    RETURN_IF_ERROR(rondo__convolution_init(compute->op, &compute->inputs[0]->shape,
                                            &compute->inputs[1]->shape,
                                            is_channels_last(compute->op), &convolution));
    rondo__scratch scratch = {0};
    double *x = widen_image(&scratch, compute->op, compute->inputs[0], &convolution);
    double *w = rondo__scratch_widen(&scratch, compute->inputs[1]);
    const double *wide_x_zero = rondo__scratch_widen(&scratch, x_zero);
    const double *wide_w_zero = rondo__scratch_widen(&scratch, w_zero);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&convolution.output));
    if (scratch.status == RONDO_STATUS_OK) {
        // Padding stands for the zero point, so it is 0 once that is subtracted.
        subtract_zero(x, get_count(compute->inputs[0]), 1, wide_x_zero, 1);
        subtract_zero(w, get_count(compute->inputs[1]), convolution.filters, wide_w_zero,
                      get_count(w_zero));
        rondo__convolution_run(&convolution, x, w, y);
        narrow_image(&scratch, compute, &convolution, y);
    }
    return rondo__scratch_end(&scratch);
}

static rondo_status infer_qlinear_conv(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 0));
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 3));
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 7));
    rondo__convolution convolution;
    RETURN_IF_ERROR(rondo__convolution_init(infer->op, &inputs[0].shape, &inputs[3].shape,
                                            is_channels_last(infer->op), &convolution));
    static const bool is_by_filter[8] = {[4] = true, [5] = true};
    for (size_t i = 1; i < 8; i++) {
        if (i != 3) {
            RETURN_IF_ERROR(check_parameter(infer, i, is_by_filter[i] ? convolution.filters : 1));
        }
    }
    if (rondo__infer_has_input(infer, 8)) {
        RETURN_IF_ERROR(
            rondo__convolution_check_bias(infer->op, &inputs[8].shape, convolution.filters));
    }
    return rondo__infer_set_output(infer, 0, inputs[7].dtype, &convolution.output);
}

static rondo_status compute_qlinear_conv(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    rondo__convolution convolution;
    RETURN_IF_ERROR(rondo__convolution_init(compute->op, &inputs[0]->shape, &inputs[3]->shape,
                                            is_channels_last(compute->op), &convolution));
    rondo__scratch scratch = {0};
    double *wide[8] = {widen_image(&scratch, compute->op, inputs[0], &convolution)};
    for (size_t i = 1; i < 8; i++) {
        wide[i] = rondo__scratch_widen(&scratch, inputs[i]);
    }
    const double *b = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 8));
    const int64_t count = rondo_shape_get_count(&convolution.output);
    double *y = rondo__scratch_create(&scratch, count);
    if (scratch.status == RONDO_STATUS_OK) {
        subtract_zero(wide[0], get_count(inputs[0]), 1, wide[2], 1);
        subtract_zero(wide[3], get_count(inputs[3]), convolution.filters, wide[5],
                      get_count(inputs[5]));
        start_output(&convolution, b, y);
        rondo__convolution_run(&convolution, wide[0], wide[3], y);
        for (int64_t i = 0; i < count; i++) {
            const int64_t filter = i / convolution.output_span % convolution.filters;
            const double w_scale = wide[4][get_count(inputs[4]) == 1 ? 0 : filter];
            y[i] = rondo__requantize(y[i], *wide[1], w_scale, *wide[6], *wide[7], inputs[7]->dtype);
        }
        narrow_image(&scratch, compute, &convolution, y);
    }
    return rondo__scratch_end(&scratch);
}

// ---- DeformConv -------------------------------------------------------------------------------

typedef struct deform_plan {
    rondo__convolution convolution;
    int64_t offset_group;
} deform_plan;

// An input whose shape must be [N, channels, output spatial...].
static rondo_status check_planes(const rondo__op *op, const char *what, const rondo_shape *shape,
                                 int64_t channels, const rondo__convolution *convolution) {
    bool is_fit =
        shape->rank == 4 && shape->extent[0] == convolution->batch && shape->extent[1] == channels;
    for (int32_t i = 0; is_fit && i < 2; i++) {
        is_fit = shape->extent[2 + i] == convolution->window.output[i];
    }
    if (!is_fit) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "input %s has shape %s, [%lld, %lld, %lld, %lld] is fit",
                             what, rondo_shape_format(shape, text, sizeof text),
                             (long long)convolution->batch, (long long)channels,
                             (long long)convolution->window.output[0],
                             (long long)convolution->window.output[1]);
    }
    return RONDO_STATUS_OK;
}

static rondo_status init_deformation(const rondo__op *op, const rondo_shape *x,
                                     const rondo_shape *w, deform_plan *out_deformation) {
    if (x->rank != 4) {
        return rondo__op_fail_unsupported(op, "input X of another rank than 4");
    }
    RETURN_IF_ERROR(rondo__convolution_init(op, x, w, false, &out_deformation->convolution));
    out_deformation->offset_group = rondo__op_get_int(op, "offset_group", 1);
    if (out_deformation->offset_group < 1 || x->extent[1] % out_deformation->offset_group != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute offset_group is %lld for %lld channels",
                             (long long)out_deformation->offset_group, (long long)x->extent[1]);
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_deform_conv(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 5));
    deform_plan deformation;
    RETURN_IF_ERROR(init_deformation(infer->op, &inputs[0].shape, &inputs[1].shape, &deformation));
    const rondo__convolution *convolution = &deformation.convolution;
    const int64_t taps = deformation.offset_group * convolution->kernel_span;
    RETURN_IF_ERROR(check_planes(infer->op, "offset", &inputs[2].shape, 2 * taps, convolution));
    if (rondo__infer_has_input(infer, 3)) {
        RETURN_IF_ERROR(
            rondo__convolution_check_bias(infer->op, &inputs[3].shape, convolution->filters));
    }
    if (rondo__infer_has_input(infer, 4)) {
        RETURN_IF_ERROR(check_planes(infer->op, "mask", &inputs[4].shape, taps, convolution));
    }
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &convolution->output);
}

// The plane at a fractional position; outside it is 0.
static double sample_bilinear(const double *plane, int64_t height, int64_t width, double row,
                              double column) {
    if (!(row > -1.0 && row < (double)height && column > -1.0 && column < (double)width)) {
        return 0.0;
    }
    const int64_t top = (int64_t)floor(row);
    const int64_t left = (int64_t)floor(column);
    double sum = 0.0;
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t j = 0; j < 2; j++) {
            const int64_t r = top + i;
            const int64_t c = left + j;
            if (r >= 0 && r < height && c >= 0 && c < width) {
                sum += plane[r * width + c] * (1.0 - fabs(row - (double)r)) *
                       (1.0 - fabs(column - (double)c));
            }
        }
    }
    return sum;
}

// Adds one input channel, seen through one tap, to one output plane.
static void run_deformed_tap(const rondo__convolution *convolution, int64_t kernel_row,
                             int64_t kernel_column, double weight, const double *source,
                             const double *offsets, const double *mask, double *plane) {
    const rondo__window *window = &convolution->window;
    const int64_t span = convolution->output_span;
    for (int64_t i = 0; i < span; i++) {
        const int64_t output_row = i / window->output[1];
        const int64_t output_column = i % window->output[1];
        const double row = (double)(output_row * window->stride[0] - window->pad_begin[0] +
                                    kernel_row * window->dilation[0]) +
                           offsets[i];
        const double column = (double)(output_column * window->stride[1] - window->pad_begin[1] +
                                       kernel_column * window->dilation[1]) +
                              offsets[span + i];
        const double value =
            sample_bilinear(source, window->input[0], window->input[1], row, column);
        plane[i] += weight * value * (mask == NULL ? 1.0 : mask[i]);
    }
}

static void run_deformed(const deform_plan *deformation, const double *x, const double *w,
                         const double *offset, const double *mask, double *y) {
    const rondo__convolution *convolution = &deformation->convolution;
    const int64_t taps = convolution->kernel_span;
    const int64_t span = convolution->output_span;
    const int64_t inner = convolution->channels / convolution->group;
    const int64_t outer = convolution->filters / convolution->group;
    for (int64_t n = 0; n < convolution->batch; n++) {
        for (int64_t m = 0; m < convolution->filters; m++) {
            double *plane = y + (n * convolution->filters + m) * span;
            for (int64_t c = 0; c < inner; c++) {
                const int64_t channel = m / outer * inner + c;
                const int64_t part = channel / (convolution->channels / deformation->offset_group);
                const double *source =
                    x + (n * convolution->channels + channel) * convolution->input_span;
                for (int64_t tap = 0; tap < taps; tap++) {
                    const int64_t at = (n * deformation->offset_group + part) * taps + tap;
                    run_deformed_tap(convolution, tap / convolution->window.kernel[1],
                                     tap % convolution->window.kernel[1],
                                     w[(m * inner + c) * taps + tap], source,
                                     offset + 2 * at * span, mask == NULL ? NULL : mask + at * span,
                                     plane);
                }
            }
        }
    }
}

static rondo_status compute_deform_conv(rondo__compute *compute) {
    deform_plan deformation;
    RETURN_IF_ERROR(init_deformation(compute->op, &compute->inputs[0]->shape,
                                     &compute->inputs[1]->shape, &deformation));
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *w = rondo__scratch_widen(&scratch, compute->inputs[1]);
    const double *offset = rondo__scratch_widen(&scratch, compute->inputs[2]);
    const double *b = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 3));
    const double *mask = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 4));
    double *y =
        rondo__scratch_create(&scratch, rondo_shape_get_count(&deformation.convolution.output));
    if (scratch.status == RONDO_STATUS_OK) {
        start_output(&deformation.convolution, b, y);
        run_deformed(&deformation, x, w, offset, mask, y);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static const char *const conv_attributes[] = {"auto_pad", "dilations", "group", "kernel_shape",
                                              "pads",     "strides",   NULL};
static const char *const transpose_attributes[] = {"auto_pad",     "dilations",      "group",
                                                   "kernel_shape", "output_padding", "output_shape",
                                                   "pads",         "strides",        NULL};
static const char *const deform_attributes[] = {
    "dilations", "group", "kernel_shape", "offset_group", "pads", "strides", NULL};

const rondo__op_def rondo__op_table_convolution[] = {
    RONDO_OP_ENTRY(Conv, 1, 28, 2, 3, 1, 1, conv_attributes, infer_conv, compute_conv, .weights = 1,
                   .half.kind = HALF_PRODUCT),
    RONDO_OP_ENTRY(ConvTranspose, 1, 28, 2, 3, 1, 1, transpose_attributes, infer_conv_transpose,
                   compute_conv_transpose, .weights = 1, .half.kind = HALF_PRODUCT),
    RONDO_OP_ENTRY(ConvInteger, 10, 28, 2, 4, 1, 1, conv_attributes, infer_conv_integer,
                   compute_conv_integer, .weights = 1,
                   .half = {HALF_COUNTING, HALF_WIDE, HALF_QUANTISED}),
    RONDO_OP_ENTRY(QLinearConv, 10, 28, 8, 9, 1, 1, conv_attributes, infer_qlinear_conv,
                   compute_qlinear_conv, .weights = 3,
                   .half = {HALF_STAYS, HALF_PLAIN, HALF_QUANTISED}),
    RONDO_OP_ROW(FUSED, QLinearConv, 1, RONDO_OP_OPSET_MAX, 8, 9, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_qlinear_conv,
                 .compute = compute_qlinear_conv, .weights = 3,
                 .half = {HALF_STAYS, HALF_PLAIN, HALF_QUANTISED}),
    RONDO_OP_ENTRY(DeformConv, 19, 28, 3, 5, 1, 1, deform_attributes, infer_deform_conv,
                   compute_deform_conv, .weights = 1, .half.kind = HALF_PRODUCT),
    RONDO_OP_ROW(FUSED, ConvWeights, 1, RONDO_OP_OPSET_MAX, 2, 2, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_conv_weights,
                 .compute = compute_conv_weights, .half.kind = HALF_PRODUCT),
    RONDO_OP_ROW(FUSED, InsertZeros, 1, RONDO_OP_OPSET_MAX, 1, 1, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_insert_zeros,
                 .compute = compute_insert_zeros, .half.kind = HALF_PRODUCT),
    RONDO_OP_ROW(FUSED, Unfold, 1, RONDO_OP_OPSET_MAX, 1, 1, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_unfold, .compute = compute_unfold,
                 .half.kind = HALF_CARRIES),
    RONDO_OP_ROW(FUSED, TurnFilters, 1, RONDO_OP_OPSET_MAX, 1, 1, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_turn_filters,
                 .compute = compute_turn_filters, .half.kind = HALF_CARRIES),
    {.name = NULL},
};
