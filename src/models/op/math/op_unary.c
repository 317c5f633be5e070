// op/math/op_unary.c — element-wise ops of one input: Abs ... ThresholdedRelu.
//
// Each op is one line of a list: its name, first opset, parameters and the expression, written once
// in type-generic maths for f32 and f64 (and, where ONNX says so, for integers).
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>

#include "base/error.h"
#include "op/op.h"
#include "op/support.h"

// y[i] = f(x[i]); a and b are the op's parameters.
typedef void (*unary_kernel)(const void *x, void *y, size_t count, double a, double b);

typedef struct unary_spec {
    unary_kernel kernels[RONDO_DTYPE_COUNT];
    const char *parameters[3];  // attribute names for a and b, ended by NULL
    float defaults[2];
} unary_spec;

// What f16 does to these.
#define ANY .half.kind = 0
#define BOUNDED .half.kind = HALF_BOUNDED
#define WIDE .half = {HALF_STAYS, HALF_WIDE, HALF_EXPONENTIAL}
#define LOGARITHM .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_LOGARITHM}
#define ROOT .half = {HALF_STAYS | HALF_TRACED, HALF_FINE, HALF_ROOT}

// X(name, first opset, in half precision, expression in x)
#define UNARY_PLAIN_MAP(X)                                          \
    X(Acos, 7, ANY, acos(x))                                        \
    X(Acosh, 9, ANY, acosh(x))                                      \
    X(Asin, 7, ANY, asin(x))                                        \
    X(Asinh, 9, ANY, asinh(x))                                      \
    X(Atan, 7, BOUNDED, atan(x))                                    \
    X(Atanh, 9, ANY, atanh(x))                                      \
    X(Ceil, 6, ANY, ceil(x))                                        \
    X(Cos, 7, BOUNDED, cos(x))                                      \
    X(Cosh, 9, WIDE, cosh(x))                                       \
    X(Erf, 9, BOUNDED, erf(x))                                      \
    X(Exp, 6, WIDE, exp(x))                                         \
    X(Floor, 6, ANY, floor(x))                                      \
    X(HardSwish, 14, ANY, x *clamp_unit(x / (T)6 + (T)0.5))         \
    X(Log, 6, LOGARITHM, log(x))                                    \
    X(Mish, 18, ANY, x *tanh(fmax(x, (T)0) + log1p(exp(-fabs(x))))) \
    X(Reciprocal, 6, ANY, (T)1 / x)                                 \
    X(Round, 11, ANY, rint(x))                                      \
    X(Sigmoid, 6, BOUNDED, (T)1 / ((T)1 + exp(-x)))                 \
    X(Sin, 7, BOUNDED, sin(x))                                      \
    X(Sinh, 9, WIDE, sinh(x))                                       \
    X(Softplus, 1, ANY, fmax(x, (T)0) + log1p(exp(-fabs(x))))       \
    X(Softsign, 1, BOUNDED, x / ((T)1 + fabs(x)))                   \
    X(Sqrt, 6, ROOT, sqrt(x))                                       \
    X(Tan, 7, WIDE, tan(x))                                         \
    X(Tanh, 6, BOUNDED, tanh(x))

// The two forms of Gelu, an op with a mode.
#define UNARY_GELU_MAP(X)                                                         \
    X(GeluErf, 20, ANY, (T)0.5 * x * ((T)1 + erf(x * (T)0.70710678118654752440))) \
    X(GeluTanh, 20, ANY,                                                          \
      (T)0.5 * x * ((T)1 + tanh((T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x))))

// X(name, first opset, in half precision, name of a, its default, name of b or NULL, its default,
// expression in x, a, b)
#define UNARY_PARAMETER_MAP(X)                                                                \
    X(Celu, 12, ANY, "alpha", 1.0f, NULL, 0.0f, x > (T)0 ? x : a * expm1(x / a))              \
    X(Elu, 6, ANY, "alpha", 1.0f, NULL, 0.0f, x < (T)0 ? a * expm1(x) : x)                    \
    X(HardSigmoid, 6, BOUNDED, "alpha", 0.2f, "beta", 0.5f, clamp_unit(a *x + b))             \
    X(LeakyRelu, 6, ANY, "alpha", 0.01f, NULL, 0.0f, x < (T)0 ? a * x : x)                    \
    X(Selu, 6, ANY, "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f, \
      x > (T)0 ? b * x : b * (a * expm1(x)))                                                  \
    X(Swish, 24, ANY, "alpha", 1.0f, NULL, 0.0f, x / ((T)1 + exp(-(a * x))))                  \
    X(ThresholdedRelu, 10, ANY, "alpha", 1.0f, NULL, 0.0f, x > a ? x : (T)0)

static inline float clamp_unit_F32(float x) {
    return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
}

static inline double clamp_unit_F64(double x) {
    return x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x;
}

// Between 0 and 1; NaN stays.
#define clamp_unit(x) _Generic((x), float : clamp_unit_F32, double : clamp_unit_F64)(x)

#define DEFINE_KERNEL(name, suffix, type, expression)                                            \
    static void name##_##suffix(const void *in, void *out, size_t count, double a_, double b_) { \
        typedef type T;                                                                          \
        const T *xs = in;                                                                        \
        T *ys = out;                                                                             \
        const T a = (T)a_;                                                                       \
        const T b = (T)b_;                                                                       \
        (void)a;                                                                                 \
        (void)b;                                                                                 \
        for (size_t i = 0; i < count; ++i) {                                                     \
            const T x = xs[i];                                                                   \
            ys[i] = (T)(expression);                                                             \
        }                                                                                        \
    }

