// program/half/half_gathers.c — see half_pass.h.
//
//   w ── AllGather ── Cast ── f16 readers        w ── RoundParts ── AllGather ── f16 readers
//
// A rank rounds its part, all tensors of a gather in one op. Casts to bf16 stay by themselves.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/edit.h"
#include "program/half/half_pass.h"
#include "program/passes/match.h"

enum { GATHERED_MAX = 240 };

// What pass_half makes of a cast to f16.
static bool is_saturating(const rondo__node *node) {
    const rondo__attribute *ops = rondo__op_find(&node->op, "ops");
    return rondo__node_is(node, RONDO__FUSED_Elementwise) && ops != NULL &&
           ops->kind == RONDO__ATTRIBUTE_STRINGS && ops->count == 1 &&
           strcmp(ops->strings[0], "Saturate") == 0;
}

// The node that makes a half form of a value, element by element, if nothing else reads that.
static int32_t find_rounding(const rondo_program *program, const rondo__uses *uses, int32_t value) {
    const int32_t user = value >= 0 ? rondo__uses_get_single(uses, value) : -1;
    const rondo__node *node = user >= 0 ? &program->nodes[user] : NULL;
    const bool is_cast = node != NULL && node->input_count == 1 && node->output_count == 1 &&
                         (rondo__node_is(node, RONDO__OP_Cast) || is_saturating(node));
    const rondo_dtype dtype =
        is_cast ? rondo__match_dtype(program, node->outputs[0]) : RONDO_DTYPE_NONE;
    rondo_shape shape;
    return (dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16) &&
                   rondo__match_dtype(program, value) == RONDO_DTYPE_F32 &&
                   rondo__value_get_shape(&program->values[value], &shape)
               ? user
               : -1;
}

// What is swapped of a gather that reads f32.
typedef struct swapping {
    rondo_program *program;
    bool *remove;  // nodes
    size_t count;
    int32_t inputs[GATHERED_MAX];  // of one rondo.RoundParts for all of a gather
    int32_t outputs[GATHERED_MAX];
} swapping;

// The rounded form gets a new maker; a new value is what is gathered of it.
static rondo_status swap(swapping *s, size_t n, size_t k, size_t rounding) {
    rondo_program *program = s->program;
    const int32_t whole = program->nodes[n].outputs[k];
    const int32_t rounded = program->nodes[rounding].outputs[0];
    const bool is_open = rondo__node_is(&program->nodes[rounding], RONDO__OP_Cast);
    int32_t own;
    rondo_shape shape;
    (void)rondo__value_get_shape(&program->values[whole], &shape);
    RETURN_IF_ERROR(rondo__program_add_shaped(program, program->values[rounded].name,
                                              program->values[rounded].dtype, &shape, &own));
    rondo__node *gather = &program->nodes[n];
    rondo__node *cast = &program->nodes[rounding];
    if (is_open) {
        cast->inputs[0] = gather->inputs[k];
        cast->outputs[0] = own;
        program->values[own].producer = (int32_t)rounding;
    } else {
        cast->outputs[0] = RONDO__VALUE_NONE;
        s->remove[rounding] = true;
        s->inputs[s->count] = gather->inputs[k];
        s->outputs[s->count++] = own;
    }
    gather->inputs[k] = own;
    gather->outputs[k] = rounded;
    program->values[rounded].producer = (int32_t)n;
    program->values[whole].producer = -1;
    return RONDO_STATUS_OK;
}

static rondo_status swap_all(swapping *s, const rondo__uses *uses, size_t node_count) {
    for (size_t n = 0; n < node_count; ++n) {
        const rondo__node *node = &s->program->nodes[n];
        const size_t count =
            rondo__node_is(node, RONDO__FUSED_AllGather) && node->output_count <= GATHERED_MAX
                ? node->output_count
                : 0;
        s->count = 0;
        for (size_t k = 0; k < count; ++k) {
            const int32_t rounding =
                find_rounding(s->program, uses, s->program->nodes[n].outputs[k]);
            if (rounding >= 0) {
                RETURN_IF_ERROR(swap(s, n, k, (size_t)rounding));
            }
        }
        if (s->count > 0) {
            RETURN_IF_ERROR(rondo__program_add_simple(s->program, "rondo", "RoundParts", NULL,
                                                      s->inputs, s->count, s->outputs, s->count));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__half_round_before_gathers(rondo_program *program) {
    const size_t node_count = program->node_count;
    bool has_gathers = false;
    for (size_t n = 0; n < node_count && !has_gathers; ++n) {
        has_gathers = rondo__node_is(&program->nodes[n], RONDO__FUSED_AllGather);
    }
    if (!has_gathers) {
        return RONDO_STATUS_OK;
    }
    rondo__uses uses;
    RETURN_IF_ERROR(rondo__uses_init(program, &uses));
    swapping s = {.program = program, .remove = rondo__calloc(node_count + 1, sizeof(bool))};
    rondo_status status =
        s.remove != NULL ? swap_all(&s, &uses, node_count) : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        rondo__program_remove_nodes(program, s.remove, node_count);
    }
    rondo__free(s.remove);
    rondo__uses_deinit(&uses);
    return status;
}
