// op/math/op_binary.c — element-wise ops of two inputs with numpy broadcasting: arithmetic, logic,
// comparison, bits.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>

#include "base/error.h"
#include "op/math/binary.h"
#include "op/op.h"
#include "op/support.h"
#include "tensor/elements.h"

void rondo__binary_run(rondo__binary_kernel kernel, const rondo_shape *result, const void *a,
                       const rondo_shape *a_shape, const void *b, const rondo_shape *b_shape,
                       rondo_dtype operand_dtype, rondo_dtype result_dtype, void *y) {
    const rondo_shape *operands[2] = {a_shape, b_shape};
    rondo__broadcast walk;
    rondo__broadcast_init(&walk, result, operands, 2);
    int64_t element_bytes = (int64_t)rondo_dtype_get_bytes(operand_dtype);
    int64_t row_bytes = walk.row_length * (int64_t)rondo_dtype_get_bytes(result_dtype);
    uint8_t *to = y;
    for (int64_t row = 0; row < walk.row_count; ++row) {
        kernel((const uint8_t *)a + walk.offset[0] * element_bytes, walk.row_stride[0],
               (const uint8_t *)b + walk.offset[1] * element_bytes, walk.row_stride[1], to,
               walk.row_length);
        to += row_bytes;
        rondo__broadcast_advance(&walk);
    }
}

// `result` is NONE when the result has the operands' dtype.
static rondo_status infer_binary(rondo__infer *infer, const rondo__binary_kernel *kernels,
                                 rondo_dtype result) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 1));
    if (kernels[rondo__dtype_widen(dtype)] == NULL) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    rondo_shape shape;
    RETURN_IF_ERROR(rondo__broadcast_inputs(infer, &shape));
    return rondo__infer_set_output(infer, 0, result != RONDO_DTYPE_NONE ? result : dtype, &shape);
}

static rondo_status compute_binary(rondo__compute *compute, const rondo__binary_kernel *kernels) {
    const rondo_tensor *a = compute->inputs[0];
    const rondo_tensor *b = compute->inputs[1];
    const rondo__tensor_info *result = &compute->inferred[0];
    void *y = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &y));
    rondo__binary_run(kernels[a->dtype], &result->shape, a->data, &a->shape, b->data, &b->shape,
                      a->dtype, result->dtype, y);
    return RONDO_STATUS_OK;
}

#define DEFINE_FUNCTIONS(name, result)                            \
    static rondo_status infer_##name(rondo__infer *infer) {       \
        return infer_binary(infer, kernels_##name, result);       \
    }                                                             \
    static rondo_status compute_##name(rondo__compute *compute) { \
        return compute_binary(compute, kernels_##name);           \
    }

// ---- arithmetic -------------------------------------------------------------------------------

// Integers wrap: the sum is made in 64 unsigned bits, so that no overflow is undefined.
#define WRAPPED(operator) (uint64_t)(u) operator(uint64_t)(v)

#define DEFINE_ADD_FLOAT(suffix, type) RONDO_OP_BINARY_KERNEL(Add, suffix, type, type, u + v)
#define DEFINE_ADD_INTEGER(suffix, type) RONDO_OP_BINARY_KERNEL(Add, suffix, type, type, WRAPPED(+))
RONDO_OP_FLOAT_MAP(DEFINE_ADD_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_ADD_INTEGER)
static const rondo__binary_kernel kernels_Add[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(Add)};
DEFINE_FUNCTIONS(Add, RONDO_DTYPE_NONE)

#define DEFINE_SUB_FLOAT(suffix, type) RONDO_OP_BINARY_KERNEL(Sub, suffix, type, type, u - v)
#define DEFINE_SUB_INTEGER(suffix, type) RONDO_OP_BINARY_KERNEL(Sub, suffix, type, type, WRAPPED(-))
RONDO_OP_FLOAT_MAP(DEFINE_SUB_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_SUB_INTEGER)
static const rondo__binary_kernel kernels_Sub[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(Sub)};
DEFINE_FUNCTIONS(Sub, RONDO_DTYPE_NONE)

