// program/gradient/gradient_values.c — facts about values while gradients are made.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/draws.h"
#include "program/edit.h"
#include "program/gradient/gradient_parts.h"
#include "program/shapes/specialise.h"

enum { FOLD_COUNT_MAX = 1024 };  // elements of what is computed ahead: shapes, axes

static rondo_status reserve_values(rondo__gradient *g) {
    const size_t count = g->program->value_count;
    if (count <= g->value_count) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(g->values, g->value_capacity, count));
    for (; g->value_count < count; ++g->value_count) {
        rondo__gradient_value *v = &g->values[g->value_count];
        *v = (rondo__gradient_value){.gradient = RONDO__VALUE_NONE,
                                     .again = RONDO__VALUE_NONE,
                                     .original = RONDO__VALUE_NONE};
        rondo__program_get_info(g->program, (int32_t)g->value_count, &v->info);
        v->info.constant = NULL;
    }
    return RONDO_STATUS_OK;
}

// Fills *out_info; a constant's pointer is good until values are added.
void rondo__gradient_get_info(const rondo__gradient *g, int32_t value,
                              rondo__tensor_info *out_info) {
    *out_info = (rondo__tensor_info){0};
    if (value < 0) {
        return;
    }
    if (rondo__value_is_constant(&g->program->values[value])) {
        rondo__program_get_info(g->program, value, out_info);
        return;
    }
    *out_info = g->values[value].info;
    out_info->constant = g->values[value].folded;
}

static bool is_small(const rondo__tensor_info *info) {
    return info->is_shape_known && rondo_shape_get_count(&info->shape) <= FOLD_COUNT_MAX &&
           rondo_dtype_get_bytes(info->dtype) != 0 && info->dtype != RONDO_DTYPE_STRING;
}

// Computes a node of small tensors whose inputs are known.
static rondo_status fold(rondo__gradient *g, const rondo__node *node,
                         const rondo__tensor_info *inputs, const rondo__tensor_info *outputs) {
    enum { INPUTS_MAX = 8 };
    const rondo__op_def *def = node->op.def;
    rondo_tensor shells[INPUTS_MAX];
    const rondo_tensor *tensors[INPUTS_MAX] = {NULL};
    if (node->output_count != 1 || node->input_count > INPUTS_MAX || def->compute == NULL ||
        (def->flags & (RONDO__OP_CONTROL | RONDO__OP_IMPURE)) != 0 || node->outputs[0] < 0 ||
        (outputs[0].is_shape_known && !is_small(&outputs[0])) ||
        rondo__op_draws(&node->op, inputs, node->input_count)) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        shells[i] = (rondo_tensor){.dtype = inputs[i].dtype, .shape = inputs[i].shape};
        const bool reads_shape = (def->flags & RONDO__OP_SHAPE_ONLY) != 0;
        tensors[i] = inputs[i].constant != NULL                ? inputs[i].constant
                     : reads_shape && inputs[i].is_shape_known ? &shells[i]
                                                               : NULL;
        if (node->inputs[i] >= 0 &&
            (tensors[i] == NULL || (!reads_shape && !is_small(&inputs[i])))) {
            return RONDO_STATUS_OK;
        }
    }
    rondo_tensor *result = rondo__calloc(1, sizeof *result);
    if (result == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__compute compute = {.op = &node->op,
                              .input_count = node->input_count,
                              .output_count = 1,
                              .inputs = tensors,
                              .outputs = result};
    const rondo_status status = rondo__op_compute(&compute);
    if (status != RONDO_STATUS_OK) {
        rondo__free(result);
        return status;
    }
    rondo__gradient_value *v = &g->values[node->outputs[0]];
    v->folded = result;
    v->info = (rondo__tensor_info){
        .dtype = result->dtype, .is_shape_known = true, .shape = result->shape};
    return RONDO_STATUS_OK;
}

