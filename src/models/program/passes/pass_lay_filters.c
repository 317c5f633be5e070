// program/passes/pass_lay_filters.c — filters that a training step changes come to the layout of
// its convolutions in one launch, for all of them and for both ways.
//
//   before   w ── cast ─┬────────────── rondo.Conv        which packs them first
//                       └─ TurnFilters ─ rondo.Conv       the way back, likewise
//   after    w ─┐
//           w' ─┴─ rondo.LayFilters ─── rondo.Conv        for each of them, with filters_last
//
// w: an input of the program in f32, its two extents of channels multiples of 8. Filters with
// different taps, or cast otherwise, have a node each. What was cast is left to other readers.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { RANK = 4, TAPS_MAX = 16, EIGHT = 8, ONNX_FLOAT16 = 10, WAYS = 2 };

// Filters, and the values of their two new forms; NONE: not wanted so far.
typedef struct entry {
    int32_t w;
    bool saturates;
    rondo_shape shape;
    int32_t forms[WAYS];  // there, back
    const char *name;     // of a convolution
} entry;

typedef struct entries {
    entry *list;
    size_t count;
} entries;

// What a convolution reads.
typedef struct source {
    int32_t w;
    bool saturates;
    int way;
} source;

// Goes back from a value in f16 to the one in f32 that it was cast from.
static bool skip_cast(const rondo_program *program, int32_t value, source *s) {
    const int32_t maker = value >= 0 ? program->values[value].producer : -1;
    rondo__scalar_op op;
    int32_t first, second;
    float alpha, beta;
    if (maker < 0) {
        return false;
    }
    const rondo__node *node = &program->nodes[maker];
    s->saturates = rondo__node_is(node, RONDO__FUSED_Elementwise);
    if (s->saturates
            ? !rondo__match_scalar_op(program, node, &op, &first, &second, &alpha, &beta) ||
                  op != RONDO__SCALAR_Saturate
            : !rondo__node_is(node, RONDO__OP_Cast)) {
        return false;
    }
    s->w = node->inputs[0];
    return true;
}

static bool find_source(const rondo_program *program, const rondo__node *conv, source *s,
                        rondo_shape *out_shape) {
    if (!rondo__node_is(conv, RONDO__FUSED_Conv) || conv->place.place != 0 ||
        rondo__op_get_int(&conv->op, "channels_last", 0) == 0 ||
        rondo__op_get_int(&conv->op, "filters_last", 0) != 0 ||
        rondo__op_get_int(&conv->op, "group", 1) != 1 ||
        rondo__match_input(conv, 4) != RONDO__VALUE_NONE ||
        rondo__match_dtype(program, conv->inputs[1]) != RONDO_DTYPE_F16) {
        return false;
    }
    const rondo__node *turn =
        rondo__match_maker(program, conv->inputs[1], RONDO__FUSED_TurnFilters);
    s->way = turn != NULL ? 1 : 0;
    if (!skip_cast(program, turn != NULL ? turn->inputs[0] : conv->inputs[1], s)) {
        return false;
    }
    const rondo__value *w = &program->values[s->w];
    return w->dtype == RONDO_DTYPE_F32 && w->producer < 0 && !rondo__value_is_constant(w) &&
           rondo__value_get_shape(w, out_shape) && out_shape->rank == RANK &&
           out_shape->extent[0] % EIGHT == 0 && out_shape->extent[1] % EIGHT == 0 &&
           out_shape->extent[2] * out_shape->extent[3] <= TAPS_MAX;
}

static rondo_status find_form(rondo_program *program, const source *s, const rondo_shape *w,
                              const char *name, entries *all, int32_t *out_form) {
    size_t i = 0;
    while (i < all->count && (all->list[i].w != s->w || all->list[i].saturates != s->saturates)) {
        i++;
    }
    entry *e = &all->list[i];
    if (i == all->count) {
        *e = (entry){.w = s->w,
                     .saturates = s->saturates,
                     .shape = *w,
                     .forms = {RONDO__VALUE_NONE, RONDO__VALUE_NONE},
                     .name = name};
        all->count++;
    }
    if (e->forms[s->way] == RONDO__VALUE_NONE) {
        const rondo_shape shape = {
            .rank = RANK,
            .extent = {w->extent[s->way], w->extent[2], w->extent[3], w->extent[1 - s->way]}};
        RETURN_IF_ERROR(rondo__program_add_shaped(program, program->values[s->w].name,
                                                  RONDO_DTYPE_F16, &shape, &e->forms[s->way]));
    }
    *out_form = e->forms[s->way];
    return RONDO_STATUS_OK;
}

static rondo_status redirect(rondo_program *program, entries *all) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        source s;
        rondo_shape w;
        if (find_source(program, node, &s, &w)) {
            RETURN_IF_ERROR(find_form(program, &s, &w, node->op.name, all, &node->inputs[1]));
            RETURN_IF_ERROR(rondo__op_set_int(&node->op, "filters_last", 1));
        }
    }
    return RONDO_STATUS_OK;
}

static bool go_together(const entry *a, const entry *b) {
    return a->saturates == b->saturates && a->shape.extent[2] == b->shape.extent[2] &&
           a->shape.extent[3] == b->shape.extent[3];
}

// One node for the filters that go with the first that has none; `lists` has room for all.
static rondo_status add_node(rondo_program *program, entries *all, int32_t *lists) {
    int32_t *inputs = lists, *outputs = lists + all->count;
    const entry first = all->list[0];
    size_t used = 0, kept = 0;
    for (size_t i = 0; i < all->count; ++i) {
        const entry *e = &all->list[i];
        if (go_together(&first, e)) {
            inputs[used] = e->w;
            outputs[WAYS * used] = e->forms[0];
            outputs[WAYS * used + 1] = e->forms[1];
            used++;
        } else {
            all->list[kept++] = *e;
        }
    }
    all->count = kept;
    RETURN_IF_ERROR(rondo__program_add_simple(program, "rondo", "LayFilters", first.name, inputs,
                                              used, outputs, WAYS * used));
    rondo__op *op = &program->nodes[program->node_count - 1].op;
    RETURN_IF_ERROR(rondo__op_set_int(op, "saturate", first.saturates ? 1 : 0));
    return rondo__op_set_int(op, "to", ONNX_FLOAT16);
}

rondo_status rondo__pass_lay_filters(rondo_program *program) {
    entries all = {.list = rondo__calloc(program->node_count + 1, sizeof *all.list)};
    int32_t *lists = rondo__calloc(3 * (program->node_count + 1), sizeof *lists);
    rondo_status status = RONDO_STATUS_OK;
    if (all.list == NULL || lists == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
    }
    if (status == RONDO_STATUS_OK) {
        status = redirect(program, &all);
    }
    const bool has_any = all.count > 0;
    while (status == RONDO_STATUS_OK && all.count > 0) {
        status = add_node(program, &all, lists);
    }
    if (has_any) {
        status = rondo__program_finish_rewrite(program, NULL, 0, status);
    }
    rondo__free(lists);
    rondo__free(all.list);
    return status;
}