#define DEFINE_MUL_FLOAT(suffix, type) RONDO_OP_BINARY_KERNEL(Mul, suffix, type, type, u *v)
#define DEFINE_MUL_INTEGER(suffix, type) RONDO_OP_BINARY_KERNEL(Mul, suffix, type, type, WRAPPED(*))
RONDO_OP_FLOAT_MAP(DEFINE_MUL_FLOAT)
RONDO_OP_INTEGER_MAP(DEFINE_MUL_INTEGER)
static const rondo__binary_kernel kernels_Mul[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(Mul)};
DEFINE_FUNCTIONS(Mul, RONDO_DTYPE_NONE)

// Division by -1 is a wrapped negation: the least integer would trap in the processor.
#define NEGATED(x) (T)(UINT64_C(0) - (uint64_t)(x))

#define DEFINE_DIV_FLOAT(suffix, type) RONDO_OP_BINARY_KERNEL(Div, suffix, type, type, u / v)
#define DEFINE_DIV_SIGNED(suffix, type) \
    RONDO_OP_BINARY_KERNEL(Div, suffix, type, type, v == -1 ? NEGATED(u) : (T)(u / v))
#define DEFINE_DIV_UNSIGNED(suffix, type) RONDO_OP_BINARY_KERNEL(Div, suffix, type, type, u / v)
RONDO_OP_FLOAT_MAP(DEFINE_DIV_FLOAT)
RONDO_OP_SIGNED_MAP(DEFINE_DIV_SIGNED)
RONDO_OP_UNSIGNED_MAP(DEFINE_DIV_UNSIGNED)
static const rondo__binary_kernel kernels_Div[RONDO_DTYPE_COUNT] = {RONDO_OP_NUMERIC_KERNELS(Div)};

static rondo_status infer_Div(rondo__infer *infer) {
    return infer_binary(infer, kernels_Div, RONDO_DTYPE_NONE);
}

// The first zero; -1: none.
static int64_t find_zero(const rondo_tensor *tensor) {
    const size_t bytes = rondo_dtype_get_bytes(tensor->dtype);
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    const uint8_t *at = tensor->data;
    for (int64_t i = 0; i < count; ++i, at += bytes) {
        uint64_t bits = 0;
        memcpy(&bits, at, bytes <= sizeof bits ? bytes : sizeof bits);
        if (bits == 0) {
            return i;
        }
    }
    return -1;
}

// Refuses a zero among integer divisors.
static rondo_status check_divisors(const rondo__compute *compute) {
    const rondo_tensor *divisor = compute->inputs[1];
    const int64_t zero = rondo__dtype_is_integer(divisor->dtype) ? find_zero(divisor) : -1;
    return zero < 0
               ? RONDO_STATUS_OK
               : RONDO_OP_FAIL(compute->op, BAD_DATA,
                               "element %lld of the divisor is the integer 0", (long long)zero);
}

static rondo_status compute_Div(rondo__compute *compute) {
    RETURN_IF_ERROR(check_divisors(compute));
    return compute_binary(compute, kernels_Div);
}

// Remainder with the sign of the dividend (fmod = 1).
#define DEFINE_FMOD_FLOAT(suffix, type) RONDO_OP_BINARY_KERNEL(Fmod, suffix, type, type, fmod(u, v))
#define DEFINE_FMOD_SIGNED(suffix, type) \
    RONDO_OP_BINARY_KERNEL(Fmod, suffix, type, type, v == -1 ? (T)0 : (T)(u % v))
#define DEFINE_FMOD_UNSIGNED(suffix, type) RONDO_OP_BINARY_KERNEL(Fmod, suffix, type, type, u % v)
RONDO_OP_FLOAT_MAP(DEFINE_FMOD_FLOAT)
RONDO_OP_SIGNED_MAP(DEFINE_FMOD_SIGNED)
RONDO_OP_UNSIGNED_MAP(DEFINE_FMOD_UNSIGNED)
static const rondo__binary_kernel kernels_Fmod[RONDO_DTYPE_COUNT] = {
    RONDO_OP_NUMERIC_KERNELS(Fmod)};

// Remainder with the sign of the divisor, as in Python (fmod = 0); of floats since version 28,
// where a remainder of 0 has the divisor's sign, too.
static int64_t floored_whole(int64_t u, int64_t v) {
    int64_t rest = 0;
    if (u == (int32_t)u && v == (int32_t)v) {  // several times as fast
        rest = v == -1 ? 0 : (int32_t)u % (int32_t)v;
    } else {
        rest = v == -1 ? 0 : u % v;
    }
    return rest != 0 && (u < 0) != (v < 0) ? rest + v : rest;
}

