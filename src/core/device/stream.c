// device/stream.c — streams: argument checks and ownership.
// SPDX-License-Identifier: Apache-2.0
#include "device/stream.h"

#include "backend/cause.h"
#include "backend/check.h"
#include "base/log/hook.h"
#include "base/read_options.h"
#include "capture/capture.h"
#include "capture/forbid.h"
#include "capture/marks.h"
#include "device/event.h"
#include "device/stream_tag.h"

static atomic_uint last_stream_number;

// Makes the generic part of a stream. On failure the backend's part is undone.
static rondo_status complete_stream(rondo_device *device, rondo_stream *stream,
                                    rondo_stream **out_stream) {
    stream->number = atomic_fetch_add(&last_stream_number, 1) + 1;
    stream->tag = rondo__stream_tag_create(stream);
    if (stream->tag == NULL) {
        (void)device->backend->destroy_stream(stream);
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_device_retain(device);
    *out_stream = stream;
    return RONDO_STATUS_OK;
}

rondo_status rondo_stream_create(rondo_device *device, const rondo_stream_options *options,
                                 rondo_stream **out_stream) {
    RETURN_IF_ERROR(rondo__check_pointer(out_stream, __func__, "out_stream"));
    *out_stream = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_stream_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_stream_options"));
    rondo_stream *stream = NULL;
    RETURN_IF_ERROR(device->backend->create_stream(device, wanted.priority, &stream));
    stream->priority = wanted.priority;
    return complete_stream(device, stream, out_stream);
}

rondo_status rondo_stream_wrap(rondo_device *device, void *native, rondo_stream **out_stream) {
    RETURN_IF_ERROR(rondo__check_pointer(out_stream, __func__, "out_stream"));
    *out_stream = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    if (device->backend->wrap_stream == NULL) {
        return RONDO_FAIL(UNSUPPORTED,
                          "device %s has no foreign streams; make one with rondo_stream_create",
                          device->name);
    }
    rondo_stream *stream = NULL;
    RETURN_IF_ERROR(device->backend->wrap_stream(device, native, &stream));
    return complete_stream(device, stream, out_stream);
}

rondo_device *rondo_stream_get_device(const rondo_stream *stream) {
    return stream != NULL ? stream->device : NULL;
}

void *rondo_stream_get_native(const rondo_stream *stream) {
    if (stream == NULL) {
        return NULL;
    }
    // Not a part of what the caller sees of the stream.
    atomic_store_explicit(&((rondo_stream *)(uintptr_t)stream)->is_native_known, true,
                          memory_order_relaxed);
    return stream->native;
}

static rondo_status note_wait(rondo_stream *stream, rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        atomic_store(&stream->failed_status, (uint32_t)status);
        (void)atomic_fetch_add(&stream->failed_waits, 1);
    }
    return status;
}

rondo_status rondo_stream_synchronize(rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    RETURN_IF_ERROR(rondo__forbid_stream_question(
        stream, __func__,
        "nothing runs while the stream records, so there is nothing to wait for"));
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_WAIT, "wait for a stream");
    const rondo_status status = stream->device->backend->synchronize_stream(stream);
    rondo__hook_leave(&scope);
    RETURN_IF_ERROR(note_wait(
        stream, rondo__mark_call(stream->device, stream, RONDO_CAUSE_SYNCHRONIZE, status)));
    return note_wait(stream, rondo__failure_take(&stream->device->failure));
}

rondo_status rondo_stream_query(rondo_stream *stream, bool *out_is_idle) {
    RETURN_IF_ERROR(rondo__check_pointer(out_is_idle, __func__, "out_is_idle"));
    *out_is_idle = false;
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    RETURN_IF_ERROR(rondo__forbid_stream_question(
        stream, __func__, "nothing runs while the stream records, so there is nothing to ask"));
    return rondo__mark_call(stream->device, stream, RONDO_CAUSE_SYNCHRONIZE,
                            stream->device->backend->query_stream(stream, out_is_idle));
}

