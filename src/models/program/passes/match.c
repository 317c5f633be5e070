// program/passes/match.c — see match.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/passes/match.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "program/edit.h"
#include "tensor/elements.h"

const rondo__node *rondo__match_maker(const rondo_program *program, int32_t value,
                                      rondo__op_id op) {
    const int32_t maker = value >= 0 ? program->values[value].producer : -1;
    return maker >= 0 && rondo__node_is(&program->nodes[maker], op) ? &program->nodes[maker] : NULL;
}

int32_t rondo__match_input(const rondo__node *node, size_t index) {
    return index < node->input_count ? node->inputs[index] : RONDO__VALUE_NONE;
}

rondo_dtype rondo__match_dtype(const rondo_program *program, int32_t value) {
    const rondo__value *v = &program->values[value];
    return rondo__value_is_constant(v) ? v->constant.dtype : v->dtype;
}

bool rondo__match_is_f32_or_f16(const rondo_program *program, int32_t value) {
    return rondo__dtype_is_f32_or_f16(rondo__match_dtype(program, value));
}

int64_t rondo__match_count(const rondo_program *program, int32_t value) {
    rondo_shape shape;
    return rondo__value_get_shape(&program->values[value], &shape) ? rondo_shape_get_count(&shape)
                                                                   : -1;
}

const rondo_tensor *rondo__match_constant(const rondo_program *program, int32_t value) {
    const rondo_tensor *tensor = value >= 0 ? &program->values[value].constant : NULL;
    return tensor != NULL && tensor->dtype != RONDO_DTYPE_NONE ? tensor : NULL;
}

const float *rondo__match_floats(const rondo_program *program, int32_t value, int64_t count) {
    if (value < 0 || program->values[value].constant.dtype != RONDO_DTYPE_F32 ||
        rondo_shape_get_count(&program->values[value].constant.shape) != count) {
        return NULL;
    }
    return program->values[value].constant.data;
}

bool rondo__match_scalar(const rondo_program *program, int32_t value, float *out_value) {
    if (value < 0) {
        return false;
    }
    const rondo_tensor *tensor = &program->values[value].constant;
    if (tensor->dtype == RONDO_DTYPE_NONE || rondo_shape_get_count(&tensor->shape) != 1) {
        return false;
    }
    if (tensor->dtype == RONDO_DTYPE_F32) {
        *out_value = *(const float *)tensor->data;
        return true;
    }
    if (tensor->dtype == RONDO_DTYPE_F16) {
        *out_value = rondo_f16_to_float(*(const uint16_t *)tensor->data);
        return true;
    }
    return false;
}

bool rondo__match_is_number(const rondo_program *program, int32_t value, float number) {
    float found;
    return rondo__match_scalar(program, value, &found) && found == number;
}

// Bounds of Clip: attributes before opset 11, whose defaults are the greatest floats; inputs from
// then on, and an absent one is no bound. False when a bound is not known ahead, or is NaN, which
// would have to win over everything.
static bool match_clip(const rondo_program *program, const rondo__node *node, float *out_min,
                       float *out_max) {
    const bool has_attributes = node->op.opset < 11;
    *out_min = has_attributes ? rondo__op_get_float(&node->op, "min", -FLT_MAX) : -INFINITY;
    *out_max = has_attributes ? rondo__op_get_float(&node->op, "max", FLT_MAX) : INFINITY;
    if (node->input_count > 1 && node->inputs[1] >= 0 &&
        !rondo__match_scalar(program, node->inputs[1], out_min)) {
        return false;
    }
    if (node->input_count > 2 && node->inputs[2] >= 0 &&
        !rondo__match_scalar(program, node->inputs[2], out_max)) {
        return false;
    }
    return !isnan(*out_min) && !isnan(*out_max);
}

