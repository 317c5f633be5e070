// op/math/op_elementwise.c — element-wise ops that are neither unary nor binary: BitCast, Cast,
// CastLike, Clip, Max, Mean, Min, Pow, Sum, Where.
// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/broadcast.h"
#include "op/element_types.h"
#include "op/math/binary.h"
#include "op/math/cast_rule.h"
#include "op/op.h"
#include "op/support.h"
#include "op/text/number_text.h"

// ---- Cast, CastLike ---------------------------------------------------------------------------

static bool is_castable(rondo_dtype dtype) {
    return dtype != RONDO_DTYPE_C64 && dtype != RONDO_DTYPE_C128;
}

rondo_status rondo__cast_read_rule(const rondo__op *op, rondo__narrow_rule *out_rule) {
    static const char *const modes[] = {"up", "down", "nearest"};
    const char *mode = rondo__op_get_string(op, "round_mode", "up");
    *out_rule = (rondo__narrow_rule){.is_unbounded = rondo__op_get_int(op, "saturate", 1) == 0};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) {
        if (strcmp(mode, modes[i]) == 0) {
            out_rule->rounding = (rondo__narrow_rounding)i;
            return RONDO_STATUS_OK;
        }
    }
    char detail[96];
    (void)snprintf(detail, sizeof detail, "attribute round_mode=%.40s; up, down and nearest are",
                   mode);
    return rondo__op_fail_unsupported(op, detail);
}

static rondo_status check_bit_cast(const rondo__op *op) {
    int64_t to = rondo__op_get_int(op, "to", 0);
    if (rondo__dtype_from_onnx(to) == RONDO_DTYPE_NONE) {
        return rondo__op_fail_element_type(op, "to", to);
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_cast_like(const rondo__op *op) {
    rondo__narrow_rule rule;
    return rondo__cast_read_rule(op, &rule);
}

static rondo_status check_cast(const rondo__op *op) {
    int64_t to = rondo__op_get_int(op, "to", 0);
    RETURN_IF_ERROR(check_bit_cast(op));
    if (!is_castable(rondo__dtype_from_onnx(to))) {
        return rondo__op_fail_element_type(op, "to", to);
    }
    return check_cast_like(op);
}

static rondo_status infer_cast(rondo__infer *infer) {
    RETURN_IF_ERROR(check_cast(infer->op));
    return rondo__infer_set_output(infer, 0,
                                   rondo__dtype_from_onnx(rondo__op_get_int(infer->op, "to", 0)),
                                   &infer->inputs[0].shape);
}

static rondo_status infer_cast_like(rondo__infer *infer) {
    return rondo__infer_set_output(infer, 0, infer->inputs[1].dtype, &infer->inputs[0].shape);
}

static rondo_status compute_cast(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    rondo__narrow_rule rule;
    RETURN_IF_ERROR(rondo__cast_read_rule(compute->op, &rule));
    if (input->dtype == RONDO_DTYPE_STRING || compute->inferred[0].dtype == RONDO_DTYPE_STRING) {
        return rondo__op_cast_strings(compute, &rule);
    }
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    rondo__convert_elements_by(input->dtype, input->data, compute->inferred[0].dtype, output,
                               (size_t)rondo_shape_get_count(&input->shape), &rule);
    return RONDO_STATUS_OK;
}

// ---- BitCast ----------------------------------------------------------------------------------

static rondo_status infer_bit_cast(rondo__infer *infer) {
    const rondo_dtype from = infer->inputs[0].dtype;
    const rondo_dtype to = rondo__dtype_from_onnx(rondo__op_get_int(infer->op, "to", 0));
    RETURN_IF_ERROR(check_bit_cast(infer->op));
    if (to == RONDO_DTYPE_STRING || rondo__dtype_get_bits(from) != rondo__dtype_get_bits(to)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the bits of %s do not make %s",
                             rondo_dtype_get_name(from), rondo_dtype_get_name(to));
    }
    return rondo__infer_set_output(infer, 0, to, &infer->inputs[0].shape);
}

static rondo_status compute_bit_cast(rondo__compute *compute) {
    const size_t bytes = rondo_tensor_get_bytes(compute->inputs[0]);
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    if (bytes > 0) {
        memcpy(output, compute->inputs[0]->data, bytes);
    }
    return RONDO_STATUS_OK;
}

// ---- Clip -------------------------------------------------------------------------------------

// lower or upper NULL: no bound. NaN wins, in an element as in a bound, as in Max and Min.
#define DEFINE_CLIP(name, type)                                                         \
    static void clip_##name(const void *in, void *out, size_t count, const void *lower, \
                            const void *upper) {                                        \
        const type *x = in;                                                             \
        type *y = out;                                                                  \
        if (lower != NULL) {                                                            \
            const type bound = *(const type *)lower;                                    \
            for (size_t i = 0; i < count; ++i) {                                        \
                y[i] = x[i] < bound || bound != bound ? bound : x[i];                   \
            }                                                                           \
            x = y;                                                                      \
        }                                                                               \
        if (upper != NULL) {                                                            \
            const type bound = *(const type *)upper;                                    \
            for (size_t i = 0; i < count; ++i) {                                        \
                y[i] = x[i] > bound || bound != bound ? bound : x[i];                   \
            }                                                                           \
        } else if (lower == NULL && count > 0) {                                        \
            memcpy(y, x, count * sizeof(type));                                         \
        }                                                                               \
    }