#define DEFINE_MOD_SIGNED(suffix, type) \
    RONDO_OP_BINARY_KERNEL(Mod, suffix, type, type, (T)floored_whole((int64_t)u, (int64_t)v))
RONDO_OP_SIGNED_MAP(DEFINE_MOD_SIGNED)

static double floored(double u, double v) {
    const double rest = fmod(u, v);
    if (rest == 0.0) {
        return copysign(rest, v);
    }
    return (rest < 0.0) != (v < 0.0) ? rest + v : rest;
}

#define DEFINE_MOD_FLOAT(suffix, type) \
    RONDO_OP_BINARY_KERNEL(Mod, suffix, type, type, floored((double)u, (double)v))
RONDO_OP_FLOAT_MAP(DEFINE_MOD_FLOAT)
static const rondo__binary_kernel kernels_Mod[RONDO_DTYPE_COUNT] = {
    RONDO_OP_FLOAT_KERNELS(Mod), RONDO_OP_SIGNED_KERNELS(Mod), RONDO_OP_UNSIGNED_KERNELS(Fmod)};

static rondo_status infer_Mod(rondo__infer *infer) {
    if (rondo__op_get_int(infer->op, "fmod", 0) == 0 && infer->op->opset < 28 &&
        rondo__dtype_is_float(infer->inputs[0].dtype)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute fmod must be 1 for %s below opset 28",
                             rondo_dtype_get_name(infer->inputs[0].dtype));
    }
    return infer_binary(infer, kernels_Fmod, RONDO_DTYPE_NONE);
}

static rondo_status compute_Mod(rondo__compute *compute) {
    RETURN_IF_ERROR(check_divisors(compute));
    bool is_fmod = rondo__op_get_int(compute->op, "fmod", 0) != 0;
    return compute_binary(compute, is_fmod ? kernels_Fmod : kernels_Mod);
}

// ---- PRelu ------------------------------------------------------------------------------------

#define DEFINE_PRELU_FLOAT(suffix, type) \
    RONDO_OP_BINARY_KERNEL(PRelu, suffix, type, type, u < (T)0 ? u * v : u)
#define DEFINE_PRELU_SIGNED(suffix, type) \
    RONDO_OP_BINARY_KERNEL(PRelu, suffix, type, type, u < 0 ? (T)(WRAPPED(*)) : u)
RONDO_OP_FLOAT_MAP(DEFINE_PRELU_FLOAT)
RONDO_OP_SIGNED_MAP(DEFINE_PRELU_SIGNED)
RONDO_OP_BINARY_KERNEL(PRelu, U32, uint32_t, uint32_t, ((void)v, u))
RONDO_OP_BINARY_KERNEL(PRelu, U64, uint64_t, uint64_t, ((void)v, u))
static const rondo__binary_kernel kernels_PRelu[RONDO_DTYPE_COUNT] = {
    RONDO_OP_FLOAT_KERNELS(PRelu),
    RONDO_OP_SIGNED_KERNELS(PRelu), [RONDO_DTYPE_U32] = PRelu_U32, [RONDO_DTYPE_U64] = PRelu_U64};

static rondo_status infer_PRelu(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape, *slope = &infer->inputs[1].shape;
    // Before version 7 a slope of one axis is one for each channel.
    if (infer->op->opset < 7 && slope->rank == 1 && slope->extent[0] != 1 && x->rank > 2) {
        return rondo__op_fail_unsupported(infer->op, "a slope for each channel");
    }
    RETURN_IF_ERROR(infer_binary(infer, kernels_PRelu, RONDO_DTYPE_NONE));
    if (!rondo_shape_is_equal(&infer->outputs[0].shape, &infer->inputs[0].shape)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the slope must broadcast to the input's shape");
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_PRelu(rondo__compute *compute) {
    return compute_binary(compute, kernels_PRelu);
}

// ---- SwiGLU -----------------------------------------------------------------------------------

static rondo_status infer_SwiGLU(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    if (!rondo__dtype_is_float(inputs[0].dtype)) {
        return rondo__op_fail_dtype(infer->op, 0, inputs[0].dtype);
    }
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 1));
    if (!rondo_shape_is_equal(&inputs[0].shape, &inputs[1].shape)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "gate and value have different shapes");
    }
    return rondo__infer_like_input(infer);
}

