// executor/describe/describe_steps.h — the steps of a plan, as all forms of a description go
// through them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// The nodes of a step; `index` counts them.
size_t rondo__describe_count_nodes(const rondo__step *step);
size_t rondo__describe_get_node(const rondo__plan *plan, const rondo__step *step, size_t index);
bool rondo__describe_has_bodies(const rondo__plan *plan, const rondo__step *step, size_t index);

// "segment", "bypassed"; "ahead": of the processor, before the first segment.
const char *rondo__describe_get_kind(const rondo__step *step);

// "captured", or why the segment (or the step ahead of it) is not.
const char *rondo__describe_get_state(const rondo__step *step);

// What computes an item: "simd", "cudnn"; "host" for what is bypassed.
const char *rondo__describe_get_implementation(const rondo__plan *plan, const rondo__step *step,
                                               size_t item);

// The plan of a body of op `index` of a step; NULL where there is none yet, or never (then
// *out_is_dead).
rondo_status rondo__describe_find_body(rondo__unit *unit, const rondo__plan *plan,
                                       rondo__step *step, size_t index, const char *name,
                                       rondo__unit **out_body, rondo__plan **out_plan,
                                       bool *out_is_dead);
