// op/fused/op_fused.c — the internal ops that passes make: entries and plain references (see
// op/fused/fused.h).
//
// The references compute in double and apply bias, residual and activation as fused.h says, so that
// a fused plan can be compared with the model as written.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/broadcast.h"
#include "op/fused/fused.h"
#include "op/image/convolution.h"
#include "op/image/filters.h"
#include "op/image/pooling.h"
#include "op/math/group_norm.h"
#include "op/math/matrix.h"
#include "op/op.h"
#include "op/reference.h"
#include "tensor/elements.h"

typedef struct epilogue {
    rondo__activation activation;
    float alpha;
    float beta;
} epilogue;

static rondo_status read_epilogue(const rondo__op *op, epilogue *out_epilogue) {
    const char *text = rondo__op_get_string(op, "activation", "none");
    const int activation = rondo__activation_parse(text);
    if (activation < 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute activation is \"%.40s\", which is unknown",
                             text);
    }
    out_epilogue->activation = (rondo__activation)activation;
    out_epilogue->alpha = rondo__op_get_float(op, "alpha", 0.0f);
    out_epilogue->beta = rondo__op_get_float(op, "beta", 0.0f);
    return RONDO_STATUS_OK;
}

static void apply_epilogue(const epilogue *ending, int64_t count, double *values) {
    if (ending->activation == RONDO__ACTIVATION_NONE) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)rondo__activation_apply(ending->activation, ending->alpha, ending->beta,
                                                    (float)values[i]);
    }
}

// The elements of `tensor`, channels-first when they are channels-last ([batch, span, channels]).
static double *widen_planes(rondo__scratch *scratch, const rondo_tensor *tensor, bool channels_last,
                            int64_t batch, int64_t channels, int64_t span) {
    double *wide = rondo__scratch_widen(scratch, tensor);
    if (!channels_last) {
        return wide;
    }
    double *planes = rondo__scratch_create(scratch, batch * channels * span);
    if (scratch->status == RONDO_STATUS_OK) {
        rondo__transpose_planes(wide, batch, span, channels, planes);
    }
    return planes;
}

// The way back: channels-first planes to channels-last ones.
static double *restore_layout(rondo__scratch *scratch, int64_t batch, int64_t channels,
                              int64_t span, double *planes) {
    double *last = rondo__scratch_create(scratch, batch * channels * span);
    if (scratch->status == RONDO_STATUS_OK) {
        rondo__transpose_planes(planes, batch, channels, span, last);
    }
    return last;
}

// y += addend, where the addend (when there is one) repeats after `period` elements.
static void add_repeated(int64_t count, int64_t period, const double *addend, double *y) {
    for (int64_t i = 0; addend != NULL && i < count; i++) {
        y[i] += addend[i % period];
    }
}

// ---- rondo.Conv -------------------------------------------------------------------------------

static bool is_channels_last(const rondo__op *op) {
    return rondo__op_get_int(op, "channels_last", 0) != 0;
}

static rondo_status check_residual(const rondo__op *op, const rondo_shape *z,
                                   const rondo_shape *y) {
    if (!rondo_shape_is_equal(z, y)) {
        char z_text[96];
        char y_text[96];
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "input z has shape %s, the output %s; they must be equal",
                             rondo_shape_format(z, z_text, sizeof z_text),
                             rondo_shape_format(y, y_text, sizeof y_text));
    }
    return RONDO_STATUS_OK;
}

static int64_t get_second_stride(const rondo__op *op, int32_t d) {
    size_t count = 0;
    const int64_t *strides = rondo__op_get_ints(op, "second_strides", &count);
    return (size_t)d < count ? strides[d] : 1;
}

