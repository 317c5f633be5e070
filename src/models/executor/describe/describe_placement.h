// executor/describe/describe_placement.h — where ops of a plan are, for descriptions of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.h"
#include "executor/state/plan.h"

// "cpu" or "gpu": where op `index` of the step runs.
const char *rondo__placement_get_side(const rondo_executor *executor, const rondo__plan *plan,
                                      const rondo__step *step, size_t index);

// Writes the ops that run elsewhere than by default, or that the caller has placed, and why;
// nothing if there are none.
void rondo__placement_describe(rondo__text *text, const rondo__unit *unit, const rondo__plan *plan);
