// op/image/op_resize.c — Resize and Upsample.
//
// Resizing is separable: each axis that changes gets a list of taps (input index and weight) for
// each of its output positions, and the axes are then resized one after the other. Nearest is one
// tap, linear two, cubic four; with antialias and a scale below 1 as many as the widened filter
// covers. Everything that the specification says of coordinates, edges and exclusion ends up in
// those lists.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/image/resize.h"
#include "op/op.h"
#include "op/reference.h"
#include "op/support.h"

typedef enum coordinate_mode {
    COORDINATES_HALF_PIXEL,
    COORDINATES_HALF_PIXEL_SYMMETRIC,
    COORDINATES_PYTORCH_HALF_PIXEL,
    COORDINATES_ALIGN_CORNERS,
    COORDINATES_ASYMMETRIC,
    COORDINATES_HALF_PIXEL_FOR_NN,
    COORDINATES_CROP,
} coordinate_mode;

typedef enum rounding_mode {
    ROUNDING_PREFER_FLOOR,
    ROUNDING_PREFER_CEIL,
    ROUNDING_FLOOR,
    ROUNDING_CEIL,
    ROUNDING_SIMPLE,  // before version 11: down when it grows, up when it shrinks
} rounding_mode;

typedef enum ratio_policy { POLICY_STRETCH, POLICY_NOT_LARGER, POLICY_NOT_SMALLER } ratio_policy;

__extension__ typedef __int128 wide;

// Which input is which: these moved between versions.
typedef struct resize_inputs {
    size_t roi;     // 0: the version has none
    size_t scales;  // always there
    size_t sizes;   // 0: the version has none
} resize_inputs;

static resize_inputs get_inputs(const rondo__op *op) {
    if (op->def->id == RONDO__OP_Upsample || op->opset < 11) {
        return (resize_inputs){.scales = 1};
    }
    return (resize_inputs){.roi = 1, .scales = 2, .sizes = 3};
}

// ---- attributes -------------------------------------------------------------------------------

static rondo_status find_name(const rondo__op *op, const char *attribute, const char *fallback,
                              const char *const *names, int *out_index) {
    const char *text = rondo__op_get_string(op, attribute, fallback);
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out_index = i;
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s is \"%.40s\", which is unknown", attribute,
                         text);
}

static rondo_status read_attributes(const rondo__op *op, rondo__resize_plan *plan) {
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const transforms[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize", NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    const bool is_old = get_inputs(op).roi == 0;
    int mode = 0, transform = 0, round = 0;
    RETURN_IF_ERROR(find_name(op, "mode", "nearest", modes, &mode));
    RETURN_IF_ERROR(find_name(op, "coordinate_transformation_mode",
                              is_old ? "asymmetric" : "half_pixel", transforms, &transform));
    RETURN_IF_ERROR(find_name(op, "nearest_mode", "round_prefer_floor", roundings, &round));
    plan->mode = (rondo__resize_mode)mode;
    plan->coordinates = transform;
    plan->rounding = is_old ? (int)ROUNDING_SIMPLE : round;
    plan->excludes_outside = rondo__op_get_int(op, "exclude_outside", 0) != 0;
    plan->has_antialias = rondo__op_get_int(op, "antialias", 0) != 0;
    plan->cubic = (double)rondo__op_get_float(op, "cubic_coeff_a", -0.75f);
    plan->extrapolation = (double)rondo__op_get_float(op, "extrapolation_value", 0.0f);
    return RONDO_STATUS_OK;
}

// The axes that roi, scales and sizes speak of, in their order.
static rondo_status read_axes(const rondo__op *op, int32_t rank, int32_t *out_axes,
                              size_t *out_count) {
    size_t count;
    const int64_t *axes = rondo__op_get_ints(op, "axes", &count);
    if (axes == NULL) {
        count = (size_t)rank;
    }
    uint32_t ignored;
    if (axes != NULL) {
        RETURN_IF_ERROR(rondo__op_resolve_axes(op, axes, count, rank, &ignored));
    }
    for (size_t i = 0; i < count; i++) {
        if (axes == NULL) {
            out_axes[i] = (int32_t)i;
        } else {
            RETURN_IF_ERROR(rondo__op_resolve_axis(op, axes[i], rank, &out_axes[i]));
        }
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

// ---- extents ----------------------------------------------------------------------------------

static rondo_status check_count(const rondo__op *op, const char *what, const rondo_tensor *tensor,
                                size_t expected) {
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    if (tensor->shape.rank != 1 || count != (int64_t)expected) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input %s has %lld elements, %zu are expected", what,
                             (long long)count, expected);
    }
    return RONDO_STATUS_OK;
}

// Output extents and scales from the scales input.
static rondo_status apply_scales(const rondo__op *op, const rondo_tensor *scales,
                                 const int32_t *axes, size_t axis_count, rondo__resize_plan *plan) {
    RETURN_IF_ERROR(check_count(op, "scales", scales, axis_count));
    for (size_t i = 0; i < axis_count; i++) {
        const int32_t axis = axes[i];
        const double scale = rondo__tensor_get_number(scales, (int64_t)i);
        if (!(scale > 0.0 && scale < 1e12)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "scales[%zu] is %g, it must be above 0", i, scale);
        }
        // In f32, as every runtime does: 10 x 0.6f must give 6, not 5. The region of a crop does
        // not count, though the specification's text says so: neither its own shape inference nor
        // its reference, nor any runtime, makes the output smaller by it.
        const float extent = (float)plan->input.extent[axis] * (float)scale;
        if (!(extent >= 0.0f && extent < 1e15f)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "scales[%zu] gives extent %g", i, (double)extent);
        }
        plan->output.extent[axis] = (int64_t)floorf(extent);
        plan->scale[axis] = scale;
    }
    return RONDO_STATUS_OK;
}