// Swish of the gate, times the value.
static rondo_status compute_SwiGLU(rondo__compute *compute) {
    const rondo_tensor *gate = compute->inputs[0];
    const double alpha = (double)rondo__op_get_float(compute->op, "alpha", 1.0f);
    const int64_t count = rondo_shape_get_count(&gate->shape);
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    for (int64_t i = 0; i < count; ++i) {
        const double x = rondo__tensor_get_number(gate, i);
        const double y =
            x / (1.0 + exp(-(alpha * x))) * rondo__tensor_get_number(compute->inputs[1], i);
        if (gate->dtype == RONDO_DTYPE_F64) {
            ((double *)output)[i] = y;
        } else {
            ((float *)output)[i] = (float)y;
        }
    }
    return RONDO_STATUS_OK;
}

// ---- logic ------------------------------------------------------------------------------------

RONDO_OP_BINARY_KERNEL(And, BOOL, uint8_t, uint8_t, u != 0 && v != 0)
RONDO_OP_BINARY_KERNEL(Or, BOOL, uint8_t, uint8_t, u != 0 || v != 0)
RONDO_OP_BINARY_KERNEL(Xor, BOOL, uint8_t, uint8_t, (u != 0) != (v != 0))
static const rondo__binary_kernel kernels_And[RONDO_DTYPE_COUNT] = {[RONDO_DTYPE_BOOL] = And_BOOL};
static const rondo__binary_kernel kernels_Or[RONDO_DTYPE_COUNT] = {[RONDO_DTYPE_BOOL] = Or_BOOL};
static const rondo__binary_kernel kernels_Xor[RONDO_DTYPE_COUNT] = {[RONDO_DTYPE_BOOL] = Xor_BOOL};
DEFINE_FUNCTIONS(And, RONDO_DTYPE_BOOL)
DEFINE_FUNCTIONS(Or, RONDO_DTYPE_BOOL)
DEFINE_FUNCTIONS(Xor, RONDO_DTYPE_BOOL)

// ---- comparison -------------------------------------------------------------------------------

#define DEFINE_EQUAL(suffix, type) RONDO_OP_BINARY_KERNEL(Equal, suffix, type, uint8_t, u == v)
RONDO_OP_NUMERIC_MAP(DEFINE_EQUAL)
RONDO_OP_BINARY_KERNEL(Equal, BOOL, uint8_t, uint8_t, (u != 0) == (v != 0))
RONDO_OP_BINARY_KERNEL(Equal, STRING, rondo_string, uint8_t, rondo__string_compare(&u, &v) == 0)
static const rondo__binary_kernel kernels_Equal[RONDO_DTYPE_COUNT] = {
    RONDO_OP_NUMERIC_KERNELS(Equal),
    [RONDO_DTYPE_BOOL] = Equal_BOOL,
    [RONDO_DTYPE_STRING] = Equal_STRING,
};
DEFINE_FUNCTIONS(Equal, RONDO_DTYPE_BOOL)

#define DEFINE_GREATER(suffix, type) RONDO_OP_BINARY_KERNEL(Greater, suffix, type, uint8_t, u > v)
RONDO_OP_NUMERIC_MAP(DEFINE_GREATER)
static const rondo__binary_kernel kernels_Greater[RONDO_DTYPE_COUNT] = {
    RONDO_OP_NUMERIC_KERNELS(Greater)};
DEFINE_FUNCTIONS(Greater, RONDO_DTYPE_BOOL)

#define DEFINE_GREATER_OR_EQUAL(suffix, type) \
    RONDO_OP_BINARY_KERNEL(GreaterOrEqual, suffix, type, uint8_t, u >= v)
RONDO_OP_NUMERIC_MAP(DEFINE_GREATER_OR_EQUAL)
static const rondo__binary_kernel kernels_GreaterOrEqual[RONDO_DTYPE_COUNT] = {
    RONDO_OP_NUMERIC_KERNELS(GreaterOrEqual)};
DEFINE_FUNCTIONS(GreaterOrEqual, RONDO_DTYPE_BOOL)

#define DEFINE_LESS(suffix, type) RONDO_OP_BINARY_KERNEL(Less, suffix, type, uint8_t, u < v)
RONDO_OP_NUMERIC_MAP(DEFINE_LESS)
static const rondo__binary_kernel kernels_Less[RONDO_DTYPE_COUNT] = {
    RONDO_OP_NUMERIC_KERNELS(Less)};
