// executor/self_check.h — segments that are run twice, op by op and as a graph, and compared.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_SELF_CHECK_H
#define RONDO_EXECUTOR_SELF_CHECK_H

#include "executor/plan.h"
#include "rondo/self_check.h"

// How a segment is run and captured: handed down by who runs the steps.
typedef struct rondo__segment_calls {
    rondo_status (*launch)(rondo_executor *executor, rondo__plan *plan, const rondo__step *step);
    // May leave the step without a graph, or put several in its place: *in_out_index becomes the
    // last of them.
    rondo_status (*capture)(rondo_executor *executor, rondo__plan *plan, size_t *in_out_index);
} rondo__segment_calls;

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
void rondo__self_check_mark(const rondo_executor *executor, rondo__item *item);

// Runs segment `*in_out_index` both ways and compares. Afterwards everything is as the run leaves
// it. A segment that differs has no graph any more, unless that is an error; one that cannot be
// captured whole is compared in parts from the next checked run on, and *in_out_index becomes the
// last part.
//
// Errors:    MISMATCH (self_check_action), and those of running.
RONDO_MUST_USE rondo_status rondo__self_check_segment(rondo_executor *executor, rondo__plan *plan,
                                                      size_t *in_out_index,
                                                      const rondo__segment_calls *calls);

// The same where the caller asked for the check: a difference is only reported.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__self_check_begin_report(rondo_executor *executor);
void rondo__self_check_end_report(rondo_executor *executor);
// Of the latest checked run; NULL: there was none.
const rondo_self_check_report *rondo__self_check_get_report(const rondo_executor *executor);

void rondo__self_check_destroy(rondo_executor *executor);

#endif  // RONDO_EXECUTOR_SELF_CHECK_H