static void set_quotient(rondo__resize_plan *plan, int32_t axis, int64_t parts, int64_t whole) {
    plan->parts[axis] = parts;
    plan->whole[axis] = whole;
    plan->scale[axis] = (double)parts / (double)whole;
}

// Towards minus infinity; the divisor is above 0.
static wide divide_down(wide dividend, wide divisor) {
    const wide quotient = dividend / divisor;
    return quotient * divisor > dividend ? quotient - 1 : quotient;
}

// The same from the sizes input, where a policy may keep the ratio of the axes.
static rondo_status apply_sizes(const rondo__op *op, const rondo_tensor *sizes, const int32_t *axes,
                                size_t axis_count, rondo__resize_plan *plan) {
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    RETURN_IF_ERROR(check_count(op, "sizes", sizes, axis_count));
    int64_t values[RONDO_RANK_MAX];
    size_t count;
    RETURN_IF_ERROR(rondo__op_read_ints(op, "sizes", sizes, RONDO_RANK_MAX, values, &count));
    int policy = 0;
    RETURN_IF_ERROR(find_name(op, "keep_aspect_ratio_policy", "stretch", policies, &policy));
    size_t common = 0;  // the entry whose scale all take
    for (size_t i = 0; i < axis_count; i++) {
        const int64_t extent = plan->input.extent[axes[i]];
        if (values[i] < 1 || extent < 1) {
            return RONDO_OP_FAIL(op, BAD_DATA, "sizes[%zu] is %lld for an input extent of %lld", i,
                                 (long long)values[i], (long long)extent);
        }
        plan->output.extent[axes[i]] = values[i];
        set_quotient(plan, axes[i], values[i], extent);
        const wide mine = (wide)values[i] * plan->whole[axes[common]];
        const wide other = (wide)plan->parts[axes[common]] * extent;
        if (policy == POLICY_NOT_LARGER ? mine < other : mine > other) {
            common = i;
        }
    }
    const int64_t parts = plan->parts[axes[common]];
    const int64_t whole = plan->whole[axes[common]];
    for (size_t i = 0; i < axis_count && policy != POLICY_STRETCH; i++) {
        const wide extent =
            divide_down(2 * (wide)parts * plan->input.extent[axes[i]] + whole, 2 * (wide)whole);
        if (extent >= INT64_C(1000000000000000)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "sizes give extent %g on an axis", (double)extent);
        }
        plan->output.extent[axes[i]] = (int64_t)extent;
        set_quotient(plan, axes[i], parts, whole);
    }
    return RONDO_STATUS_OK;
}

// A value input that is present and not empty, or NULL.
static const rondo_tensor *get_value(const rondo_tensor *const *values, size_t input) {
    return input == 0 || values[input] == NULL || rondo_shape_get_count(&values[input]->shape) == 0
               ? NULL
               : values[input];
}

