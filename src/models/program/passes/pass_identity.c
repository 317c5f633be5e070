// program/passes/pass_identity.c — removes ops that pass their input through: Identity, a Cast to
// the type that is there, and Dropout at inference.
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "program/edit.h"
#include "program/passes/passes.h"
#include "program/shapes/specialise.h"

static bool keeps_type(const rondo_program *program, const rondo__node *node) {
    rondo__tensor_info from, to;
    rondo__program_get_info(program, node->inputs[0], &from);
    rondo__program_get_info(program, node->outputs[0], &to);
    return from.dtype == to.dtype && from.dtype != RONDO_DTYPE_NONE;
}

static bool passes_through(const rondo_program *program, const rondo__node *node,
                           const uint32_t *uses) {
    if (node->input_count < 1 || node->inputs[0] < 0 || node->output_count < 1 ||
        node->outputs[0] < 0) {
        return false;
    }
    for (size_t i = 1; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0 && uses[node->outputs[i]] > 0) {
            return false;
        }
    }
    if (rondo__node_is(node, RONDO__OP_Identity)) {
        return true;
    }
    if (rondo__node_is(node, RONDO__OP_Cast) || rondo__node_is(node, RONDO__OP_CastLike)) {
        return keeps_type(program, node);
    }
    if (!rondo__node_is(node, RONDO__OP_Dropout)) {
        return false;
    }
    // From opset 12 on an input says whether this is training; where it is absent, the executor.
    if (node->input_count < 3 || node->inputs[2] < 0) {
        return !node->op.is_training;
    }
    const rondo__value *training = &program->values[node->inputs[2]];
    return rondo__value_is_constant(training) && training->constant.dtype == RONDO_DTYPE_BOOL &&
           rondo_shape_get_count(&training->constant.shape) == 1 &&
           *(const uint8_t *)training->constant.data == 0;
}

rondo_status rondo__pass_identity(rondo_program *program) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    int32_t *alias = rondo__calloc(program->value_count + 1, sizeof *alias);
    bool *remove = rondo__calloc(program->node_count + 1, sizeof *remove);
    uint32_t *uses = rondo__calloc(program->value_count + 1, sizeof *uses);
    if (alias == NULL || remove == NULL || uses == NULL) {
        goto free_lists;
    }
    rondo__program_count_uses(program, uses);
    for (size_t v = 0; v < program->value_count; ++v) {
        alias[v] = (int32_t)v;
    }
    // Makers precede users, so that chains of identities resolve in one sweep.
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            node->inputs[i] = node->inputs[i] >= 0 ? alias[node->inputs[i]] : node->inputs[i];
        }
        if (passes_through(program, node, uses)) {
            alias[node->outputs[0]] = node->inputs[0];
            remove[n] = true;
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        program->outputs[i] = alias[program->outputs[i]];
    }
    rondo__program_remove_nodes(program, remove, program->node_count);
    status = rondo__program_verify(program);

free_lists:
    rondo__free(alias);
    rondo__free(remove);
    rondo__free(uses);
    return status;
}