#define FLOAT_KERNELS(name) [RONDO_DTYPE_F32] = name##_F32, [RONDO_DTYPE_F64] = name##_F64
#define SIGNED_KERNELS(name)                                                                      \
    [RONDO_DTYPE_I8] = name##_I8, [RONDO_DTYPE_I16] = name##_I16, [RONDO_DTYPE_I32] = name##_I32, \
    [RONDO_DTYPE_I64] = name##_I64
#define UNSIGNED_KERNELS(name)                                                                    \
    [RONDO_DTYPE_U8] = name##_U8, [RONDO_DTYPE_U16] = name##_U16, [RONDO_DTYPE_U32] = name##_U32, \
    [RONDO_DTYPE_U64] = name##_U64

// ---- what all of them do ----------------------------------------------------------------------

static rondo_status infer_unary(rondo__infer *infer, const unary_spec *spec) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    if (spec->kernels[rondo__dtype_widen(dtype)] == NULL) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_unary(rondo__compute *compute, const unary_spec *spec) {
    const rondo_tensor *input = compute->inputs[0];
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    double parameters[2] = {0.0, 0.0};
    for (size_t i = 0; i < 2 && spec->parameters[i] != NULL; ++i) {
        parameters[i] =
            (double)rondo__op_get_float(compute->op, spec->parameters[i], spec->defaults[i]);
    }
    spec->kernels[input->dtype](input->data, output, (size_t)rondo_shape_get_count(&input->shape),
                                parameters[0], parameters[1]);
    return RONDO_STATUS_OK;
}

#define DEFINE_FUNCTIONS(name)                                    \
    static rondo_status infer_##name(rondo__infer *infer) {       \
        return infer_unary(infer, &spec_##name);                  \
    }                                                             \
    static rondo_status compute_##name(rondo__compute *compute) { \
        return compute_unary(compute, &spec_##name);              \
    }

// ---- floats only ------------------------------------------------------------------------------

#define DEFINE_PLAIN(name, opset, columns, expression)                        \
    DEFINE_KERNEL(name, F32, float, expression)                               \
    DEFINE_KERNEL(name, F64, double, expression)                              \
    static const unary_spec spec_##name = {.kernels = {FLOAT_KERNELS(name)}}; \
    DEFINE_FUNCTIONS(name)
UNARY_PLAIN_MAP(DEFINE_PLAIN)
UNARY_GELU_MAP(DEFINE_PLAIN)

#define DEFINE_PARAMETER(name, opset, columns, a_name, a_default, b_name, b_default, expression) \
    DEFINE_KERNEL(name, F32, float, expression)                                                  \
    DEFINE_KERNEL(name, F64, double, expression)                                                 \
    static const unary_spec spec_##name = {.kernels = {FLOAT_KERNELS(name)},                     \
                                           .parameters = {a_name, b_name},                       \
                                           .defaults = {a_default, b_default}};                  \
    DEFINE_FUNCTIONS(name)
UNARY_PARAMETER_MAP(DEFINE_PARAMETER)

static bool is_tanh_gelu(const rondo__op *op) {
    return strcmp(rondo__op_get_string(op, "approximate", "none"), "tanh") == 0;
}

