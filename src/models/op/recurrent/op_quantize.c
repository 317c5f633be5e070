// op/recurrent/op_quantize.c — QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
//
// Scale and zero point are one value for all, one for each index of `axis` (version 13), or one for
// each block of block_size elements along `axis` (version 21).
// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>

#include "op/element_types.h"
#include "op/image/scale_grid.h"
#include "op/op.h"
#include "op/reference.h"

rondo_status rondo__scale_grid_init(const rondo__op *op, const rondo_shape *x,
                                    const rondo_shape *scale, rondo__scale_grid *out_grid) {
    *out_grid = (rondo__scale_grid){.kind = RONDO__SCALE_FOR_ALL};
    const int64_t scale_count = rondo_shape_get_count(scale);
    const int64_t block = rondo__op_get_int(op, "block_size", 0);
    if (scale->rank == 0 || (scale->rank == 1 && scale_count == 1 && block == 0)) {
        return RONDO_STATUS_OK;
    }
    int32_t axis;
    RETURN_IF_ERROR(rondo__op_resolve_axis(op, rondo__op_get_int(op, "axis", 1), x->rank, &axis));
    const int64_t length = x->extent[axis];
    char text[96];
    if (block == 0) {
        if (scale->rank != 1 || scale_count != length) {
            return RONDO_OP_FAIL(op, BAD_DATA, "scale has shape %s, attribute axis selects %lld",
                                 rondo_shape_format(scale, text, sizeof text), (long long)length);
        }
        out_grid->kind = RONDO__SCALE_PER_PLACE;
    } else {
        bool is_fit = block > 0 && scale->rank == x->rank;
        for (int32_t i = 0; is_fit && i < x->rank; i++) {
            const int64_t expected =
                i == axis ? length / block + (length % block != 0) : x->extent[i];
            is_fit = scale->extent[i] == expected;
        }
        if (!is_fit) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "scale has shape %s, which attribute block_size = %lld does not "
                                 "fit",
                                 rondo_shape_format(scale, text, sizeof text), (long long)block);
        }
        out_grid->kind = RONDO__SCALE_PER_BLOCK;
        out_grid->block = block;
        out_grid->scales = scale->extent[axis];
    }
    out_grid->length = length;
    out_grid->inner = rondo__shape_multiply(x, axis + 1, x->rank);
    return RONDO_STATUS_OK;
}

static int64_t find_scale(const rondo__scale_grid *grid, int64_t index) {
    if (grid->kind == RONDO__SCALE_FOR_ALL) {
        return 0;
    }
    const int64_t place = index / grid->inner % grid->length;
    if (grid->kind == RONDO__SCALE_PER_PLACE) {
        return place;
    }
    const int64_t outer = index / grid->inner / grid->length;
    return (outer * grid->scales + place / grid->block) * grid->inner + index % grid->inner;
}

static bool is_narrow_float(rondo_dtype dtype) {
    return rondo__dtype_is_narrow(dtype) && !rondo__dtype_is_narrow_integer(dtype);
}

static bool is_quantized(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_I8 || dtype == RONDO_DTYPE_U8 || dtype == RONDO_DTYPE_I16 ||
           dtype == RONDO_DTYPE_U16 ||
           (rondo__dtype_is_narrow(dtype) && dtype != RONDO_DTYPE_F8E8M0);
}

static rondo_status check_zero_point(const rondo__infer *infer) {
    if (rondo__infer_has_input(infer, 2) &&
        !rondo_shape_is_equal(&infer->inputs[1].shape, &infer->inputs[2].shape) &&
        !(rondo_shape_get_count(&infer->inputs[1].shape) == 1 &&
          rondo_shape_get_count(&infer->inputs[2].shape) == 1)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "scale and zero point have different shapes");
    }
    return RONDO_STATUS_OK;
}

// ---- QuantizeLinear ---------------------------------------------------------------------------

// The type that an attribute names; NONE where it is absent or names none.
static rondo_dtype get_type(const rondo__op *op, const char *attribute) {
    return rondo__dtype_from_onnx(rondo__op_get_int(op, attribute, 0));
}

static rondo_status infer_quantized_type(const rondo__infer *infer, rondo_dtype *out_dtype) {
    const rondo_dtype zero =
        rondo__infer_has_input(infer, 2) ? infer->inputs[2].dtype : RONDO_DTYPE_NONE;
    const int64_t number = rondo__op_get_int(infer->op, "output_dtype", 0);
    const rondo_dtype wanted = rondo__dtype_from_onnx(number);
    if (zero != RONDO_DTYPE_NONE && !is_quantized(zero)) {
        return rondo__op_fail_dtype(infer->op, 2, zero);
    }
    if (number != 0 && !is_quantized(wanted)) {
        return rondo__op_fail_element_type(infer->op, "output_dtype", number);
    }
    if (zero != RONDO_DTYPE_NONE && number != 0 && zero != wanted) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "attribute output_dtype is %s and the zero point %s; they must be of "
                             "one type",
                             rondo_dtype_get_name(wanted), rondo_dtype_get_name(zero));
    }
    *out_dtype = zero != RONDO_DTYPE_NONE ? zero : number != 0 ? wanted : RONDO_DTYPE_U8;
    return RONDO_STATUS_OK;
}