rondo_status rondo__resize_make_plan(const rondo__op *op, const rondo_shape *x,
                                     const rondo_tensor *const *values,
                                     rondo__resize_plan *out_plan) {
    rondo__resize_plan *plan = out_plan;
    memset(plan, 0, sizeof *plan);
    RETURN_IF_ERROR(read_attributes(op, plan));
    plan->input = *x;
    plan->output = *x;
    int32_t axes[RONDO_RANK_MAX];
    size_t axis_count;
    RETURN_IF_ERROR(read_axes(op, x->rank, axes, &axis_count));
    for (int32_t i = 0; i < x->rank; i++) {
        plan->scale[i] = 1.0;
        plan->end[i] = 1.0;
    }
    const resize_inputs inputs = get_inputs(op);
    if (plan->coordinates == COORDINATES_CROP) {
        const rondo_tensor *roi = get_value(values, inputs.roi);
        if (roi == NULL) {
            return RONDO_OP_FAIL(op, BAD_DATA, "input roi is missing; tf_crop_and_resize needs it");
        }
        RETURN_IF_ERROR(check_count(op, "roi", roi, 2 * axis_count));
        for (size_t i = 0; i < axis_count; i++) {
            plan->start[axes[i]] = rondo__tensor_get_number(roi, (int64_t)i);
            plan->end[axes[i]] = rondo__tensor_get_number(roi, (int64_t)(axis_count + i));
        }
    }
    const rondo_tensor *scales = get_value(values, inputs.scales);
    const rondo_tensor *sizes = get_value(values, inputs.sizes);
    if (scales != NULL && sizes == NULL) {
        return apply_scales(op, scales, axes, axis_count, plan);
    }
    if (sizes != NULL) {
        return apply_sizes(op, sizes, axes, axis_count, plan);
    }
    return RONDO_OP_FAIL(op, BAD_DATA, "neither input scales nor input sizes has a value");
}

static rondo_status infer_resize(rondo__infer *infer) {
    const rondo_dtype dtype = infer->inputs[0].dtype;
    if (dtype == RONDO_DTYPE_BOOL) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    infer->outputs[0].dtype = dtype;
    const rondo_tensor *values[RONDO__RESIZE_INPUT_COUNT] = {NULL};
    for (size_t i = 1; i < RONDO__RESIZE_INPUT_COUNT && i < infer->input_count; i++) {
        if (!rondo__infer_has_input(infer, i)) {
            continue;
        }
        if (infer->inputs[i].constant == NULL &&
            rondo_shape_get_count(&infer->inputs[i].shape) > 0) {
            return rondo__infer_needs_value(infer, i);
        }
        values[i] = infer->inputs[i].constant;
    }
    rondo__resize_plan plan;
    RETURN_IF_ERROR(rondo__resize_make_plan(infer->op, &infer->inputs[0].shape, values, &plan));
    return rondo__infer_set_output(infer, 0, dtype, &plan.output);
}

// ---- taps -------------------------------------------------------------------------------------

// The input coordinate of output position `x` on an axis.
static double get_coordinate(const rondo__resize_plan *plan, int32_t axis, int64_t x) {
    const double input = (double)plan->input.extent[axis];
    const double output = (double)plan->output.extent[axis];
    const double scale = plan->scale[axis];
    const double at = (double)x;
    switch ((coordinate_mode)plan->coordinates) {
        case COORDINATES_HALF_PIXEL:
            return (at + 0.5) / scale - 0.5;
        case COORDINATES_HALF_PIXEL_SYMMETRIC: {
            const double adjustment = output / (scale * input);
            return input / 2.0 * (1.0 - adjustment) + (at + 0.5) / scale - 0.5;
        }
        case COORDINATES_PYTORCH_HALF_PIXEL:
            return output > 1.0 ? (at + 0.5) / scale - 0.5 : 0.0;
        case COORDINATES_ALIGN_CORNERS:
            // The resized length is input * scale before it is floored: ONNX's own tests say so
            // (resize_downsample_scales_*_align_corners), though its text can be read otherwise.
            return output > 1.0 ? at * (input - 1.0) / (scale * input - 1.0) : 0.0;
        case COORDINATES_ASYMMETRIC:
            return at / scale;
        case COORDINATES_HALF_PIXEL_FOR_NN:
            return (at + 0.5) / scale;
        case COORDINATES_CROP: {
            const double start = plan->start[axis];
            const double end = plan->end[axis];
            return output > 1.0
                       ? start * (input - 1.0) + at * (end - start) * (input - 1.0) / (output - 1.0)
                       : 0.5 * (start + end) * (input - 1.0);
        }
    }
    return at;
}