static rondo_status check_gelu(const rondo__op *op) {
    if (!is_tanh_gelu(op) && strcmp(rondo__op_get_string(op, "approximate", "none"), "none") != 0) {
        return rondo__op_fail_unsupported(op, "attribute approximate");
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_Gelu(rondo__infer *infer) {
    return is_tanh_gelu(infer->op) ? infer_GeluTanh(infer) : infer_GeluErf(infer);
}

static rondo_status compute_Gelu(rondo__compute *compute) {
    return is_tanh_gelu(compute->op) ? compute_GeluTanh(compute) : compute_GeluErf(compute);
}

// ---- numbers of all kinds ---------------------------------------------------------------------

// Negation in 64-bit unsigned arithmetic, so that the least integer wraps instead of trapping.
#define WRAP_NEGATE(x) (T)(UINT64_C(0) - (uint64_t)(x))

#define DEFINE_ABS_FLOAT(suffix, type) DEFINE_KERNEL(Abs, suffix, type, fabs(x))
#define DEFINE_ABS_SIGNED(suffix, type) DEFINE_KERNEL(Abs, suffix, type, x < 0 ? WRAP_NEGATE(x) : x)
#define DEFINE_ABS_UNSIGNED(suffix, type) DEFINE_KERNEL(Abs, suffix, type, x)
RONDO_OP_FLOAT_MAP(DEFINE_ABS_FLOAT)
RONDO_OP_SIGNED_MAP(DEFINE_ABS_SIGNED)
RONDO_OP_UNSIGNED_MAP(DEFINE_ABS_UNSIGNED)
static const unary_spec spec_Abs = {
    .kernels = {FLOAT_KERNELS(Abs), SIGNED_KERNELS(Abs), UNSIGNED_KERNELS(Abs)}};
DEFINE_FUNCTIONS(Abs)

#define DEFINE_NEG_FLOAT(suffix, type) DEFINE_KERNEL(Neg, suffix, type, -x)
#define DEFINE_NEG_SIGNED(suffix, type) DEFINE_KERNEL(Neg, suffix, type, WRAP_NEGATE(x))
RONDO_OP_FLOAT_MAP(DEFINE_NEG_FLOAT)
RONDO_OP_SIGNED_MAP(DEFINE_NEG_SIGNED)
static const unary_spec spec_Neg = {.kernels = {FLOAT_KERNELS(Neg), SIGNED_KERNELS(Neg)}};
DEFINE_FUNCTIONS(Neg)

// NaN stays NaN.
#define DEFINE_SIGN_FLOAT(suffix, type) \
    DEFINE_KERNEL(Sign, suffix, type, x > (T)0 ? (T)1 : x < (T)0 ? (T)-1 : x)
#define DEFINE_SIGN_SIGNED(suffix, type) DEFINE_KERNEL(Sign, suffix, type, (x > 0) - (x < 0))
#define DEFINE_SIGN_UNSIGNED(suffix, type) DEFINE_KERNEL(Sign, suffix, type, x != 0)
RONDO_OP_FLOAT_MAP(DEFINE_SIGN_FLOAT)
RONDO_OP_SIGNED_MAP(DEFINE_SIGN_SIGNED)
RONDO_OP_UNSIGNED_MAP(DEFINE_SIGN_UNSIGNED)
static const unary_spec spec_Sign = {
    .kernels = {FLOAT_KERNELS(Sign), SIGNED_KERNELS(Sign), UNSIGNED_KERNELS(Sign)}};
DEFINE_FUNCTIONS(Sign)

#define DEFINE_RELU(suffix, type) DEFINE_KERNEL(Relu, suffix, type, x < (T)0 ? (T)0 : x)
RONDO_OP_FLOAT_MAP(DEFINE_RELU)
RONDO_OP_SIGNED_MAP(DEFINE_RELU)
static const unary_spec spec_Relu = {.kernels = {FLOAT_KERNELS(Relu), SIGNED_KERNELS(Relu)}};
DEFINE_FUNCTIONS(Relu)

// a: lambd, b: bias.
#define DEFINE_SHRINK_FLOAT(suffix, type) \
    DEFINE_KERNEL(Shrink, suffix, type, x<-a ? x + b : x> a ? x - b : 0)
RONDO_OP_FLOAT_MAP(DEFINE_SHRINK_FLOAT)

// Truncates; what does not fit becomes the nearest limit, NaN becomes 0.
static int64_t truncate_signed(double value) {
    if (value >= 0x1p63) {
        return INT64_MAX;
    }
    return value >= -0x1p63 ? (int64_t)value : value < 0 ? INT64_MIN : 0;
}

static uint64_t truncate_unsigned(double value) {
    return value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
}

// Integers are compared and shifted as doubles, like numpy does it; the parameters need not fit.
#define DEFINE_SHRINK_INTEGER(suffix, type, truncate)                                  \
    static void Shrink_##suffix(const void *in, void *out, size_t count, double lambd, \
                                double bias) {                                         \
        const type *xs = in;                                                           \
        type *ys = out;                                                                \
        for (size_t i = 0; i < count; ++i) {                                           \
            double x = (double)xs[i];                                                  \
            ys[i] = (type)truncate(x < -lambd ? x + bias : x > lambd ? x - bias : 0);  \
        }                                                                              \
    }
#define DEFINE_SHRINK_SIGNED(suffix, type) DEFINE_SHRINK_INTEGER(suffix, type, truncate_signed)
#define DEFINE_SHRINK_UNSIGNED(suffix, type) DEFINE_SHRINK_INTEGER(suffix, type, truncate_unsigned)
RONDO_OP_SIGNED_MAP(DEFINE_SHRINK_SIGNED)
RONDO_OP_UNSIGNED_MAP(DEFINE_SHRINK_UNSIGNED)
static const unary_spec spec_Shrink = {
    .kernels = {FLOAT_KERNELS(Shrink), SIGNED_KERNELS(Shrink), UNSIGNED_KERNELS(Shrink)},
    .parameters = {"lambd", "bias"},
    .defaults = {0.5f, 0.0f}};
DEFINE_FUNCTIONS(Shrink)

#define DEFINE_BITWISE_NOT(suffix, type) DEFINE_KERNEL(BitwiseNot, suffix, type, ~x)
RONDO_OP_INTEGER_MAP(DEFINE_BITWISE_NOT)
static const unary_spec spec_BitwiseNot = {
    .kernels = {SIGNED_KERNELS(BitwiseNot), UNSIGNED_KERNELS(BitwiseNot)}};
DEFINE_FUNCTIONS(BitwiseNot)

static void Not_BOOL(const void *in, void *out, size_t count, double a, double b) {
    (void)a;
    (void)b;
    const uint8_t *x = in;
    uint8_t *y = out;
    for (size_t i = 0; i < count; ++i) {
        y[i] = x[i] == 0;
    }
}
static const unary_spec spec_Not = {.kernels = {[RONDO_DTYPE_BOOL] = Not_BOOL}};
DEFINE_FUNCTIONS(Not)

// ---- questions about floats -------------------------------------------------------------------

static rondo_status infer_question(rondo__infer *infer) {
    if (!rondo__dtype_is_float(infer->inputs[0].dtype)) {
        return rondo__op_fail_dtype(infer->op, 0, infer->inputs[0].dtype);
    }
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_BOOL, &infer->inputs[0].shape);
}

