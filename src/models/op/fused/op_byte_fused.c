// op/fused/op_byte_fused.c — products of 8-bit integers with what scales their sums:
// rondo.MatMulInteger and rondo.ConvInteger; and rondo.QLinearAdd (op/fused/fused.h).
//
// The references calculate the sums as those of MatMulInteger and ConvInteger do, and go on in f32
// as the Cast, Mul and Add of the model would: bit for bit, since a last bit can become a step of
// the next quantisation.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/broadcast.h"
#include "op/fused/fused.h"
#include "op/op.h"
#include "op/reference.h"

enum { INPUT_COUNT = 8, SCALE = 4, FACTOR, BIAS, RESIDUAL };

// The op of ONNX that makes the sums, from the first four inputs. Borrows everything of `op`.
static rondo__op get_sum_op(const rondo__op *op) {
    rondo__op inner = *op;
    inner.def =
        rondo__op_get_def(op->def->id == RONDO__FUSED_MatMulInteger ? RONDO__OP_MatMulInteger
                                                                    : RONDO__OP_ConvInteger);
    return inner;
}

// The axis of y that goes with columns or filters.
static int32_t get_axis(const rondo__op *op, const rondo_shape *y) {
    const bool is_matrix = op->def->id == RONDO__FUSED_MatMulInteger;
    return is_matrix || rondo__op_get_int(op, "channels_last", 0) != 0 ? y->rank - 1 : 1;
}

static rondo_status check_list(const rondo__infer *infer, size_t input, int64_t most) {
    if (!rondo__infer_has_input(infer, input)) {
        return RONDO_STATUS_OK;
    }
    const rondo_shape *shape = &infer->inputs[input].shape;
    const int64_t count = rondo_shape_get_count(shape);
    char text[96];
    if (infer->inputs[input].dtype != RONDO_DTYPE_F32) {
        return rondo__op_fail_dtype(infer->op, input, infer->inputs[input].dtype);
    }
    return count == 1 || count == most
               ? RONDO_STATUS_OK
               : RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu has shape %s, %lld values are fit",
                               input, rondo_shape_format(shape, text, sizeof text),
                               (long long)most);
}

static rondo_status check_ending(const rondo__infer *infer, const rondo_shape *y) {
    if (infer->inputs[0].shape.rank < 2 || infer->inputs[1].shape.rank < 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "vectors have no columns to scale");
    }
    const int64_t columns = y->extent[get_axis(infer->op, y)];
    const char *activation = rondo__op_get_string(infer->op, "activation", "none");
    RETURN_IF_ERROR(check_list(infer, SCALE, 1));
    RETURN_IF_ERROR(check_list(infer, FACTOR, columns));
    RETURN_IF_ERROR(check_list(infer, BIAS, columns));
    if (rondo__infer_has_input(infer, BIAS) &&
        rondo_shape_get_count(&infer->inputs[BIAS].shape) != columns) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input bias must have %lld values",
                             (long long)columns);
    }
    if (rondo__infer_has_input(infer, RESIDUAL) &&
        (infer->inputs[RESIDUAL].dtype != RONDO_DTYPE_F32 ||
         !rondo_shape_is_equal(&infer->inputs[RESIDUAL].shape, y))) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input z must be f32 and have y's shape");
    }
    return rondo__activation_parse(activation) >= 0
               ? RONDO_STATUS_OK
               : RONDO_OP_FAIL(infer->op, BAD_DATA,
                               "attribute activation is \"%.40s\", which is unknown", activation);
}

static rondo_status infer_scaled(rondo__infer *infer) {
    const rondo__op op = get_sum_op(infer->op);
    rondo__infer inner = *infer;
    inner.op = &op;
    inner.input_count = infer->input_count < SCALE ? infer->input_count : SCALE;
    RETURN_IF_ERROR(op.def->infer(&inner));
    const rondo_shape y = inner.outputs[0].shape;
    if (!rondo__infer_has_input(infer, SCALE) && !rondo__infer_has_input(infer, FACTOR)) {
        return rondo__infer_has_input(infer, BIAS) || rondo__infer_has_input(infer, RESIDUAL)
                   ? RONDO_OP_FAIL(infer->op, BAD_DATA, "sums that are not scaled end here")
                   : RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(check_ending(infer, &y));
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &y);
}