// ---- the nearest element ----------------------------------------------------------------------
//
// Which element is nearest may hang on the last bit of a coordinate. Sizes make coordinates
// quotients of whole numbers, and these are compared exactly: ONNX Runtime divides by a rounded
// scale there, the reference of ONNX in f64, and each misses some ties and whole numbers that the
// other sees. A scale that was given is f32, and so are its coordinates, as in ONNX Runtime:
// 1.5 / 0.6f is 2.5.

typedef struct quotient {
    wide dividend, divisor;  // the divisor is above 0
} quotient;

// get_coordinate with a scale of parts / whole. Not for crops.
static quotient get_exact_coordinate(const rondo__resize_plan *plan, int32_t axis, int64_t x) {
    const wide input = plan->input.extent[axis];
    const wide output = plan->output.extent[axis];
    const wide parts = plan->parts[axis];
    const wide whole = plan->whole[axis];
    const wide middle = (2 * (wide)x + 1) * whole;  // (x + 1/2) / scale, in units of 1 / (2 parts)
    switch ((coordinate_mode)plan->coordinates) {
        case COORDINATES_HALF_PIXEL_SYMMETRIC:
            return (quotient){input * parts - output * whole + middle - parts, 2 * parts};
        case COORDINATES_PYTORCH_HALF_PIXEL:
            return output > 1 ? (quotient){middle - parts, 2 * parts} : (quotient){0, 1};
        case COORDINATES_ALIGN_CORNERS: {
            const wide last = parts * input - whole;  // (input * scale - 1) * whole
            return output > 1 && last > 0 ? (quotient){x * (input - 1) * whole, last}
                                          : (quotient){0, 1};
        }
        case COORDINATES_ASYMMETRIC:
            return (quotient){x * whole, parts};
        case COORDINATES_HALF_PIXEL_FOR_NN:
            return (quotient){middle, 2 * parts};
        case COORDINATES_HALF_PIXEL:
        case COORDINATES_CROP:
            break;
    }
    return (quotient){middle - parts, 2 * parts};
}

static wide round_quotient(rounding_mode how, quotient at) {
    switch (how) {
        case ROUNDING_PREFER_FLOOR:
            return -divide_down(at.divisor - 2 * at.dividend, 2 * at.divisor);
        case ROUNDING_PREFER_CEIL:
            return divide_down(2 * at.dividend + at.divisor, 2 * at.divisor);
        case ROUNDING_CEIL:
            return -divide_down(-at.dividend, at.divisor);
        case ROUNDING_FLOOR:
        case ROUNDING_SIMPLE:  // knows no sizes
            break;
    }
    return divide_down(at.dividend, at.divisor);
}

// get_coordinate, each step rounded as ONNX Runtime rounds it.
static float get_narrow_coordinate(const rondo__resize_plan *plan, int32_t axis, int64_t x) {
    const float input = (float)plan->input.extent[axis];
    const float output = (float)plan->output.extent[axis];
    const float scale = (float)plan->scale[axis];
    const float at = (float)x;
    switch ((coordinate_mode)plan->coordinates) {
        case COORDINATES_HALF_PIXEL_SYMMETRIC: {
            const float adjustment = output / (scale * input);
            const float offset = input / 2.0f * (1.0f - adjustment);
            return (float)((double)offset + ((double)at + 0.5) / (double)scale - 0.5);
        }
        case COORDINATES_PYTORCH_HALF_PIXEL:
            return output > 1.0f ? (at + 0.5f) / scale - 0.5f : 0.0f;
        case COORDINATES_ALIGN_CORNERS:
            return output > 1.0f ? at * (input - 1.0f) / (scale * input - 1.0f) : 0.0f;
        case COORDINATES_ASYMMETRIC:
            return at / scale;
        case COORDINATES_HALF_PIXEL_FOR_NN:
            return (at + 0.5f) / scale;
        case COORDINATES_CROP: {
            const float start = (float)plan->start[axis];
            const float end = (float)plan->end[axis];
            return output > 1.0f ? start * (input - 1.0f) +
                                       at * (end - start) * (input - 1.0f) / (output - 1.0f)
                                 : (float)(0.5 * (double)(start + end) * (double)(input - 1.0f));
        }
        case COORDINATES_HALF_PIXEL:
            break;
    }
    return (at + 0.5f) / scale - 0.5f;
}

