// executor/bodies.h — the bodies of control nodes, and the executors that run them.
#ifndef RONDO_EXECUTOR_BODIES_H
#define RONDO_EXECUTOR_BODIES_H

#include "executor/plan.h"

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

// Lets go of each tensor, then of the list. NULL is allowed.
void rondo__tensors_free(rondo_tensor *tensors, size_t count);

// Runs a SequenceMap: its body on each item in turn.
RONDO_MUST_USE rondo_status rondo__control_run_sequence_map(rondo_executor *executor,
                                                            const rondo__node *node,
                                                            rondo__step *step,
                                                            const rondo_tensor *const *inputs,
                                                            rondo_tensor *results);

#endif  // RONDO_EXECUTOR_BODIES_H
