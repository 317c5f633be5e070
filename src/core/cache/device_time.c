// cache/device_time.c — see device_time.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache/device_time.h"

#include "backend/backend.h"
#include "base/error.h"

rondo_status rondo__device_time_init(rondo__device_time *out_time, rondo_device *device) {
    *out_time = (rondo__device_time){.start = NULL};
    rondo_status status = rondo_event_create(device, RONDO_EVENT_TIMED, &out_time->start);
    if (status == RONDO_STATUS_OK) {
        status = rondo_event_create(device, RONDO_EVENT_TIMED, &out_time->end);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__device_time_deinit(out_time);
    }
    return status;
}

void rondo__device_time_deinit(rondo__device_time *time) {
    rondo_event_destroy(time->start);
    rondo_event_destroy(time->end);
    *time = (rondo__device_time){.start = NULL};
}

// Takes the time of the run before, if it is over.
static rondo_status collect(rondo__device_time *time) {
    if (time->target == NULL) {
        return RONDO_STATUS_OK;
    }
    // Asked of the backend itself: the program's captures in global mode forbid the public call.
    bool is_complete = false;
    int64_t ns = 0;
    RETURN_IF_ERROR(time->end->device->backend->query_event(time->end, &is_complete));
    if (is_complete) {
        RETURN_IF_ERROR(rondo_event_get_elapsed_ns(time->start, time->end, &ns));
        if (ns > 0) {
            rondo__cost_add(time->target, (uint64_t)ns);
        }
        time->target = NULL;
    }
    return RONDO_STATUS_OK;
}

// On an idle stream the start passes at once, and the time would be that of the calls, or of a
// graph on its way to the device. Only a stream with work before the run shows what the device
// needs.
static rondo_status start(rondo__device_time *time, rondo_stream *stream, rondo__cost *target) {
    bool is_idle = false;
    RETURN_IF_ERROR(rondo_event_record(time->start, stream));
    RETURN_IF_ERROR(time->start->device->backend->query_event(time->start, &is_idle));
    if (!is_idle) {
        time->target = target;
        time->is_begun = true;
    }
    return RONDO_STATUS_OK;
}

static void record(rondo__device_time *time, rondo_stream *stream, rondo__cost *target) {
    rondo_status status = collect(time);
    if (status == RONDO_STATUS_OK && time->target == NULL) {
        status = start(time, stream, target);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__device_time_deinit(time);
    }
}

void rondo__device_time_begin(rondo__device_time *time, rondo_stream *stream, rondo__cost *target) {
    rondo_error saved;
    if (time->start != NULL) {
        rondo__error_save(&saved);
        record(time, stream, target);
        rondo__error_restore(&saved);
    }
}

void rondo__device_time_collect(rondo__device_time *time) {
    rondo_error saved;
    if (time->target != NULL) {
        rondo__error_save(&saved);
        if (collect(time) != RONDO_STATUS_OK) {
            rondo__device_time_deinit(time);
        }
        rondo__error_restore(&saved);
    }
}

void rondo__device_time_end(rondo__device_time *time, rondo_stream *stream) {
    if (!time->is_begun) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    time->is_begun = false;
    if (rondo_event_record(time->end, stream) != RONDO_STATUS_OK) {
        rondo__device_time_deinit(time);
    }
    rondo__error_restore(&saved);
}

void rondo__device_time_drop(rondo__device_time *time, const rondo__cost *target) {
    if (time->target == target) {
        time->target = NULL;
        time->is_begun = false;
    }
}
