// executor/compile/bodies.h — the units that run the bodies of control nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"
#include "program/body_view.h"

// Runs the unit of a body. It is rondo__unit_run_tensors, handed down from there, because
// the steps of a body may be control nodes again.
typedef rondo_status (*rondo__body_runner)(rondo__unit *body, const rondo_tensor *feeds,
                                           rondo_tensor *results, const bool *wants);

// A control node that is to be run.
typedef struct rondo__control {
    rondo__unit *unit;
    const rondo__node *node;
    rondo__step *step;  // owns the units of its bodies
    rondo__body_runner run_body;
} rondo__control;

// The unit of a body, made at its first use; `step` owns it.
RONDO_MUST_USE rondo_status rondo__body_get_unit(rondo__unit *parent, const rondo__node *node,
                                                 rondo__step *step, const rondo__body_view *view,
                                                 rondo__unit **out_unit);
