// executor/devices/stand_ins.h — lets a plan's kernels work on addresses that are not the plan's:
// on the program's tensors where these may stand in for values, and on another arena.
//
// A feed or fetch may stand in for a value if it lies on the executor's device, aligned as the
// arena is. A fetch must also share no bytes with a feed or another fetch, because ops write it
// while these are still read; nor may a feed where an output is the input itself, because fetches
// are read behind the ops. Other tensors are copied to or from the value. States are used in their
// own memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/run_state.h"
#include "graph/watchdog.h"

// Nothing stands in yet.
//
// Errors:    NO_MEMORY.
// Ownership: free with rondo__stand_ins_deinit, also after a failure.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__stand_ins_init(const rondo__unit *unit, const rondo__plan *plan,
                                                  rondo__stand_ins *out_places);

// Whether the tensor lies on the executor's device.
static inline bool rondo__stand_ins_is_near(const rondo_executor *executor,
                                            const rondo_tensor *tensor) {
    return tensor->device == executor->device;
}

// Lets feeds stand in, then results. A result without data stands in for nothing.
void rondo__stand_ins_choose(rondo__stand_ins *places, const rondo_tensor *feeds,
                             const rondo_tensor *results, const bool *wants);

// Where a value lies.
void *rondo__stand_ins_find(const rondo__stand_ins *places, int32_t value);

// Fails unless all of the plan's work can be recorded with other addresses.
//
// has_room   there is a second arena for the processor, and a buffer for weights.
//
// Errors:    UNSUPPORTED (names the op).
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__stand_ins_check(const rondo__plan *plan, const char *call,
                                                   bool has_room);
// How many addresses the lists of host functions hold.
size_t rondo__stand_ins_count_lists(const rondo__plan *plan);

// If the executor has a watchdog, launches of a plan with one segment repeat the marks of the
// plan's graph from now on. False: an earlier recording repeats the marks of another graph.
bool rondo__stand_ins_watch(rondo__stand_ins *places);

// Puts a replay of such a recording on the stream, watched where its marks are.
//
// Errors:    those of `put`.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__stand_ins_replay(const rondo__stand_ins *places,
                                                    rondo__watchdog_put put, void *user_data);

// Launches the kernels of all segments.
//
// Errors:    those of the launches; names the op.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__stand_ins_launch(rondo__stand_ins *places, rondo_stream *stream);

// Launches the kernel of one item of `stand_ins`, a rondo__stand_ins; hosted ones only by the call
// above. A rondo__branches_record takes it as it is.
//
// Errors:    as above.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__stand_ins_launch_item(void *stand_ins, size_t item,
                                                         rondo_stream *stream);
