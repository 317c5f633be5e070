// executor/bodies.h — the bodies of control nodes, and the executors that run them.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_BODIES_H
#define RONDO_EXECUTOR_BODIES_H

#include "executor/plan.h"

// Runs the executor of a body. It is rondo__executor_run_tensors, handed down from there, because
// the steps of a body may be control nodes again.
typedef rondo_status (*rondo__body_runner)(rondo_executor *body, const rondo_tensor *feeds,
                                           rondo_tensor *results, const bool *wants);

// A control node that is to be run.
typedef struct rondo__control {
    rondo_executor *executor;
    const rondo__node *node;
    rondo__step *step;  // owns the executors of its bodies
    rondo__body_runner run_body;
} rondo__control;

// One body attribute of a control node and the captured values that belong to it.
typedef struct rondo__body_view {
    const rondo__attribute *attribute;
    size_t index;           // among the body attributes
    size_t captured_first;  // first of its captured values among the node's inputs
    size_t captured_count;
} rondo__body_view;

// False when the node has no body of this name.
bool rondo__body_find(const rondo__node *node, const char *name, rondo__body_view *out_view);

// The executor of a body, made at its first use; `step` owns it.
RONDO_MUST_USE rondo_status rondo__body_get_executor(rondo_executor *parent,
                                                     const rondo__node *node, rondo__step *step,
                                                     const rondo__body_view *view,
                                                     rondo_executor **out_executor);

// Entry `index` of a node's attribute that is a list of ints; 0 beyond its end.
int64_t rondo__node_get_list_entry(const rondo__node *node, const char *name, size_t index);

#endif  // RONDO_EXECUTOR_BODIES_H
