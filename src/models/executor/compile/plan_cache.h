// executor/compile/plan_cache.h — the plans of an executor: found by what is fed, made, given up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// An empty list of plans, with the limits that the options say.
void rondo__unit_init_plans(rondo__unit *unit);

// The plan for these feeds, made when there is none; value keys are handled here.
//
// Errors:    as rondo__plan_create.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_find_plan(rondo__unit *unit, const rondo_tensor *feeds,
                                                  rondo__plan **out_plan);

// Whether values of inputs are part of what plans are found by.
bool rondo__unit_has_keys(const rondo__unit *unit);

// Counts another run of a plan that was found before, and is still kept.
void rondo__unit_use_plan(rondo__unit *unit, rondo__plan *plan);

// The same for a plan that is there; *out_plan is NULL where none is. Nothing is compiled, and
// nothing waits: no input whose value is a key may lie on the device.
//
// Errors:    NO_MEMORY, INVALID (names such an input).
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_look_up_plan(rondo__unit *unit, const rondo_tensor *feeds,
                                                     rondo__plan **out_plan);

// Infers the outputs from the dtypes and shapes of the feeds alone; dtype NONE if no run accepts
// them.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_infer_outputs(rondo__unit *unit, const rondo_tensor *feeds,
                                                      rondo__tensor_info *out_infos);

// The largest value of a bounded input that is within its bounds.
int64_t rondo__unit_find_most(const rondo__unit *unit, const rondo_tensor *feeds, size_t input);

// Whether the host decides an If of the plan.
bool rondo__plan_leaves_branches(const rondo__plan *plan);

// An input as the key of a plan has it: what it was fed, or is to be fed.
typedef struct rondo__key_input {
    rondo_tensor tensor;  // dtype and shape; with data, borrowed from the key, where those decide
    bool is_within;       // its value is within its bounds
} rondo__key_input;

// Reads the key of a plan for `input_count` inputs. False: it is none that means the same in
// another process, as where an input lies counts, or it stands for shapes of every kind.
bool rondo__plan_key_read(const void *key, size_t key_bytes, rondo__key_input *out_inputs,
                          size_t input_count);
