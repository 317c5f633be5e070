// op/math/op_signal.c — DFT, STFT, the window functions and MelWeightMatrix.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/element_types.h"
#include "op/op.h"
#include "op/reference.h"

static const double two_pi = 6.283185307179586476925;

// ---- the transform ----------------------------------------------------------------------------

// A transform of one length, made once and run on many lines. re and im are both input and output.
typedef struct transform_plan {
    int64_t length;
    const double *cosines;  // [length]: cos(2 pi k / length)
    const double *sines;    // [length]: -sin for the forward transform, +sin for the inverse
    double *re, *im;        // [length]
    double *work;           // [4 * length]
} transform_plan;

// A length of whole quarters needs the cosines of the first one only: the others are the same, and
// sines are cosines a quarter later.
static void fill_quarters(int64_t length, bool is_inverse, double *cosines, double *sines) {
    const int64_t quarter = length / 4;
    for (int64_t i = 0; i < quarter; ++i) {
        cosines[i] = cos(two_pi * (double)i / (double)length);
    }
    cosines[quarter] = 0.0;
    for (int64_t i = quarter + 1; i <= 2 * quarter; ++i) {
        cosines[i] = -cosines[2 * quarter - i];
    }
    for (int64_t i = 2 * quarter + 1; i < length; ++i) {
        cosines[i] = cosines[length - i];
    }
    for (int64_t i = 0; i < length; ++i) {
        const double sine = cosines[i < quarter ? i + 3 * quarter : i - quarter];
        sines[i] = is_inverse ? sine : -sine;
    }
}

static void transform_init(rondo__scratch *scratch, int64_t length, bool is_inverse,
                           transform_plan *out_transform) {
    double *cosines = rondo__scratch_create(scratch, length);
    double *sines = rondo__scratch_create(scratch, length);
    *out_transform = (transform_plan){
        .length = length,
        .cosines = cosines,
        .sines = sines,
        .re = rondo__scratch_create(scratch, length),
        .im = rondo__scratch_create(scratch, length),
        .work = rondo__scratch_create(scratch, 4 * length),
    };
    if (scratch->status != RONDO_STATUS_OK) {
        return;
    }
    if (length % 4 == 0) {
        fill_quarters(length, is_inverse, cosines, sines);
        return;
    }
    for (int64_t i = 0; i < length; i++) {
        const double angle = two_pi * (double)i / (double)length;
        cosines[i] = cos(angle);
        sines[i] = is_inverse ? sin(angle) : -sin(angle);
    }
}

// The factor that a transform of `length` points is cut by first.
static int64_t find_radix(int64_t length) {
    for (int64_t radix = length % 4 == 0 ? 4 : 2; radix * radix <= length; ++radix) {
        if (length % radix == 0) {
            return radix;
        }
    }
    return length % 4 == 0 ? 4 : length;
}

// Four terms of a butterfly; sine is +1 for the inverse transform, -1 for the forward one.
static inline void join_four(const double *re, const double *im, double sine, double *out_re,
                             double *out_im, int64_t step) {
    const double even_re = re[0] + re[2], even_im = im[0] + im[2];
    const double odd_re = re[1] + re[3], odd_im = im[1] + im[3];
    const double far_re = re[0] - re[2], far_im = im[0] - im[2];
    const double turned_re = -sine * (im[1] - im[3]), turned_im = sine * (re[1] - re[3]);
    out_re[0] = even_re + odd_re;
    out_im[0] = even_im + odd_im;
    out_re[step] = far_re + turned_re;
    out_im[step] = far_im + turned_im;
    out_re[2 * step] = even_re - odd_re;
    out_im[2 * step] = even_im - odd_im;
    out_re[3 * step] = far_re - turned_re;
    out_im[3 * step] = far_im - turned_im;
}

// `radix` terms of a butterfly by definition. stride is length / radix of the whole transform.
static void join_terms(const transform_plan *transform, int64_t radix, const double *re,
                       const double *im, double *out_re, double *out_im, int64_t step) {
    const int64_t stride = transform->length / radix;
    for (int64_t q = 0; q < radix; ++q) {
        double re_sum = re[0];
        double im_sum = im[0];
        int64_t at = 0;  // q * r * stride modulo length
        for (int64_t r = 1; r < radix; ++r) {
            at += q * stride;
            at -= at >= transform->length ? transform->length : 0;
            re_sum += re[r] * transform->cosines[at] - im[r] * transform->sines[at];
            im_sum += re[r] * transform->sines[at] + im[r] * transform->cosines[at];
        }
        out_re[q * step] = re_sum;
        out_im[q * step] = im_sum;
    }
}

