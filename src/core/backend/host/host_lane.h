// backend/host/host_lane.h — how far a stream's work has come.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "base/memory.h"

// How far a stream's work has come. Outlives the stream, so that events and executables may ask.
// Positions are bytes of commands put into the stream's ring since its beginning; they only grow.
typedef struct rondo__host_lane {
    _Alignas(64) _Atomic(uint64_t) completed;  // the worker has run everything before this
    // Smallest position that a thread sleeps for; UINT64_MAX: none sleeps. Written under lock.
    _Alignas(64) _Atomic(uint64_t) wake_target;
    atomic_uint wake_word;   // the futex sleepers wait on; changed under lock
    atomic_uint wait_count;  // by which the waits are told that try a long spin
    atomic_bool is_short;    // the last long spin met the end of the work
    atomic_int reference_count;
    pthread_mutex_t lock;
    rondo__failure_slot failure;
} rondo__host_lane;

rondo__host_lane *rondo__host_lane_create(void);  // NULL: no memory, recorded
rondo__host_lane *rondo__host_lane_retain(rondo__host_lane *lane);
void rondo__host_lane_release(rondo__host_lane *lane);  // NULL is fine
// Sleeps (after a short spin) until the lane has passed `position`.
void rondo__host_lane_wait(rondo__host_lane *lane, uint64_t position);
// STATE where this thread runs a host function of the lane, which would wait for its own end.
RONDO_MUST_USE rondo_status rondo__host_lane_wait_outside(rondo__host_lane *lane,
                                                          uint64_t position);
void rondo__host_lane_wake(rondo__host_lane *lane);  // the slow half of complete

static inline bool rondo__host_lane_has_passed(rondo__host_lane *lane, uint64_t position) {
    return atomic_load_explicit(&lane->completed, memory_order_acquire) >= position;
}

// Called by the worker after each command. Sequentially consistent against lane_wait: either the
// sleeper sees the new position, or we see its target.
static inline void rondo__host_lane_complete(rondo__host_lane *lane, uint64_t position) {
    atomic_store(&lane->completed, position);
    if (position >= atomic_load(&lane->wake_target)) {
        rondo__host_lane_wake(lane);
    }
}
