// executor/compile/branches.h — segments whose graph has branches.
//
// Two ops may run side by side when neither writes bytes that the other touches: values, or
// workspaces, wherever the arena has them. So whatever the memory plan shares, an op comes after
// every earlier op (in the order of eager runs) with which it has bytes in common, and the graph
// computes what a straight one does:
//
//      order     a b c d e f                 branch 0   a ── b ────── e ── f
//      needs     b:a c:a d:c e:b,d f:e       branch 1     └─ c ── d ──┘
//
// An op is appended to the branch of an op that it needs, if that op is the last one there;
// otherwise to a branch whose last op it follows anyway; otherwise to a new branch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

enum { RONDO__BRANCH_MAX = 8 };

typedef struct rondo__branched_item {
    uint32_t branch;
    bool is_awaited;    // by an op of another branch
    size_t first_wait;  // into `waits`
    size_t wait_count;
} rondo__branched_item;

// How the items of one segment are spread over branches.
typedef struct rondo__branches {
    uint32_t count;               // 1: a straight line
    rondo__branched_item *items;  // one for each of the segment
    size_t *waits;                // items of the segment
    size_t wait_capacity;
    double gain;  // estimated: time of all ops over time of the longest way
} rondo__branches;

// Spreads the items of a segment whose addresses are known.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__branches_find(const rondo_executor *executor,
                                                 const rondo__plan *plan, const rondo__step *step,
                                                 rondo__branches *out_branches);
void rondo__branches_deinit(rondo__branches *branches);