// x2 and w2, whose result is to have the shape of the first.
static rondo_status check_second(const rondo__infer *infer, const rondo__convolution *convolution) {
    const rondo_shape *x = &infer->inputs[4].shape, *w = &infer->inputs[5].shape;
    const rondo_shape *y = &convolution->output;
    bool is_right = rondo__infer_has_input(infer, 5) && is_channels_last(infer->op) &&
                    x->rank == y->rank && w->rank == y->rank &&
                    w->extent[0] == convolution->filters && x->extent[0] == y->extent[0] &&
                    x->extent[x->rank - 1] == w->extent[1];
    for (int32_t d = 1; is_right && d < y->rank - 1; d++) {
        const int64_t stride = get_second_stride(infer->op, d - 1);
        is_right = stride > 0 && w->extent[d + 1] == 1 &&
                   (x->extent[d] + stride - 1) / stride == y->extent[d];
    }
    return is_right ? RONDO_STATUS_OK
                    : RONDO_OP_FAIL(infer->op, BAD_DATA,
                                    "inputs x2 and w2 are no convolution by single pixels whose "
                                    "result has the shape of the first");
}

static rondo_status infer_conv(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__convolution convolution;
    epilogue ignored;
    RETURN_IF_ERROR(read_epilogue(infer->op, &ignored));
    const rondo_shape filters = rondo__convolution_read_filters(infer->op, &inputs[1].shape);
    RETURN_IF_ERROR(rondo__convolution_init(infer->op, &inputs[0].shape, &filters,
                                            is_channels_last(infer->op), &convolution));
    if (rondo__infer_has_input(infer, 2)) {
        RETURN_IF_ERROR(
            rondo__convolution_check_bias(infer->op, &inputs[2].shape, convolution.filters));
    }
    if (rondo__infer_has_input(infer, 3)) {
        RETURN_IF_ERROR(check_residual(infer->op, &inputs[3].shape, &convolution.output));
    }
    if (rondo__infer_has_input(infer, 4)) {
        RETURN_IF_ERROR(check_second(infer, &convolution));
    }
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &convolution.output);
}

// y += w2 times the pixels of x2 that lie at multiples of the strides; both channels last.
static void add_second(const rondo__op *op, const rondo_shape *x2, const rondo_shape *output,
                       const double *x, const double *w, double *y) {
    const int64_t channels = x2->extent[x2->rank - 1], filters = output->extent[output->rank - 1];
    const int64_t pixels = rondo_shape_get_count(output) / filters;
    for (int64_t pixel = 0; pixel < pixels; pixel++) {
        int64_t rest = pixel, from = 0, pitch = 1;
        for (int32_t d = output->rank - 2; d >= 0; d--) {
            const int64_t step = d > 0 ? get_second_stride(op, d - 1) : 1;
            from += rest % output->extent[d] * step * pitch;
            rest /= output->extent[d];
            pitch *= x2->extent[d];
        }
        for (int64_t f = 0; f < filters; f++) {
            for (int64_t c = 0; c < channels; c++) {
                y[pixel * filters + f] += w[f * channels + c] * x[from * channels + c];
            }
        }
    }
}

