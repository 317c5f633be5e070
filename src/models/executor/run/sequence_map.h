// executor/run/sequence_map.h — SequenceMap: a body for each item of a sequence, on the host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/compile/bodies.h"

// Runs a SequenceMap: its body on each item in turn.
//
// Errors:    as rondo__control_run.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__control_run_sequence_map(const rondo__control *control,
                                                            const rondo_tensor *const *inputs,
                                                            rondo_tensor *results);
