// backend/host/host_device.h — the host as a device.
// docs/architecture.md says in which order its locks are held.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include "backend/backend.h"
#include "base/workers.h"

struct rondo__host_stream;
struct rondo__host_team;

typedef struct rondo__host_device {
    rondo_device head;
    pthread_mutex_t lock;
    struct rondo__host_stream *streams;  // guarded by lock
    // Guards all that streams record: their captures, frontiers and templates. Held for the time of
    // one append; a stream that does not record never takes it.
    pthread_mutex_t capture_lock;
    uint64_t memory_bytes;  // what one allocation may ask for at most: memory and swap together
    struct rondo__host_team *team;
    rondo__workers *workers;  // shares the loops inside ops
} rondo__host_device;

static inline rondo__host_device *rondo__host_device_of(rondo_device *device) {
    return (rondo__host_device *)device;
}

int32_t rondo__host_count_devices(char *reason, size_t reason_bytes);
rondo_status rondo__host_describe_device(int32_t ordinal, rondo_device_info *out_info);
rondo_status rondo__host_open_device(int32_t ordinal, rondo_device **out_device);
void rondo__host_close_device(rondo_device *device);
rondo_status rondo__host_synchronize_device(rondo_device *device);