static rondo_status compute_conv(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const bool channels_last = is_channels_last(op);
    const rondo_tensor *x = compute->inputs[0];
    rondo__convolution convolution;
    epilogue ending = {0};
    RETURN_IF_ERROR(read_epilogue(op, &ending));
    const rondo_shape filters = rondo__convolution_read_filters(op, &compute->inputs[1]->shape);
    RETURN_IF_ERROR(rondo__convolution_init(op, &x->shape, &filters, channels_last, &convolution));
    const int64_t count = rondo_shape_get_count(&convolution.output);
    rondo__scratch scratch = {0};
    const double *planes = widen_planes(&scratch, x, channels_last, convolution.batch,
                                        convolution.channels, convolution.input_span);
    const bool filters_last = rondo__op_get_int(op, "filters_last", 0) != 0;
    const double *w = widen_planes(&scratch, compute->inputs[1], filters_last, filters.extent[0],
                                   filters.extent[1], convolution.kernel_span);
    const double *b = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 2));
    const double *z = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 3));
    double *y = rondo__scratch_create(&scratch, count);
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    if (b != NULL) {
        rondo__convolution_fill_bias(&convolution, b, y);
    }
    rondo__convolution_run(&convolution, planes, w, y);
    if (channels_last) {
        y = restore_layout(&scratch, convolution.batch, convolution.filters,
                           convolution.output_span, y);
    }
    const double *x2 = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 4));
    const double *w2 = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 5));
    if (scratch.status == RONDO_STATUS_OK) {
        add_repeated(count, count, z, y);
        if (x2 != NULL) {
            add_second(op, &compute->inputs[4]->shape, &convolution.output, x2, w2, y);
        }
        apply_epilogue(&ending, count, y);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- rondo.MatMul -----------------------------------------------------------------------------

static rondo_status init_product(const rondo__op *op, const rondo_shape *a, const rondo_shape *b,
                                 const rondo_shape *bias, const rondo_shape *z,
                                 rondo__product *out_product) {
    RETURN_IF_ERROR(rondo__product_init(op, a, b, rondo__op_get_int(op, "trans_a", 0) != 0,
                                        rondo__op_get_int(op, "trans_b", 0) != 0, out_product));
    const bool is_of_rows = bias != NULL && bias->rank == 2 && bias->extent[0] == out_product->m &&
                            bias->extent[1] == 1;
    if (bias != NULL && !is_of_rows && (bias->rank != 1 || bias->extent[0] != out_product->n)) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "input bias has shape %s, [%lld] or [%lld, 1] is expected",
                             rondo_shape_format(bias, text, sizeof text), (long long)out_product->n,
                             (long long)out_product->m);
    }
    return z == NULL ? RONDO_STATUS_OK : check_residual(op, z, &out_product->output);
}

// y has the type of a, or what the attribute `to` says: sums are wider than f16.
static rondo_status get_result_dtype(const rondo__infer *infer, rondo_dtype *out_dtype) {
    *out_dtype = infer->inputs[0].dtype;
    if (rondo__op_find(infer->op, "to") == NULL) {
        return RONDO_STATUS_OK;
    }
    *out_dtype = rondo__dtype_from_onnx(rondo__op_get_int(infer->op, "to", 0));
    if (!rondo__dtype_is_f32_or_f16(infer->inputs[0].dtype)) {
        return rondo__op_fail_dtype(infer->op, 0, infer->inputs[0].dtype);
    }
    return rondo__dtype_is_f32_or_f16(*out_dtype)
               ? RONDO_STATUS_OK
               : RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute to is neither f32 nor f16");
}

static rondo_status infer_matmul(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__product product;
    rondo_dtype dtype;
    epilogue ignored;
    RETURN_IF_ERROR(read_epilogue(infer->op, &ignored));
    RETURN_IF_ERROR(init_product(infer->op, &inputs[0].shape, &inputs[1].shape,
                                 rondo__infer_has_input(infer, 2) ? &inputs[2].shape : NULL,
                                 rondo__infer_has_input(infer, 3) ? &inputs[3].shape : NULL,
                                 &product));
    RETURN_IF_ERROR(get_result_dtype(infer, &dtype));
    return rondo__infer_set_output(infer, 0, dtype, &product.output);
}

// The shape of the moments of rows of `x`.
static rondo_status find_moments_shape(const rondo__op *op, const rondo_shape *x,
                                       rondo_shape *out_shape) {
    const int64_t columns = x->rank > 0 ? x->extent[x->rank - 1] : 0;
    if (columns <= 0 || columns % RONDO__MOMENT_COLUMNS != 0) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "rows of shape %s have no moments: %d columns share one",
                             rondo_shape_format(x, text, sizeof text), (int)RONDO__MOMENT_COLUMNS);
    }
    *out_shape =
        (rondo_shape){3, {rondo_shape_get_count(x) / columns, columns / RONDO__MOMENT_COLUMNS, 2}};
    return RONDO_STATUS_OK;
}

static rondo_status infer_matmul_and_moments(rondo__infer *infer) {
    rondo_shape moments;
    RETURN_IF_ERROR(infer_matmul(infer));
    if (infer->output_count < 2) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(find_moments_shape(infer->op, &infer->outputs[0].shape, &moments));
    return rondo__infer_set_output(infer, 1, RONDO_DTYPE_F32, &moments);
}

