// program/passes/rewrite.h — the walk that the passes share which match patterns node by node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/edit.h"

typedef struct rondo__rewriting {
    rondo_program *program;
    rondo__uses uses;   // as they were before the walk
    bool *remove;       // nodes that go when the walk is over; the pass marks them
    size_t node_count;  // before the walk
} rondo__rewriting;

// Looks at one node, and perhaps changes it or adds others.
typedef rondo_status (*rondo__node_rewriter)(rondo__rewriting *rewriting, size_t node);

// Calls `rewrite` for each node that was there before, removes the marked ones, verifies the
// program, and removes unused nodes.
//
// Errors:    NO_MEMORY; those of `rewrite`.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_rewrite(rondo_program *program,
                                                   rondo__node_rewriter rewrite);

// The last part of it, for passes with a walk of their own. `status` is the walk's and comes first.
rondo_status rondo__program_finish_rewrite(rondo_program *program, const bool *remove,
                                           size_t remove_count, rondo_status status);

// The node that makes the value, which has no other reader; -1: there is none.
int32_t rondo__rewriting_get_maker(const rondo__rewriting *rewriting, int32_t value);

// Makes the node another op with other inputs, under its name; its outputs stay. Takes `op` and
// `inputs`.
void rondo__node_become(rondo__node *node, rondo__op *op, int32_t *inputs, size_t input_count);