RONDO_OP_NUMERIC_MAP(DEFINE_CLIP)

typedef void (*clip_kernel)(const void *x, void *y, size_t count, const void *lower,
                            const void *upper);
static const clip_kernel clip_kernels[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(clip)};

static rondo_status infer_clip(rondo__infer *infer) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    if (clip_kernels[rondo__dtype_widen(dtype)] == NULL) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    for (size_t i = 1; i < 3; ++i) {
        if (!rondo__infer_has_input(infer, i)) {
            continue;
        }
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
        if (rondo_shape_get_count(&infer->inputs[i].shape) != 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "bound %zu must be one number", i);
        }
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_clip(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    const void *bounds[2] = {NULL, NULL};
    float floats[2];
    double doubles[2];
    for (size_t i = 0; i < 2; ++i) {
        static const char *const names[2] = {"min", "max"};
        if (compute->op->opset < 11) {
            floats[i] = rondo__op_get_float(compute->op, names[i], i == 0 ? -FLT_MAX : FLT_MAX);
            doubles[i] = (double)floats[i];
            bounds[i] = input->dtype == RONDO_DTYPE_F64 ? (const void *)&doubles[i]
                                                        : (const void *)&floats[i];
        } else if (rondo__compute_has_input(compute, i + 1)) {
            bounds[i] = compute->inputs[i + 1]->data;
        }
    }
    clip_kernels[input->dtype](input->data, output, (size_t)rondo_shape_get_count(&input->shape),
                               bounds[0], bounds[1]);
    return RONDO_STATUS_OK;
}

// Before opset 11 Clip is for floats only, so that its float attributes fit.
static rondo_status infer_clip_9(rondo__infer *infer) {
    if (!rondo__dtype_is_float(infer->inputs[0].dtype)) {
        return rondo__op_fail_dtype(infer->op, 0, infer->inputs[0].dtype);
    }
    return infer_clip(infer);
}

// ---- Max, Mean, Min, Sum ----------------------------------------------------------------------

// NaN in either operand wins, as in numpy.
#define DEFINE_MAX_FLOAT(suffix, type) \
    RONDO_OP_BINARY_KERNEL(Max, suffix, type, type, u > v || u != u ? u : v)
#define DEFINE_MAX_INTEGER(suffix, type) \
    RONDO_OP_BINARY_KERNEL(Max, suffix, type, type, u > v ? u : v)
RONDO_OP_FLOAT_MAP(DEFINE_MAX_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_MAX_INTEGER)
static const rondo__binary_kernel kernels_Max[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(Max)};

#define DEFINE_MIN_FLOAT(suffix, type) \
    RONDO_OP_BINARY_KERNEL(Min, suffix, type, type, u < v || u != u ? u : v)
#define DEFINE_MIN_INTEGER(suffix, type) \
    RONDO_OP_BINARY_KERNEL(Min, suffix, type, type, u < v ? u : v)
RONDO_OP_FLOAT_MAP(DEFINE_MIN_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_MIN_INTEGER)
static const rondo__binary_kernel kernels_Min[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(Min)};

#define DEFINE_SUM(suffix, type) RONDO_OP_BINARY_KERNEL(Sum, suffix, type, type, u + v)
RONDO_OP_FLOAT_MAP(DEFINE_SUM)
static const rondo__binary_kernel kernels_Sum[RONDO_DTYPE_COUNT] = {RONDO_OP_FLOAT_KERNELS(Sum)};

