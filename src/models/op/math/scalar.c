// op/math/scalar.c — the scalar functions behind activations and rondo.Elementwise, in f32.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/fused/fused.h"

static float sigmoid(float x) {
    // Two forms, so that exp never overflows.
    if (x >= 0.0f) {
        return 1.0f / (1.0f + expf(-x));
    }
    const float e = expf(x);
    return e / (1.0f + e);
}

// Both in double: for x below -3 the sum nearly cancels.
static float gelu_tanh(float x) {
    const double wide = (double)x;
    return (float)(0.5 * wide *
                   (1.0 + tanh(0.79788456080286536 * (wide + 0.044715 * wide * wide * wide))));
}

static float gelu(float x) {
    const double wide = (double)x;
    return (float)(0.5 * wide * (1.0 + erf(wide * 0.70710678118654752)));
}

static float clip(float x, float low, float high) {
    // NaN stays NaN: both comparisons are false.
    if (x < low) {
        x = low;
    }
    return x > high ? high : x;
}

// Maximum and minimum that hand NaN on, as ONNX (numpy) does; fmaxf would drop it.
static float maximum(float a, float b) {
    return isnan(a) || a > b ? a : b;
}

static float minimum(float a, float b) {
    return isnan(a) || a < b ? a : b;
}

static int parse(const char *text, const char *const *names, int count) {
    for (int i = 0; text != NULL && i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

int rondo__activation_parse(const char *text) {
#define ACTIVATION_TEXT(name, text) text,
    static const char *const names[] = {RONDO_ACTIVATION_MAP(ACTIVATION_TEXT)};
#undef ACTIVATION_TEXT
    return parse(text, names, RONDO__ACTIVATION_COUNT);
}

float rondo__activation_apply(rondo__activation activation, float alpha, float beta, float x) {
    switch (activation) {
        case RONDO__ACTIVATION_NONE:
        case RONDO__ACTIVATION_COUNT:
            return x;
        case RONDO__ACTIVATION_RELU:
            return x < 0.0f ? 0.0f : x;
        case RONDO__ACTIVATION_CLIP:
            return clip(x, alpha, beta);
        case RONDO__ACTIVATION_LEAKY_RELU:
            return x < 0.0f ? alpha * x : x;
        case RONDO__ACTIVATION_SIGMOID:
            return sigmoid(x);
        case RONDO__ACTIVATION_TANH:
            return tanhf(x);
        case RONDO__ACTIVATION_GELU:
            return gelu(x);
        case RONDO__ACTIVATION_SILU:
            return x * sigmoid(x);
        case RONDO__ACTIVATION_HARD_SWISH:
            return x * clip(x / 6.0f + 0.5f, 0.0f, 1.0f);
        case RONDO__ACTIVATION_GELU_TANH:
            return gelu_tanh(x);
    }
    return x;
}

int rondo__scalar_op_parse(const char *text) {
#define SCALAR_TEXT(name, operands, op) #name,
    static const char *const names[] = {RONDO_SCALAR_OP_MAP(SCALAR_TEXT)};
#undef SCALAR_TEXT
    return parse(text, names, RONDO__SCALAR_COUNT);
}

int rondo__scalar_op_of(rondo__op_id op) {
#define SCALAR_OF(name, operands, op) op,
    static const rondo__op_id ops[] = {RONDO_SCALAR_OP_MAP(SCALAR_OF)};
#undef SCALAR_OF
    int code = RONDO__SCALAR_COUNT - 1;
    while (code >= 0 && (op == RONDO__OP_NONE || ops[code] != op)) {
        --code;
    }
    return code;
}

int rondo__scalar_op_get_operand_count(rondo__scalar_op op) {
#define SCALAR_OPERANDS(name, operands, op) operands,
    static const int counts[] = {RONDO_SCALAR_OP_MAP(SCALAR_OPERANDS)};
#undef SCALAR_OPERANDS
    return (int)op >= 0 && op < RONDO__SCALAR_COUNT ? counts[op] : 0;
}

float rondo__scalar_op_apply(rondo__scalar_op op, float alpha, float beta, float a, float b) {
    switch (op) {
        case RONDO__SCALAR_Add:
            return a + b;
        case RONDO__SCALAR_Sub:
            return a - b;
        case RONDO__SCALAR_Mul:
            return a * b;
        case RONDO__SCALAR_Div:
            return a / b;
        case RONDO__SCALAR_Max:
            return maximum(a, b);
        case RONDO__SCALAR_Min:
            return minimum(a, b);
        case RONDO__SCALAR_Pow:
            return powf(a, b);
        case RONDO__SCALAR_Gate:
            return a <= 0.0f ? 0.0f : b;
        case RONDO__SCALAR_Relu:
            return a < 0.0f ? 0.0f : a;
        case RONDO__SCALAR_Sigmoid:
            return sigmoid(a);
        case RONDO__SCALAR_Tanh:
            return tanhf(a);
        case RONDO__SCALAR_Erf:
            return erff(a);
        case RONDO__SCALAR_Exp:
            return expf(a);
        case RONDO__SCALAR_Log:
            return logf(a);
        case RONDO__SCALAR_Sqrt:
            return sqrtf(a);
        case RONDO__SCALAR_Neg:
            return -a;
        case RONDO__SCALAR_Abs:
            return fabsf(a);
        case RONDO__SCALAR_Reciprocal:
            return 1.0f / a;
        case RONDO__SCALAR_Floor:
            return floorf(a);
        case RONDO__SCALAR_Ceil:
            return ceilf(a);
        case RONDO__SCALAR_Softplus:
            // log(1 + e^a), written so that a large `a` does not overflow.
            return (a > 0.0f ? a : 0.0f) + log1pf(expf(-fabsf(a)));
        case RONDO__SCALAR_GeluTanh:
            return gelu_tanh(a);
        case RONDO__SCALAR_Gelu:
            return gelu(a);
        case RONDO__SCALAR_Silu:
            return a * sigmoid(a);
        case RONDO__SCALAR_HardSwish:
            return a * clip(a / 6.0f + 0.5f, 0.0f, 1.0f);
        case RONDO__SCALAR_Clip:
            return clip(a, alpha, beta);
        case RONDO__SCALAR_LeakyRelu:
            return a < 0.0f ? alpha * a : a;
        case RONDO__SCALAR_Elu:
            return a < 0.0f ? alpha * expm1f(a) : a;
        case RONDO__SCALAR_HardSigmoid:
            return clip(alpha * a + beta, 0.0f, 1.0f);
        case RONDO__SCALAR_Affine:
            return alpha * a + beta;
        case RONDO__SCALAR_Saturate:
            return isfinite(a) ? clip(a, -65504.0f, 65504.0f) : a;
        case RONDO__SCALAR_COUNT:
            break;
    }
    return a;
}
