// program/drawing.c — see drawing.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/drawing.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/draws.h"

// ---- names --------------------------------------------------------------------------------------

// A node with a seed.
typedef struct drawing {
    rondo__op *op;
    size_t graph;  // that it stands in: 0 for the program's own, bodies counted from 1
    size_t place;  // among all of them
} drawing;

typedef struct drawings {
    drawing *list;
    size_t count, capacity;
    size_t graph_count;
} drawings;

// Bodies nest only so deep, so this may recurse.
static rondo_status collect(const rondo_program *program, drawings *all) {
    const size_t graph = all->graph_count++;
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__op *op = &program->nodes[n].op;
        uint64_t seed;
        if (rondo__op_get_seed(op, &seed)) {
            RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(all->list, all->capacity, all->count + 1));
            all->list[all->count] = (drawing){op, graph, all->count};
            all->count += 1;
        }
        for (size_t a = 0; a < op->attribute_count; ++a) {
            if (op->attributes[a].kind == RONDO__ATTRIBUTE_BODY && op->attributes[a].body != NULL) {
                RETURN_IF_ERROR(collect(op->attributes[a].body, all));
            }
        }
    }
    return RONDO_STATUS_OK;
}

static int compare_drawings(const void *a, const void *b) {
    const drawing *first = a;
    const drawing *second = b;
    const int order = strcmp(first->op->name, second->op->name);
    return order != 0 ? order : (first->place > second->place) - (first->place < second->place);
}

static rondo_status rename_drawing(const drawing *d, size_t number) {
    char *name = rondo__strformat("%s#%zu", d->op->name, number);
    if (name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__free(d->op->name);
    d->op->name = name;
    return RONDO_STATUS_OK;
}

static rondo_status part(const drawings *all, bool in_one_graph) {
    size_t end = 0;
    for (size_t begin = 0; begin < all->count; begin = end) {
        const drawing *first = &all->list[begin];
        for (end = begin + 1; end < all->count; ++end) {
            if (strcmp(all->list[end].op->name, first->op->name) != 0) {
                break;
            }
        }
        for (size_t i = begin + 1; i < end; ++i) {
            const drawing *other = &all->list[i];
            if (in_one_graph || other->graph != first->graph) {
                RETURN_IF_ERROR(rename_drawing(other, in_one_graph ? other->place : other->graph));
            }
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_name_draws(rondo_program *program, bool in_one_graph) {
    drawings all = {0};
    rondo_status status = collect(program, &all);
    if (status == RONDO_STATUS_OK && all.count > 1) {
        qsort(all.list, all.count, sizeof *all.list, compare_drawings);
        status = part(&all, in_one_graph);
    }
    rondo__free(all.list);
    return status;
}

// ---- their order --------------------------------------------------------------------------------

// Bodies nest only so deep, so this may recurse.
bool rondo__node_draws_in_turn(const rondo_program *program, const rondo__node *node) {
    enum { INPUTS = 3 };  // as far as draws look
    rondo__tensor_info infos[INPUTS] = {0};
    uint64_t seed;
    for (size_t i = 0; i < node->input_count && i < INPUTS; ++i) {
        const rondo__value *value = node->inputs[i] >= 0 ? &program->values[node->inputs[i]] : NULL;
        if (value != NULL) {
            infos[i].dtype = value->dtype;
            infos[i].constant = value->constant.dtype != RONDO_DTYPE_NONE ? &value->constant : NULL;
        }
    }
    bool draws = rondo__op_draws(&node->op, infos, node->input_count) &&
                 !rondo__op_get_seed(&node->op, &seed);
    for (size_t a = 0; a < node->op.attribute_count && !draws; ++a) {
        const rondo_program *body = node->op.attributes[a].kind == RONDO__ATTRIBUTE_BODY
                                        ? node->op.attributes[a].body
                                        : NULL;
        for (size_t n = 0; body != NULL && n < body->node_count && !draws; ++n) {
            draws = rondo__node_draws_in_turn(body, &body->nodes[n]);
        }
    }
    return draws;
}