static double get_sine(const transform_plan *transform) {
    return transform->sines[transform->length / 4] > 0 ? 1.0 : -1.0;
}

// The butterflies of four parts of `step` points, turned first by what stands `stride` apart.
static void join_fours(const transform_plan *transform, int64_t step, int64_t stride, double *re,
                       double *im) {
    const double sine = get_sine(transform);
    join_four((double[4]){re[0], re[step], re[2 * step], re[3 * step]},
              (double[4]){im[0], im[step], im[2 * step], im[3 * step]}, sine, re, im, step);
    for (int64_t k = 1; k < step; ++k) {
        double term_re[4] = {re[k]}, term_im[4] = {im[k]};
        for (int64_t r = 1; r < 4; ++r) {
            const double c = transform->cosines[r * k * stride];
            const double s = transform->sines[r * k * stride];
            const double from_re = re[r * step + k], from_im = im[r * step + k];
            term_re[r] = from_re * c - from_im * s;
            term_im[r] = from_re * s + from_im * c;
        }
        join_four(term_re, term_im, sine, re + k, im + k, step);
    }
}

static void join_parts(const transform_plan *transform, int64_t radix, int64_t step, int64_t stride,
                       double *re, double *im) {
    double *term_re = transform->work, *term_im = transform->work + transform->length;
    for (int64_t k = 0; k < step; ++k) {
        for (int64_t r = 0; r < radix; ++r) {
            const double c = transform->cosines[r * k * stride];
            const double s = transform->sines[r * k * stride];
            const double from_re = re[r * step + k], from_im = im[r * step + k];
            term_re[r] = from_re * c - from_im * s;
            term_im[r] = from_re * s + from_im * c;
        }
        join_terms(transform, radix, term_re, term_im, re + k, im + k, step);
    }
}

// Transforms `length` points that stand `stride` apart, into dense ones: `radix` transforms of
// every radix-th point, joined by butterflies. Recurses once for each factor of the length.
static void transform_part(const transform_plan *transform, int64_t length, int64_t stride,
                           const double *re, const double *im, double *out_re, double *out_im) {
    if (length == 4) {
        join_four((double[4]){re[0], re[stride], re[2 * stride], re[3 * stride]},
                  (double[4]){im[0], im[stride], im[2 * stride], im[3 * stride]},
                  get_sine(transform), out_re, out_im, 1);
        return;
    }
    const int64_t radix = find_radix(length);
    const int64_t step = length / radix;
    for (int64_t r = 0; r < radix; ++r) {
        if (step == 1) {
            out_re[r] = re[r * stride];
            out_im[r] = im[r * stride];
        } else {
            transform_part(transform, step, stride * radix, re + r * stride, im + r * stride,
                           out_re + r * step, out_im + r * step);
        }
    }
    if (radix == 4) {
        join_fours(transform, step, stride, out_re, out_im);
    } else {
        join_parts(transform, radix, step, stride, out_re, out_im);
    }
}

static void transform_run(const transform_plan *transform) {
    const int64_t length = transform->length;
    double *re = transform->work + 2 * length;
    double *im = transform->work + 3 * length;
    transform_part(transform, length, 1, transform->re, transform->im, re, im);
    memcpy(transform->re, re, (size_t)length * sizeof *re);
    memcpy(transform->im, im, (size_t)length * sizeof *im);
}

// Reads a scalar input (rank 0, or 1 with one element).
static rondo_status read_scalar(const rondo__op *op, const char *what, const rondo_tensor *tensor,
                                int64_t minimum, int64_t *out_value) {
    size_t count;
    RETURN_IF_ERROR(rondo__op_read_ints(op, what, tensor, 1, out_value, &count));
    if (count != 1 || *out_value < minimum || *out_value > (INT64_C(1) << 40)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input %s must be one number of at least %lld", what,
                             (long long)minimum);
    }
    return RONDO_STATUS_OK;
}

// ---- DFT --------------------------------------------------------------------------------------