static rondo_status infer_quantize(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    if (!rondo__dtype_is_float(inputs[0].dtype) && inputs[0].dtype != RONDO_DTYPE_I32) {
        return rondo__op_fail_dtype(infer->op, 0, inputs[0].dtype);
    }
    if (!rondo__dtype_is_float(inputs[1].dtype) && inputs[1].dtype != RONDO_DTYPE_I32 &&
        inputs[1].dtype != RONDO_DTYPE_F8E8M0) {
        return rondo__op_fail_dtype(infer->op, 1, inputs[1].dtype);
    }
    if (rondo__op_get_int(infer->op, "precision", 0) != 0 &&
        !rondo__dtype_is_float(get_type(infer->op, "precision"))) {
        return rondo__op_fail_element_type(infer->op, "precision",
                                           rondo__op_get_int(infer->op, "precision", 0));
    }
    rondo_dtype dtype = RONDO_DTYPE_NONE;
    RETURN_IF_ERROR(infer_quantized_type(infer, &dtype));
    rondo__scale_grid ignored;
    RETURN_IF_ERROR(
        rondo__scale_grid_init(infer->op, &inputs[0].shape, &inputs[1].shape, &ignored));
    RETURN_IF_ERROR(check_zero_point(infer));
    return rondo__infer_set_output(infer, 0, dtype, &inputs[0].shape);
}

// `value` as `dtype` holds it.
static double round_to(rondo_dtype dtype, double value) {
    double element = 0.0;
    rondo__convert_elements(RONDO_DTYPE_F64, &value, dtype, &element, 1);
    rondo__convert_elements(dtype, &element, RONDO_DTYPE_F64, &value, 1);
    return value;
}

// The quotient is in f32, whatever its operands are, as every kernel has it: a tie in f32 is a tie.
// Attribute precision may ask for another type.
static double divide(double x, double scale, rondo_dtype precision) {
    return precision == RONDO_DTYPE_F32
               ? (double)(float)(x / scale)
               : round_to(precision, round_to(precision, x) / round_to(precision, scale));
}

static rondo_status compute_quantize(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    rondo__scale_grid places;
    RETURN_IF_ERROR(
        rondo__scale_grid_init(compute->op, &inputs[0]->shape, &inputs[1]->shape, &places));
    const rondo_dtype dtype = compute->inferred[0].dtype;
    const rondo_dtype asked = get_type(compute->op, "precision");
    const rondo_dtype precision = asked != RONDO_DTYPE_NONE ? asked : RONDO_DTYPE_F32;
    const rondo__narrow_rule rule = {.is_unbounded =
                                         rondo__op_get_int(compute->op, "saturate", 1) == 0};
    const bool is_float = is_narrow_float(dtype);
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, inputs[0]);
    const double *scale = rondo__scratch_widen(&scratch, inputs[1]);
    const double *zero = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 2));
    if (scratch.status == RONDO_STATUS_OK) {
        const int64_t count = rondo_shape_get_count(&inputs[0]->shape);
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = find_scale(&places, i);
            const double quotient = divide(x[i], scale[at], precision);
            const double offset = zero == NULL ? 0.0 : zero[at];
            x[i] = is_float ? (double)(float)(quotient + offset)
                            : rondo__saturate(rint(quotient) + offset, dtype);
        }
        scratch.status = rondo__narrow_by(compute, 0, x, &rule);
    }
    return rondo__scratch_end(&scratch);
}

// ---- DequantizeLinear -------------------------------------------------------------------------

static rondo_status infer_dequantize(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    if (!is_quantized(inputs[0].dtype) && inputs[0].dtype != RONDO_DTYPE_I32) {
        return rondo__op_fail_dtype(infer->op, 0, inputs[0].dtype);
    }
    if (!rondo__dtype_is_float(inputs[1].dtype) && inputs[1].dtype != RONDO_DTYPE_F8E8M0) {
        return rondo__op_fail_dtype(infer->op, 1, inputs[1].dtype);
    }
    const int64_t number = rondo__op_get_int(infer->op, "output_dtype", 0);
    const rondo_dtype dtype = number != 0 ? rondo__dtype_from_onnx(number) : inputs[1].dtype;
    if (number != 0 && !rondo__dtype_is_float(dtype)) {
        return rondo__op_fail_element_type(infer->op, "output_dtype", number);
    }
    if (!rondo__dtype_is_float(dtype)) {
        return rondo__op_fail_unsupported(
            infer->op, "a scale of f8e8m0 without attribute output_dtype: set it");
    }
    if (rondo__infer_has_input(infer, 2)) {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 2));
    }
    rondo__scale_grid ignored;
    RETURN_IF_ERROR(
        rondo__scale_grid_init(infer->op, &inputs[0].shape, &inputs[1].shape, &ignored));
    RETURN_IF_ERROR(check_zero_point(infer));
    return rondo__infer_set_output(infer, 0, dtype, &inputs[0].shape);
}

