// backend/host/host_stream.h — streams: a ring of commands and a worker thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "backend/host/host_lane.h"

typedef struct rondo__host_stream rondo__host_stream;
typedef struct rondo__host_capture rondo__host_capture;

struct rondo__host_stream {
    rondo_stream head;
    rondo__host_lane *lane;
    // Used by the thread that submits.
    unsigned char *ring;
    uint64_t submitted;        // position after the last command
    uint64_t known_completed;  // what submitting last saw of lane->completed
    bool has_worker;
    pthread_t worker;
    // Position up to which the worker may run. In a line of its own with the worker's bed.
    _Alignas(64) _Atomic(uint64_t) published;
    atomic_uint is_asleep;  // futex: 1 while the worker sleeps or is about to
    // NULL: not recording. Written under device->capture_lock; read without it by the stream's own
    // thread, which is the only one to make it non-NULL.
    _Alignas(64) _Atomic(rondo__host_capture *) capture;
    // The nodes that the next recorded one depends on. Guarded by device->capture_lock.
    size_t *frontier;
    size_t frontier_count;
    size_t frontier_capacity;
    rondo__host_stream *next_in_capture;  // guarded by device->capture_lock
    rondo__host_stream *next;             // guarded by device->lock
    rondo__host_stream *previous;         // guarded by device->lock
};

// Makes room for one command whose `run` gets `argument_bytes` bytes at *out_arguments (aligned to
// 16), to be filled and then published. Nothing else may be submitted in between.
//
// Errors:    NO_MEMORY (the worker thread could not be started).
RONDO_MUST_USE rondo_status rondo__host_submit(rondo__host_stream *stream, void (*run)(void *),
                                               size_t argument_bytes, void **out_arguments);
// Lets the worker run what was submitted.
void rondo__host_publish(rondo__host_stream *stream);
// Puts a wait for another lane on the stream.
RONDO_MUST_USE rondo_status rondo__host_submit_wait(rondo__host_stream *stream,
                                                    rondo__host_lane *lane, uint64_t position);

rondo_status rondo__host_create_stream(rondo_device *device, int32_t priority,
                                       rondo_stream **out_stream);
bool rondo__host_destroy_stream(rondo_stream *stream);
rondo_status rondo__host_synchronize_stream(rondo_stream *stream);
rondo_status rondo__host_drain_stream(rondo_stream *stream);
rondo_status rondo__host_query_stream(rondo_stream *stream, bool *out_is_idle);