typedef struct dft_plan {
    int32_t axis;
    int64_t length;
    bool is_inverse;
    bool is_onesided;
    rondo_shape output;
} dft_plan;

// `length` and `axis` are inputs 1 and 2, NULL when absent.
static rondo_status make_dft_plan(const rondo__op *op, const rondo_shape *x,
                                  const rondo_tensor *length, const rondo_tensor *axis,
                                  dft_plan *plan) {
    const int64_t parts = x->rank < 2 ? 0 : x->extent[x->rank - 1];
    if (parts != 1 && parts != 2) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "input has shape %s; its last extent must be 1 or 2",
                             rondo_shape_format(x, text, sizeof text));
    }
    int64_t given = op->opset >= 20 ? -2 : rondo__op_get_int(op, "axis", 1);
    if (axis != NULL) {
        size_t count;
        RETURN_IF_ERROR(rondo__op_read_ints(op, "axis", axis, 1, &given, &count));
    }
    RETURN_IF_ERROR(rondo__op_resolve_axis(op, given, x->rank, &plan->axis));
    if (plan->axis == x->rank - 1) {
        return RONDO_OP_FAIL(op, BAD_DATA, "axis is the last one, which holds re and im");
    }
    plan->is_inverse = rondo__op_get_int(op, "inverse", 0) != 0;
    plan->is_onesided = rondo__op_get_int(op, "onesided", 0) != 0;
    if (plan->is_onesided && !plan->is_inverse && parts == 2) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute onesided needs a real input");
    }
    const bool is_to_real = plan->is_onesided && plan->is_inverse;
    plan->length = is_to_real ? 2 * (x->extent[plan->axis] - 1) : x->extent[plan->axis];
    if (length != NULL) {
        RETURN_IF_ERROR(read_scalar(op, "dft_length", length, 1, &plan->length));
    }
    if (plan->length < 1) {
        return RONDO_OP_FAIL(op, BAD_DATA, "the transform would have %lld points",
                             (long long)plan->length);
    }
    plan->output = *x;
    plan->output.extent[plan->axis] =
        plan->is_onesided && !is_to_real ? plan->length / 2 + 1 : plan->length;
    plan->output.extent[x->rank - 1] = is_to_real ? 1 : 2;
    return RONDO_STATUS_OK;
}

static rondo_status infer_dft(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    const rondo_tensor *values[3] = {NULL};
    for (size_t i = 1; i < 3; i++) {
        if (rondo__infer_has_input(infer, i)) {
            values[i] = infer->inputs[i].constant;
            if (values[i] == NULL) {
                return rondo__infer_needs_value(infer, i);
            }
        }
    }
    dft_plan plan;
    RETURN_IF_ERROR(make_dft_plan(infer->op, &infer->inputs[0].shape, values[1], values[2], &plan));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &plan.output);
}

// Fills the upper half of a spectrum that belongs to a real signal: the lower half, conjugated and
// turned round.
static void mirror_spectrum(transform_plan *transform) {
    const int64_t length = transform->length;
    for (int64_t k = length / 2 + 1; k < length; k++) {
        transform->re[k] = transform->re[length - k];
        transform->im[k] = -transform->im[length - k];
    }
}