static rondo_status compute_dequantize(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    rondo__scale_grid places;
    RETURN_IF_ERROR(
        rondo__scale_grid_init(compute->op, &inputs[0]->shape, &inputs[1]->shape, &places));
    const bool is_double = compute->inferred[0].dtype == RONDO_DTYPE_F64;
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, inputs[0]);
    const double *scale = rondo__scratch_widen(&scratch, inputs[1]);
    const double *zero = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 2));
    if (scratch.status == RONDO_STATUS_OK) {
        const int64_t count = rondo_shape_get_count(&inputs[0]->shape);
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = find_scale(&places, i);
            const double product = (x[i] - (zero == NULL ? 0.0 : zero[at])) * scale[at];
            // In f32, also for outputs of 16 bits, as every kernel does.
            x[i] = is_double ? product : (double)(float)product;
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x);
}

// ---- DynamicQuantizeLinear --------------------------------------------------------------------

static rondo_status infer_dynamic(rondo__infer *infer) {
    const rondo_shape scalar = {0};
    if (infer->inputs[0].dtype != RONDO_DTYPE_F32) {
        return rondo__op_fail_dtype(infer->op, 0, infer->inputs[0].dtype);
    }
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, RONDO_DTYPE_U8, &infer->inputs[0].shape));
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 1, RONDO_DTYPE_F32, &scalar));
    return rondo__infer_set_output(infer, 2, RONDO_DTYPE_U8, &scalar);
}

static rondo_status compute_dynamic(rondo__compute *compute) {
    const float *x = compute->inputs[0]->data;
    const int64_t count = rondo_shape_get_count(&compute->inputs[0]->shape);
    // f32 throughout, as the specification's function body: the scale is an output, bit for bit.
    float low = 0.0f;
    float high = 0.0f;
    for (int64_t i = 0; i < count; i++) {  // NaN wins, and shows in the scale
        low = x[i] < low || isnan(x[i]) ? x[i] : low;
        high = x[i] > high || isnan(x[i]) ? x[i] : high;
    }
    const float scale = (high - low) / 255.0f;
    const double zero =
        scale == 0.0f ? 0.0 : rondo__saturate((double)((0.0f - low) / scale), RONDO_DTYPE_U8);
    const double wide_scale = (double)scale;
    rondo__scratch scratch = {0};
    double *y = rondo__scratch_create(&scratch, count);
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t i = 0; i < count; i++) {
            const double quotient = scale == 0.0f ? 0.0 : (double)(x[i] / scale);
            y[i] = rondo__saturate(rint(quotient) + zero, RONDO_DTYPE_U8);
        }
        const double *outputs[3] = {y, &wide_scale, &zero};
        for (size_t i = 0; i < compute->output_count && scratch.status == RONDO_STATUS_OK; i++) {
            scratch.status = rondo__narrow(compute, i, outputs[i]);
        }
    }
    return rondo__scratch_end(&scratch);
}

static const char *const quantize_attributes[] = {"axis", "block_size", "output_dtype", "saturate",
                                                  NULL};
static const char *const quantize_23_attributes[] = {"axis",     "block_size", "output_dtype",
                                                     "saturate", "precision",  NULL};
static const char *const dequantize_attributes[] = {"axis", "block_size", NULL};
static const char *const dequantize_23_attributes[] = {"axis", "block_size", "output_dtype", NULL};
static const char *const no_attributes[] = {NULL};

// Half types are native: an output's type may differ from that of every input.
#define ENTRY(op_name, first, last, attribute_list, infer_function, ...)                      \
    RONDO_OP_ROW(OP, op_name, first, last, 2, 3, 1, 1, .flags = RONDO__OP_NATIVE_HALF,        \
                 .capture = RONDO__CAPTURE_YES, .attributes = (attribute_list),               \
                 .infer = (infer_function), .half = {HALF_STAYS, HALF_PLAIN, HALF_QUANTISED}, \
                 .compute = __VA_ARGS__)

const rondo__op_def rondo__op_table_quantize[] = {
    ENTRY(QuantizeLinear, 10, 22, quantize_attributes, infer_quantize, compute_quantize,
          .narrow = RONDO__INPUT_1 | RONDO__INPUT_2, .makes_narrow = true),
    ENTRY(QuantizeLinear, 23, 28, quantize_23_attributes, infer_quantize, compute_quantize,
          .narrow = RONDO__INPUT_1 | RONDO__INPUT_2, .makes_narrow = true),
    ENTRY(DequantizeLinear, 10, 22, dequantize_attributes, infer_dequantize, compute_dequantize,
          .narrow = RONDO__INPUT_0 | RONDO__INPUT_1 | RONDO__INPUT_2),
    ENTRY(DequantizeLinear, 23, 28, dequantize_23_attributes, infer_dequantize, compute_dequantize,
          .narrow = RONDO__INPUT_0 | RONDO__INPUT_1 | RONDO__INPUT_2),
    RONDO_OP_ENTRY(DynamicQuantizeLinear, 11, 28, 1, 1, 3, 3, no_attributes, infer_dynamic,
                   compute_dynamic, .half = {HALF_STAYS | HALF_TRACED, HALF_FINE, HALF_QUANTISED}),
    {.name = NULL},
};