// A rondo.Elementwise of one op without numbers and one input, as the passes that name patterns and
// the one for f16 make it.
static bool match_single_elementwise(const rondo__node *node, rondo__scalar_op *out_op) {
    if (!rondo__node_is(node, RONDO__FUSED_Elementwise) || node->input_count != 1) {
        return false;
    }
    const rondo__attribute *ops = rondo__op_find(&node->op, "ops");
    const int parsed = ops != NULL && ops->kind == RONDO__ATTRIBUTE_STRINGS && ops->count == 1
                           ? rondo__scalar_op_parse(ops->strings[0])
                           : -1;
    *out_op = (rondo__scalar_op)parsed;
    return parsed == RONDO__SCALAR_Gelu || parsed == RONDO__SCALAR_GeluTanh ||
           parsed == RONDO__SCALAR_Silu || parsed == RONDO__SCALAR_Saturate;
}

// The same of two inputs: Gate.
static bool match_gate(const rondo__node *node) {
    if (!rondo__node_is(node, RONDO__FUSED_Elementwise) || node->input_count != 2) {
        return false;
    }
    const rondo__attribute *ops = rondo__op_find(&node->op, "ops");
    return ops != NULL && ops->kind == RONDO__ATTRIBUTE_STRINGS && ops->count == 1 &&
           rondo__scalar_op_parse(ops->strings[0]) == RONDO__SCALAR_Gate;
}

// Those, and ONNX's Gelu, which is one of two.
static bool match_named(const rondo__node *node, rondo__scalar_op *out_op) {
    if (rondo__node_is(node, RONDO__OP_Gelu)) {
        const char *approximate = rondo__op_get_string(&node->op, "approximate", "none");
        *out_op = strcmp(approximate, "none") != 0 ? RONDO__SCALAR_GeluTanh : RONDO__SCALAR_Gelu;
        return true;
    }
    return match_single_elementwise(node, out_op);
}

bool rondo__match_activation(const rondo_program *program, const rondo__node *node,
                             rondo__activation *out_activation, float *out_alpha, float *out_beta) {
    rondo__scalar_op named;
    *out_alpha = 0.0f;
    *out_beta = 0.0f;
    if (match_named(node, &named) && named != RONDO__SCALAR_Saturate) {
        *out_activation = named == RONDO__SCALAR_Gelu       ? RONDO__ACTIVATION_GELU
                          : named == RONDO__SCALAR_GeluTanh ? RONDO__ACTIVATION_GELU_TANH
                                                            : RONDO__ACTIVATION_SILU;
        return true;
    }
    switch (node->op.def->id) {
        case RONDO__OP_Relu:
            *out_activation = RONDO__ACTIVATION_RELU;
            return true;
        case RONDO__OP_Sigmoid:
            *out_activation = RONDO__ACTIVATION_SIGMOID;
            return true;
        case RONDO__OP_Tanh:
            *out_activation = RONDO__ACTIVATION_TANH;
            return true;
        case RONDO__OP_HardSwish:
            *out_activation = RONDO__ACTIVATION_HARD_SWISH;
            return true;
        case RONDO__OP_LeakyRelu:
            *out_activation = RONDO__ACTIVATION_LEAKY_RELU;
            *out_alpha = rondo__op_get_float(&node->op, "alpha", 0.01f);
            return true;
        case RONDO__OP_Clip:
            *out_activation = RONDO__ACTIVATION_CLIP;
            return match_clip(program, node, out_alpha, out_beta);
        default:
            return false;
    }
}

const char *rondo__match_activation_name(rondo__activation activation) {
    static const char *const names[] = {
#define RONDO_ACTIVATION_NAME(name, text) text,
        RONDO_ACTIVATION_MAP(RONDO_ACTIVATION_NAME)
#undef RONDO_ACTIVATION_NAME
    };
    return names[activation];
}

const char *rondo__match_scalar_name(rondo__scalar_op op) {
    static const char *const names[] = {
#define RONDO_SCALAR_OP_NAME(name, operands, op) #name,
        RONDO_SCALAR_OP_MAP(RONDO_SCALAR_OP_NAME)
#undef RONDO_SCALAR_OP_NAME
    };
    return names[op];
}

