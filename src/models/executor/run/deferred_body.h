// executor/run/deferred_body.h — runs rondo.Rest: ops whose shapes depend on data.
//
// The op's body is an executor of its own. By now all shapes that its plans need are known, so it
// plans by them, captures a plan at its second use, and keeps as many as plan_limit says. Small
// values that decide shapes are part of a plan's key, as those of a caller's inputs are.
//
// On a GPU the body stays on the device: it runs on the stream of the plan around it and reads its
// inputs at their addresses in the GPU's memory. These addresses are part of its plans' keys, and
// mostly the same in each run. Its results are views of its plan's arena or of rooms
// (split_counted.h), valid until the body runs again in the next run of the plan around it. Only
// values of a few elements that decide shapes are copied to the host. The run waits for the work
// before the body, not for the body itself; so the memory that the body's previous run read is free
// again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/compile/bodies.h"

// As rondo__control_run; not on a GPU.
RONDO_MUST_USE rondo_status rondo__control_run_rest(const rondo__control *control,
                                                    const rondo_tensor *const *inputs,
                                                    rondo_tensor *results);

// Whether the step is a rondo.Rest on a GPU.
bool rondo__deferred_stays_on_device(const rondo__plan *plan, const rondo__step *step);

// Runs it.
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST, INTERNAL.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__deferred_run_on_device(rondo__unit *unit, rondo__plan *plan,
                                                          rondo__step *step,
                                                          rondo__body_runner run_body);
