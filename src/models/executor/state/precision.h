// executor/state/precision.h — half precision: what the caller asks for, and the pass over a plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Marks what the caller's patterns name in `program`, a clone of `source`. A pattern that names
// nothing in `source` is an error.
//
// Errors:    INVALID (names the pattern).
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__precision_mark(rondo_program *program,
                                                  const rondo_program *source,
                                                  const rondo_executor_options *options);

// The program in half precision, where the executor computes in that: before other passes, because
// precision is decided for the model's own ops.
//
// Errors:    NO_MEMORY, BAD_DATA, INTERNAL.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__precision_apply(rondo__unit *unit, rondo__plan *plan);
