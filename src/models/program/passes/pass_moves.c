// program/passes/pass_moves.c — a Transpose that leaves all elements in order becomes a Reshape,
// which costs nothing: it moves extents of 1 only, or takes another Transpose back.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/view.h"

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    rondo_program *program = rewriting->program;
    const rondo__node *node = &program->nodes[n];
    rondo_shape shape;
    if (!rondo__node_is(node, RONDO__OP_Transpose) ||
        !rondo__value_get_shape(&program->values[node->outputs[0]], &shape)) {
        return RONDO_STATUS_OK;
    }
    const int32_t value = node->outputs[0];
    rondo__view view;
    rondo__view_trace(program, value, false, &view);
    if (view.base == value || !rondo__view_is_whole(program, &view)) {
        return RONDO_STATUS_OK;
    }
    rewriting->remove[n] = true;
    return rondo__program_add_reshape(program, view.base, value, &shape);
}

rondo_status rondo__pass_moves(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
