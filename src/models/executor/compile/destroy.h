// executor/compile/destroy.h — the end of executors, units and plans. Units and plans own each
// other: plans of control nodes own the units of their bodies. And how a unit begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Waits for what the plan runs, and frees it with its bodies.
void rondo__plan_destroy(rondo__unit *unit, rondo__plan *plan);  // NULL is fine

// Begins a unit of zeros for `program`, which it retains. One of the next two ends it.
void rondo__unit_init(rondo__unit *unit, rondo_executor *executor, rondo_program *program,
                      bool is_training);

void rondo__unit_destroy(rondo__unit *unit);  // NULL is fine

// Hands out a unit that was made, or destroys it where `status` is a failure, which it returns.
RONDO_MUST_USE rondo_status rondo__unit_finish(rondo__unit *unit, rondo_status status,
                                               rondo__unit **out_unit);

// Gives up a reference. The last one frees the executor, on whichever thread.
void rondo__executor_release(rondo_executor *executor);
