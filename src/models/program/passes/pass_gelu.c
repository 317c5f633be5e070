// program/passes/pass_gelu.c — names the patterns 0.5 * x * (1 + erf(x / sqrt(2))) and 0.5 * x * (1
// + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), however their factors are ordered.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// The other operand of a two-operand node that has `value` on one side; RONDO__VALUE_NONE when it
// has not.
static int32_t get_other(const rondo__node *node, int32_t value) {
    if (node->input_count != 2) {
        return RONDO__VALUE_NONE;
    }
    return node->inputs[0] == value   ? node->inputs[1]
           : node->inputs[1] == value ? node->inputs[0]
                                      : RONDO__VALUE_NONE;
}

static bool is_near(float a, double b) {
    return fabs((double)a - b) <= 1e-4 * fabs(b);
}

// The value x when `node` (an Erf) computes erf(x / sqrt(2)); RONDO__VALUE_NONE otherwise.
static int32_t get_argument(const rondo_program *program, const rondo__node *erf) {
    int32_t maker = program->values[erf->inputs[0]].producer;
    if (maker < 0) {
        return RONDO__VALUE_NONE;
    }
    const rondo__node *scale = &program->nodes[maker];
    float c;
    if (rondo__node_is(scale, RONDO__OP_Div) &&
        rondo__match_scalar(program, scale->inputs[1], &c) && is_near(c, 1.4142135623730951)) {
        return scale->inputs[0];
    }
    if (rondo__node_is(scale, RONDO__OP_Mul)) {
        for (int k = 0; k < 2; ++k) {
            if (rondo__match_scalar(program, scale->inputs[k], &c) &&
                is_near(c, 0.7071067811865476)) {
                return scale->inputs[1 - k];
            }
        }
    }
    return RONDO__VALUE_NONE;
}

// The factor that is no constant when `value` is a product with this one, which it stores;
// RONDO__VALUE_NONE otherwise.
static int32_t get_factor(const rondo_program *program, int32_t value, double constant) {
    const int32_t maker = value >= 0 ? program->values[value].producer : -1;
    float c;
    for (int k = 0; k < 2 && maker >= 0 && rondo__node_is(&program->nodes[maker], RONDO__OP_Mul);
         ++k) {
        const rondo__node *mul = &program->nodes[maker];
        if (rondo__match_scalar(program, mul->inputs[k], &c) && is_near(c, constant)) {
            return mul->inputs[1 - k];
        }
    }
    return RONDO__VALUE_NONE;
}

static bool is_cube(const rondo_program *program, int32_t value, int32_t x) {
    const int32_t maker = value >= 0 ? program->values[value].producer : -1;
    if (maker < 0) {
        return false;
    }
    const rondo__node *node = &program->nodes[maker];
    float c;
    if (rondo__node_is(node, RONDO__OP_Pow)) {
        return node->inputs[0] == x && rondo__match_scalar(program, node->inputs[1], &c) &&
               c == 3.0f;
    }
    const int32_t square =
        rondo__node_is(node, RONDO__OP_Mul) ? get_other(node, x) : RONDO__VALUE_NONE;
    const int32_t of = square >= 0 ? program->values[square].producer : -1;
    return of >= 0 && rondo__node_is(&program->nodes[of], RONDO__OP_Mul) &&
           program->nodes[of].inputs[0] == x && program->nodes[of].inputs[1] == x;
}

// The value x when `node` (a Tanh) computes tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)).
static int32_t get_argument_of_tanh(const rondo_program *program, const rondo__node *tanh) {
    const int32_t sum = get_factor(program, tanh->inputs[0], 0.7978845608028654);
    const int32_t maker = sum >= 0 ? program->values[sum].producer : -1;
    if (maker < 0 || !rondo__node_is(&program->nodes[maker], RONDO__OP_Add)) {
        return RONDO__VALUE_NONE;
    }
    for (int k = 0; k < 2; ++k) {
        const int32_t x = program->nodes[maker].inputs[k];
        const int32_t cube = get_factor(program, program->nodes[maker].inputs[1 - k], 0.044715);
        if (is_cube(program, cube, x)) {
            return x;
        }
    }
    return RONDO__VALUE_NONE;
}

