// program/gradient/gradient.c — the way back. See gradient.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/gradient/gradient.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/gradient/gradient_parts.h"
#include "tensor/elements.h"

enum { EXPANSION_DEPTH_MAX = 16 };

// ---- what depends on what -----------------------------------------------------------------------

// Whether gradients may be of this type; NONE: perhaps.
static bool is_real(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_NONE || rondo__dtype_is_float(dtype);
}

static bool is_kept(const rondo__gradient *g, int32_t value) {
    for (size_t i = 0; i < g->request->kept_count; ++i) {
        if (g->request->kept[i] == value) {
            return true;
        }
    }
    return false;
}

void rondo__gradient_mark(rondo__gradient *g, size_t begin, size_t end) {
    rondo__gradient_settle(g);
    for (size_t n = begin; n < end && g->status == RONDO_STATUS_OK; ++n) {
        const rondo__node *node = &g->program->nodes[n];
        bool is_zero = false;
        bool depends = false;
        for (size_t i = 0; i < node->input_count; ++i) {
            depends = depends || (node->inputs[i] >= 0 && g->values[node->inputs[i]].depends);
        }
        (void)rondo__gradient_find_rule(node->op.def, &is_zero);
        for (size_t i = 0; depends && !is_zero && i < node->output_count; ++i) {
            const int32_t value = node->outputs[i];
            if (value >= 0 && is_real(g->values[value].info.dtype) && !is_kept(g, value)) {
                g->values[value].depends = true;
            }
        }
    }
}

// ---- the way back -------------------------------------------------------------------------------

// A copy of the lists, which a rule may make the node change.
typedef struct kept_call {
    rondo__gradient_call call;
    int32_t *lists;
} kept_call;

static rondo_status begin_call(const rondo__gradient *g, size_t n, kept_call *out_kept) {
    const rondo__node *node = &g->program->nodes[n];
    const size_t inputs = node->input_count;
    const size_t outputs = node->output_count;
    int32_t *lists = rondo__calloc(inputs + 2 * outputs + 1, sizeof *lists);
    if (lists == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(lists, node->inputs, inputs * sizeof *lists);
    memcpy(lists + inputs, node->outputs, outputs * sizeof *lists);
    for (size_t i = 0; i < outputs; ++i) {
        const int32_t value = node->outputs[i];
        lists[inputs + outputs + i] = value >= 0 ? g->values[value].gradient : RONDO__VALUE_NONE;
    }
    *out_kept = (kept_call){.lists = lists,
                            .call = {.op = node->op,
                                     .index = n,
                                     .input_count = inputs,
                                     .output_count = outputs,
                                     .explicit_count = node->explicit_count,
                                     .inputs = lists,
                                     .outputs = lists + inputs,
                                     .changes = lists + inputs + outputs}};
    return RONDO_STATUS_OK;
}

static bool is_on_the_way(const rondo__gradient *g, const rondo__node *node) {
    bool depends = false;
    bool has_change = false;
    for (size_t i = 0; i < node->input_count; ++i) {
        depends = depends || (node->inputs[i] >= 0 && g->values[node->inputs[i]].depends);
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        const int32_t value = node->outputs[i];
        has_change = has_change ||
                     (value >= 0 && g->values[value].depends && g->values[value].gradient >= 0);
    }
    return depends && has_change;
}

static void go_back(rondo__gradient *g, size_t begin, size_t end) {
    for (size_t n = end; n-- > begin && g->status == RONDO_STATUS_OK;) {
        bool is_zero = false;
        if (!is_on_the_way(g, &g->program->nodes[n])) {
            continue;
        }
        const rondo__gradient_rule rule =
            rondo__gradient_find_rule(g->program->nodes[n].op.def, &is_zero);
        if (rule == NULL) {
            g->status = rondo__gradient_fail_node(g, n, "");
            return;
        }
        const size_t first = g->program->node_count;
        const rondo__place_mark place = g->program->nodes[n].place;
        kept_call kept = {0};
        g->status = begin_call(g, n, &kept);
        if (g->status == RONDO_STATUS_OK) {
            rule(g, &kept.call);
        }
        rondo__free(kept.lists);
        for (size_t i = first; i < g->program->node_count; ++i) {
            g->program->nodes[i].place = place;
        }
    }
}

size_t rondo__gradient_begin(const rondo__gradient *g) {
    return g->program->node_count;
}

void rondo__gradient_expand(rondo__gradient *g, size_t begin, const int32_t *values,
                            const int32_t *changes, size_t count) {
    const size_t end = g->program->node_count;
    if (g->status == RONDO_STATUS_OK && g->depth >= EXPANSION_DEPTH_MAX) {
        g->status = RONDO_FAIL(INTERNAL, "gradients expand more than %d deep", EXPANSION_DEPTH_MAX);
    }
    rondo__gradient_mark(g, begin, end);
    for (size_t i = 0; i < count; ++i) {
        rondo__gradient_add(g, values[i], changes[i]);
    }
    g->depth += 1;
    go_back(g, begin, end);
    g->depth -= 1;
}

// ---- the whole ----------------------------------------------------------------------------------

static void start(rondo__gradient *g) {
    const rondo__gradient_request *request = g->request;
    const size_t end = g->program->node_count;
    g->forward_count = end;
    rondo__gradient_settle(g);
    for (size_t i = 0; i < request->x_count && g->status == RONDO_STATUS_OK; ++i) {
        const int32_t x = request->xs[i];
        rondo__tensor_info info;
        rondo__gradient_get_info(g, x, &info);
        if (!is_real(info.dtype)) {
            g->status = RONDO_FAIL(UNSUPPORTED, "\"%.80s\" is %s; only reals have gradients",
                                   g->program->values[x].name, rondo_dtype_get_name(info.dtype));
        }
        g->values[x].depends = true;
    }
    rondo__gradient_mark(g, 0, end);
    if (g->status != RONDO_STATUS_OK || !g->values[request->y].depends) {
        return;
    }
    const int32_t seed =
        request->seed >= 0 ? request->seed : rondo__gradient_fill_like(g, 1.0, request->y);
    rondo__gradient_add(g, request->y, seed);
    go_back(g, 0, end);
}

rondo_status rondo__program_add_gradients(rondo_program *program,
                                          const rondo__gradient_request *request,
                                          int32_t *out_values) {
    rondo__gradient g = {.program = program, .request = request};
    start(&g);
    for (size_t i = 0; i < request->x_count && g.status == RONDO_STATUS_OK; ++i) {
        out_values[i] = g.values[request->xs[i]].gradient;
        if (out_values[i] < 0) {
            out_values[i] = rondo__gradient_fill_like(&g, 0.0, request->xs[i]);
        }
        rondo__gradient_settle(&g);
    }
    for (size_t v = 0; g.status == RONDO_STATUS_OK && v < program->value_count; ++v) {
        rondo__value *value = &program->values[v];
        value->dtype = value->dtype == RONDO_DTYPE_NONE ? g.values[v].info.dtype : value->dtype;
    }
    rondo__gradient_deinit(&g);
    return g.status;
}
