// executor/compile/declared.h — compares what the model declares with what runs give.
//
// If a feed contradicts a declaration, the caller is wrong; if a result does, the model is. The
// error names both sides. Where files in use are known to be wrong (an output of another rank, a
// symbol that stands for two things on both sides of the model) a warning says so, once: nothing
// depends on it, and the other runtimes run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Begins the symbols of a run anew: only those that were set have an extent.
void rondo__executor_forget_symbols(rondo_executor *executor);

// Gives a symbol its extent in this run, for `owner`, unless it has one. Returns what it has.
const rondo__bound_symbol *rondo__executor_bind_symbol(rondo_executor *executor, int32_t symbol,
                                                       int64_t extent, const char *owner);

// Checks a result against what the model declares of output `index`. Another shape is warned of,
// once for an executor: the result counts.
//
// Errors:    BAD_DATA (another dtype).
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_check_output(rondo__unit *unit, size_t index,
                                                     rondo_dtype dtype, const rondo_shape *shape);
