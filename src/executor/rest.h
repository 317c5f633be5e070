// executor/rest.h — runs rondo.Rest: ops that waited for shapes which depend on data.
//
// The op's body is an executor of its own. By now all shapes that its plans need are known, so it
// plans by them, captures a plan at its second use, and keeps as many as plan_limit says. Small
// values that decide shapes are part of a plan's key, as those of a caller's inputs are.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_REST_H
#define RONDO_EXECUTOR_REST_H

#include "executor/bodies.h"

// As rondo__control_run.
RONDO_MUST_USE rondo_status rondo__control_run_rest(const rondo__control *control,
                                                    const rondo_tensor *const *inputs,
                                                    rondo_tensor *results);

#endif  // RONDO_EXECUTOR_REST_H