// Output 1: pairs of numbers, of each 32 neighbouring elements of output 0 as it was rounded.
static rondo_status narrow_moments(rondo__compute *compute, rondo__scratch *scratch) {
    const int64_t count = rondo_shape_get_count(&compute->outputs[0].shape);
    const double *y = rondo__scratch_widen(scratch, &compute->outputs[0]);
    double *moments = rondo__scratch_create(scratch, count / RONDO__MOMENT_COLUMNS * 2);
    if (scratch->status != RONDO_STATUS_OK) {
        return scratch->status;
    }
    for (int64_t i = 0; i < count; i += RONDO__MOMENT_COLUMNS) {
        double *pair = moments + i / RONDO__MOMENT_COLUMNS * 2;
        for (int64_t j = i; j < i + RONDO__MOMENT_COLUMNS; j++) {
            pair[0] += y[j] / RONDO__MOMENT_COLUMNS;
        }
        for (int64_t j = i; j < i + RONDO__MOMENT_COLUMNS; j++) {
            pair[1] += (y[j] - pair[0]) * (y[j] - pair[0]);
        }
    }
    return rondo__narrow(compute, 1, moments);
}

// Output 0 of a product whose left operand is `a`.
static rondo_status finish_matmul(rondo__compute *compute, rondo__scratch *scratch,
                                  const double *a) {
    const rondo__op *op = compute->op;
    const rondo_tensor *bias = rondo__compute_get_input(compute, 2);
    const rondo_tensor *residual = rondo__compute_get_input(compute, 3);
    rondo__product product;
    epilogue ending = {0};
    RETURN_IF_ERROR(read_epilogue(op, &ending));
    RETURN_IF_ERROR(init_product(op, &compute->inputs[0]->shape, &compute->inputs[1]->shape,
                                 bias == NULL ? NULL : &bias->shape,
                                 residual == NULL ? NULL : &residual->shape, &product));
    const int64_t count = rondo_shape_get_count(&product.output);
    const double *b = rondo__scratch_widen(scratch, compute->inputs[1]);
    const double *wide_bias = rondo__scratch_widen(scratch, bias);
    const double *z = rondo__scratch_widen(scratch, residual);
    double *y = rondo__scratch_create(scratch, count);
    if (scratch->status != RONDO_STATUS_OK) {
        return scratch->status;
    }
    rondo__product_run(&product, a, b, y);
    const double scale = (double)rondo__op_get_float(op, "alpha_scale", 1.0f);
    for (int64_t i = 0; i < count; i++) {
        y[i] *= scale;
    }
    if (bias != NULL && bias->shape.rank == 2) {
        for (int64_t i = 0; i < count; i++) {
            y[i] += wide_bias[i / product.n % product.m];
        }
    } else {
        add_repeated(count, product.n, wide_bias, y);
    }
    if (rondo__op_get_int(op, "gates", 0) != 0) {
        for (int64_t i = 0; z != NULL && i < count; i++) {
            double factor = z[i];
            apply_epilogue(&ending, 1, &factor);
            y[i] *= factor;
        }
        return rondo__narrow(compute, 0, y);
    }
    add_repeated(count, count, z, y);
    apply_epilogue(&ending, count, y);
    return rondo__narrow(compute, 0, y);
}

static rondo_status compute_matmul(rondo__compute *compute) {
    rondo__scratch scratch = {0};
    const double *a = rondo__scratch_widen(&scratch, compute->inputs[0]);
    if (scratch.status == RONDO_STATUS_OK) {
        scratch.status = finish_matmul(compute, &scratch, a);
    }
    if (scratch.status == RONDO_STATUS_OK && compute->output_count > 1) {
        scratch.status = narrow_moments(compute, &scratch);
    }
    return rondo__scratch_end(&scratch);
}

// ---- rondo.NormMatMul -------------------------------------------------------------------------