static rondo_status infer_variadic(rondo__infer *infer, const rondo__binary_kernel *kernels) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    if (kernels[rondo__dtype_widen(dtype)] == NULL) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    for (size_t i = 1; i < infer->input_count; ++i) {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
    }
    rondo_shape shape;
    RETURN_IF_ERROR(rondo__broadcast_inputs(infer, &shape));
    return rondo__infer_set_output(infer, 0, dtype, &shape);
}

static rondo_status compute_variadic(rondo__compute *compute, const rondo__binary_kernel *kernels) {
    const rondo_tensor *first = compute->inputs[0];
    const rondo_shape *shape = &compute->inferred[0].shape;
    rondo_dtype dtype = first->dtype;
    void *y = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    if (compute->input_count == 1) {
        size_t bytes = rondo_tensor_get_bytes(first);
        if (bytes > 0) {
            memcpy(y, first->data, bytes);
        }
        return RONDO_STATUS_OK;
    }
    const void *so_far = first->data;
    const rondo_shape *so_far_shape = &first->shape;
    for (size_t i = 1; i < compute->input_count; ++i) {
        const rondo_tensor *next = compute->inputs[i];
        rondo__binary_run(kernels[dtype], shape, so_far, so_far_shape, next->data, &next->shape,
                          dtype, dtype, y);
        so_far = y;
        so_far_shape = shape;
    }
    return RONDO_STATUS_OK;
}

#define DEFINE_VARIADIC(name)                                     \
    static rondo_status infer_##name(rondo__infer *infer) {       \
        return infer_variadic(infer, kernels_##name);             \
    }                                                             \
    static rondo_status compute_##name(rondo__compute *compute) { \
        return compute_variadic(compute, kernels_##name);         \
    }
DEFINE_VARIADIC(Max)
DEFINE_VARIADIC(Min)
DEFINE_VARIADIC(Sum)

static rondo_status compute_Mean(rondo__compute *compute) {
    RETURN_IF_ERROR(compute_variadic(compute, kernels_Sum));
    rondo_tensor *output = &compute->outputs[0];
    int64_t count = rondo_shape_get_count(&output->shape);
    double inputs = (double)compute->input_count;
    if (output->dtype == RONDO_DTYPE_F32) {
        float *y = output->data;
        for (int64_t i = 0; i < count; ++i) {
            y[i] = (float)((double)y[i] / inputs);
        }
    } else {
        double *y = output->data;
        for (int64_t i = 0; i < count; ++i) {
            y[i] /= inputs;
        }
    }
    return RONDO_STATUS_OK;
}

// ---- Pow --------------------------------------------------------------------------------------

