// executor/run/run.h — running a plan's steps: eager the first time, captured the second, replayed
// from then on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/compile/bodies.h"

// The steps of one run, without transfers; does not wait at the end. Segments are captured from the
// plan's second run on, unless graphs are off.
//
// run_body   runs the bodies of control nodes
//
// Errors:    as rondo_executor_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_run_steps(rondo__unit *unit, rondo__plan *plan,
                                                  rondo__body_runner run_body,
                                                  bool *out_was_replayed);

// Records the segments of a plan that runs for the first time, while the device works, where other
// shapes came before: such a plan is replayed when it comes back.
//
// Errors:    LOST; other failures come back with the second run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_capture_ahead(rondo__unit *unit, rondo__plan *plan);
