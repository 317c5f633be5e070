// backend/host/host_event.h — events as objects.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/host/host_capture.h"

typedef struct rondo__host_event {
    rondo_event head;
    atomic_int reference_count;    // the owner, and each time stamp still to be taken
    pthread_mutex_t lock;          // guards all below
    rondo__host_lane *lane;        // retained; NULL: not recorded outside a capture
    uint64_t position;             // complete when `lane` has passed this
    rondo__host_capture *capture;  // retained; non-NULL: stands for `nodes` of this capture
    size_t *nodes;
    size_t node_count;
    size_t node_capacity;
    uint64_t record_serial;  // how often a time stamp was asked for
    uint64_t stamp_serial;   // which of them stamp_ns belongs to; 0: none
    uint64_t stamp_ns;
    // RONDO_EVENT_EXTERNAL only: which records have happened. Those on different streams may do so
    // in another order than they were asked for.
    uint64_t done_serial;  // every one up to this
    uint64_t *early;       // and these later ones
    size_t early_count;
    size_t early_capacity;    // room for all that were asked for or promised
    size_t promised_count;    // records that are about to be asked for
    pthread_cond_t happened;  // one more
} rondo__host_event;

static inline bool rondo__host_is_external(const rondo_event *event) {
    return (event->flags & RONDO_EVENT_EXTERNAL) != 0;
}

rondo_status rondo__host_create_event(rondo_device *device, uint32_t flags,
                                      rondo_event **out_event);
void rondo__host_destroy_event(rondo_event *event);

// Takes the time for record number `serial`. Drops no reference.
void rondo__host_stamp_event(rondo__host_event *event, uint64_t serial);
void rondo__host_release_event(rondo__host_event *event);
