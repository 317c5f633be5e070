// executor/bound_run.h — what runs that repeat (repeated.h) take of bound runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// As rondo_bound_run_create and rondo_bound_run_destroy, but for one that the executor itself has,
// and does not keep the executor. The latter waits for nothing; NULL is fine.
RONDO_MUST_USE rondo_status rondo__bound_run_make(rondo_executor *executor,
                                                  rondo_bound_run **out_run);
void rondo__bound_run_free(rondo_bound_run *run);

// Runs; the caller has settled the executor where the run is waited for, and has checked `done`.
//
// Errors:    as rondo_executor_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__bound_run_call(rondo_bound_run *run, rondo_event *done,
                                                  bool waits);