static float round_coordinate(rounding_mode how, float x, float scale) {
    const float below = floorf(x);
    const bool is_tie = fabsf(x - below - 0.5f) <= 1e-6f;  // as ONNX Runtime has it since 2026
    switch (how) {
        case ROUNDING_PREFER_FLOOR:
            return is_tie ? below : roundf(x);
        case ROUNDING_PREFER_CEIL:
            return is_tie ? below + 1.0f : roundf(x);
        case ROUNDING_FLOOR:
            return below;
        case ROUNDING_CEIL:
            return ceilf(x);
        case ROUNDING_SIMPLE:
            return scale < 1.0f ? ceilf(x) : below;
    }
    return x;
}

static int64_t find_nearest(const rondo__resize_plan *plan, int32_t axis, int64_t x) {
    const int64_t last = plan->input.extent[axis] - 1;
    const rounding_mode how = (rounding_mode)plan->rounding;
    if (plan->parts[axis] > 0 && plan->coordinates != COORDINATES_CROP) {
        const wide index = round_quotient(how, get_exact_coordinate(plan, axis, x));
        return index < 0 ? 0 : index > last ? last : (int64_t)index;
    }
    const float coordinate = get_narrow_coordinate(plan, axis, x);
    const float index = round_coordinate(how, coordinate, (float)plan->scale[axis]);
    return !(index > 0.0f) ? 0 : index < (float)last ? (int64_t)index : last;  // NaN is the first
}

// ---- weights ----------------------------------------------------------------------------------

// Keys' cubic convolution kernel.
static double get_cubic_weight(double a, double distance) {
    const double x = fabs(distance);
    if (x <= 1.0) {
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    }
    return x < 2.0 ? ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a : 0.0;
}

static double get_weight(const rondo__resize_plan *plan, double distance) {
    if (plan->mode == RONDO__RESIZE_CUBIC) {
        return get_cubic_weight(plan->cubic, distance);
    }
    const double x = fabs(distance);
    return x < 1.0 ? 1.0 - x : 0.0;
}

rondo_status rondo__resize_count_taps(const rondo__op *op, const rondo__resize_plan *plan,
                                      int32_t axis, rondo__resize_taps *out_taps) {
    *out_taps = (rondo__resize_taps){.count = 1, .stretch = 1.0};
    if (plan->mode == RONDO__RESIZE_NEAREST) {
        return RONDO_STATUS_OK;
    }
    const double reach = plan->mode == RONDO__RESIZE_CUBIC ? 2.0 : 1.0;
    if (plan->has_antialias && plan->scale[axis] < 1.0) {
        out_taps->stretch = plan->scale[axis];
    }
    out_taps->first = (int64_t)floor(-reach / out_taps->stretch) + 1;
    out_taps->count = 2 - 2 * out_taps->first;
    if (out_taps->count > 4 * plan->input.extent[axis] + 64) {
        return RONDO_OP_FAIL(op, BAD_DATA, "scale %g on axis %d is absurdly small",
                             plan->scale[axis], axis);
    }
    return RONDO_STATUS_OK;
}

