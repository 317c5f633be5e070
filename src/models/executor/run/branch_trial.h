// executor/run/branch_trial.h — whether a segment's graph gets branches: both graphs are timed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// After a run that was waited for: captures segments with branches, once, and keeps the graph that
// options.branches asks for, or the faster one. After a failure the straight graph stays.
//
// AUTO does so only for plans of one segment: a replay needs the values that the run had, and later
// steps may have overwritten the bytes of earlier ones.
//
// Threads:   one thread per executor.
void rondo__branches_settle(rondo__unit *unit, rondo__plan *plan);
