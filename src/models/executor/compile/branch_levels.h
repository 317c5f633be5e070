// executor/compile/branch_levels.h — which ops of a segment may run side by side.
//
// The ops of a plan have an order, in which eager runs and straight graphs take them. Beside it,
// each has a level: one more than the highest level among the ops that made what it reads, and
// higher than all of the segment before. Ops of one level do not need each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Whether branches of the plan may be captured side by side, as far as the plan itself tells.
bool rondo__branch_levels_may_branch(const rondo__unit *unit, const rondo__plan *plan);

// Fills out_levels, one for each item and then one for each step: of a segment its first. By the
// roots that value slots have.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__branch_levels_find(const rondo__plan *plan, size_t *out_levels);
