// program/passes/pass_batch_end.c — BatchNormalization in training writes what an Add and a Relu
// behind it make, so that neither reads what it wrote.
//
//   y = rondo.BatchNormalization(x, scale, shift, mean, variance)
//   z = Relu(y), or Relu(Add(y, w))      becomes one node, with w as input 5 and attribute relu
//
// Nobody else reads y or the sum: the way back goes by z. Behind layouts, which w follows alone,
// and before chains of element-wise ops.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

// Those of node `n` for the last node, and relu.
static rondo_status copy_attributes(rondo_program *program, size_t n) {
    const rondo__op *from = &program->nodes[n].op;
    rondo__op *to = &program->nodes[program->node_count - 1].op;
    const int64_t is_last = rondo__op_get_int(from, "channels_last", 0);
    program->nodes[program->node_count - 1].precision = program->nodes[n].precision;
    RETURN_IF_ERROR(
        rondo__op_set_float(to, "epsilon", rondo__op_get_float(from, "epsilon", 1e-5f)));
    RETURN_IF_ERROR(
        rondo__op_set_float(to, "momentum", rondo__op_get_float(from, "momentum", 0.9f)));
    if (is_last != 0) {
        RETURN_IF_ERROR(rondo__op_set_int(to, "channels_last", is_last));
    }
    return rondo__op_set_int(to, "relu", 1);
}

static bool are_alike(const rondo_program *program, int32_t a, int32_t b) {
    rondo_shape first, second;
    return program->values[a].dtype == program->values[b].dtype &&
           rondo__value_get_shape(&program->values[a], &first) &&
           rondo__value_get_shape(&program->values[b], &second) &&
           rondo_shape_is_equal(&first, &second);
}

// What an addition adds to y, where it comes before the norm `n` and so is not made of what that
// puts out beside y; NONE: it is something else. Nodes that this walk has made stand for earlier
// norms.
static int32_t find_added(const rondo__rewriting *r, size_t n, const rondo__node *sum, int32_t y) {
    const int32_t other = sum->inputs[sum->inputs[0] == y ? 1 : 0];
    const int32_t maker = other >= 0 ? r->program->values[other].producer : -1;
    const bool is_before = maker < (int32_t)n || maker >= (int32_t)r->node_count;
    return other >= 0 && other != y && is_before && are_alike(r->program, y, other) &&
                   are_alike(r->program, y, sum->outputs[0])
               ? other
               : RONDO__VALUE_NONE;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *norm = &program->nodes[n];
    if (!rondo__node_is(norm, RONDO__FUSED_BatchNormalization) || norm->input_count != 5) {
        return RONDO_STATUS_OK;
    }
    const int32_t y = norm->outputs[0];
    int32_t sum = rondo__uses_get_single(&r->uses, y);
    int32_t added = RONDO__VALUE_NONE;
    int32_t end = sum;
    if (sum >= 0 && !r->remove[sum] && rondo__node_is(&program->nodes[sum], RONDO__OP_Add)) {
        added = find_added(r, n, &program->nodes[sum], y);
        end = added >= 0 ? rondo__uses_get_single(&r->uses, program->nodes[sum].outputs[0]) : -1;
    }
    if (end < 0 || r->remove[end] || !rondo__node_is(&program->nodes[end], RONDO__OP_Relu) ||
        !are_alike(program, y, program->nodes[end].outputs[0])) {
        return RONDO_STATUS_OK;
    }
    int32_t inputs[6], outputs[5];
    memcpy(inputs, norm->inputs, 5 * sizeof *inputs);
    inputs[5] = added;
    const size_t output_count = norm->output_count;
    memcpy(outputs, norm->outputs, output_count * sizeof *outputs);
    outputs[0] = program->nodes[end].outputs[0];
    r->remove[n] = r->remove[sum] = r->remove[end] = true;
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "BatchNormalization", norm->op.name,
                                              inputs, added >= 0 ? 6 : 5, outputs, output_count));
    return copy_attributes(program, n);
}

rondo_status rondo__pass_batch_end(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
