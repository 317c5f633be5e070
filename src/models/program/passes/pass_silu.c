// program/passes/pass_silu.c — names the pattern x * sigmoid(x), so that it can end what makes x.
//
// In a plan, where types are known: rondo.Elementwise computes in f32, which f64 would notice; and
// half precision has judged Sigmoid and Mul by then.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// The Mul of x and sigmoid(x), if sigmoid(x) has no other user; -1: none.
static int32_t find_product(const rondo__rewriting *rewriting, const rondo__node *sigmoid) {
    const int32_t x = sigmoid->inputs[0], made = sigmoid->outputs[0];
    const int32_t user = rondo__uses_get_single(&rewriting->uses, made);
    if (user < 0 || !rondo__node_is(&rewriting->program->nodes[user], RONDO__OP_Mul)) {
        return -1;
    }
    const int32_t *inputs = rewriting->program->nodes[user].inputs;
    return (inputs[0] == x && inputs[1] == made) || (inputs[0] == made && inputs[1] == x) ? user
                                                                                          : -1;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    static const char *const names[] = {"Silu"};
    static const int64_t operands[] = {0, -1, -1};
    static const float zero = 0.0f;
    rondo_program *program = rewriting->program;
    const rondo__node *sigmoid = &program->nodes[n];
    if (!rondo__node_is(sigmoid, RONDO__OP_Sigmoid) ||
        !rondo__match_is_f32_or_f16(program, sigmoid->outputs[0])) {
        return RONDO_STATUS_OK;
    }
    const int32_t x = sigmoid->inputs[0], product = find_product(rewriting, sigmoid);
    if (product < 0) {
        return RONDO_STATUS_OK;
    }
    const int32_t result = program->nodes[product].outputs[0];
    rewriting->remove[product] = true;
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "Elementwise",
                                              program->nodes[product].op.name, &x, 1, &result, 1));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    RETURN_IF_ERROR(rondo__op_set_strings(op, "ops", names, 1));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "operands", operands, 3));
    RETURN_IF_ERROR(rondo__op_set_floats(op, "alphas", &zero, 1));
    return rondo__op_set_floats(op, "betas", &zero, 1);
}

rondo_status rondo__pass_silu(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