static rondo_status compute_dft(rondo__compute *compute) {
    const rondo_shape *x_shape = &compute->inputs[0]->shape;
    dft_plan plan;
    RETURN_IF_ERROR(make_dft_plan(compute->op, x_shape, rondo__compute_get_input(compute, 1),
                                  rondo__compute_get_input(compute, 2), &plan));
    const int64_t parts = x_shape->extent[x_shape->rank - 1];
    const int64_t extent = x_shape->extent[plan.axis];
    const int64_t bins = plan.output.extent[plan.axis];
    const int64_t output_parts = plan.output.extent[x_shape->rank - 1];
    const int64_t outer = rondo__shape_multiply(x_shape, 0, plan.axis);
    const int64_t inner = rondo__shape_multiply(x_shape, plan.axis + 1, x_shape->rank - 1);
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&plan.output));
    transform_plan transform;
    transform_init(&scratch, plan.length, plan.is_inverse, &transform);
    if (scratch.status == RONDO_STATUS_OK) {
        const double factor = plan.is_inverse ? 1.0 / (double)plan.length : 1.0;
        for (int64_t line = 0; line < outer * inner && bins > 0; line++) {
            const int64_t o = line / inner;
            const int64_t i = line % inner;
            for (int64_t n = 0; n < plan.length; n++) {
                // The signal is cut, or continued with zeros.
                const double *value = x + ((o * extent + n) * inner + i) * parts;
                transform.re[n] = n < extent ? value[0] : 0.0;
                transform.im[n] = n < extent && parts == 2 ? value[1] : 0.0;
            }
            if (plan.is_inverse && plan.is_onesided) {
                mirror_spectrum(&transform);
            }
            transform_run(&transform);
            for (int64_t k = 0; k < bins; k++) {
                double *target = y + ((o * bins + k) * inner + i) * output_parts;
                target[0] = transform.re[k] * factor;
                if (output_parts == 2) {
                    target[1] = transform.im[k] * factor;
                }
            }
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- STFT -------------------------------------------------------------------------------------

typedef struct stft_plan {
    int64_t step;
    int64_t length;  // of a frame
    int64_t frames;
    int64_t bins;
    rondo_shape output;
} stft_plan;

static rondo_status make_stft_plan(const rondo__op *op, const rondo_shape *x,
                                   const rondo_tensor *step, const rondo_shape *window,
                                   const rondo_tensor *length, stft_plan *plan) {
    if ((x->rank != 2 && x->rank != 3) ||
        (x->rank == 3 && x->extent[2] != 1 && x->extent[2] != 2)) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "signal has shape %s, [batch, length, 1 or 2] is fit",
                             rondo_shape_format(x, text, sizeof text));
    }
    RETURN_IF_ERROR(read_scalar(op, "frame_step", step, 1, &plan->step));
    plan->length = x->extent[1];
    if (window != NULL) {
        if (window->rank != 1) {
            return RONDO_OP_FAIL(op, BAD_DATA, "input window must have rank 1");
        }
        plan->length = window->extent[0];
    }
    if (length != NULL) {
        RETURN_IF_ERROR(read_scalar(op, "frame_length", length, 1, &plan->length));
        if (window != NULL && window->extent[0] != plan->length) {
            return RONDO_OP_FAIL(op, BAD_DATA, "frame_length is %lld, window has %lld elements",
                                 (long long)plan->length, (long long)window->extent[0]);
        }
    }
    if (plan->length < 1 || plan->length > x->extent[1]) {
        return RONDO_OP_FAIL(op, BAD_DATA, "a frame has %lld samples, the signal %lld",
                             (long long)plan->length, (long long)x->extent[1]);
    }
    const bool is_onesided = rondo__op_get_int(op, "onesided", 1) != 0;
    if (is_onesided && x->rank == 3 && x->extent[2] == 2) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute onesided needs a real signal");
    }
    plan->frames = 1 + (x->extent[1] - plan->length) / plan->step;
    plan->bins = is_onesided ? plan->length / 2 + 1 : plan->length;
    plan->output = (rondo_shape){.rank = 4, .extent = {x->extent[0], plan->frames, plan->bins, 2}};
    return RONDO_STATUS_OK;
}

static rondo_status infer_stft(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    infer->outputs[0].dtype = inputs[0].dtype;
    const bool has_window = rondo__infer_has_input(infer, 2);
    const bool has_length = rondo__infer_has_input(infer, 3);
    if (has_window) {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 2));
    }
    if (inputs[1].constant == NULL) {
        return rondo__infer_needs_value(infer, 1);
    }
    if (has_length && inputs[3].constant == NULL) {
        return rondo__infer_needs_value(infer, 3);
    }
    stft_plan plan;
    RETURN_IF_ERROR(make_stft_plan(infer->op, &inputs[0].shape, inputs[1].constant,
                                   has_window ? &inputs[2].shape : NULL,
                                   has_length ? inputs[3].constant : NULL, &plan));
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &plan.output);
}

