// program/gradient/gradient_call.c — the node whose gradient is made, in the form that its rule
// reads.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/gradient/gradient_parts.h"

enum { PATH_MAX_OPS = 8 };

// ---- failures -----------------------------------------------------------------------------------

// The ops from the node to y, "Mul, ReduceMean": along first users that depend.
static void write_path(const rondo__gradient *g, size_t from, char *buffer, size_t buffer_bytes) {
    size_t used = 0;
    int32_t value = RONDO__VALUE_NONE;
    buffer[0] = '\0';
    for (size_t n = from, ops = 0; n < g->program->node_count && ops < PATH_MAX_OPS; ++n) {
        const rondo__node *node = &g->program->nodes[n];
        bool reads = n == from;
        for (size_t i = 0; i < node->input_count; ++i) {
            reads = reads || (value >= 0 && node->inputs[i] == value);
        }
        if (!reads) {
            continue;
        }
        const int written = snprintf(buffer + used, buffer_bytes - used, "%s%.24s",
                                     used > 0 ? " -> " : "", node->op.def->name);
        used += written > 0 ? (size_t)written : 0;
        if (used >= buffer_bytes) {
            return;
        }
        ops += 1;
        for (size_t i = 0; i < node->output_count; ++i) {
            const int32_t made = node->outputs[i];
            if (made == g->request->y) {
                (void)snprintf(buffer + used, buffer_bytes - used, " -> \"%.40s\"",
                               g->program->values[made].name);
                return;
            }
            if (made >= 0 && g->values[made].gradient >= 0) {
                value = made;
            }
        }
    }
}

rondo_status rondo__gradient_fail_node(const rondo__gradient *g, size_t n, const char *detail) {
    const rondo__node *node = &g->program->nodes[n];
    char path[240];
    char domain[64] = "";
    write_path(g, n, path, sizeof path);
    if (node->op.def->domain[0] != '\0') {
        (void)snprintf(domain, sizeof domain, "%.60s.", node->op.def->domain);
    }
    const rondo_status status = RONDO_FAIL(
        UNSUPPORTED, "no gradient for op %s%s%s%s, node \"%.64s\" (%s)", domain, node->op.def->name,
        detail[0] != '\0' ? " with " : "", detail, node->op.name, path);
    rondo__error_set_op(node->op.name);
    return status;
}

void rondo__gradient_refuse(rondo__gradient *g, const rondo__gradient_call *call,
                            const char *detail) {
    if (g->status == RONDO_STATUS_OK) {
        g->status = rondo__gradient_fail_node(g, call->index, detail);
    }
}

// ---- changes ------------------------------------------------------------------------------------

void rondo__gradient_add(rondo__gradient *g, int32_t value, int32_t change) {
    if (g->status != RONDO_STATUS_OK || change < 0 || value < 0) {
        return;
    }
    rondo__gradient_settle(g);
    if (g->status != RONDO_STATUS_OK) {
        return;
    }
    value = g->values[value].original >= 0 ? g->values[value].original : value;
    change = rondo__gradient_cast_like(g, change, value);
    rondo__gradient_settle(g);
    if (g->status != RONDO_STATUS_OK || change < 0) {
        return;
    }
    // A change has the shape of what it belongs to, also where that was not seen.
    rondo__tensor_info known;
    rondo__gradient_get_info(g, value, &known);
    known.constant = NULL;
    if (!g->values[change].info.is_shape_known && rondo__info_has_rank(&known)) {
        g->values[change].info = known;
    }
    const int32_t before = g->values[value].gradient;
    const int32_t sum = before < 0 ? change : RONDO__EMIT(g, "Add", before, change);
    rondo__gradient_settle(g);
    if (g->status == RONDO_STATUS_OK) {
        g->values[value].gradient = sum;
    }
}

bool rondo__gradient_wants(const rondo__gradient *g, const rondo__gradient_call *call,
                           size_t index) {
    const int32_t value = rondo__gradient_input(call, index);
    return g->status == RONDO_STATUS_OK && value >= 0 && g->values[value].depends;
}

void rondo__gradient_give(rondo__gradient *g, const rondo__gradient_call *call, size_t input,
                          int32_t change) {
    if (rondo__gradient_wants(g, call, input)) {
        rondo__gradient_add(g, call->inputs[input], change);
    }
}

int32_t rondo__gradient_input(const rondo__gradient_call *call, size_t index) {
    return index < call->input_count ? call->inputs[index] : RONDO__VALUE_NONE;
}

int32_t rondo__gradient_output(const rondo__gradient_call *call, size_t index) {
    return index < call->output_count ? call->outputs[index] : RONDO__VALUE_NONE;
}

int32_t rondo__gradient_take_output(rondo__gradient *g, const rondo__gradient_call *call,
                                    size_t index, rondo_dtype dtype) {
    int32_t value = rondo__gradient_output(call, index);
    if (g->status != RONDO_STATUS_OK || value >= 0) {
        return value;
    }
    char name[32];
    (void)snprintf(name, sizeof name, "d.%zu", g->program->value_count);
    g->status = rondo__program_add_value(g->program, name, &value);
    rondo__node *node = &g->program->nodes[call->index];
    int32_t *outputs =
        g->status == RONDO_STATUS_OK ? rondo__calloc(index + 1, sizeof *outputs) : NULL;
    if (outputs == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return RONDO__VALUE_NONE;
    }
    for (size_t i = 0; i <= index; ++i) {
        outputs[i] = i < node->output_count ? node->outputs[i] : RONDO__VALUE_NONE;
    }
    outputs[index] = value;
    rondo__free(node->outputs);
    node->outputs = outputs;
    node->output_count = index + 1;
    g->program->values[value].producer = (int32_t)call->index;
    g->program->values[value].dtype = dtype;
    rondo__gradient_settle(g);
    g->status = g->status == RONDO_STATUS_OK ? rondo__gradient_visit(g, call->index) : g->status;
    return value;
}

int32_t rondo__gradient_need_rank(rondo__gradient *g, const rondo__gradient_call *call,
                                  int32_t value) {
    const int32_t rank = rondo__gradient_rank(g, value);
    if (rank < 0) {
        rondo__gradient_refuse(g, call,
                               "an input whose rank is not known (sizes of the model's inputs in "
                               "place of names tell it)");
    }
    return rank;
}
