// device/event.c — events: argument checks and ownership.
// SPDX-License-Identifier: Apache-2.0
#include "device/event.h"

#include "backend/cause.h"
#include "backend/check.h"
#include "base/log/hook.h"
#include "base/memory.h"
#include "base/use_count.h"
#include "capture/capture.h"
#include "capture/forbid.h"

// ---- life -------------------------------------------------------------------------------------

rondo_status rondo_event_create(rondo_device *device, uint32_t flags, rondo_event **out_event) {
    RETURN_IF_ERROR(rondo__check_pointer(out_event, __func__, "out_event"));
    *out_event = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    if ((flags & ~(uint32_t)(RONDO_EVENT_TIMED | RONDO_EVENT_EXTERNAL)) != 0) {
        return RONDO_FAIL(INVALID,
                          "event flags 0x%x have unknown bits; there are RONDO_EVENT_TIMED and "
                          "RONDO_EVENT_EXTERNAL",
                          (unsigned)flags);
    }
    rondo_event *event = NULL;
    RETURN_IF_ERROR(device->backend->create_event(device, flags, &event));
    rondo_device_retain(device);
    atomic_init(&event->reference_count, 1);
    *out_event = event;
    return RONDO_STATUS_OK;
}

static void release_event(rondo_event *event) {
    if (rondo__reference_drop(&event->reference_count)) {
        rondo_device *device = event->device;
        device->backend->destroy_event(event);
        rondo_device_release(device);
    }
}

void rondo_event_destroy(rondo_event *event) {
    if (event != NULL && !atomic_load(&event->device->is_forked)) {
        release_event(event);
    }
}

// ---- external events in captures --------------------------------------------------------------

// Keeps an external event alive for a graph that records it or waits for it.
typedef struct event_keeper {
    rondo__participant head;
    rondo_event *event;  // retained
} event_keeper;

static void destroy_keeper(rondo__participant *participant) {
    event_keeper *keeper = (event_keeper *)participant;
    release_event(keeper->event);
    rondo__free(keeper);
}

static const rondo__participant_type keeper_type = {
    .name = "an external event",
    .destroy = destroy_keeper,
};

rondo_status rondo__event_keep_for_graph(rondo_event *event, rondo_stream *stream,
                                         const char *call) {
    if ((event->flags & RONDO_EVENT_EXTERNAL) == 0) {
        return RONDO_STATUS_OK;
    }
    rondo__capture *capture;
    uint64_t id;
    RETURN_IF_ERROR(rondo__capture_find(stream, &capture, &id));
    if (capture == NULL) {
        return RONDO_STATUS_OK;
    }
    if (rondo__capture_find_body(capture, id) != NULL) {
        return RONDO_FAIL_AS(
            call, UNSUPPORTED,
            "an external event cannot be recorded or waited for inside the body of a "
            "conditional node; do it before or behind that node");
    }
    if (rondo__capture_find_participant(capture, &keeper_type, event) != NULL) {
        return RONDO_STATUS_OK;
    }
    event_keeper *keeper = rondo__calloc(1, sizeof *keeper);
    if (keeper == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    keeper->head = (rondo__participant){.type = &keeper_type, .key = event};
    keeper->event = event;
    rondo__reference_take(&event->reference_count);
    rondo__capture_add_participant(capture, &keeper->head);
    return RONDO_STATUS_OK;
}

// ---- recording, waiting, asking ---------------------------------------------------------------

// The capture that the event was recorded in, if any, as the backend says.
static void note_record(rondo_event *event, rondo_stream *stream) {
    bool may_be_captured = rondo__stream_may_record(stream);
    uint64_t id = 0;
    if (may_be_captured) {
        rondo__place place;
        rondo_error saved;
        rondo__error_save(&saved);
        bool is_known = rondo__capture_locate(stream, &place) == RONDO_STATUS_OK;
        may_be_captured = !is_known || place.state != RONDO__CAPTURE_NONE;
        id = is_known && place.capture != NULL ? place.id : 0;
        rondo__error_restore(&saved);
    }
    atomic_store_explicit(&event->may_be_captured, may_be_captured, memory_order_relaxed);
    atomic_store_explicit(&event->capture_id, id, memory_order_release);
    atomic_store_explicit(&event->was_recorded, true, memory_order_release);
}

rondo_status rondo_event_record(rondo_event *event, rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    if (event == NULL) {
        return rondo__mark_work(stream, "", rondo__check_fail_null(__func__, "event"));
    }
    rondo_status status = rondo__check_alive(event->device, __func__);
    if (status == RONDO_STATUS_OK && event->device != stream->device) {
        status = RONDO_FAIL(INVALID, "an event of %s cannot be recorded on a stream of %s",
                            event->device->name, stream->device->name);
        rondo__cause_set(RONDO_CAUSE_OTHER_DEVICE);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__capture_refuse_broken(stream, __func__);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__event_keep_for_graph(event, stream, __func__);
    }
    if (status == RONDO_STATUS_OK) {
        status = stream->device->backend->record_event(event, stream);
    }
    // An event that could not be recorded stays what it was.
    if (status == RONDO_STATUS_OK && (event->flags & RONDO_EVENT_EXTERNAL) == 0) {
        note_record(event, stream);
    }
    return rondo__mark_missing(stream, "", status);
}

rondo_status rondo_event_query(rondo_event *event, bool *out_is_complete) {
    RETURN_IF_ERROR(rondo__check_pointer(out_is_complete, __func__, "out_is_complete"));
    *out_is_complete = false;
    RETURN_IF_ERROR(rondo__check_event(event, __func__));
    RETURN_IF_ERROR(rondo__forbid_event_question(event, __func__));
    return rondo__mark_call(event->device, NULL, RONDO_CAUSE_SYNCHRONIZE,
                            event->device->backend->query_event(event, out_is_complete));
}

rondo_status rondo_event_synchronize(rondo_event *event) {
    RETURN_IF_ERROR(rondo__check_event(event, __func__));
    RETURN_IF_ERROR(rondo__forbid_event_question(event, __func__));
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_WAIT, "wait for an event");
    const rondo_status status = event->device->backend->synchronize_event(event);
    rondo__hook_leave(&scope);
    return rondo__mark_call(event->device, NULL, RONDO_CAUSE_SYNCHRONIZE, status);
}

rondo_status rondo_event_get_elapsed_ns(rondo_event *start, rondo_event *end, int64_t *out_ns) {
    RETURN_IF_ERROR(rondo__check_pointer(out_ns, __func__, "out_ns"));
    *out_ns = 0;
    RETURN_IF_ERROR(rondo__check_event(start, __func__));
    RETURN_IF_ERROR(rondo__check_event(end, __func__));
    if (start->device != end->device) {
        return RONDO_FAIL(INVALID, "events of %s and %s have no common clock", start->device->name,
                          end->device->name);
    }
    if ((start->flags & end->flags & RONDO_EVENT_TIMED) == 0) {
        return RONDO_FAIL(STATE,
                          "the event keeps no time; create it with the flag RONDO_EVENT_TIMED");
    }
    if (atomic_load_explicit(&start->capture_id, memory_order_acquire) != 0 ||
        atomic_load_explicit(&end->capture_id, memory_order_acquire) != 0) {
        return RONDO_FAIL(STATE,
                          "the event was recorded in a capture and keeps no time; add the flag "
                          "RONDO_EVENT_EXTERNAL for time stamps inside a graph");
    }
    return start->device->backend->get_elapsed_ns(start, end, out_ns);
}