static float read_float(const rondo_tensor *list, int64_t column, float fallback) {
    if (list == NULL) {
        return fallback;
    }
    return ((const float *)list->data)[rondo_shape_get_count(&list->shape) == 1 ? 0 : column];
}

// What ONNX's Cast makes of it: towards zero, then wrapped to 32 bits; NaN is 0.
static int32_t cast_to_int(float x) {
    int32_t value;
    rondo__convert_elements(RONDO_DTYPE_F32, &x, RONDO_DTYPE_I32, &value, 1);
    return value;
}

static void scale_sums(const rondo__compute *compute, const int32_t *sums, float *y) {
    const rondo_tensor *scale = rondo__compute_get_input(compute, SCALE);
    const rondo_tensor *factor = rondo__compute_get_input(compute, FACTOR);
    const rondo_tensor *bias = rondo__compute_get_input(compute, BIAS);
    const rondo_tensor *z = rondo__compute_get_input(compute, RESIDUAL);
    const rondo__op *op = compute->op;
    const rondo_shape *shape = &compute->inferred[0].shape;
    const int32_t axis = get_axis(op, shape);
    const int64_t inner = rondo__shape_multiply(shape, axis + 1, shape->rank);
    const bool is_in_steps = rondo__op_get_int(op, "bias_in_steps", 0) != 0;
    const rondo__activation activation =
        (rondo__activation)rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    const float alpha = rondo__op_get_float(op, "alpha", 0.0f);
    const float beta = rondo__op_get_float(op, "beta", 0.0f);
    for (int64_t i = 0; i < rondo_shape_get_count(shape); i++) {
        const int64_t column = i / inner % shape->extent[axis];
        const float step = read_float(scale, 0, 1.0f) * read_float(factor, column, 1.0f);
        const float addend = read_float(bias, column, 0.0f);
        int32_t sum = sums[i];
        if (bias != NULL && is_in_steps) {
            sum = (int32_t)((uint32_t)sum + (uint32_t)cast_to_int(floorf(addend / step)));
        }
        float value = (float)sum * step;
        value = bias != NULL && !is_in_steps ? value + addend : value;
        value = z != NULL ? value + ((const float *)z->data)[i] : value;
        y[i] = rondo__activation_apply(activation, alpha, beta, value);
    }
}

static rondo_status compute_scaled(rondo__compute *compute) {
    const rondo__op op = get_sum_op(compute->op);
    const rondo__tensor_info info = {
        .dtype = RONDO_DTYPE_I32, .is_shape_known = true, .shape = compute->inferred[0].shape};
    rondo__compute inner = *compute;
    inner.op = &op;
    inner.input_count = compute->input_count < SCALE ? compute->input_count : SCALE;
    if (compute->inferred[0].dtype == RONDO_DTYPE_I32) {
        return op.def->compute(&inner);
    }
    rondo_tensor sums = {0};
    void *y = NULL;
    inner.inferred = &info;
    inner.outputs = &sums;
    rondo_status status = op.def->compute(&inner);
    if (status == RONDO_STATUS_OK) {
        status = rondo__compute_get_inferred(compute, 0, &y);
    }
    if (status == RONDO_STATUS_OK) {
        scale_sums(compute, sums.data, y);
    }
    rondo_tensor_deinit(&sums);
    return status;
}

// ---- rondo.QLinearAdd --------------------------------------------------------------------------

enum { SUM_INPUTS = 8, SUM_B = 3, SUM_Y_SCALE = 6, SUM_Y_ZERO };

static bool is_in_steps(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_U8 || dtype == RONDO_DTYPE_I8 || dtype == RONDO_DTYPE_U16 ||
           dtype == RONDO_DTYPE_I16;
}