static rondo_status compute_stft(rondo__compute *compute) {
    const rondo_shape *x_shape = &compute->inputs[0]->shape;
    const rondo_tensor *window_tensor = rondo__compute_get_input(compute, 2);
    stft_plan plan;
    RETURN_IF_ERROR(make_stft_plan(compute->op, x_shape, compute->inputs[1],
                                   window_tensor == NULL ? NULL : &window_tensor->shape,
                                   rondo__compute_get_input(compute, 3), &plan));
    const int64_t parts = x_shape->rank == 3 ? x_shape->extent[2] : 1;
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *window = rondo__scratch_widen(&scratch, window_tensor);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&plan.output));
    transform_plan transform;
    transform_init(&scratch, plan.length, false, &transform);
    if (scratch.status == RONDO_STATUS_OK) {
        double *target = y;
        for (int64_t frame = 0; frame < x_shape->extent[0] * plan.frames; frame++) {
            const int64_t first =
                frame / plan.frames * x_shape->extent[1] + frame % plan.frames * plan.step;
            for (int64_t n = 0; n < plan.length; n++) {
                const double *value = x + (first + n) * parts;
                const double weight = window == NULL ? 1.0 : window[n];
                transform.re[n] = value[0] * weight;
                transform.im[n] = parts == 2 ? value[1] * weight : 0.0;
            }
            transform_run(&transform);
            for (int64_t k = 0; k < plan.bins; k++) {
                *target++ = transform.re[k];
                *target++ = transform.im[k];
            }
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- windows ----------------------------------------------------------------------------------

static rondo_status read_output_dtype(const rondo__op *op, rondo_dtype *out_dtype) {
    const int64_t number = rondo__op_get_int(op, "output_datatype", 1);
    *out_dtype = rondo__dtype_from_onnx(number);
    if (*out_dtype == RONDO_DTYPE_NONE || *out_dtype == RONDO_DTYPE_BOOL) {
        return rondo__op_fail_element_type(op, "output_datatype", number);
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_window(rondo__infer *infer) {
    rondo_dtype dtype;
    RETURN_IF_ERROR(read_output_dtype(infer->op, &dtype));
    infer->outputs[0].dtype = dtype;
    if (infer->inputs[0].constant == NULL) {
        return rondo__infer_needs_value(infer, 0);
    }
    int64_t size;
    RETURN_IF_ERROR(read_scalar(infer->op, "size", infer->inputs[0].constant, 0, &size));
    const rondo_shape shape = {.rank = 1, .extent = {size}};
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N)
static rondo_status compute_window(rondo__compute *compute, double a0, double a1, double a2) {
    const int64_t size = compute->inferred[0].shape.extent[0];
    const bool is_periodic = rondo__op_get_int(compute->op, "periodic", 1) != 0;
    const int64_t period = is_periodic ? size : size - 1;
    const bool is_whole = rondo__dtype_is_integer(compute->inferred[0].dtype);
    rondo__scratch scratch = {0};
    double *y = rondo__scratch_create(&scratch, size);
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t n = 0; n < size; n++) {
            // A symmetric window of one point is NaN, as the standard's function body makes it.
            const double angle = two_pi * (double)n / (double)period;
            y[n] = a0 - a1 * cos(angle) + a2 * cos(2.0 * angle);
            // The body casts from f32, in which the peak is 1 and not a little less.
            y[n] = is_whole ? (double)(float)y[n] : y[n];
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static rondo_status compute_hann(rondo__compute *compute) {
    return compute_window(compute, 0.5, 0.5, 0.0);
}

static rondo_status compute_hamming(rondo__compute *compute) {
    return compute_window(compute, 25.0 / 46.0, 21.0 / 46.0, 0.0);
}

static rondo_status compute_blackman(rondo__compute *compute) {
    return compute_window(compute, 0.42, 0.5, 0.08);
}

// ---- MelWeightMatrix --------------------------------------------------------------------------

static rondo_status infer_mel(rondo__infer *infer) {
    rondo_dtype dtype;
    RETURN_IF_ERROR(read_output_dtype(infer->op, &dtype));
    infer->outputs[0].dtype = dtype;
    for (size_t i = 0; i < 5; i++) {
        if (rondo_shape_get_count(&infer->inputs[i].shape) != 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu must be one number", i);
        }
        if (i < 2 && infer->inputs[i].constant == NULL) {
            return rondo__infer_needs_value(infer, i);
        }
    }
    int64_t bins, length;
    RETURN_IF_ERROR(read_scalar(infer->op, "num_mel_bins", infer->inputs[0].constant, 1, &bins));
    RETURN_IF_ERROR(read_scalar(infer->op, "dft_length", infer->inputs[1].constant, 1, &length));
    const rondo_shape shape = {.rank = 2, .extent = {length / 2 + 1, bins}};
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

static double hertz_to_mel(double hertz) {
    return 2595.0 * log10(1.0 + hertz / 700.0);
}

// Where the bins of the spectrogram lie that mel band edge `index` falls into.
static double get_band_edge(const double *inputs, int64_t bands, int64_t index) {
    const double low = hertz_to_mel(inputs[3]);
    const double high = hertz_to_mel(inputs[4]);
    const double mel = low + (double)index * (high - low) / (double)(bands + 2);
    const double hertz = 700.0 * (pow(10.0, mel / 2595.0) - 1.0);
    return floor((inputs[1] + 1.0) * hertz / inputs[2]);
}

static rondo_status compute_mel(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inferred[0].shape;
    const int64_t rows = shape->extent[0];
    const int64_t bands = shape->extent[1];
    double inputs[5];
    for (size_t i = 0; i < 5; i++) {
        inputs[i] = rondo__tensor_get_number(compute->inputs[i], 0);
    }
    rondo__scratch scratch = {0};
    double *y = rondo__scratch_create(&scratch, rows * bands);
    double *edges = rondo__scratch_create(&scratch, bands + 2);
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    for (int64_t i = 0; i < bands + 2; i++) {
        edges[i] = get_band_edge(inputs, bands, i);
        if (!(edges[i] >= 0.0 && edges[i] < (double)rows)) {
            scratch.status =
                RONDO_OP_FAIL(op, BAD_DATA, "edges of %g to %g hertz do not fit sample_rate %g",
                              inputs[3], inputs[4], inputs[2]);
            return rondo__scratch_end(&scratch);
        }
    }
    for (int64_t i = 0; i < bands; i++) {
        const int64_t left = (int64_t)edges[i];
        const int64_t center = (int64_t)edges[i + 1];
        const int64_t right = (int64_t)edges[i + 2];
        if (center == left) {
            y[center * bands + i] = 1.0;
        }
        for (int64_t j = left; j <= center && center != left; j++) {
            y[j * bands + i] = (double)(j - left) / (double)(center - left);
        }
        for (int64_t j = center; j < right; j++) {
            y[j * bands + i] = (double)(right - j) / (double)(right - center);
        }
    }
    scratch.status = rondo__narrow(compute, 0, y);
    return rondo__scratch_end(&scratch);
}

static const char *const dft_17_attributes[] = {"axis", "inverse", "onesided", NULL};
static const char *const dft_20_attributes[] = {"inverse", "onesided", NULL};
static const char *const stft_attributes[] = {"onesided", NULL};
static const char *const window_attributes[] = {"output_datatype", "periodic", NULL};
static const char *const mel_attributes[] = {"output_datatype", NULL};

const rondo__op_def rondo__op_table_signal[] = {
    RONDO_OP_ENTRY(DFT, 17, 19, 1, 2, 1, 1, dft_17_attributes, infer_dft, compute_dft,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_WIDE, HALF_SPECTRUM}),
    RONDO_OP_ENTRY(DFT, 20, 28, 1, 3, 1, 1, dft_20_attributes, infer_dft, compute_dft,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_WIDE, HALF_SPECTRUM}),
    RONDO_OP_ENTRY(STFT, 17, 28, 2, 4, 1, 1, stft_attributes, infer_stft, compute_stft,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_WIDE, HALF_SPECTRUM}),
    RONDO_OP_ENTRY(HannWindow, 17, 28, 1, 1, 1, 1, window_attributes, infer_window, compute_hann,
                   .half = {HALF_STAYS, HALF_EXACT, HALF_SPECTRUM}),
    RONDO_OP_ENTRY(HammingWindow, 17, 28, 1, 1, 1, 1, window_attributes, infer_window,
                   compute_hamming, .half = {HALF_STAYS, HALF_EXACT, HALF_SPECTRUM}),
    RONDO_OP_ENTRY(BlackmanWindow, 17, 28, 1, 1, 1, 1, window_attributes, infer_window,
                   compute_blackman, .half = {HALF_STAYS, HALF_EXACT, HALF_SPECTRUM}),
    RONDO_OP_ENTRY(MelWeightMatrix, 17, 28, 5, 5, 1, 1, mel_attributes, infer_mel, compute_mel,
                   .half = {HALF_STAYS, HALF_WIDE, HALF_SPECTRUM}),
    {.name = NULL},
};