static rondo_status infer_norm_matmul(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const rondo_shape *x = &inputs[0].shape;
    const int64_t length = x->rank > 0 ? x->extent[x->rank - 1] : 1;
    if (!rondo__infer_has_input(infer, 4)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input 4 is missing; it is required");
    }
    for (size_t i = 4; i < 6; i++) {
        if (rondo__infer_has_input(infer, i) &&
            (inputs[i].shape.rank != 1 || inputs[i].shape.extent[0] != length)) {
            char text[96];
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu has shape %s, [%lld] is expected",
                                 i, rondo_shape_format(&inputs[i].shape, text, sizeof text),
                                 (long long)length);
        }
    }
    if (rondo__infer_has_input(infer, 6)) {
        rondo_shape moments;
        RETURN_IF_ERROR(find_moments_shape(infer->op, x, &moments));
        if (!rondo_shape_is_equal(&moments, &inputs[6].shape)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input 6 has not the shape of x's moments");
        }
    }
    RETURN_IF_ERROR(infer_matmul(infer));
    return infer->output_count < 2
               ? RONDO_STATUS_OK
               : rondo__infer_set_output(infer, 1, inputs[0].dtype, &inputs[0].shape);
}

// Rows of `length` elements, each with mean 0 and variance 1, times gain, plus shift (may be NULL).
static void normalise_rows(double *x, int64_t rows, int64_t length, const double *gain,
                           const double *shift, double epsilon) {
    for (int64_t row = 0; row < rows; row++, x += length) {
        double mean = 0.0, variance = 0.0;
        for (int64_t i = 0; i < length; i++) {
            mean += x[i];
        }
        mean /= (double)length;
        for (int64_t i = 0; i < length; i++) {
            variance += (x[i] - mean) * (x[i] - mean);
        }
        const double inverse = 1.0 / sqrt(variance / (double)length + epsilon);
        for (int64_t i = 0; i < length; i++) {
            x[i] = (x[i] - mean) * inverse * gain[i] + (shift == NULL ? 0.0 : shift[i]);
        }
    }
}

static rondo_status compute_norm_matmul(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const int64_t length = shape->extent[shape->rank - 1];
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *gain = rondo__scratch_widen(&scratch, compute->inputs[4]);
    const double *shift = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 5));
    if (scratch.status == RONDO_STATUS_OK && length > 0) {
        normalise_rows(x, rondo_shape_get_count(shape) / length, length, gain, shift,
                       (double)rondo__op_get_float(compute->op, "epsilon", 1e-5f));
    }
    if (scratch.status == RONDO_STATUS_OK && compute->output_count > 1) {
        scratch.status = rondo__narrow(compute, 1, x);
    }
    if (scratch.status == RONDO_STATUS_OK) {
        scratch.status = finish_matmul(compute, &scratch, x);
    }
    return rondo__scratch_end(&scratch);
}

// ---- pools ------------------------------------------------------------------------------------

static rondo_status infer_pool(rondo__infer *infer) {
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(infer->op, &infer->inputs[0].shape, true, &pool));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &pool.output);
}

static rondo_status compute_pool(rondo__compute *compute, bool is_max) {
    const rondo_tensor *x = compute->inputs[0];
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(compute->op, &x->shape, true, &pool));
    rondo__scratch scratch = {0};
    const double *planes =
        widen_planes(&scratch, x, true, pool.batch, pool.channels, pool.input_span);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&pool.output));
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    if (is_max) {
        rondo__pool_run_max(&pool, planes, -(double)INFINITY, y, NULL, false);
    } else {
        const bool includes_pad = rondo__op_get_int(compute->op, "count_include_pad", 0) != 0;
        rondo__pool_run_average(&pool, planes, includes_pad, y);
    }
    y = restore_layout(&scratch, pool.batch, pool.channels, pool.output_span, y);
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static rondo_status compute_max_pool(rondo__compute *compute) {
    return compute_pool(compute, true);
}

static rondo_status compute_average_pool(rondo__compute *compute) {
    return compute_pool(compute, false);
}

