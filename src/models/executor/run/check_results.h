// executor/run/check_results.h — compares the results of an op between segments with the shapes
// that the plan foresaw.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Compares result `i` of a node with what the plan was made for: the ops behind it rely on that.
// Rows of no turn take the foreseen shape.
//
// Errors:    INTERNAL (names the node and both shapes).
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__results_check(const rondo__plan *plan, const rondo__node *node,
                                                 size_t i, rondo_tensor *result);
