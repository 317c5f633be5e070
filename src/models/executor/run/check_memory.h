// executor/run/check_memory.h — copies of the memory that a segment writes, before and after its
// two runs.
//
// The regions that its ops write are the plan's arena, and each output elsewhere. A check keeps
// three copies of them: `before` on the device, to start the second run from, and the results of
// the eager run and of the replay, in host memory, to compare.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

typedef struct rondo__check_region {
    char *address;
    size_t bytes;
    size_t place;     // in each copy
    bool is_on_host;  // pinned memory of a plan for a GPU
} rondo__check_region;

typedef struct rondo__check_memory {
    rondo__unit *unit;
    rondo__peer *peer;     // whose segment it is; NULL: the executor's device's
    rondo_stream *stream;  // that it runs on
    rondo__check_region *regions;
    size_t region_count;
    size_t bytes;  // of a copy
    char *before;  // on the device
    char *eager;
    char *replayed;
    // Generators of the caller's executor, in its order: before, after the eager run, after the
    // replay.
    size_t generator_count;
    rondo_generator_state *states[3];
} rondo__check_memory;

// Finds the regions, waits for all streams of the plan, and keeps what is there as `before`.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST.
// Ownership: the caller deinits it, also after a failure.
// Threads:   one thread per executor, as for all below.
RONDO_MUST_USE rondo_status rondo__check_memory_init(rondo__unit *unit, const rondo__plan *plan,
                                                     const rondo__step *step,
                                                     rondo__check_memory *out_memory);
void rondo__check_memory_deinit(rondo__check_memory *memory);

// Everything is as it was before.
RONDO_MUST_USE rondo_status rondo__check_memory_go_back(rondo__check_memory *memory);

// Waits for the stream and keeps what is there as `eager` or `replayed`.
RONDO_MUST_USE rondo_status rondo__check_memory_keep(rondo__check_memory *memory, bool is_replayed);

// Where the bytes at a device address lie in each copy; SIZE_MAX: in no region.
size_t rondo__check_memory_find(const rondo__check_memory *memory, const void *address,
                                size_t bytes);