// Two operands of which one is a scalar constant become one operand with numbers.
static bool match_affine(rondo__op_id op, bool is_constant_first, float c, float *out_alpha,
                         float *out_beta) {
    if (op == RONDO__OP_Add) {
        *out_alpha = 1.0f;
        *out_beta = c;
        return true;
    }
    if (op == RONDO__OP_Mul) {
        *out_alpha = c;
        *out_beta = -0.0f;  // which leaves the sign of a zero as it is
        return true;
    }
    if (op == RONDO__OP_Sub) {
        *out_alpha = is_constant_first ? -1.0f : 1.0f;
        *out_beta = is_constant_first ? c : -c;
        return true;
    }
    return false;
}

bool rondo__match_scalar_op(const rondo_program *program, const rondo__node *node,
                            rondo__scalar_op *out_op, int32_t *out_first, int32_t *out_second,
                            float *out_alpha, float *out_beta) {
    *out_first = 0;
    *out_second = -1;
    *out_alpha = 0.0f;
    *out_beta = 0.0f;
    if (match_named(node, out_op)) {
        return true;
    }
    if (match_gate(node)) {
        *out_op = RONDO__SCALAR_Gate;
        *out_second = 1;
        return true;
    }
    const rondo__op_id id = node->op.def->id;
    if (id == RONDO__OP_Cast) {  // between f16 and f32, where callers look at types
        *out_op = RONDO__SCALAR_Affine;
        *out_alpha = 1.0f;
        *out_beta = -0.0f;  // which leaves the sign of a zero as it is
        return true;
    }
    const int scalar = rondo__scalar_op_of(id);
    if (scalar < 0 || node->output_count != 1) {
        return false;
    }
    *out_op = (rondo__scalar_op)scalar;
    if (id == RONDO__OP_Clip) {
        return match_clip(program, node, out_alpha, out_beta);
    }
    int operands = rondo__scalar_op_get_operand_count(*out_op);
    if (operands == 1) {
        if (id == RONDO__OP_LeakyRelu || id == RONDO__OP_Elu || id == RONDO__OP_HardSigmoid) {
            const float alpha = id == RONDO__OP_LeakyRelu ? 0.01f
                                : id == RONDO__OP_Elu     ? 1.0f
                                                          : 0.2f;
            *out_alpha = rondo__op_get_float(&node->op, "alpha", alpha);
            *out_beta =
                rondo__op_get_float(&node->op, "beta", id == RONDO__OP_HardSigmoid ? 0.5f : 0.0f);
        }
        return node->input_count == 1;
    }
    if (node->input_count != 2 || node->inputs[0] < 0 || node->inputs[1] < 0) {
        return false;
    }
    float c;
    for (int32_t k = 0; k < 2; ++k) {
        rondo_shape mine;
        rondo_shape result;
        // A scalar of higher rank than the other operand would raise the result's rank: not an
        // affine map then.
        if (rondo__match_scalar(program, node->inputs[k], &c) &&
            rondo__value_get_shape(&program->values[node->inputs[1 - k]], &mine) &&
            rondo__value_get_shape(&program->values[node->outputs[0]], &result) &&
            rondo_shape_is_equal(&mine, &result) &&
            match_affine(id, k == 0, c, out_alpha, out_beta)) {
            *out_op = RONDO__SCALAR_Affine;
            *out_first = 1 - k;
            return true;
        }
    }
    *out_second = 1;
    return true;
}

bool rondo__match_inference_norm(const rondo__node *norm) {
    bool is_training = rondo__op_trains(&norm->op);
    for (size_t i = 1; i < norm->output_count; ++i) {
        is_training = is_training || norm->outputs[i] >= 0;
    }
    return !is_training && norm->input_count == 5;
}

bool rondo__match_channel_constant(const rondo_program *program, int32_t value,
                                   const rondo_shape *result) {
    const rondo_tensor *c = &program->values[value].constant;
    if (c->dtype != RONDO_DTYPE_F32 && c->dtype != RONDO_DTYPE_F16) {
        return false;
    }
    int32_t channel_axis = c->shape.rank - result->rank + 1;  // of the constant
    if (channel_axis < 0 || c->shape.rank > result->rank ||
        rondo_shape_get_count(&c->shape) != result->extent[1]) {
        return false;
    }
    return c->shape.extent[channel_axis] == result->extent[1];
}
