// program/gradient/gradient_values.c — facts about values while gradients are made.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/draws.h"
#include "program/body_view.h"
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

// ---- bodies -------------------------------------------------------------------------------------

enum {
    GIVEN_MAX = 64,  // inputs and outputs of a body; of more only types are known
    DEPTH_MAX = 3,   // of bodies in bodies, likewise: each is gone through for each turn around it
};

// A node with bodies, and the types and shapes of its inputs as far as they are known.
typedef struct control {
    const rondo__node *node;
    const rondo__tensor_info *inputs;
    int depth;
} control;

// Infers a body's outputs from its inputs and captured values. An output whose shape stays unknown
// keeps its type.
static rondo_status infer_body(const control *c, const char *name, const rondo__tensor_info *given,
                               rondo__tensor_info *made) {
    const rondo__gradient_request none = {.y = RONDO__VALUE_NONE};
    rondo__body_view view;
    rondo_program *body = NULL;
    if (!rondo__body_find(c->node, name, &view) ||
        view.attribute->body->declared_count > (given != NULL ? GIVEN_MAX : 0)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__program_clone(view.attribute->body, &body));
    for (size_t i = 0; i < body->input_count; ++i) {
        const size_t captured = view.captured_first + i - body->declared_count;
        const rondo__tensor_info *info =
            i < body->declared_count ? &given[i] : &c->inputs[captured];
        rondo__value_set_info(&body->values[body->inputs[i]], info->dtype, info);
    }
    rondo__gradient inner = {.program = body, .request = &none, .body_depth = c->depth + 1};
    if (c->depth < DEPTH_MAX) {
        rondo__gradient_settle(&inner);
    }
    for (size_t i = 0; i < body->output_count && i < GIVEN_MAX; ++i) {
        const rondo__value *v = &body->values[body->outputs[i]];
        made[i] = (rondo__tensor_info){.dtype = rondo__value_is_constant(v) ? v->constant.dtype
                                                                            : v->dtype};
        if (c->depth < DEPTH_MAX && inner.status == RONDO_STATUS_OK) {
            const rondo_dtype declared = made[i].dtype;
            rondo__gradient_get_info(&inner, body->outputs[i], &made[i]);
            made[i].dtype = made[i].dtype != RONDO_DTYPE_NONE ? made[i].dtype : declared;
            made[i].constant = NULL;
        }
    }
    const rondo_status status = inner.status;
    rondo__gradient_deinit(&inner);
    rondo_program_destroy(body);
    return status == RONDO_STATUS_NO_MEMORY ? status : RONDO_STATUS_OK;
}

// `count` of it, one behind the other.
static rondo__tensor_info stack(const rondo__tensor_info *row) {
    rondo__tensor_info rows = {.dtype = row->dtype};
    if (rondo__info_has_rank(row) && row->shape.rank < RONDO_RANK_MAX) {
        rows.is_rank_known = true;
        rows.shape.rank = row->shape.rank + 1;
        rows.shape.extent[0] = -1;
        memcpy(rows.shape.extent + 1, row->shape.extent,
               (size_t)row->shape.rank * sizeof row->shape.extent[0]);
    }
    return rows;
}

static rondo__tensor_info take_row(const rondo__tensor_info *rows) {
    rondo__tensor_info row = *rows;
    row.constant = NULL;
    row.shape.rank = rows->shape.rank > 0 ? rows->shape.rank - 1 : 0;
    memmove(row.shape.extent, row.shape.extent + 1,
            (size_t)row.shape.rank * sizeof row.shape.extent[0]);
    return row;
}

static bool is_same(const rondo__tensor_info *a, const rondo__tensor_info *b) {
    return a->dtype == b->dtype && rondo__info_has_rank(a) == rondo__info_has_rank(b) &&
           rondo_shape_is_equal(&a->shape, &b->shape);
}

