// backend/backend.c — the backends there are.
// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include "base/error.h"

static const rondo__backend *const default_backends[] = {
    &rondo__backend_host,
    &rondo__backend_cuda,
    NULL,
};
const rondo__backend *const *rondo__backend_list = default_backends;

rondo_status rondo__stream_fail_recording(const rondo_stream *stream) {
    return RONDO_FAIL_AS("rondo_event_record", STATE,
                         "this must come after earlier work on stream %u, which records a capture "
                         "now and cannot be waited for; do it before or after that",
                         (unsigned)stream->number);
}
