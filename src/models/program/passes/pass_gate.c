// program/passes/pass_gate.c — the gradient of a Relu, Where(x <= 0, 0, dy), becomes one op of
// rondo.Elementwise, so that chains take it in and no bools go through memory.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// x of x <= 0, which is of the shape of `like`; NONE: it is something else.
static int32_t find_gate(const rondo_program *program, int32_t condition, int32_t like) {
    const int32_t maker = condition >= 0 ? program->values[condition].producer : -1;
    const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
    rondo_shape x, y;
    const bool is = node != NULL && rondo__node_is(node, RONDO__OP_LessOrEqual) &&
                    rondo__match_is_number(program, node->inputs[1], 0.0f) &&
                    rondo__match_is_f32_or_f16(program, node->inputs[0]) &&
                    rondo__value_get_shape(&program->values[node->inputs[0]], &x) &&
                    rondo__value_get_shape(&program->values[like], &y) &&
                    rondo_shape_is_equal(&x, &y);
    return is ? node->inputs[0] : RONDO__VALUE_NONE;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    static const char *const names[] = {"Gate"};
    static const int64_t operands[] = {0, 1, -1};
    static const float zero = 0.0f;
    rondo_program *program = rewriting->program;
    const rondo__node *where = &program->nodes[n];
    if (!rondo__node_is(where, RONDO__OP_Where) || where->input_count != 3 ||
        !rondo__match_is_number(program, where->inputs[1], 0.0f) ||
        !rondo__match_is_f32_or_f16(program, where->inputs[2])) {
        return RONDO_STATUS_OK;
    }
    const int32_t result = where->outputs[0];
    const int32_t inputs[2] = {find_gate(program, where->inputs[0], result), where->inputs[2]};
    rondo_shape own, whole;
    if (inputs[0] < 0 || !rondo__value_get_shape(&program->values[inputs[1]], &own) ||
        !rondo__value_get_shape(&program->values[result], &whole) ||
        !rondo_shape_is_equal(&own, &whole)) {
        return RONDO_STATUS_OK;
    }
    const bool is_half = rondo__match_dtype(program, result) == RONDO_DTYPE_F16;
    rewriting->remove[n] = true;
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "Elementwise", where->op.name,
                                              inputs, 2, &result, 1));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    RETURN_IF_ERROR(rondo__op_set_strings(op, "ops", names, 1));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "operands", operands, 3));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "alphas", &zero, 1));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "betas", &zero, 1));
    return rondo__op_set_int(op, "to", is_half ? 10 : 1);
}

rondo_status rondo__pass_gate(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