static rondo_status get_global_shape(const rondo__op *op, const rondo_shape *x,
                                     rondo_shape *out_shape) {
    if (x->rank < 3) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input X has rank %d, at least 3 is needed", x->rank);
    }
    *out_shape = *x;
    for (int32_t i = 1; i < x->rank - 1; i++) {
        out_shape->extent[i] = 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_global_average_pool(rondo__infer *infer) {
    rondo_shape shape;
    RETURN_IF_ERROR(get_global_shape(infer->op, &infer->inputs[0].shape, &shape));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_global_average_pool(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    const int64_t batch = x->shape.extent[0];
    const int64_t channels = x->shape.extent[x->shape.rank - 1];
    const int64_t span = rondo__shape_multiply(&x->shape, 1, x->shape.rank - 1);
    rondo__scratch scratch = {0};
    const double *source = rondo__scratch_widen(&scratch, x);
    double *y = rondo__scratch_create(&scratch, batch * channels);
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t n = 0; n < batch; n++) {
            double *means = y + n * channels;
            for (int64_t i = 0; i < span; i++) {
                for (int64_t c = 0; c < channels; c++) {
                    means[c] += *source++;
                }
            }
            for (int64_t c = 0; c < channels; c++) {
                means[c] /= (double)span;
            }
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- rondo.GroupNormalization -----------------------------------------------------------------

static int32_t get_channel_axis(const rondo__op *op, const rondo_shape *x) {
    return is_channels_last(op) ? x->rank - 1 : 1;
}

// Gain and shift may be f32 beside an x in half precision.
static rondo_status check_by_channel(const rondo__infer *infer, size_t input, int64_t channels) {
    const rondo__tensor_info *info = &infer->inputs[input];
    if (info->dtype != RONDO_DTYPE_F32 && info->dtype != infer->inputs[0].dtype) {
        return rondo__op_fail_dtype(infer->op, input, info->dtype);
    }
    if (info->shape.rank != 1 || info->shape.extent[0] != channels) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu has shape %s, [%lld] is expected",
                             input, rondo_shape_format(&info->shape, text, sizeof text),
                             (long long)channels);
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_group_norm(rondo__infer *infer) {
    const rondo__op *op = infer->op;
    const rondo_shape *x = &infer->inputs[0].shape;
    const int64_t groups = rondo__op_get_int(op, "groups", 0);
    epilogue ignored;
    RETURN_IF_ERROR(read_epilogue(op, &ignored));
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    if (x->rank < 2 || groups < 1 || x->extent[get_channel_axis(op, x)] % groups != 0) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute groups is %lld for an input of shape %s",
                             (long long)groups, rondo_shape_format(x, text, sizeof text));
    }
    for (size_t i = 1; i < 3; i++) {
        RETURN_IF_ERROR(check_by_channel(infer, i, x->extent[get_channel_axis(op, x)]));
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_group_norm(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const bool channels_last = is_channels_last(op);
    const rondo_tensor *x = compute->inputs[0];
    const int64_t count = rondo_shape_get_count(&x->shape);
    rondo__group_norm norm = {
        .batch = x->shape.extent[0],
        .channels = x->shape.extent[get_channel_axis(op, &x->shape)],
        .groups = rondo__op_get_int(op, "groups", 1),
        .epsilon = (double)rondo__op_get_float(op, "epsilon", 1e-5f),
    };
    norm.span = count / (norm.batch * norm.channels);  // an empty output was made before
    epilogue ending = {0};
    RETURN_IF_ERROR(read_epilogue(op, &ending));
    rondo__scratch scratch = {0};
    double *values = widen_planes(&scratch, x, channels_last, norm.batch, norm.channels, norm.span);
    const double *gain = rondo__scratch_widen(&scratch, compute->inputs[1]);
    const double *shift = rondo__scratch_widen(&scratch, compute->inputs[2]);
    if (scratch.status == RONDO_STATUS_OK) {
        rondo__normalize_groups(&norm, gain, shift, values);
        apply_epilogue(&ending, count, values);
    }
    if (scratch.status == RONDO_STATUS_OK && channels_last) {
        values = restore_layout(&scratch, norm.batch, norm.channels, norm.span, values);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, values);
}

// ---- rondo.Elementwise ------------------------------------------------------------------------

typedef struct scalar_step {
    rondo__scalar_op op;
    int32_t operands[2];  // below input_count: an input; above: an earlier step
    float alpha;
    float beta;
} scalar_step;

enum { ELEMENTWISE_INPUT_MAX = 64, ELEMENTWISE_STEP_MAX = 256 };

static rondo_status read_steps(const rondo__op *op, size_t input_count, scalar_step *out_steps,
                               size_t *out_count) {
    const rondo__attribute *names = rondo__op_find(op, "ops");
    const size_t count =
        names == NULL || names->kind != RONDO__ATTRIBUTE_STRINGS ? 0 : names->count;
    if (count == 0 || count > ELEMENTWISE_STEP_MAX || input_count > ELEMENTWISE_INPUT_MAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute ops lists %zu ops, input count is %zu", count,
                             input_count);
    }
    size_t operand_count, alpha_count, beta_count;
    const int64_t *operands = rondo__op_get_ints(op, "operands", &operand_count);
    const float *alphas = rondo__op_get_floats(op, "alphas", &alpha_count);
    const float *betas = rondo__op_get_floats(op, "betas", &beta_count);
    if (operand_count != 3 * count || (alphas != NULL && alpha_count != count) ||
        (betas != NULL && beta_count != count)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attributes operands, alphas, betas do not fit %zu ops",
                             count);
    }
    for (size_t i = 0; i < count; i++) {
        const int parsed = rondo__scalar_op_parse(names->strings[i]);
        if (parsed < 0) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute ops[%zu] is \"%.40s\", which is unknown",
                                 i, names->strings[i]);
        }
        scalar_step *step = &out_steps[i];
        *step = (scalar_step){.op = (rondo__scalar_op)parsed,
                              .operands = {-1, -1},
                              .alpha = alphas == NULL ? 0.0f : alphas[i],
                              .beta = betas == NULL ? 0.0f : betas[i]};
        for (int k = 0; k < rondo__scalar_op_get_operand_count(step->op); k++) {
            const int64_t operand = operands[3 * i + (size_t)k];
            if (operand < 0 || operand >= (int64_t)(input_count + i)) {
                return RONDO_OP_FAIL(op, BAD_DATA, "attribute operands[%zu] is %lld, out of range",
                                     3 * i + (size_t)k, (long long)operand);
            }
            step->operands[k] = (int32_t)operand;
        }
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

static rondo_status infer_elementwise(rondo__infer *infer) {
    scalar_step steps[ELEMENTWISE_STEP_MAX];
    size_t step_count;
    RETURN_IF_ERROR(read_steps(infer->op, infer->input_count, steps, &step_count));
    for (size_t i = 1; i < infer->input_count; i++) {
        if (!rondo__infer_has_input(infer, i)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu is missing", i);
        }
    }
    rondo_dtype dtype = infer->inputs[0].dtype;
    if (rondo__op_find(infer->op, "to") == NULL) {
        RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, infer->input_count));
    } else {
        dtype = rondo__dtype_from_onnx(rondo__op_get_int(infer->op, "to", 0));
        for (size_t i = 0; i < infer->input_count; i++) {
            if (!rondo__dtype_is_f32_or_f16(infer->inputs[i].dtype)) {
                return rondo__op_fail_dtype(infer->op, i, infer->inputs[i].dtype);
            }
        }
        if (!rondo__dtype_is_f32_or_f16(dtype)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute to is neither f32 nor f16");
        }
    }
    rondo_shape shape;
    RETURN_IF_ERROR(rondo__broadcast_inputs(infer, &shape));
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

