// executor/run/input_lanes.h — runs that nobody waited for yet, and how their inputs get to the
// device.
//
// A run that does not wait must not hold its caller's memory, so inputs in host memory are copied
// into a lane at once. There are two, used in turn:
//
//   GPU    caller -> pinned -(copy stream)-> device -(run's stream)-> arena
//   host   caller -> lane                           -(run's stream)-> arena
//
// The first copy of a GPU goes on beside the run before. The arena has one place for an input,
// which that run may still read; hence the second buffer and its copy on the device. A lane is
// filled again when its former run has taken it in: so a third run waits for the inputs of the
// first.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_RUN_INPUT_LANES_H
#define RONDO_EXECUTOR_RUN_INPUT_LANES_H

#include "executor/state/run_state.h"

typedef struct rondo__input_lane {
    void *pinned;           // in host memory
    void *device;           // NULL on the host device
    size_t bytes;           // of each
    rondo_event *uploaded;  // GPU: the copy stream has read `pinned`
    rondo_event *consumed;  // the run's stream has read the lane
    bool is_used;
    bool is_read_late;  // GPU: the run's stream reads `pinned`, for ops of the processor
} rondo__input_lane;

struct rondo__async {
    rondo_stream *copy_stream;  // NULL on the host device
    rondo__input_lane lanes[2];
    size_t next;            // lane
    rondo_event *finished;  // behind the last run
    bool is_under_way;      // runs were put on the stream since the last wait
    bool is_putting;        // a run is being put on the stream: nothing may wait for long
    uint64_t start_ns;      // of the last run
    rondo_run_times times;
    rondo_executor *active;  // what the last run was of
};

// Makes executor->root->async, where there is none yet.
//
// Errors:    NO_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__async_make(rondo_executor *executor);

// Copies the inputs in host memory through a lane, in stream order.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__input_lanes_feed(rondo_executor *executor,
                                                    const rondo__plan *plan,
                                                    const rondo_tensor *feeds);
// Whether this run is put on the stream and not waited for.
static inline bool rondo__executor_is_putting(const rondo_executor *executor) {
    return executor->root->async != NULL && executor->root->async->is_putting;
}

#endif  // RONDO_EXECUTOR_RUN_INPUT_LANES_H
