// backend/cuda/driver/cuda_event.h — events.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_device.h"

typedef struct rondo__cuda_event {
    rondo_event head;
    rondo__cu_event native;
    bool is_recorded;        // at least once, not as a node
    uint64_t capture;        // serial of the capture it was recorded in; 0: none
    uint32_t stream_number;  // of the stream it was recorded on
} rondo__cuda_event;

rondo_status rondo__cuda_create_event(rondo_device *device, uint32_t flags,
                                      rondo_event **out_event);
void rondo__cuda_destroy_event(rondo_event *event);
rondo_status rondo__cuda_record_event(rondo_event *event, rondo_stream *stream);
rondo_status rondo__cuda_record_from_outside(rondo_event *event, rondo_stream *stream);
rondo_status rondo__cuda_query_event(rondo_event *event, bool *out_is_complete);
rondo_status rondo__cuda_synchronize_event(rondo_event *event);
rondo_status rondo__cuda_get_elapsed_ns(rondo_event *start, rondo_event *end, int64_t *out_ns);
rondo_status rondo__cuda_wait_event(rondo_stream *stream, rondo_event *event);