static rondo_status compute_elementwise(rondo__compute *compute) {
    const size_t input_count = compute->input_count;
    const rondo_shape *shape = &compute->inferred[0].shape;
    scalar_step steps[ELEMENTWISE_STEP_MAX];
    size_t step_count;
    RETURN_IF_ERROR(read_steps(compute->op, input_count, steps, &step_count));
    const double *wide[ELEMENTWISE_INPUT_MAX] = {NULL};
    int64_t strides[ELEMENTWISE_INPUT_MAX][RONDO_RANK_MAX] = {{0}};
    rondo__scratch scratch = {0};
    for (size_t i = 0; i < input_count; i++) {
        const rondo_shape *own = &compute->inputs[i]->shape;
        wide[i] = rondo__scratch_widen(&scratch, compute->inputs[i]);
        int64_t stride = 1;
        for (int32_t k = 1; k <= own->rank; k++) {
            const int64_t extent = own->extent[own->rank - k];
            strides[i][shape->rank - k] = extent == 1 ? 0 : stride;
            stride *= extent;
        }
    }
    const int64_t count = rondo_shape_get_count(shape);
    double *y = rondo__scratch_create(&scratch, count);
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    int64_t index[RONDO_RANK_MAX] = {0};
    float values[ELEMENTWISE_INPUT_MAX + ELEMENTWISE_STEP_MAX];
    for (int64_t at = 0; at < count; at++) {
        for (size_t i = 0; i < input_count; i++) {
            int64_t offset = 0;
            for (int32_t k = 0; k < shape->rank; k++) {
                offset += index[k] * strides[i][k];
            }
            values[i] = (float)wide[i][offset];
        }
        for (size_t s = 0; s < step_count; s++) {
            const scalar_step *step = &steps[s];
            const float a = values[step->operands[0]];
            const float b = step->operands[1] < 0 ? 0.0f : values[step->operands[1]];
            values[input_count + s] =
                rondo__scalar_op_apply(step->op, step->alpha, step->beta, a, b);
        }
        y[at] = (double)values[input_count + step_count - 1];
        rondo__index_advance(shape->rank, shape->extent, index);
    }
    scratch.status = rondo__narrow(compute, 0, y);
    return rondo__scratch_end(&scratch);
}