// Types of what a control op makes, as far as its bodies declare them.
static void infer_control(const rondo__node *node, rondo__tensor_info *outputs) {
    const rondo_program *body = NULL;
    for (size_t a = 0; a < node->op.attribute_count && body == NULL; ++a) {
        body = node->op.attributes[a].body;
    }
    const size_t skipped = rondo__node_is(node, RONDO__OP_Loop) ? 1 : 0;
    for (size_t i = 0; body != NULL && i < node->output_count; ++i) {
        if (i + skipped < body->output_count) {
            const rondo__value *v = &body->values[body->outputs[i + skipped]];
            outputs[i].dtype = rondo__value_is_constant(v) ? v->constant.dtype : v->dtype;
        }
    }
}

static rondo_status infer_node(rondo__gradient *g, const rondo__node *node,
                               rondo__tensor_info *inputs, rondo__tensor_info *outputs) {
    bool are_dtypes_known = true;
    bool all_known = true;
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__gradient_get_info(g, node->inputs[i], &inputs[i]);
        if (node->inputs[i] >= 0) {
            are_dtypes_known = are_dtypes_known && inputs[i].dtype != RONDO_DTYPE_NONE;
            all_known = all_known && inputs[i].is_shape_known;
        }
    }
    rondo__infer infer = {.op = &node->op,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .inputs = inputs,
                          .outputs = outputs};
    if ((node->op.def->flags & RONDO__OP_CONTROL) != 0) {
        infer_control(node, outputs);
        return RONDO_STATUS_OK;
    }
    if (!are_dtypes_known) {
        return RONDO_STATUS_OK;
    }
    return all_known ? rondo__op_infer(&infer) : rondo__op_infer_partial(&infer);
}

rondo_status rondo__gradient_visit(rondo__gradient *g, size_t n) {
    const rondo__node *node = &g->program->nodes[n];
    rondo__tensor_info *infos =
        rondo__calloc(node->input_count + node->output_count + 1, sizeof *infos);
    if (infos == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__tensor_info *outputs = infos + node->input_count;
    rondo_status status = infer_node(g, node, infos, outputs);
    for (size_t i = 0; i < node->output_count && status == RONDO_STATUS_OK; ++i) {
        if (node->outputs[i] >= 0) {
            rondo__tensor_info *info = &g->values[node->outputs[i]].info;
            const rondo_dtype declared = info->dtype;
            if (rondo__info_has_rank(&outputs[i]) || !rondo__info_has_rank(info)) {
                *info = outputs[i];
            }
            info->dtype = outputs[i].dtype != RONDO_DTYPE_NONE ? outputs[i].dtype : declared;
            info->constant = NULL;
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = fold(g, node, infos, outputs);
    }
    rondo__free(infos);
    if (status != RONDO_STATUS_OK) {
        rondo__node_blame(&g->program->nodes[n]);
    }
    return status;
}

void rondo__gradient_settle(rondo__gradient *g) {
    if (g->status == RONDO_STATUS_OK) {
        g->status = reserve_values(g);
    }
    while (g->status == RONDO_STATUS_OK && g->inferred_count < g->program->node_count) {
        g->status = rondo__gradient_visit(g, g->inferred_count);
        g->inferred_count += 1;
    }
}

const rondo__tensor_info *rondo__gradient_info(rondo__gradient *g, int32_t value) {
    static _Thread_local rondo__tensor_info info;
    info = (rondo__tensor_info){0};
    rondo__gradient_settle(g);
    if (g->status == RONDO_STATUS_OK) {
        rondo__gradient_get_info(g, value, &info);
    }
    return &info;
}

void rondo__gradient_deinit(rondo__gradient *g) {
    for (size_t v = 0; v < g->value_count; ++v) {
        if (g->values[v].folded != NULL) {
            rondo_tensor_deinit(g->values[v].folded);
            rondo__free(g->values[v].folded);
        }
    }
    rondo__free(g->values);
}
