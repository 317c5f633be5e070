// capture/forbid.c — see forbid.h.
// SPDX-License-Identifier: Apache-2.0
#include "capture/forbid.h"

#include "backend/cause.h"
#include "backend/open_devices.h"
#include "base/error.h"
#include "base/thread.h"
#include "capture/capture.h"

static bool is_broken(const rondo__capture *capture) {
    return atomic_load_explicit(&capture->blame.is_broken, memory_order_acquire);
}

static unsigned get_number(const rondo__capture *capture) {
    return capture->origin != NULL ? (unsigned)capture->origin->number : 0;
}

// ---- waits, questions and memory --------------------------------------------------------------

typedef struct unsafe_call {
    const char *name;
    rondo_capture_cause cause;
    rondo_status status;
} unsafe_call;

static void forbid_on_device(rondo_device *device, void *data) {
    unsafe_call *call = data;
    pthread_mutex_lock(&device->capture_list_lock);
    for (rondo__capture *capture = device->capture_list; capture != NULL; capture = capture->next) {
        if (capture->mode != RONDO_CAPTURE_GLOBAL || is_broken(capture)) {
            continue;
        }
        if (call->status == RONDO_STATUS_OK) {
            call->status = RONDO_FAIL_AS(
                call->name, STATE,
                "stream %u records in global mode, which forbids this to every thread; record in "
                "thread_local mode, or call it before or after",
                get_number(capture));
            rondo__cause_set(call->cause);
        }
        rondo__blame_break(capture, NULL, call->cause);
    }
    pthread_mutex_unlock(&device->capture_list_lock);
}

rondo_status rondo__forbid_unsafe(rondo_device *device, const char *call,
                                  rondo_capture_cause cause) {
    if (__builtin_expect(!rondo__capture_is_global_open(), 1) ||
        atomic_load_explicit(&device->is_forked, memory_order_relaxed)) {
        return RONDO_STATUS_OK;
    }
    unsafe_call it = {.name = call, .cause = cause, .status = RONDO_STATUS_OK};
    forbid_on_device(device, &it);
    rondo__device_visit_others(device, forbid_on_device, &it);
    return it.status;
}

// ---- streams ----------------------------------------------------------------------------------

rondo_status rondo__forbid_stream_question(rondo_stream *stream, const char *call,
                                           const char *what) {
    rondo__place place;
    rondo_status located = rondo__capture_locate(stream, &place);
    if (located != RONDO_STATUS_OK) {
        rondo__blame_work(stream, "");
        return located;
    }
    if (place.state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(stream, call);
    }
    if (place.capture != NULL) {
        rondo_status status = RONDO_FAIL_AS(call, STATE,
                                            "stream %u records, and this cannot be recorded: %s; "
                                            "call it before or after the capture",
                                            (unsigned)stream->number, what);
        rondo__blame_break(place.capture, stream, RONDO_CAUSE_SYNCHRONIZE);
        return status;
    }
    return rondo__forbid_unsafe(stream->device, call, RONDO_CAUSE_SYNCHRONIZE);
}

rondo_status rondo__forbid_device_wait(rondo_device *device, const char *call) {
    if (atomic_load_explicit(&device->open_capture_count, memory_order_acquire) == 0) {
        return rondo__forbid_unsafe(device, call, RONDO_CAUSE_SYNCHRONIZE);
    }
    uint64_t thread = rondo__thread_get_number();
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&device->capture_list_lock);
    for (rondo__capture *capture = device->capture_list; capture != NULL; capture = capture->next) {
        bool forbids_others = capture->mode == RONDO_CAPTURE_GLOBAL;
        bool forbids_itself =
            capture->mode == RONDO_CAPTURE_THREAD_LOCAL && capture->thread_number == thread;
        if (status == RONDO_STATUS_OK) {
            status = RONDO_FAIL_AS(call, STATE,
                                   "stream %u records, so %s cannot be waited for; end the capture "
                                   "first",
                                   get_number(capture), device->name);
            rondo__cause_set(RONDO_CAUSE_SYNCHRONIZE);
        }
        if (forbids_others || forbids_itself) {
            rondo__blame_break(capture, NULL, RONDO_CAUSE_SYNCHRONIZE);
        }
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    return status;
}

