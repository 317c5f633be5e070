// executor/state/counted.h — how a rondo.Counted is read: an op of a GPU whose result's size
// depends on data writes the result into rooms, and the count beside them
// (compile/split_counted.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"
#include "program/edit.h"

static inline bool rondo__counted_is(const rondo__node *node) {
    return rondo__node_is(node, RONDO__FUSED_Counted);
}

// Which input of rondo.Counted is the count; the others are rooms.
static inline size_t rondo__counted_get_input(const rondo__node *node) {
    return node->input_count - 1;
}

// The node that made what rondo.Counted reads; of another node itself.
static inline const rondo__node *rondo__counted_get_maker(const rondo__plan *plan, size_t n) {
    const rondo__node *node = &plan->program->nodes[n];
    return rondo__counted_is(node)
               ? &plan->program->nodes[plan->program->values[node->inputs[0]].producer]
               : node;
}