#define FUSED_ENTRY(op_name, least, most, more_flags, infer_function, ...)                  \
    RONDO_OP_ROW(FUSED, op_name, 1, RONDO_OP_OPSET_MAX, least, most, 1, 1,                  \
                 .flags = RONDO__OP_INTERNAL | (more_flags), .capture = RONDO__CAPTURE_YES, \
                 .infer = infer_function, .compute = __VA_ARGS__)

const rondo__op_def rondo__op_table_fused[] = {
    FUSED_ENTRY(Conv, 2, 6, 0, infer_conv, compute_conv, .weights = 1, .half.kind = HALF_PRODUCT),
    RONDO_OP_ROW(FUSED, MatMul, 1, RONDO_OP_OPSET_MAX, 2, 4, 1, 2, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_matmul_and_moments,
                 .compute = compute_matmul, .weights = 1, .half.kind = HALF_PRODUCT),
    // Its gain, behind optional inputs, is looked for by infer.
    RONDO_OP_ROW(FUSED, NormMatMul, 1, RONDO_OP_OPSET_MAX, 2, 7, 1, 2, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_norm_matmul,
                 .compute = compute_norm_matmul, .weights = 1),
    FUSED_ENTRY(MaxPool, 1, 1, 0, infer_pool, compute_max_pool),
    FUSED_ENTRY(AveragePool, 1, 1, 0, infer_pool, compute_average_pool),
    FUSED_ENTRY(GlobalAveragePool, 1, 1, 0, infer_global_average_pool, compute_global_average_pool),
    FUSED_ENTRY(GroupNormalization, 3, 3, 0, infer_group_norm, compute_group_norm,
                .half.kind = HALF_BOUNDED),
    FUSED_ENTRY(Elementwise, 1, ELEMENTWISE_INPUT_MAX, RONDO__OP_ELEMENTWISE, infer_elementwise,
                compute_elementwise),
    {.name = NULL},
};