// The node that uses `value` alone and is a Mul or Add; -1 otherwise.
static int32_t get_user(const rondo_program *program, const rondo__uses *uses, int32_t value,
                        rondo__op_id op) {
    int32_t user = rondo__uses_get_single(uses, value);
    return user >= 0 && rondo__node_is(&program->nodes[user], op) ? user : -1;
}

// Follows erf(...), or tanh(...), -> + 1 -> * x -> * 0.5, the last two in either order, or x * 0.5
// made before.
// Returns the value that holds the result, or RONDO__VALUE_NONE.
static int32_t get_result(const rondo_program *program, const rondo__uses *uses,
                          const rondo__node *erf, int32_t x) {
    float c;
    int32_t add = get_user(program, uses, erf->outputs[0], RONDO__OP_Add);
    if (add < 0 ||
        !rondo__match_scalar(program, get_other(&program->nodes[add], erf->outputs[0]), &c) ||
        !is_near(c, 1.0)) {
        return RONDO__VALUE_NONE;
    }
    int32_t current = program->nodes[add].outputs[0];
    bool has_x = false;
    bool has_half = false;
    while (!has_x || !has_half) {
        int32_t mul = get_user(program, uses, current, RONDO__OP_Mul);
        if (mul < 0) {
            return RONDO__VALUE_NONE;
        }
        int32_t other = get_other(&program->nodes[mul], current);
        int32_t maker = other >= 0 ? program->values[other].producer : -1;
        if (!has_x && other == x) {
            has_x = true;
        } else if (!has_half && rondo__match_scalar(program, other, &c) && is_near(c, 0.5)) {
            has_half = true;
        } else if (!has_x && !has_half && maker >= 0 &&
                   rondo__node_is(&program->nodes[maker], RONDO__OP_Mul) &&
                   rondo__match_scalar(program, get_other(&program->nodes[maker], x), &c) &&
                   is_near(c, 0.5)) {
            has_x = true;
            has_half = true;
        } else {
            return RONDO__VALUE_NONE;
        }
        current = program->nodes[mul].outputs[0];
    }
    return current;
}

static rondo_status add_gelu(rondo_program *program, const char *name, int32_t x, int32_t result,
                             uint8_t precision) {
    const char *const names[] = {name};
    const int64_t operands[] = {0, -1, -1};
    RETURN_IF_ERROR(
        rondo__program_add_simple(program, "rondo", "Elementwise", NULL, &x, 1, &result, 1));
    program->nodes[program->node_count - 1].precision = precision;
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    RETURN_IF_ERROR(rondo__op_set_strings(op, "ops", names, 1));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "operands", operands, 3));
    const float zero = 0.0f;
    RETURN_IF_ERROR(rondo__op_set_floats(op, "alphas", &zero, 1));
    return rondo__op_set_floats(op, "betas", &zero, 1);
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    rondo_program *program = rewriting->program;
    const rondo__node *node = &program->nodes[n];
    const bool is_tanh = rondo__node_is(node, RONDO__OP_Tanh);
    if (!is_tanh && !rondo__node_is(node, RONDO__OP_Erf)) {
        return RONDO_STATUS_OK;
    }
    int32_t x = is_tanh ? get_argument_of_tanh(program, node) : get_argument(program, node);
    int32_t result = x >= 0 ? get_result(program, &rewriting->uses, node, x) : RONDO__VALUE_NONE;
    if (result < 0) {
        return RONDO_STATUS_OK;
    }
    // Only the node that made the result is marked; the rest is dead then.
    rewriting->remove[program->values[result].producer] = true;
    return add_gelu(program, is_tanh ? "GeluTanh" : "Gelu", x, result, node->precision);
}

rondo_status rondo__pass_gelu(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
