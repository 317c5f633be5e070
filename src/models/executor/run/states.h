// executor/run/states.h — inputs that are what outputs of the run before were.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_RUN_STATES_H
#define RONDO_EXECUTOR_RUN_STATES_H

#include "executor/run/fetch.h"
#include "executor/state/run_state.h"

// The state of an input, by its index; NULL: it is not bound.
rondo__state *rondo__state_find(const rondo_executor *executor, size_t input);

// Copies what the run has made into the spares, on the stream.
//
// Errors:    UNSUPPORTED (an output that is no tensor of numbers), NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__states_put(const rondo__fetch *fetch);
// The run has succeeded: what it made are the values of the next.
void rondo__states_advance(rondo_executor *executor);

#endif  // RONDO_EXECUTOR_RUN_STATES_H
