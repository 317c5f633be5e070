// executor/foresee.h — plans of bodies ahead of the first run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Plans a body of a control node for the shapes of its first turn, before anything has run. Both
// results are NULL when those depend on data.
//
// name       of the attribute: "then_branch", "else_branch", "body"
//
// Errors:    as rondo__plan_create.
// Ownership: the step's.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__control_plan_body(rondo__unit *unit, const rondo__plan *plan,
                                                     rondo__step *step, const char *name,
                                                     rondo__unit **out_body,
                                                     rondo__plan **out_plan);

// Plans the bodies of If and Loop, and those in them, for the shapes that are known before anything
// runs; those whose shapes depend on data, or do not fit, are left until they run.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST, INTERNAL.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__control_foresee(rondo__unit *unit, const rondo__plan *plan);