static rondo_status compute_is_nan(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    int64_t count = rondo_shape_get_count(&input->shape);
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    uint8_t *y = output;
    for (int64_t i = 0; i < count; ++i) {
        double x = rondo__tensor_get_number(input, i);
        y[i] = x != x;
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_is_inf(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    int64_t count = rondo_shape_get_count(&input->shape);
    bool wants_positive = rondo__op_get_int(compute->op, "detect_positive", 1) != 0;
    bool wants_negative = rondo__op_get_int(compute->op, "detect_negative", 1) != 0;
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    uint8_t *y = output;
    for (int64_t i = 0; i < count; ++i) {
        double x = rondo__tensor_get_number(input, i);
        y[i] = isinf(x) && (x > 0 ? wants_positive : wants_negative);
    }
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const gelu_attributes[] = {"approximate", NULL};
static const char *const is_inf_attributes[] = {"detect_negative", "detect_positive", NULL};

#define ENTRY(op_name, opset, attribute_list, infer_function, compute_function, ...) \
    RONDO_OP_ROW(OP, op_name, opset, RONDO_OP_OPSET_MAX, 1, 1, 1, 1,                 \
                 .flags = RONDO__OP_ELEMENTWISE, .capture = RONDO__CAPTURE_YES,      \
                 .attributes = attribute_list, .infer = infer_function,              \
                 .compute = compute_function, .check = __VA_ARGS__)
#define PLAIN_ENTRY(name, opset, columns, expression) \
    ENTRY(name, opset, no_attributes, infer_##name, compute_##name, NULL, columns),
#define PARAMETER_ENTRY(name, opset, columns, ...) \
    ENTRY(name, opset, spec_##name.parameters, infer_##name, compute_##name, NULL, columns),

// clang-format off
const rondo__op_def rondo__op_table_unary[] = {
    UNARY_PLAIN_MAP(PLAIN_ENTRY)
    UNARY_PARAMETER_MAP(PARAMETER_ENTRY)
    PLAIN_ENTRY(Abs, 6, ANY, by_type)
    PLAIN_ENTRY(BitwiseNot, 18, ANY, by_type)
    PLAIN_ENTRY(Neg, 6, ANY, by_type)
    PLAIN_ENTRY(Not, 1, ANY, by_type)
    PLAIN_ENTRY(Relu, 6, ANY, by_type)
    PLAIN_ENTRY(Sign, 9, BOUNDED, by_type)
    ENTRY(Gelu, 20, gelu_attributes, infer_Gelu, compute_Gelu, check_gelu),
    ENTRY(IsInf, 10, is_inf_attributes, infer_question, compute_is_inf, NULL),
    ENTRY(IsNaN, 9, no_attributes, infer_question, compute_is_nan, NULL),
    ENTRY(Shrink, 9, spec_Shrink.parameters, infer_Shrink, compute_Shrink, NULL),
    {0},
};
// clang-format on