DEFINE_FUNCTIONS(Less, RONDO_DTYPE_BOOL)

#define DEFINE_LESS_OR_EQUAL(suffix, type) \
    RONDO_OP_BINARY_KERNEL(LessOrEqual, suffix, type, uint8_t, u <= v)
RONDO_OP_NUMERIC_MAP(DEFINE_LESS_OR_EQUAL)
static const rondo__binary_kernel kernels_LessOrEqual[RONDO_DTYPE_COUNT] = {
    RONDO_OP_NUMERIC_KERNELS(LessOrEqual)};
DEFINE_FUNCTIONS(LessOrEqual, RONDO_DTYPE_BOOL)

// ---- bits -------------------------------------------------------------------------------------

#define DEFINE_BITWISE_AND(suffix, type) \
    RONDO_OP_BINARY_KERNEL(BitwiseAnd, suffix, type, type, u &v)
#define DEFINE_BITWISE_OR(suffix, type) RONDO_OP_BINARY_KERNEL(BitwiseOr, suffix, type, type, u | v)
#define DEFINE_BITWISE_XOR(suffix, type) \
    RONDO_OP_BINARY_KERNEL(BitwiseXor, suffix, type, type, u ^ v)
RONDO_OP_INTEGER_MAP(DEFINE_BITWISE_AND)
RONDO_OP_INTEGER_MAP(DEFINE_BITWISE_OR)
RONDO_OP_INTEGER_MAP(DEFINE_BITWISE_XOR)
#define INTEGER_KERNELS(name) RONDO_OP_SIGNED_KERNELS(name), RONDO_OP_UNSIGNED_KERNELS(name)
static const rondo__binary_kernel kernels_BitwiseAnd[RONDO_DTYPE_COUNT] = {
    INTEGER_KERNELS(BitwiseAnd)};
static const rondo__binary_kernel kernels_BitwiseOr[RONDO_DTYPE_COUNT] = {
    INTEGER_KERNELS(BitwiseOr)};
static const rondo__binary_kernel kernels_BitwiseXor[RONDO_DTYPE_COUNT] = {
    INTEGER_KERNELS(BitwiseXor)};
DEFINE_FUNCTIONS(BitwiseAnd, RONDO_DTYPE_NONE)
DEFINE_FUNCTIONS(BitwiseOr, RONDO_DTYPE_NONE)
DEFINE_FUNCTIONS(BitwiseXor, RONDO_DTYPE_NONE)

// A shift by the width of the type or more, or by less than 0, leaves nothing but the sign: 0, or
// -1 where a negative number goes right.
#define IS_SHIFTED_OUT ((uint64_t)v >= 8 * sizeof(T))
#define SHIFTED_LEFT IS_SHIFTED_OUT ? 0 : (uint64_t)u << v
#define SHIFTED_RIGHT IS_SHIFTED_OUT ? 0 : (uint64_t)u >> v
#define SHIFTED_RIGHT_SIGNED IS_SHIFTED_OUT ? (u < 0 ? -1 : 0) : (int64_t)u >> v
#define DEFINE_SHIFT_LEFT(suffix, type) \
    RONDO_OP_BINARY_KERNEL(ShiftLeft, suffix, type, type, SHIFTED_LEFT)
#define DEFINE_SHIFT_RIGHT(suffix, type) \
    RONDO_OP_BINARY_KERNEL(ShiftRight, suffix, type, type, SHIFTED_RIGHT)
#define DEFINE_SHIFT_RIGHT_SIGNED(suffix, type) \
    RONDO_OP_BINARY_KERNEL(ShiftRight, suffix, type, type, SHIFTED_RIGHT_SIGNED)
RONDO_OP_INTEGER_MAP(DEFINE_SHIFT_LEFT)
RONDO_OP_UNSIGNED_MAP(DEFINE_SHIFT_RIGHT)
RONDO_OP_SIGNED_MAP(DEFINE_SHIFT_RIGHT_SIGNED)
static const rondo__binary_kernel kernels_ShiftLeft[RONDO_DTYPE_COUNT] = {
    INTEGER_KERNELS(ShiftLeft)};
static const rondo__binary_kernel kernels_ShiftRight[RONDO_DTYPE_COUNT] = {
    INTEGER_KERNELS(ShiftRight)};