static rondo_status infer_pow(rondo__infer *infer) {
    for (size_t i = 0; i < 2; ++i) {
        rondo_dtype dtype = infer->inputs[i].dtype;
        if (!rondo__dtype_is_float(dtype) && !rondo__dtype_is_integer(dtype)) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
    }
    rondo_shape shape;
    RETURN_IF_ERROR(rondo__broadcast_inputs(infer, &shape));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

// Whole powers of integers, wrapping; negative exponents of anything but 1 and -1 give 0.
static int64_t power_of_integers(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    uint64_t result = 1;
    uint64_t factor = (uint64_t)base;
    for (uint64_t rest = (uint64_t)exponent; rest != 0; rest >>= 1) {
        if ((rest & 1u) != 0) {
            result *= factor;
        }
        factor *= factor;
    }
    return (int64_t)result;
}

RONDO_OP_BINARY_KERNEL(Pow, F32, float, float, powf(u, v))
RONDO_OP_BINARY_KERNEL(Pow, F64, double, double, pow(u, v))
RONDO_OP_BINARY_KERNEL(Pow, I64, int64_t, int64_t, power_of_integers(u, v))
RONDO_OP_BINARY_KERNEL(Square, F32, float, float, ((void)v, u *u))

// Powers of f32 by f32, where a square is common.
static void pow_f32(const rondo_tensor *x, const rondo_tensor *exponent, const rondo_shape *shape,
                    float *y) {
    bool is_square =
        rondo_shape_get_count(&exponent->shape) == 1 && ((const float *)exponent->data)[0] == 2.0f;
    rondo__binary_run(is_square ? Square_F32 : Pow_F32, shape, x->data, &x->shape, exponent->data,
                      &exponent->shape, RONDO_DTYPE_F32, RONDO_DTYPE_F32, y);
}

static rondo_status compute_pow(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    const rondo_tensor *exponent = compute->inputs[1];
    const rondo_shape *shape = &compute->inferred[0].shape;
    void *y = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    if (x->dtype == RONDO_DTYPE_F32 && exponent->dtype == RONDO_DTYPE_F32) {
        pow_f32(x, exponent, shape, y);
        return RONDO_STATUS_OK;
    }
    // Everything else in i64 or f64: operands are converted, the result is converted back.
    bool is_whole = rondo__dtype_is_integer(x->dtype) && rondo__dtype_is_integer(exponent->dtype);
    rondo_dtype dtype = is_whole ? RONDO_DTYPE_I64 : RONDO_DTYPE_F64;
    size_t x_count = (size_t)rondo_shape_get_count(&x->shape);
    size_t exponent_count = (size_t)rondo_shape_get_count(&exponent->shape);
    size_t count = (size_t)rondo_shape_get_count(shape);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    void *wide_exponent = NULL;
    void *wide_y = NULL;
    void *wide_x = rondo__calloc(x_count, 8);
    if (wide_x == NULL) {
        return status;
    }
    wide_exponent = rondo__calloc(exponent_count, 8);
    if (wide_exponent == NULL) {
        goto free_x;
    }
    wide_y = rondo__calloc(count, 8);
    if (wide_y == NULL) {
        goto free_exponent;
    }
    rondo__convert_elements(x->dtype, x->data, dtype, wide_x, x_count);
    rondo__convert_elements(exponent->dtype, exponent->data, dtype, wide_exponent, exponent_count);
    rondo__binary_run(is_whole ? Pow_I64 : Pow_F64, shape, wide_x, &x->shape, wide_exponent,
                      &exponent->shape, dtype, dtype, wide_y);
    rondo__convert_elements(dtype, wide_y, x->dtype, y, count);
    status = RONDO_STATUS_OK;
    rondo__free(wide_y);
free_exponent:
    rondo__free(wide_exponent);
free_x:
    rondo__free(wide_x);
    return status;
}

// ---- Where ------------------------------------------------------------------------------------

static rondo_status infer_where(rondo__infer *infer) {
    if (infer->inputs[0].dtype != RONDO_DTYPE_BOOL) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the condition is %s; it must be bool",
                             rondo_dtype_get_name(infer->inputs[0].dtype));
    }
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 1, 2));
    rondo_shape shape;
    RETURN_IF_ERROR(rondo__broadcast_inputs(infer, &shape));
    return rondo__infer_set_output(infer, 0, infer->inputs[1].dtype, &shape);
}

#define DEFINE_SELECT(name, type)                                                                \
    static void select_##name(const uint8_t *condition, int64_t condition_stride, const void *a, \
                              int64_t a_stride, const void *b, int64_t b_stride, void *y,        \
                              int64_t count) {                                                   \
        for (int64_t i = 0; i < count; ++i) {                                                    \
            ((type *)y)[i] = condition[i * condition_stride] != 0                                \
                                 ? ((const type *)a)[i * a_stride]                               \
                                 : ((const type *)b)[i * b_stride];                              \
        }                                                                                        \
    }
DEFINE_SELECT(8, uint8_t)
DEFINE_SELECT(16, uint16_t)
DEFINE_SELECT(32, uint32_t)
DEFINE_SELECT(64, uint64_t)
DEFINE_SELECT(string, rondo_string)

static rondo_status compute_where(rondo__compute *compute) {
    const rondo_tensor *condition = compute->inputs[0];
    const rondo_tensor *a = compute->inputs[1];
    const rondo_tensor *b = compute->inputs[2];
    void *y = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    const rondo_shape *operands[3] = {&condition->shape, &a->shape, &b->shape};
    rondo__broadcast walk;
    rondo__broadcast_init(&walk, &compute->inferred[0].shape, operands, 3);
    int64_t bytes = (int64_t)rondo_dtype_get_bytes(a->dtype);
    uint8_t *to = y;
    for (int64_t row = 0; row < walk.row_count; ++row) {
        const uint8_t *c = (const uint8_t *)condition->data + walk.offset[0];
        const uint8_t *u = (const uint8_t *)a->data + walk.offset[1] * bytes;
        const uint8_t *v = (const uint8_t *)b->data + walk.offset[2] * bytes;
        const int64_t *stride = walk.row_stride;
        switch (bytes) {
            case 1:
                select_8(c, stride[0], u, stride[1], v, stride[2], to, walk.row_length);
                break;
            case 2:
                select_16(c, stride[0], u, stride[1], v, stride[2], to, walk.row_length);
                break;
            case 4:
                select_32(c, stride[0], u, stride[1], v, stride[2], to, walk.row_length);
                break;
            case sizeof(rondo_string):  // C128, too
                select_string(c, stride[0], u, stride[1], v, stride[2], to, walk.row_length);
                break;
            default:
                select_64(c, stride[0], u, stride[1], v, stride[2], to, walk.row_length);
                break;
        }
        to += walk.row_length * bytes;
        rondo__broadcast_advance(&walk);
    }
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const old_attributes[] = {"axis", "broadcast", NULL};
static const char *const bit_cast_attributes[] = {"to", NULL};
static const char *const cast_attributes[] = {"to", "saturate", NULL};
static const char *const cast_like_attributes[] = {"saturate", NULL};
// How a float becomes float8e8m0; it says nothing about other types.
static const char *const cast_24_attributes[] = {"to", "saturate", "round_mode", NULL};
static const char *const cast_like_24_attributes[] = {"saturate", "round_mode", NULL};
static const char *const clip_attributes[] = {"min", "max", NULL};

#define ENTRY(op, first, last, inputs_min, inputs_max, more_flags, attribute_list, infer_function, \
              compute_function, ...)                                                               \
    RONDO_OP_ROW(OP, op, first, last, inputs_min, inputs_max, 1, 1,                                \
                 .flags = RONDO__OP_ELEMENTWISE | (more_flags), .capture = RONDO__CAPTURE_YES,     \
                 .attributes = attribute_list, .infer = infer_function,                            \
                 .compute = compute_function, .check = __VA_ARGS__)
