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

#include "executor/state/run_state.h"

// Spreads the items of a segment whose addresses are known.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__branches_find(const rondo_executor *executor,
                                                 const rondo__plan *plan, const rondo__step *step,
                                                 rondo__branches *out_branches);