static rondo_status check_BitShift(const rondo__op *op) {
    const char *direction = rondo__op_get_string(op, "direction", "");
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute direction must be LEFT or RIGHT");
    }
    return RONDO_STATUS_OK;
}

// Signed numbers since version 28.
static rondo_status infer_BitShift(rondo__infer *infer) {
    const rondo_dtype dtype = infer->inputs[0].dtype;
    const bool is_signed = dtype == RONDO_DTYPE_I8 || dtype == RONDO_DTYPE_I16 ||
                           dtype == RONDO_DTYPE_I32 || dtype == RONDO_DTYPE_I64;
    if (infer->op->opset < 28 && is_signed) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    return infer_binary(infer, kernels_ShiftLeft, RONDO_DTYPE_NONE);
}

static rondo_status compute_BitShift(rondo__compute *compute) {
    bool is_left = strcmp(rondo__op_get_string(compute->op, "direction", ""), "LEFT") == 0;
    return compute_binary(compute, is_left ? kernels_ShiftLeft : kernels_ShiftRight);
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const old_attributes[] = {"axis", "broadcast", NULL};
static const char *const mod_attributes[] = {"fmod", NULL};
static const char *const shift_attributes[] = {"direction", NULL};
static const char *const swiglu_attributes[] = {"alpha", NULL};

#define ENTRY(op, opset, attribute_list, ...)                                                      \
    RONDO_OP_ROW(OP, op, opset, RONDO_OP_OPSET_MAX, 2, 2, 1, 1, .flags = RONDO__OP_ELEMENTWISE,    \
                 .capture = RONDO__CAPTURE_YES, .attributes = attribute_list, .infer = infer_##op, \
                 .compute = compute_##op, .check = __VA_ARGS__)

// The form before version 7, where operands are alike unless an attribute allows that the second is
// the end of the first.
#define OLD_ENTRY(op, ...)                                                                     \
    {                                                                                          \
        .id = RONDO_OP_NAME(OP, op), .opset_min = __VA_ARGS__, .opset_max = 6, .input_min = 2, \
        .input_max = 2, .output_min = 1, .output_max = 1, .flags = RONDO__OP_ELEMENTWISE,      \
        .capture = RONDO__CAPTURE_YES, .attributes = old_attributes, .infer = infer_##op,      \
        .compute = compute_##op,                                                               \
    }

const rondo__op_def rondo__op_table_binary[] = {
    OLD_ENTRY(Add, 6),
    OLD_ENTRY(And, 1),
    OLD_ENTRY(Div, 6, .is_fallible = true),
    OLD_ENTRY(Equal, 1, .strings = RONDO__INPUT_0 | RONDO__INPUT_1),
    OLD_ENTRY(Greater, 1),
    OLD_ENTRY(Less, 1),
    OLD_ENTRY(Mul, 6),
    OLD_ENTRY(Or, 1),
    OLD_ENTRY(Sub, 6),
    OLD_ENTRY(Xor, 1),
    ENTRY(Add, 7, no_attributes, NULL),
    ENTRY(And, 7, no_attributes, NULL),
    ENTRY(BitShift, 11, shift_attributes, check_BitShift),
    ENTRY(BitwiseAnd, 18, no_attributes, NULL),
    ENTRY(BitwiseOr, 18, no_attributes, NULL),
    ENTRY(BitwiseXor, 18, no_attributes, NULL),
    ENTRY(Div, 7, no_attributes, NULL, .is_fallible = true),
    ENTRY(Equal, 7, no_attributes, NULL, .strings = RONDO__INPUT_0 | RONDO__INPUT_1),
    ENTRY(Greater, 7, no_attributes, NULL),
    ENTRY(GreaterOrEqual, 12, no_attributes, NULL),
    ENTRY(Less, 7, no_attributes, NULL),
    ENTRY(LessOrEqual, 12, no_attributes, NULL),
    ENTRY(Mod, 10, mod_attributes, NULL, .is_fallible = true),
    ENTRY(Mul, 7, no_attributes, NULL),
    ENTRY(Or, 7, no_attributes, NULL),
    ENTRY(PRelu, 6, no_attributes, NULL),
    ENTRY(Sub, 7, no_attributes, NULL),
    ENTRY(SwiGLU, 28, swiglu_attributes, NULL),
    ENTRY(Xor, 7, no_attributes, NULL),
    {0},
};