// Into which capture the stream records by now is the backend's to say: that of the event need not
// be it, but is the best guess where the backend fails to answer.
static void note_join(rondo_stream *stream, const rondo_event *event) {
    rondo__place place;
    rondo_error saved;
    rondo__error_save(&saved);
    if (rondo__capture_locate(stream, &place) != RONDO_STATUS_OK) {
        place.id = atomic_load_explicit(&event->capture_id, memory_order_acquire);
    }
    if (place.id != 0) {
        rondo__marks_begin(stream, place.id);
    }
    rondo__error_restore(&saved);
}

// A wait makes no node, so it leaves no mark but that the stream joined a capture.
static rondo_status mark_wait(rondo_stream *stream, rondo_event *event, rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        rondo__blame_work(stream, "");
    } else if (atomic_load_explicit(&event->may_be_captured, memory_order_relaxed)) {
        note_join(stream, event);
    }
    return status;
}

static rondo_status check_wait(rondo_stream *stream, rondo_event *event) {
    static const char call[] = "rondo_stream_wait_event";
    RETURN_IF_ERROR(rondo__check_alive(event->device, call));
    if (stream->device->backend != event->device->backend) {
        rondo_status status =
            RONDO_FAIL_AS(call, INVALID,
                          "a stream of %s cannot wait for an event of %s: they have no common "
                          "clock; wait on the host with rondo_event_synchronize",
                          stream->device->name, event->device->name);
        rondo__cause_set(RONDO_CAUSE_OTHER_DEVICE);
        return status;
    }
    return rondo__capture_refuse_broken(stream, call);
}

// An external event never joins a stream to a capture.
static rondo_status wait_for_external(rondo_stream *stream, rondo_event *event) {
    RETURN_IF_ERROR(rondo__event_keep_for_graph(event, stream, "rondo_stream_wait_event"));
    return stream->device->backend->wait_event(stream, event);
}

static rondo_status wait_for_ordinary(rondo_stream *stream, rondo_event *event) {
    bool is_done = false;
    RETURN_IF_ERROR(rondo__forbid_stream_wait(stream, event, &is_done));
    if (is_done) {
        return RONDO_STATUS_OK;
    }
    if (atomic_load_explicit(&event->may_be_captured, memory_order_relaxed)) {
        atomic_store_explicit(&stream->may_record, true, memory_order_relaxed);
    }
    rondo_status status = rondo__stream_tag_join(stream, event);
    if (status != RONDO_STATUS_OK && stream->device != event->device) {
        rondo__cause_set(RONDO_CAUSE_OTHER_DEVICE);
    }
    return status;
}

rondo_status rondo_stream_wait_event(rondo_stream *stream, rondo_event *event) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    if (event == NULL) {
        return rondo__mark_work(stream, "", rondo__check_fail_null(__func__, "event"));
    }
    rondo_status status = check_wait(stream, event);
    if (status == RONDO_STATUS_OK) {
        status = (event->flags & RONDO_EVENT_EXTERNAL) != 0 ? wait_for_external(stream, event)
                                                            : wait_for_ordinary(stream, event);
    }
    return mark_wait(stream, event, status);
}

rondo_status rondo_stream_is_recording(rondo_stream *stream, bool *out_is_recording) {
    RETURN_IF_ERROR(rondo__check_pointer(out_is_recording, __func__, "out_is_recording"));
    *out_is_recording = false;
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo__capture_state state;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    *out_is_recording = state == RONDO__CAPTURE_ACTIVE;
    return RONDO_STATUS_OK;
}

rondo_status rondo__stream_refuse_recording(rondo_stream *stream, const char *call) {
    if (__builtin_expect(!atomic_load_explicit(&stream->may_record, memory_order_relaxed), 1)) {
        return RONDO_STATUS_OK;
    }
    rondo__capture_state state;
    RETURN_IF_ERROR(stream->device->backend->get_capture_state(stream, &state));
    if (state != RONDO__CAPTURE_NONE) {
        return RONDO_FAIL_AS(call, STATE,
                             "stream %u records, and this is not recorded; call it on another "
                             "stream, or after the capture",
                             (unsigned)stream->number);
    }
    atomic_store_explicit(&stream->may_record, false, memory_order_relaxed);
    return RONDO_STATUS_OK;
}