// ---- events -----------------------------------------------------------------------------------

rondo_status rondo__forbid_event_question(rondo_event *event, const char *call) {
    rondo_device *device = event->device;
    uint64_t id = atomic_load_explicit(&event->capture_id, memory_order_acquire);
    if (__builtin_expect(id == 0, 1)) {
        return rondo__forbid_unsafe(device, call, RONDO_CAUSE_SYNCHRONIZE);
    }
    rondo_status status = RONDO_FAIL_AS(call, STATE,
                                        "the event was recorded in a capture and never happens by "
                                        "itself; only streams can wait for it");
    rondo__cause_set(RONDO_CAUSE_SYNCHRONIZE);
    if (!atomic_load_explicit(&device->is_forked, memory_order_relaxed)) {
        pthread_mutex_lock(&device->capture_list_lock);
        rondo__capture *capture = rondo__capture_find_listed(device, id);
        if (capture != NULL) {
            rondo__blame_break(capture, NULL, RONDO_CAUSE_SYNCHRONIZE);
        }
        pthread_mutex_unlock(&device->capture_list_lock);
    }
    return status;
}

// Recorded work can only wait for other work of the same capture.
static rondo_status fail_outside(rondo_stream *stream, rondo__capture *own, const char *why) {
    rondo_status status = RONDO_FAIL_AS("rondo_stream_wait_event", STATE, "%s", why);
    rondo__cause_set(RONDO_CAUSE_OUTSIDE_WORK);
    if (own != NULL) {
        rondo__blame_break(own, stream, RONDO_CAUSE_OUTSIDE_WORK);
    }
    return status;
}

static rondo_status fail_merge(rondo_stream *stream, rondo__capture *own, rondo__capture *other) {
    rondo_status status = RONDO_FAIL_AS(
        "rondo_stream_wait_event", STATE,
        own != other ? "it would join two captures, that of stream %u and that of stream %u; wait "
                       "only for events of the same capture"
                     : "it would join the body of a conditional node and what is around it, in the "
                       "capture of stream %u; wait only for events of the same body",
        get_number(own), get_number(other));
    rondo__cause_set(RONDO_CAUSE_MERGE);
    rondo__blame_break(own, stream, RONDO_CAUSE_MERGE);
    rondo__blame_break(other, NULL, RONDO_CAUSE_MERGE);
    return status;
}

// For an event that stands for the place with this id. The caller holds the lock of the list that
// has the event's capture.
static rondo_status check_join(rondo_stream *stream, const rondo__place *own, rondo__capture *other,
                               uint64_t id) {
    if (other == NULL) {
        return fail_outside(stream, own->capture,
                            "the event stands for a place in a capture that has ended; record it "
                            "again");
    }
    if (is_broken(other)) {
        return fail_outside(stream, own->capture,
                            "the event was recorded in a capture that is broken, which no stream "
                            "can join; end that capture to learn why");
    }
    if (own->capture != NULL && own->id != id) {
        return fail_merge(stream, own->capture, other);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__forbid_stream_wait(rondo_stream *stream, rondo_event *event,
                                       bool *out_is_done) {
    rondo_device *device = event->device;
    uint64_t id = atomic_load_explicit(&event->capture_id, memory_order_acquire);
    *out_is_done = false;
    rondo__place own;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &own));
    if (own.state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(stream, "rondo_stream_wait_event");
    }
    if (id != 0) {
        pthread_mutex_lock(&device->capture_list_lock);
        rondo_status status = check_join(stream, &own, rondo__capture_find_listed(device, id), id);
        pthread_mutex_unlock(&device->capture_list_lock);
        return status;
    }
    // One that was never recorded is complete, and so is one of a capture that is not Rondo's, as
    // far as is known here.
    bool was_recorded = atomic_load_explicit(&event->was_recorded, memory_order_acquire);
    bool may_be_foreign = atomic_load_explicit(&event->may_be_captured, memory_order_relaxed);
    *out_is_done = !was_recorded;
    if (own.capture == NULL || !was_recorded || may_be_foreign) {
        return RONDO_STATUS_OK;
    }
    return fail_outside(stream, own.capture,
                        "recorded work cannot wait for work outside the capture: the event was "
                        "recorded before it, or on a stream that did not join");
}
