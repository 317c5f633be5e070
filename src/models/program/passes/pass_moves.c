// program/passes/pass_moves.c — a Transpose that leaves all elements in order becomes a Reshape,
// which costs nothing: it moves extents of 1 only, or takes another Transpose back.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/view.h"

// Whether the node moves extents of 1 only.
static bool keeps_order(const rondo_program *program, const rondo__node *node) {
    rondo_shape shape;
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    int64_t last = -1;
    if (!rondo__value_get_shape(&program->values[node->inputs[0]], &shape) || perm == NULL ||
        count != (size_t)shape.rank) {
        return false;
    }
    for (size_t d = 0; d < count; ++d) {
        if (shape.extent[perm[d]] != 1) {
            if (perm[d] < last) {
                return false;
            }
            last = perm[d];
        }
    }
    return true;
}

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
    // What is a part of something else may still be the whole of what the node reads.
    const bool is_whole = view.base != value && rondo__view_is_whole(program, &view);
    if (!is_whole && !keeps_order(program, node)) {
        return RONDO_STATUS_OK;
    }
    const int32_t base = is_whole ? view.base : node->inputs[0];
    rewriting->remove[n] = true;
    return rondo__program_add_reshape(program, base, value, &shape);
}

rondo_status rondo__pass_moves(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
