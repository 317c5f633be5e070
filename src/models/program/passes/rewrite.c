// program/passes/rewrite.c — see rewrite.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/passes/rewrite.h"

#include "base/memory.h"

rondo_status rondo__program_finish_rewrite(rondo_program *program, const bool *remove,
                                           size_t remove_count, rondo_status status) {
    rondo__program_remove_nodes(program, remove, remove_count);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_verify(program);
    }
    return status == RONDO_STATUS_OK ? rondo__program_remove_dead(program) : status;
}

rondo_status rondo__program_rewrite(rondo_program *program, rondo__node_rewriter rewrite) {
    rondo__rewriting r = {.program = program, .node_count = program->node_count};
    rondo_status status = rondo__uses_init(program, &r.uses);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    r.remove = rondo__calloc(r.node_count + 1, sizeof *r.remove);
    if (r.remove == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_uses;
    }
    for (size_t n = 0; n < r.node_count && status == RONDO_STATUS_OK; ++n) {
        status = rewrite(&r, n);
    }
    status = rondo__program_finish_rewrite(program, r.remove, r.node_count, status);
    rondo__free(r.remove);

free_uses:
    rondo__uses_deinit(&r.uses);
    return status;
}

int32_t rondo__rewriting_get_maker(const rondo__rewriting *r, int32_t value) {
    const int32_t maker = value >= 0 ? r->program->values[value].producer : -1;
    const bool is_own =
        maker >= 0 && !r->remove[maker] && rondo__uses_get_single(&r->uses, value) >= 0;
    return is_own ? maker : -1;
}

void rondo__node_become(rondo__node *node, rondo__op *op, int32_t *inputs, size_t input_count) {
    op->name = node->op.name;
    node->op.name = NULL;
    rondo__op_deinit(&node->op);
    node->op = *op;
    rondo__free(node->inputs);
    node->inputs = inputs;
    node->input_count = input_count;
    node->explicit_count = input_count;
}
