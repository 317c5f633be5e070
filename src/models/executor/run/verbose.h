// executor/run/verbose.h — the messages that RONDO_GRAPHS_VERBOSE asks for; they go through the log
// at any level:
//
//   1   each graph as it is made, each bypassed op with the reason and what would spare it, and a
//       line for each run
//   2   the nodes of each graph, too, with what the driver does in them (their templates are kept
//       for that)
//
// RONDO_GRAPHS_MAX_LOG_ENTRIES bounds the lines of one executor, its bodies included. Both are read
// when an executor is made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Whether graphs are to keep what their nodes can be listed from.
static inline bool rondo__verbose_wants_nodes(const rondo_executor *executor) {
    return executor->resources.verbose.level >= 2;
}

// Logs what is new about a plan's steps: the graphs of steps first .. last, after their capture;
// all bypassed ops, once.
void rondo__verbose_tell_graphs(rondo__unit *unit, const rondo__plan *plan, size_t first,
                                size_t last);
void rondo__verbose_tell_bypassed(rondo__unit *unit, rondo__plan *plan);

// Logs each op of a step that has run, and the copies that its graph makes, where RONDO_LOG asks
// for that (debug: ops in the executor's room, copies in the device's).
void rondo__verbose_log_step(const rondo__unit *unit, const rondo__plan *plan,
                             const rondo__step *step, bool was_replayed);

// A run that went well, with `graph_count` replays.
void rondo__verbose_tell_run(rondo__unit *unit, const rondo__plan *plan, size_t graph_count);
