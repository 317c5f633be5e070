// program/passes/pass_identity.c — removes ops that pass an input through: Identity, a Cast to the
// type that is there, and Dropout at inference; and, as choices, an Expand to the shape that is
// there, a Where whose condition is a constant of all true or all false, a Pad by nothing and a
// Slice of all. Choices go late: gradients are found by their Where (program/backward).
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

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

static bool keeps_shape(const rondo_program *program, int32_t from, int32_t to) {
    rondo_shape shape, result;
    return rondo__value_get_shape(&program->values[from], &shape) &&
           rondo__value_get_shape(&program->values[to], &result) &&
           rondo_shape_is_equal(&shape, &result);
}

// The input that a Where takes whole: 1 or 2, or 0 where it takes from both or does not know yet.
static size_t find_choice(const rondo_program *program, const rondo__node *node) {
    const rondo__value *condition = &program->values[node->inputs[0]];
    if (node->input_count != 3 || !rondo__value_is_constant(condition)) {
        return 0;
    }
    const rondo_tensor *constant = &condition->constant;
    const int64_t count = rondo_shape_get_count(&constant->shape);
    const uint8_t *bytes = constant->data;
    if (constant->dtype != RONDO_DTYPE_BOOL || count < 1 ||
        memcmp(bytes, bytes + 1, (size_t)count - 1) != 0) {
        return 0;
    }
    const size_t choice = bytes[0] != 0 ? 1 : 2;
    return keeps_shape(program, node->inputs[choice], node->outputs[0]) ? choice : 0;
}

// Whether no output but the first is used.
static bool has_one_result(const rondo__node *node, const uint32_t *uses) {
    for (size_t i = 1; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0 && uses[node->outputs[i]] > 0) {
            return false;
        }
    }
    return node->output_count > 0 && node->outputs[0] >= 0;
}

// Whether a constant list of whole numbers has this number alone.
static bool has_only(const rondo_program *program, int32_t value, int64_t number) {
    const rondo_tensor *list = &program->values[value].constant;
    const bool is_wide = list->dtype == RONDO_DTYPE_I64;
    if (!is_wide && list->dtype != RONDO_DTYPE_I32) {
        return false;
    }
    for (int64_t i = 0; i < rondo_shape_get_count(&list->shape); ++i) {
        const int64_t found =
            is_wide ? ((const int64_t *)list->data)[i] : ((const int32_t *)list->data)[i];
        if (found != number) {
            return false;
        }
    }
    return true;
}

// A Pad or Slice, whose lists are inputs, that keeps the shape: it may still move elements.
static bool keeps_elements(const rondo_program *program, const rondo__node *node) {
    if (rondo__node_is(node, RONDO__OP_Pad)) {
        return node->input_count > 1 && node->inputs[1] >= 0 &&
               has_only(program, node->inputs[1], 0);
    }
    return node->input_count > 2 &&
           (node->input_count < 5 || node->inputs[4] < 0 || has_only(program, node->inputs[4], 1));
}

// The value that output 0 of a choice is, or -1.
static int32_t find_chosen(const rondo_program *program, const rondo__node *node) {
    if (rondo__node_is(node, RONDO__OP_Pad) || rondo__node_is(node, RONDO__OP_Slice)) {
        return keeps_shape(program, node->inputs[0], node->outputs[0]) &&
                       keeps_elements(program, node)
                   ? node->inputs[0]
                   : -1;
    }
    if (rondo__node_is(node, RONDO__OP_Expand)) {
        return keeps_shape(program, node->inputs[0], node->outputs[0]) ? node->inputs[0] : -1;
    }
    const size_t choice = rondo__node_is(node, RONDO__OP_Where) ? find_choice(program, node) : 0;
    return choice > 0 ? node->inputs[choice] : -1;
}

// The same of any node.
static int32_t find_source(const rondo_program *program, const rondo__node *node,
                           const uint32_t *uses, bool with_choices) {
    if (node->input_count < 1 || node->inputs[0] < 0 || !has_one_result(node, uses)) {
        return -1;
    }
    const int32_t x = node->inputs[0];
    if (rondo__node_is(node, RONDO__OP_Identity)) {
        return x;
    }
    if (rondo__node_is(node, RONDO__OP_Cast) || rondo__node_is(node, RONDO__OP_CastLike)) {
        return keeps_type(program, node) ? x : -1;
    }
    if (!rondo__node_is(node, RONDO__OP_Dropout)) {
        return with_choices ? find_chosen(program, node) : -1;
    }
    // From opset 12 on an input says whether this is training; where it is absent, the executor.
    if (node->input_count < 3 || node->inputs[2] < 0) {
        return node->op.is_training ? -1 : x;
    }
    const rondo__value *training = &program->values[node->inputs[2]];
    return rondo__value_is_constant(training) && training->constant.dtype == RONDO_DTYPE_BOOL &&
                   rondo_shape_get_count(&training->constant.shape) == 1 &&
                   *(const uint8_t *)training->constant.data == 0
               ? x
               : -1;
}

static rondo_status remove_passing(rondo_program *program, bool with_choices) {
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
        const int32_t source = find_source(program, node, uses, with_choices);
        if (source >= 0) {
            alias[node->outputs[0]] = source;
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

rondo_status rondo__pass_identity(rondo_program *program) {
    return remove_passing(program, false);
}

rondo_status rondo__pass_choices(rondo_program *program) {
    return remove_passing(program, true);
}
