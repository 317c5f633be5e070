// executor/run/bypass.h — ops that run on the host between segments.
//
// The run waits for all work before the op. Then it reads the op's inputs where they are
// (constants, dynamic tensors, and on the host device the arena) or copies them back (CUDA arena),
// runs the reference or the body, and stores the results in their value slots. Inputs that own
// their bytes are not written later, so that sequences may keep them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/compile/bodies.h"

// Runs one bypass step: waits for the stream, computes on the host, puts results where their slots
// are.
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__bypass_run(rondo__unit *unit, rondo__plan *plan,
                                              rondo__step *step, rondo__body_runner run_body);
