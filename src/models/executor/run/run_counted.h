// executor/run/run_counted.h — the step behind a segment that waits for how much an op has found
// (compile/split_counted.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Runs a RONDO__STEP_COUNT.
//
// Errors:    those of rondo_stream_synchronize and of rondo__device_control_check; INTERNAL.
RONDO_MUST_USE rondo_status rondo__counted_run(rondo__unit *unit, rondo__plan *plan,
                                               const rondo__step *step);