bool rondo__resize_find_taps(const rondo__resize_plan *plan, int32_t axis, int64_t x,
                             const rondo__resize_taps *taps, int64_t *indices, double *weights) {
    const int64_t count = taps->count;
    const int64_t extent = plan->input.extent[axis];
    // Far beyond the edges every coordinate means the same; the clamp keeps the conversions exact.
    const double limit = 4.0 * ((double)extent + (double)count) + 16.0;
    const double coordinate =
        fmin(fmax(get_coordinate(plan, axis, x), -limit), limit);  // NaN becomes -limit
    bool is_inside_crop = true;
    if (plan->coordinates == COORDINATES_CROP) {
        const float narrow = get_narrow_coordinate(plan, axis, x);
        is_inside_crop = narrow >= 0.0f && narrow <= (float)(extent - 1);
    }
    if (plan->mode == RONDO__RESIZE_NEAREST) {
        indices[0] = find_nearest(plan, axis, x);
        weights[0] = 1.0;
        return is_inside_crop;
    }
    const int64_t base = (int64_t)floor(coordinate);
    const bool is_plain = plan->mode == RONDO__RESIZE_LINEAR && count == 2;
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = base + taps->first + i;
        const bool is_inside = index >= 0 && index < extent;
        weights[i] = get_weight(plan, taps->stretch * ((double)index - coordinate));
        if (is_plain && i == 1) {  // 1 - weights[0], but exact: whole numbers are rounded from it
            weights[i] = coordinate - (double)base;
        }
        if (plan->excludes_outside && !is_inside) {
            weights[i] = 0.0;
        }
        sum += weights[i];
        indices[i] = index < 0 ? 0 : index >= extent ? extent - 1 : index;
    }
    // The others add up to 1 as they are; a quotient would change their last bits.
    const bool divides = plan->excludes_outside || plan->has_antialias;
    for (int64_t i = 0; i < count && divides && sum != 0.0; i++) {
        weights[i] /= sum;
    }
    return is_inside_crop;
}

// ---- the walk ---------------------------------------------------------------------------------

// Resizes one axis of [outer, input, inner] to [outer, output, inner]. `indices` and `weights` have
// room for the taps of one position.
static void resize_axis(const rondo__resize_plan *plan, int32_t axis, int64_t outer, int64_t inner,
                        const rondo__resize_taps *taps, const double *source, double *target,
                        int64_t *indices, double *weights) {
    const int64_t input = plan->input.extent[axis];
    const int64_t output = plan->output.extent[axis];
    for (int64_t x = 0; x < output; x++) {
        const bool is_inside = rondo__resize_find_taps(plan, axis, x, taps, indices, weights);
        for (int64_t o = 0; o < outer; o++) {
            double *row = target + (o * output + x) * inner;
            if (!is_inside) {
                for (int64_t i = 0; i < inner; i++) {
                    row[i] = plan->extrapolation;
                }
                continue;
            }
            for (int64_t tap = 0; tap < taps->count; tap++) {
                const double *from = source + (o * input + indices[tap]) * inner;
                for (int64_t i = 0; i < inner; i++) {
                    row[i] += weights[tap] * from[i];
                }
            }
        }
    }
}

// An axis that keeps its extent keeps its elements, batch and channels above all. Only a crop moves
// them; the half pixel that tf_half_pixel_for_nn adds is meant for axes that are resized.
bool rondo__resize_keeps_axis(const rondo__resize_plan *plan, int32_t axis) {
    return plan->input.extent[axis] == plan->output.extent[axis] && plan->scale[axis] == 1.0 &&
           plan->coordinates != COORDINATES_CROP;
}

// The walk resizes elements, or, if these are only moved, their positions, so that 64-bit integers
// and the sign of 0 are kept.
static double *start_walk(rondo__scratch *scratch, const rondo__resize_plan *plan,
                          const rondo_tensor *x) {
    if (plan->mode != RONDO__RESIZE_NEAREST) {
        return rondo__scratch_widen(scratch, x);
    }
    const int64_t count = rondo_shape_get_count(&x->shape);
    double *places = rondo__scratch_create(scratch, count);
    for (int64_t i = 0; i < count && scratch->status == RONDO_STATUS_OK; i++) {
        places[i] = (double)i;
    }
    return places;
}

enum { PLACE_OUTSIDE = -1 };

