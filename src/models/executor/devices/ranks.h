// executor/devices/ranks.h — runs that several ranks make together.
//
// Collectives of a GPU are put on a stream of their own, the lane, as soon as what they read is
// there, so that the ops behind go on meanwhile:
//
//   executor's stream   a ── b ──┬── c ── d ──┬── e        e reads what the collective made, or
//   lane                         └─ AllReduce ┘            writes what it reads
//
// In a graph that is a branch. What a collective reads keeps its bytes to the end of a run
// (value_slots.c), so that ops behind it need not wait before they write theirs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"
#include "kernel/all_reduce_kernel.h"
#include "program/view.h"

static inline bool rondo__node_is_collective(const rondo__node *node) {
    return rondo__op_is_collective(&node->op);
}

// Lists the collectives of a plan whose addresses are known; nothing where the executor has no
// communicator.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER.
// Threads:   one thread per executor, as all below.
RONDO_MUST_USE rondo_status rondo__ranks_plan(rondo__unit *unit, rondo__plan *plan);
void rondo__ranks_drop(rondo__plan *plan);
void rondo__ranks_free(rondo_executor *executor);

// Begins a run: see rondo__communicator_begin_run.
RONDO_MUST_USE rondo_status rondo__ranks_begin(rondo__unit *unit, rondo__plan *plan);
// Whether a run has begun that did not end yet; that it ended well.
bool rondo__ranks_has_begun(const rondo__plan *plan);
void rondo__ranks_end(const rondo__plan *plan);
// After a wait: see rondo__communicator_check.
RONDO_MUST_USE rondo_status rondo__ranks_check(const rondo_executor *executor);
// The run that had begun failed here, as the thread's record says.
void rondo__ranks_break(const rondo_executor *executor);
// The lane has passed all that was put on it.
void rondo__ranks_drain(const rondo_executor *executor);

// Before the items of a step are launched or recorded.
void rondo__ranks_start(const rondo__plan *plan, const rondo__step *step);
// Around the launch of item `i` of the executor's stream; a collective goes on the lane.
RONDO_MUST_USE rondo_status rondo__ranks_enter(const rondo__unit *unit, const rondo__plan *plan,
                                               size_t i, rondo_stream **in_out_stream);
RONDO_MUST_USE rondo_status rondo__ranks_leave(const rondo__unit *unit, const rondo__plan *plan,
                                               size_t i);
// Behind them.
RONDO_MUST_USE rondo_status rondo__ranks_join(const rondo__unit *unit, const rondo__plan *plan);
