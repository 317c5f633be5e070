// program/attention/pass_masked_softmax.c — Softmax, IsNaN and Where, as exporters write attention
// whose mask may leave a row nothing, become rondo.Softmax, which makes such a row zeros.
//
//   shares = Softmax(scores)
//   y      = Where(IsNaN(shares), 0, shares)
//
// A row of a softmax is a number everywhere or nowhere. The values in between must have no other
// user.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// The users of the softmax's result where they are two nodes, and those alone; false otherwise.
static bool find_users(const rondo__rewriting *rewriting, int32_t shares, size_t *out_is_nan,
                       size_t *out_where) {
    const rondo__uses *uses = &rewriting->uses;
    const size_t *users = uses->users + uses->first[shares];
    if (uses->is_output[shares] || uses->first[shares + 1] - uses->first[shares] != 2) {
        return false;
    }
    const rondo__node *nodes = rewriting->program->nodes;
    const bool is_first = rondo__node_is(&nodes[users[0]], RONDO__OP_IsNaN);
    *out_is_nan = users[is_first ? 0 : 1];
    *out_where = users[is_first ? 1 : 0];
    return rondo__node_is(&nodes[*out_is_nan], RONDO__OP_IsNaN) &&
           rondo__node_is(&nodes[*out_where], RONDO__OP_Where) && !rewriting->remove[*out_is_nan] &&
           !rewriting->remove[*out_where];
}

// Whether the value is one 0 that adds no axis to what it is broadcast with.
static bool is_zero(const rondo_program *program, int32_t value, int32_t least_rank) {
    float number;
    return rondo__match_scalar(program, value, &number) && number == 0.0f && !signbit(number) &&
           program->values[value].constant.shape.rank <= least_rank;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    rondo_program *program = rewriting->program;
    rondo__node *softmax = &program->nodes[n];
    size_t is_nan, where;
    if (!rondo__node_is(softmax, RONDO__OP_Softmax) ||
        !find_users(rewriting, softmax->outputs[0], &is_nan, &where)) {
        return RONDO_STATUS_OK;
    }
    const rondo__node *choice = &program->nodes[where];
    const rondo__value *shares = &program->values[softmax->outputs[0]];
    const int32_t least_rank = shares->has_shape ? shares->rank : 0;
    if (choice->input_count != 3 || choice->inputs[0] != program->nodes[is_nan].outputs[0] ||
        choice->inputs[2] != softmax->outputs[0] ||
        rondo__uses_get_single(&rewriting->uses, choice->inputs[0]) != (int32_t)where ||
        !is_zero(program, choice->inputs[1], least_rank) ||
        choice->precision != softmax->precision) {
        return RONDO_STATUS_OK;
    }
    softmax->op.def = rondo__op_get_def(
        RONDO__FUSED_Softmax);  // axis, and what it means at the op's version, stay
    softmax->outputs[0] = choice->outputs[0];
    program->values[softmax->outputs[0]].producer = (int32_t)n;
    rewriting->remove[is_nan] = true;
    rewriting->remove[where] = true;
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_masked_softmax(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
