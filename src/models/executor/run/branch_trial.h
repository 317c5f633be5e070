// executor/run/branch_trial.h — whether a segment's graph gets branches: both graphs are timed.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_RUN_BRANCH_TRIAL_H
#define RONDO_EXECUTOR_RUN_BRANCH_TRIAL_H

#include "executor/state/plan.h"

// After a run that was waited for: captures segments with branches, once, and keeps the graph that
// options.branches asks for, or that replays faster. What fails leaves the straight graph.
//
// AUTO does so for plans of one segment only: a replay needs what the run had, and steps before a
// segment have given their bytes to others by now.
//
// Threads:   one thread per executor.
void rondo__branches_settle(rondo_executor *executor, rondo__plan *plan);

#endif  // RONDO_EXECUTOR_RUN_BRANCH_TRIAL_H
