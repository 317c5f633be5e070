// executor/run/self_check.h — segments that are run twice, op by op and as a graph, and compared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/run_state.h"
#include "rondo/self_check.h"

// Launches the items of a step; run.c hands it down.
typedef rondo_status (*rondo__step_launcher)(rondo__unit *unit, rondo__plan *plan,
                                             const rondo__step *step);

// Whether this run of the caller's executor is checked. Each call of the caller's that runs steps
// begins with the first, and ends with the last.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor, as for all below.
RONDO_MUST_USE rondo_status rondo__self_check_begin_run(rondo_executor *executor);
bool rondo__self_check_is_on(const rondo_executor *executor);
void rondo__self_check_end_run(rondo_executor *executor);

// Whether graphs are to keep what tells their nodes apart.
bool rondo__self_check_is_expected(const rondo_executor *executor);
// While the item's segment is recorded: which node is its last.
void rondo__self_check_mark(rondo_stream *stream, rondo__item *item);
// The same of a graph that was made node by node; until then `last_node.number` is how many nodes
// there were behind the item.
void rondo__self_check_mark_line(rondo_graph *graph, rondo__item *items, size_t count);

// Runs a segment without a graph op by op, and goes back to where it began.
RONDO_MUST_USE rondo_status rondo__self_check_warm_up(rondo__unit *unit, rondo__plan *plan,
                                                      const rondo__step *step,
                                                      rondo__step_launcher launch);

// Runs a segment with a graph both ways and compares. Afterwards everything is as the run leaves
// it. A segment that differs has no graph any more, unless that is an error.
//
// Errors:    MISMATCH (self_check_action), and those of running.
RONDO_MUST_USE rondo_status rondo__self_check_segment(rondo__unit *unit, rondo__plan *plan,
                                                      rondo__step *step,
                                                      rondo__step_launcher launch);

// The same where the caller asked for the check: a difference is only reported.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__self_check_begin_report(rondo_executor *executor);
void rondo__self_check_end_report(rondo_executor *executor);
// Of the latest checked run; NULL: there was none.
const rondo_self_check_report *rondo__self_check_get_report(const rondo_executor *executor);
