// backend/backend.c — the backends there are, and which of them a device belongs to.
// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include "base/error.h"

static const rondo__backend *const default_backends[] = {
    &rondo__backend_host,
    &rondo__backend_cuda,
    NULL,
};
const rondo__backend *const *rondo__backend_list = default_backends;

const char *rondo_device_get_name(const rondo_device *device) {
    return device != NULL ? device->name : "";
}

bool rondo_device_is_host(const rondo_device *device) {
    return device != NULL && device->backend == &rondo__backend_host;
}

rondo_status rondo__stream_fail_recording(const rondo_stream *stream) {
    return RONDO_FAIL_AS("rondo_event_record", STATE,
                         "this must come after earlier work on stream %u, which records a capture "
                         "now and cannot be waited for; do it before or after that",
                         (unsigned)stream->number);
}
