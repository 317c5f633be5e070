// executor/plan_visit.h — hands out the plan that a run with these feeds would have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

typedef rondo_status (*rondo__plan_visitor)(rondo__unit *unit, rondo__plan *plan, void *user_data);

// Compiles the plan, or finds it, and calls `visit`. Inputs that were not given have their declared
// shapes; those without data are zeros.
//
// call       the public function, for the record.
//
// Errors:    as rondo_executor_run, and those of `visit`.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_visit_plan(rondo_executor *executor,
                                                       const rondo_binding *feeds,
                                                       size_t feed_count, const char *call,
                                                       rondo__plan_visitor visit, void *user_data);
