// executor/compile/body_plan.h — the body of a control op as a part of the plan around it.
//
// A part is a plan of its own, made by the code that makes all plans, so it has the kernels that
// the host's control flow would run. But it has no memory: its inputs are values of the plan around
// it, and its arena is a piece of the op's workspace. Both are known at launch, which binds the
// part: it gives every value slot and item its address.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"
#include "program/body_view.h"

// How plans are made: compile_plan.c hands it down.
typedef struct rondo__planner {
    rondo_status (*specialise)(const rondo__unit *unit, const rondo_tensor *feeds,
                               rondo_program **out_program, uint8_t *wanted);
    rondo_status (*create)(rondo__unit *unit, rondo_program *program, rondo__plan **out_plan);
} rondo__planner;

// Why a control op is left to the host.
typedef struct rondo__refusal {
    char text[320];  // empty: it is not
} rondo__refusal;

typedef struct rondo__body_plan {
    rondo__body_view view;
    rondo__unit *unit;
    rondo__plan *plan;
    uint32_t *uses;  // of each value of the plan
} rondo__body_plan;

// Plans a body for inputs of known shape, one info for each; an input whose info has a constant may
// be fixed to it.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST. Other obstacles are no failures but
//            refusals, without a part.
// Ownership: free with rondo__body_plan_deinit, also after a failure.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__body_plan_init(rondo__unit *around,
                                                  const rondo__planner *planner,
                                                  const rondo__body_view *view, rondo__part kind,
                                                  const rondo__tensor_info *feeds,
                                                  rondo__body_plan *out_part,
                                                  rondo__refusal *out_refusal);
void rondo__body_plan_deinit(rondo__body_plan *part);

// The value slot of input or output `index`.
const rondo__slot *rondo__body_plan_get_input(const rondo__body_plan *part, size_t index);
const rondo__slot *rondo__body_plan_get_output(const rondo__body_plan *part, size_t index);

// Whether output `index` is made in the memory that it was bound to.
bool rondo__body_plan_makes_in_place(const rondo__body_plan *part, size_t index);

// Gives the part its addresses. inputs and outputs, one for each; NULL where nothing is bound.
void rondo__body_plan_bind(rondo__body_plan *part, void *arena, void *const *inputs,
                           void *const *outputs);

// Puts the part's kernels on the stream.
//
// Errors:    as the kernels; the record names the node.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__body_plan_launch(const rondo__body_plan *part,
                                                    rondo_stream *stream);