// A carried value has the type and shape that it has both before the first turn and after each.
//
// given, made    room for GIVEN_MAX.
static rondo_status infer_turns(const control *c, size_t carried, rondo__tensor_info *given,
                                rondo__tensor_info *made, rondo__tensor_info *outputs) {
    const bool is_loop = rondo__node_is(c->node, RONDO__OP_Loop);
    const size_t first = is_loop ? 2 : 0;    // of the carried inputs, of node and body
    const size_t skipped = is_loop ? 1 : 0;  // outputs of the body before theirs
    if (c->node->explicit_count > GIVEN_MAX || c->node->output_count + skipped > GIVEN_MAX) {
        return RONDO_STATUS_OK;
    }
    given[0] = (rondo__tensor_info){.dtype = RONDO_DTYPE_I64, .is_shape_known = true};
    given[1] = (rondo__tensor_info){.dtype = RONDO_DTYPE_BOOL, .is_shape_known = true};
    for (size_t i = first; i < c->node->explicit_count; ++i) {
        given[i] = i < first + carried ? c->inputs[i] : take_row(&c->inputs[i]);
        given[i].constant = NULL;
    }
    bool is_settled = false;
    for (int turn = 0; turn < RONDO_RANK_MAX + 2 && !is_settled; ++turn) {
        RETURN_IF_ERROR(infer_body(c, "body", given, made));
        is_settled = true;
        for (size_t i = 0; i < carried; ++i) {
            rondo__tensor_info joined = given[first + i];
            rondo__info_join(&joined, &made[skipped + i]);
            is_settled = is_settled && is_same(&joined, &given[first + i]);
            given[first + i] = joined;
        }
    }
    for (size_t i = 0; i < c->node->output_count; ++i) {
        outputs[i] = i < carried ? given[first + i] : stack(&made[skipped + i]);
        if (!is_settled) {
            outputs[i] = (rondo__tensor_info){.dtype = outputs[i].dtype};
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_scan(const control *c, rondo__tensor_info *given,
                               rondo__tensor_info *made, rondo__tensor_info *outputs) {
    const size_t scanned = (size_t)rondo__op_get_int(&c->node->op, "num_scan_inputs", 0);
    const bool is_plain = c->node->op.opset >= 9 && scanned <= c->node->explicit_count &&
                          rondo__op_find(&c->node->op, "scan_input_axes") == NULL &&
                          rondo__op_find(&c->node->op, "scan_output_axes") == NULL;
    return is_plain ? infer_turns(c, c->node->explicit_count - scanned, given, made, outputs)
                    : RONDO_STATUS_OK;
}

static rondo_status infer_if(const control *c, rondo__tensor_info *yes, rondo__tensor_info *no,
                             rondo__tensor_info *outputs) {
    RETURN_IF_ERROR(infer_body(c, "then_branch", NULL, yes));
    RETURN_IF_ERROR(infer_body(c, "else_branch", NULL, no));
    for (size_t i = 0; i < c->node->output_count && i < GIVEN_MAX; ++i) {
        outputs[i] = yes[i];
        rondo__info_join(&outputs[i], &no[i]);
    }
    return RONDO_STATUS_OK;
}

// Infers the outputs of bodies, as far as that is possible without a run.
static rondo_status infer_control(const control *c, rondo__tensor_info *outputs) {
    rondo__tensor_info *room = rondo__calloc((size_t)2 * GIVEN_MAX, sizeof *room);
    rondo__tensor_info *other = room != NULL ? room + GIVEN_MAX : NULL;
    rondo_status status = room != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK && rondo__node_is(c->node, RONDO__OP_Loop)) {
        status = c->node->explicit_count >= 2
                     ? infer_turns(c, c->node->explicit_count - 2, room, other, outputs)
                     : status;
    } else if (status == RONDO_STATUS_OK && rondo__node_is(c->node, RONDO__OP_Scan)) {
        status = infer_scan(c, room, other, outputs);
    } else if (status == RONDO_STATUS_OK) {
        status = infer_if(c, room, other, outputs);
    }
    rondo__free(room);
    return status;
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
        return infer_control(&(control){node, inputs, g->body_depth}, outputs);
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
