// executor/run/input_lanes.h — asynchronous runs, and how their inputs get to the device.
//
// A run that does not wait must not hold its caller's memory, so inputs in host memory are copied
// into an input lane at once. There are two lanes, used in turn:
//
//   GPU    caller -> pinned -(copy stream)-> device -(run's stream)-> arena
//   host   caller -> lane                           -(run's stream)-> arena
//
// The first copy of a GPU overlaps with the previous run. The arena has one value slot for an
// input, which that run may still read; hence the second buffer and its copy on the device. A lane
// is filled again when its former run has read it: so a third run waits until the first has read
// its inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/run_state.h"

// Makes executor->caller.async, where there is none yet.
//
// Errors:    NO_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__async_make(rondo_executor *executor);

// Copies the inputs in host memory through an input lane, in stream order.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__input_lanes_feed(rondo__unit *unit, const rondo__plan *plan,
                                                    const rondo_tensor *feeds);
// Whether this run is put on the stream and not waited for.
static inline bool rondo__executor_is_putting(const rondo_executor *executor) {
    return executor->caller.async != NULL && executor->caller.async->is_putting;
}
