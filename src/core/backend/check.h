// backend/check.h — the argument checks that every public call of the device layer shares.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "base/error.h"

// Writes the record of a missing argument. Out of line: the checks below stay small.
rondo_status rondo__check_fail_null(const char *call, const char *argument);
rondo_status rondo__check_fail_lost(const rondo_device *device, const char *call);

// INVALID unless `stream` is of `device`, which is that of a `kind` with this label (NULL: none).
rondo_status rondo__check_fail_device(const rondo_device *device, const rondo_stream *stream,
                                      const char *call, const char *kind, const char *label);
static inline rondo_status rondo__check_same_device(const rondo_device *device,
                                                    const rondo_stream *stream, const char *call,
                                                    const char *kind, const char *label) {
    return __builtin_expect(stream->device == device, 1)
               ? RONDO_STATUS_OK
               : rondo__check_fail_device(device, stream, call, kind, label);
}

// INVALID when `pointer` is NULL.
static inline rondo_status rondo__check_pointer(const void *pointer, const char *call,
                                                const char *argument) {
    return __builtin_expect(pointer != NULL, 1) ? RONDO_STATUS_OK
                                                : rondo__check_fail_null(call, argument);
}

// LOST when the device is poisoned.
static inline rondo_status rondo__check_alive(const rondo_device *device, const char *call) {
    return __builtin_expect(!atomic_load_explicit(&device->is_lost, memory_order_relaxed), 1)
               ? RONDO_STATUS_OK
               : rondo__check_fail_lost(device, call);
}

// LOST in a process that was forked from the device's. For calls that a lost device answers, and
// that take locks: in the child another thread of the parent may hold those for good.
static inline rondo_status rondo__check_process(const rondo_device *device, const char *call) {
    return __builtin_expect(!atomic_load_explicit(&device->is_forked, memory_order_relaxed), 1)
               ? RONDO_STATUS_OK
               : rondo__check_fail_lost(device, call);
}

static inline rondo_status rondo__check_device(const rondo_device *device, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(device, call, "device"));
    return rondo__check_alive(device, call);
}

static inline rondo_status rondo__check_stream(const rondo_stream *stream, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(stream, call, "stream"));
    return rondo__check_alive(stream->device, call);
}

static inline rondo_status rondo__check_event(const rondo_event *event, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(event, call, "event"));
    return rondo__check_alive(event->device, call);
}
