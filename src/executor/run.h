// executor/run.h — running a plan's steps: eager the first time, captured the second, replayed from
// then on.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_RUN_H
#define RONDO_EXECUTOR_RUN_H

#include "executor/bodies.h"

// The steps of one run, without transfers; does not wait at the end. Segments are captured from the
// plan's second run on, unless graphs are off.
//
// run_body   runs the bodies of control nodes
//
// Errors:    as rondo_executor_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_run_steps(rondo_executor *executor, rondo__plan *plan,
                                                  rondo__body_runner run_body,
                                                  bool *out_was_replayed);

#endif  // RONDO_EXECUTOR_RUN_H
