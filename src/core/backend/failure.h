// backend/failure.h — failures of work that runs later, on another thread.
//
// Host functions return nothing. One that fails (a reference kernel met an index out of range)
// leaves its error record in the failure slot of its stream, where the next wait finds it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "rondo/status.h"

// Keeps the first failure of work that runs later until a wait reads it. Zeroed: empty.
typedef struct rondo__failure_slot {
    atomic_int state;  // 0 empty, 1 being written or read, 2 full
    rondo_error record;
} rondo__failure_slot;

// Host functions return nothing. One that fails (a reference kernel met an index out of range)
// writes its error record as usual and calls this: the record goes to the stream that runs it, and
// the next synchronize of that stream (on CUDA: of anything on the device) fails with it. The first
// failure wins; outside of a host function this does nothing.
void rondo__host_report_failure(void);
// In a host function: whether one before it has failed, so that what it reads may be garbage.
bool rondo__host_has_failure(void);

// For backends: this thread's reports go to `slot` from now on; returns the former one.
rondo__failure_slot *rondo__failure_enter(rondo__failure_slot *slot);
// For backends: whether this thread's reports go to `slot`, as it runs work of that stream.
bool rondo__failure_is_inside(const rondo__failure_slot *slot);
// For backends: puts this thread's error record into an empty slot.
void rondo__failure_put(rondo__failure_slot *slot);
// For backends: empties the slot; a failure in it becomes this thread's latest record. OK if empty.
RONDO_MUST_USE rondo_status rondo__failure_take(rondo__failure_slot *slot);