#define ANY RONDO_OP_ANY_COUNT
#define HALF RONDO__OP_NATIVE_HALF

const rondo__op_def rondo__op_table_elementwise[] = {
    ENTRY(BitCast, 26, 28, 1, 1, HALF, bit_cast_attributes, infer_bit_cast, compute_bit_cast,
          check_bit_cast, .half = {HALF_STAYS, HALF_WIDE, HALF_BITS}, .moved = RONDO__INPUT_0,
          .makes_narrow = true),
    ENTRY(Cast, 6, 23, 1, 1, HALF, cast_attributes, infer_cast, compute_cast, check_cast,
          .strings = RONDO__INPUT_0, .makes_strings = true, .narrow = RONDO__INPUT_0,
          .makes_narrow = true),
    ENTRY(Cast, 24, 28, 1, 1, HALF, cast_24_attributes, infer_cast, compute_cast, check_cast,
          .strings = RONDO__INPUT_0, .makes_strings = true, .narrow = RONDO__INPUT_0,
          .makes_narrow = true),
    ENTRY(CastLike, 15, 23, 2, 2, HALF, cast_like_attributes, infer_cast_like, compute_cast,
          check_cast_like, .strings = RONDO__INPUT_0 | RONDO__INPUT_1, .makes_strings = true,
          .narrow = RONDO__INPUT_0 | RONDO__INPUT_1, .makes_narrow = true),
    ENTRY(CastLike, 24, 28, 2, 2, HALF, cast_like_24_attributes, infer_cast_like, compute_cast,
          check_cast_like, .strings = RONDO__INPUT_0 | RONDO__INPUT_1, .makes_strings = true,
          .narrow = RONDO__INPUT_0 | RONDO__INPUT_1, .makes_narrow = true),
    ENTRY(Clip, 6, 10, 1, 1, 0, clip_attributes, infer_clip_9, compute_clip, NULL),
    ENTRY(Clip, 11, 28, 1, 3, 0, no_attributes, infer_clip, compute_clip, NULL),
    ENTRY(Max, 6, 28, 1, ANY, 0, no_attributes, infer_Max, compute_Max, NULL),
    ENTRY(Mean, 6, 28, 1, ANY, 0, no_attributes, infer_Sum, compute_Mean, NULL),
    ENTRY(Min, 6, 28, 1, ANY, 0, no_attributes, infer_Min, compute_Min, NULL),
    ENTRY(Pow, 1, 6, 2, 2, 0, old_attributes, infer_pow, compute_pow, NULL,
          .half = {HALF_STAYS, HALF_WIDE, HALF_POWER}),
    ENTRY(Pow, 7, 28, 2, 2, 0, no_attributes, infer_pow, compute_pow, NULL,
          .half = {HALF_STAYS, HALF_WIDE, HALF_POWER}),
    ENTRY(Sum, 6, 28, 1, ANY, 0, no_attributes, infer_Sum, compute_Sum, NULL),
    ENTRY(Where, 9, 28, 3, 3, HALF, no_attributes, infer_where, compute_where, NULL,
          .strings = RONDO__INPUT_1 | RONDO__INPUT_2, .moved = RONDO__INPUT_1 | RONDO__INPUT_2),
    {0},
};
