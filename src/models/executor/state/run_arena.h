// executor/state/run_arena.h — memory for the values of runs that the program gives, or that
// executors share which never run at once.
//
// Its pieces are those of run_memory.h, in a list of its own. The program keeps executors that
// share it to one thread at a time, so nothing is locked; what runs at once in spite of that is
// refused. Runs that are not waited for leave an event, which the next executor's stream waits for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

struct rondo_run_arena {
    rondo_device *device;
    atomic_int reference_count;
    rondo__run_memory *pieces;  // in use, or the one that was given
    uint64_t bytes;             // of them
    size_t piece_bytes;         // that one has at least
    bool is_given;
    atomic_bool is_busy;           // a call puts a run
    const rondo_executor *latest;  // whose values lie there
    rondo_event *ended;            // behind runs that were not waited for; NULL: none yet
    bool is_pending;               // it was recorded, and no thread has waited for it
};

// One more that rondo_run_arena_destroy takes back. NULL is fine.
void rondo__run_arena_retain(rondo_run_arena *arena);

// A run's values come to the arena now: what another executor has put there is over before, in
// stream order. Nothing where the executor shares none.
//
// by_thread  the calling thread writes values, too, and not only the stream.
//
// Errors:    STATE (a run of another thread is under way), DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__run_arena_enter(rondo_executor *executor, bool by_thread);
// The run was put; waited for, or not.
RONDO_MUST_USE rondo_status rondo__run_arena_leave(rondo_executor *executor, bool is_waited_for);

// Whether the values of the executor's latest run are still there.
bool rondo__run_arena_holds(const rondo_executor *executor);

// The executor is going.
void rondo__run_arena_forget(const rondo_executor *executor);
