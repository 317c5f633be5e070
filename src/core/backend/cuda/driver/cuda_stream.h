// backend/cuda/driver/cuda_stream.h — streams.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_device.h"

typedef struct rondo__cuda_stream {
    rondo_stream head;
    // Serial of the capture it began or joined; may have ended; 0: none. Atomic because other
    // threads may put events on the stream.
    _Atomic(uint64_t) capture;
    int capture_mode;         // of the capture that began here; RELAXED when none
    uint64_t capture_thread;  // who began it (base/thread.h)
    bool is_origin;           // a capture began here and has not been ended
    bool is_body;             // is_origin, and it records into a body that a conditional node owns
    bool is_scratch;          // has recorded bodies, and nothing else: there is no work to wait for
} rondo__cuda_stream;

// Writes the failure of a call on a stream.
#define RONDO__CUDA_STREAM_FAIL(stream, code, call, ...) \
    RONDO__CUDA_FAIL(rondo__cuda_device_of((stream)->device), (code), (call), __VA_ARGS__)

// The driver's level of a priority: it counts downwards, and takes the nearest that it has.
static inline int rondo__cuda_level_of(int32_t priority) {
    return priority == INT32_MIN ? INT32_MAX : -priority;
}
rondo_status rondo__cuda_create_stream(rondo_device *device, int32_t priority,
                                       rondo_stream **out_stream);
rondo_status rondo__cuda_wrap_stream(rondo_device *device, void *native, rondo_stream **out_stream);
bool rondo__cuda_destroy_stream(rondo_stream *stream);
rondo_status rondo__cuda_synchronize_stream(rondo_stream *stream);
rondo_status rondo__cuda_query_stream(rondo_stream *stream, bool *out_is_idle);
