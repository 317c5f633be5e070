// executor/run/control.h — If, Loop and Scan as control flow of the host. Bodies are units of
// their own, with plans and graphs, so that what is inside a loop is captured and replayed like
// anything else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/compile/bodies.h"

// Runs If, Loop, Scan or SequenceMap: inputs and results are tensors in host memory; results are
// allocated.
//
// Errors:    as rondo__bypass_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__control_run(const rondo__control *control,
                                               const rondo_tensor *const *inputs,
                                               rondo_tensor *results);
