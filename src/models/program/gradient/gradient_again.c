// program/gradient/gradient_again.c — nodes that run once more on the way back.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/gradient/gradient_parts.h"
#include "program/node_pattern.h"

static bool is_marked(const rondo__gradient *g, const rondo__node *node) {
    if ((node->op.def->flags & (RONDO__OP_RANDOM | RONDO__OP_IMPURE | RONDO__OP_CONTROL)) != 0) {
        return false;
    }
    for (size_t i = 0; i < g->request->recompute_count; ++i) {
        if (rondo__node_matches(node, g->request->recompute[i])) {
            return true;
        }
    }
    return false;
}

// Whether the value is made by a node that is marked, and has no copy yet.
static bool is_due(const rondo__gradient *g, int32_t value) {
    const int32_t n = value >= 0 ? g->program->values[value].producer : -1;
    return n >= 0 && (size_t)n < g->forward_count && g->values[value].again < 0 &&
           is_marked(g, &g->program->nodes[n]);
}

// Copies the node that makes `value`, whose inputs have their copies.
static void copy_node(rondo__gradient *g, int32_t value) {
    const size_t n = (size_t)g->program->values[value].producer;
    const size_t inputs = g->program->nodes[n].input_count;
    const size_t outputs = g->program->nodes[n].output_count;
    int32_t *lists = rondo__calloc(inputs + outputs + 1, sizeof *lists);
    if (lists == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < inputs; ++i) {
        const int32_t input = g->program->nodes[n].inputs[i];
        lists[i] = input >= 0 && g->values[input].again >= 0 ? g->values[input].again : input;
    }
    for (size_t i = 0; i < outputs && g->status == RONDO_STATUS_OK; ++i) {
        const int32_t output = g->program->nodes[n].outputs[i];
        lists[inputs + i] = RONDO__VALUE_NONE;
        if (output >= 0) {
            g->status = rondo__program_add_value(g->program, g->program->values[output].name,
                                                 &lists[inputs + i]);
            g->values[output].again = lists[inputs + i];
        }
    }
    if (g->status == RONDO_STATUS_OK) {
        const rondo__node node = g->program->nodes[n];  // the array may move
        g->status = rondo__program_add_copy(g->program, &node, lists, lists + inputs);
    }
    rondo__gradient_settle(g);
    for (size_t i = 0; i < outputs && g->status == RONDO_STATUS_OK; ++i) {
        const int32_t output = g->program->nodes[n].outputs[i];
        if (output >= 0) {
            g->values[lists[inputs + i]].original = output;
            g->values[lists[inputs + i]].depends = g->values[output].depends;
        }
    }
    rondo__free(lists);
}

int32_t rondo__gradient_recompute(rondo__gradient *g, int32_t value) {
    if (g->request->recompute_count == 0 || g->status != RONDO_STATUS_OK || value < 0 ||
        (size_t)value >= g->value_count) {
        return value;
    }
    size_t capacity = 0;
    size_t count = 0;
    int32_t *stack = NULL;
    if (is_due(g, value)) {
        g->status = RONDO__ARRAY_RESERVE(stack, capacity, 1);
        if (g->status == RONDO_STATUS_OK) {
            stack[count++] = value;
        }
    }
    while (count > 0 && g->status == RONDO_STATUS_OK) {
        const int32_t at = stack[count - 1];
        const rondo__node *node = &g->program->nodes[g->program->values[at].producer];
        const size_t before = count;
        for (size_t i = 0; i < node->input_count && g->status == RONDO_STATUS_OK; ++i) {
            if (is_due(g, node->inputs[i])) {
                g->status = RONDO__ARRAY_RESERVE(stack, capacity, count + 1);
                if (g->status == RONDO_STATUS_OK) {
                    stack[count++] = node->inputs[i];
                }
            }
        }
        if (count == before) {
            count -= 1;
            if (is_due(g, at)) {
                copy_node(g, at);
            }
        }
    }
    rondo__free(stack);
    return g->status == RONDO_STATUS_OK && g->values[value].again >= 0 ? g->values[value].again
                                                                       : value;
}
