// backend/host/host_event_work.h — recording events, waiting for them, asking about them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__host_record_event(rondo_event *event, rondo_stream *stream);
rondo_status rondo__host_record_from_outside(rondo_event *event, rondo_stream *stream);
rondo_status rondo__host_wait_event(rondo_stream *stream, rondo_event *event);
rondo_status rondo__host_query_event(rondo_event *event, bool *out_is_complete);
rondo_status rondo__host_synchronize_event(rondo_event *event);
rondo_status rondo__host_get_elapsed_ns(rondo_event *start, rondo_event *end, int64_t *out_ns);
