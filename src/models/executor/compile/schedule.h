// executor/compile/schedule.h — the order of a plan's ops and where its segments end.
//
// List scheduling: as long as an op with a kernel is ready it goes next (in the model's order), so
// that segments grow as long as dependences allow; only when none is ready is one bypassed op
// taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Decides the order of nodes and cuts them into steps; fills items (node only) and steps of the
// plan.
//
// class_of   one for each node
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_schedule(rondo__plan *plan,
                                                 const rondo__node_class *class_of);

// The segment ends at the bypass: takes over its reason.
void rondo__step_end_at(rondo__step *segment, const rondo__step *bypass);

// What would remove the reason of a step: "extents that do not depend on data".
const char *rondo__step_get_remedy(const rondo__plan *plan, const rondo__step *step);