static rondo_status infer_sum(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    for (size_t i = 0; i < SUM_INPUTS; ++i) {
        const bool is_scale = i == 1 || i == SUM_B + 1 || i == SUM_Y_SCALE;
        if (is_scale ? inputs[i].dtype != RONDO_DTYPE_F32 : !is_in_steps(inputs[i].dtype)) {
            return rondo__op_fail_dtype(infer->op, i, inputs[i].dtype);
        }
        if (i % SUM_B != 0 && rondo_shape_get_count(&inputs[i].shape) != 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu must be one value", i);
        }
    }
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 2));
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, SUM_B, SUM_B + 2));
    rondo_shape shape = inputs[0].shape;
    RETURN_IF_ERROR(rondo__broadcast_join(infer->op, &inputs[SUM_B].shape, &shape));
    return rondo__infer_set_output(infer, 0, inputs[SUM_Y_ZERO].dtype, &shape);
}

static double *widen_summand(rondo__scratch *scratch, const rondo__compute *compute, size_t first) {
    double *x = rondo__scratch_widen(scratch, compute->inputs[first]);
    const double *scale = rondo__scratch_widen(scratch, compute->inputs[first + 1]);
    const double *zero = rondo__scratch_widen(scratch, compute->inputs[first + 2]);
    const int64_t count = rondo_shape_get_count(&compute->inputs[first]->shape);
    for (int64_t i = 0; scratch->status == RONDO_STATUS_OK && i < count; ++i) {
        x[i] = (double)(float)((x[i] - *zero) * *scale);
    }
    return x;
}

static rondo_status compute_sum(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inferred[0].shape;
    const rondo_dtype dtype = compute->inferred[0].dtype;
    const rondo_shape *const operands[2] = {&compute->inputs[0]->shape,
                                            &compute->inputs[SUM_B]->shape};
    rondo__scratch scratch = {0};
    const double *a = widen_summand(&scratch, compute, 0);
    const double *b = widen_summand(&scratch, compute, SUM_B);
    const double *scale = rondo__scratch_widen(&scratch, compute->inputs[SUM_Y_SCALE]);
    const double *zero = rondo__scratch_widen(&scratch, compute->inputs[SUM_Y_ZERO]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(shape));
    if (scratch.status == RONDO_STATUS_OK) {
        rondo__broadcast walk;
        double *to = y;
        rondo__broadcast_init(&walk, shape, operands, 2);
        for (int64_t row = 0; row < walk.row_count; ++row) {
            for (int64_t i = 0; i < walk.row_length; ++i) {
                const float sum = (float)(a[walk.offset[0] + i * walk.row_stride[0]] +
                                          b[walk.offset[1] + i * walk.row_stride[1]]);
                const float quotient = (float)((double)sum / *scale);
                *to++ = rondo__saturate((double)rintf(quotient) + *zero, dtype);
            }
            rondo__broadcast_advance(&walk);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

#define SCALED(op_name, ...)                                                  \
    RONDO_OP_ROW(FUSED, op_name, 1, RONDO_OP_OPSET_MAX, 2, INPUT_COUNT, 1, 1, \
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES,  \
                 .infer = infer_scaled, .compute = compute_scaled, __VA_ARGS__)

const rondo__op_def rondo__op_table_byte_fused[] = {
    SCALED(MatMulInteger, .weights = 1, .half = {HALF_COUNTING, HALF_WIDE, HALF_QUANTISED}),
    SCALED(ConvInteger, .weights = 1, .half = {HALF_COUNTING, HALF_WIDE, HALF_QUANTISED}),
    RONDO_OP_ROW(FUSED, QLinearAdd, 1, RONDO_OP_OPSET_MAX, SUM_INPUTS, SUM_INPUTS, 1, 1,
                 .flags = RONDO__OP_INTERNAL | RONDO__OP_ELEMENTWISE, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_sum, .compute = compute_sum,
                 .half = {HALF_STAYS, HALF_PLAIN, HALF_QUANTISED}),
    {.name = NULL},
};