static rondo_status move_elements(rondo__compute *compute, const double *places,
                                  double extrapolation) {
    const rondo_tensor *x = compute->inputs[0];
    const size_t bytes = rondo_dtype_get_bytes(x->dtype);
    uint64_t outside = 0;
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    if (rondo__dtype_is_integer(x->dtype)) {
        extrapolation = rondo__saturate(extrapolation, x->dtype);
    }
    rondo__convert_elements(RONDO_DTYPE_F64, &extrapolation, x->dtype, &outside, 1);
    const int64_t count = rondo_shape_get_count(&compute->outputs[0].shape);
    for (int64_t i = 0; i < count; i++) {
        const bool is_inside = places[i] >= 0.0;
        const void *from =
            is_inside ? (const char *)x->data + (size_t)places[i] * bytes : (const char *)&outside;
        memcpy((char *)output + (size_t)i * bytes, from, bytes);
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_resize(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    const rondo_tensor *inputs[RONDO__RESIZE_INPUT_COUNT] = {NULL};
    for (size_t i = 1; i < RONDO__RESIZE_INPUT_COUNT; i++) {
        inputs[i] = rondo__compute_get_input(compute, i);
    }
    rondo__resize_plan plan;
    RETURN_IF_ERROR(rondo__resize_make_plan(compute->op, &x->shape, inputs, &plan));
    const int64_t output_count = rondo_shape_get_count(&plan.output);
    if (output_count > 0 && rondo_shape_get_count(&x->shape) == 0) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "input X is empty and cannot be resized");
    }
    rondo__scratch scratch = {0};
    double *values = start_walk(&scratch, &plan, x);
    const double extrapolation = plan.extrapolation;
    if (plan.mode == RONDO__RESIZE_NEAREST) {
        plan.extrapolation = PLACE_OUTSIDE;
    }
    rondo_shape shape = x->shape;
    for (int32_t axis = 0; axis < shape.rank && scratch.status == RONDO_STATUS_OK; axis++) {
        if (rondo__resize_keeps_axis(&plan, axis) || output_count == 0) {
            continue;
        }
        rondo__resize_taps taps;
        scratch.status = rondo__resize_count_taps(compute->op, &plan, axis, &taps);
        if (scratch.status != RONDO_STATUS_OK) {
            break;
        }
        const int64_t outer = rondo__shape_multiply(&shape, 0, axis);
        const int64_t inner = rondo__shape_multiply(&shape, axis + 1, shape.rank);
        shape.extent[axis] = plan.output.extent[axis];
        double *resized = rondo__scratch_create(&scratch, rondo_shape_get_count(&shape));
        double *weights = rondo__scratch_create(&scratch, 2 * taps.count);
        if (scratch.status == RONDO_STATUS_OK) {
            // The second half of `weights` lends its bytes to the indices.
            int64_t *indices = (int64_t *)(void *)(weights + taps.count);
            resize_axis(&plan, axis, outer, inner, &taps, values, resized, indices, weights);
            values = resized;
        }
    }
    if (scratch.status == RONDO_STATUS_OK && output_count > 0) {
        scratch.status = plan.mode == RONDO__RESIZE_NEAREST
                             ? move_elements(compute, values, extrapolation)
                             : rondo__narrow_rounded(compute, 0, values);
    } else if (scratch.status == RONDO_STATUS_OK) {
        void *ignored;
        scratch.status = rondo__compute_get_inferred(compute, 0, &ignored);
    }
    return rondo__scratch_end(&scratch);
}

static const char *const upsample_attributes[] = {"mode", NULL};
static const char *const resize_10_attributes[] = {"mode", NULL};
static const char *const resize_11_attributes[] = {"coordinate_transformation_mode",
                                                   "cubic_coeff_a",
                                                   "exclude_outside",
                                                   "extrapolation_value",
                                                   "mode",
                                                   "nearest_mode",
                                                   NULL};
static const char *const resize_18_attributes[] = {"antialias",
                                                   "axes",
                                                   "coordinate_transformation_mode",
                                                   "cubic_coeff_a",
                                                   "exclude_outside",
                                                   "extrapolation_value",
                                                   "keep_aspect_ratio_policy",
                                                   "mode",
                                                   "nearest_mode",
                                                   NULL};

const rondo__op_def rondo__op_table_resize[] = {
    RONDO_OP_ENTRY(Upsample, 9, 9, 2, 2, 1, 1, upsample_attributes, infer_resize, compute_resize,
                   .wide_inputs = RONDO__INPUT_1),
    RONDO_OP_ENTRY(Resize, 10, 10, 2, 2, 1, 1, resize_10_attributes, infer_resize, compute_resize,
                   .wide_inputs = RONDO__INPUT_1 | RONDO__INPUT_2),
    RONDO_OP_ENTRY(Resize, 11, 17, 1, 4, 1, 1, resize_11_attributes, infer_resize, compute_resize,
                   .wide_inputs = RONDO__INPUT_1 | RONDO__INPUT_2),
    RONDO_OP_ENTRY(Resize, 18, 28, 1, 4, 1, 1, resize_18_attributes, infer_resize, compute_resize,
                   .wide_inputs = RONDO__INPUT_1 | RONDO__INPUT_2),
    {.name = NULL},
};
