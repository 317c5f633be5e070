// executor/run/bypass.h — ops that run on the host between segments.
//
// Everything before the op must have finished; then its inputs are looked at where they are
// (constants, dynamic tensors, and on the host device the arena itself) or copied back (CUDA
// arena), the reference or the body runs, and the results go where their slots say. Inputs that own
// their bytes are not written any more, so that sequences may keep them.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_RUN_BYPASS_H
#define RONDO_EXECUTOR_RUN_BYPASS_H

#include "executor/compile/bodies.h"

// Runs one bypass step: waits for the stream, computes on the host, puts results where their slots
// are.
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__bypass_run(rondo_executor *executor, rondo__plan *plan,
                                              rondo__step *step, rondo__body_runner run_body);

#endif  // RONDO_EXECUTOR_RUN_BYPASS_H
