// backend/stream.c — streams: argument checks, ownership, and tags that outlive them.
#include <pthread.h>

#include "backend/backend.h"
#include "backend/blame.h"
#include "backend/check.h"
#include "backend/exempt.h"
#include "backend/label.h"
#include "base/memory.h"

struct rondo__stream_tag {
    atomic_int reference_count;
    pthread_mutex_t lock;
    rondo_stream *stream;  // guarded by lock; NULL once destroyed
    atomic_bool is_finished;
};

static atomic_uint last_stream_number;

// What every stream has beyond its backend's part. On failure the backend's part is undone.
static rondo_status complete_stream(rondo_device *device, rondo_stream *stream,
                                    rondo_stream **out_stream) {
    rondo__stream_tag *tag = rondo__calloc(1, sizeof *tag);
    if (tag == NULL) {
        device->backend->destroy_stream(stream);
        return RONDO_STATUS_NO_MEMORY;
    }
    atomic_init(&tag->reference_count, 1);
    pthread_mutex_init(&tag->lock, NULL);
    tag->stream = stream;
    rondo_device_retain(device);
    stream->tag = tag;
    stream->number = atomic_fetch_add(&last_stream_number, 1) + 1;
    *out_stream = stream;
    return RONDO_STATUS_OK;
}

rondo_status rondo_stream_create(rondo_device *device, rondo_stream **out_stream) {
    RETURN_IF_ERROR(rondo__check_pointer(out_stream, __func__, "out_stream"));
    *out_stream = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_stream *stream = NULL;
    RETURN_IF_ERROR(device->backend->create_stream(device, &stream));
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

void rondo_stream_destroy(rondo_stream *stream) {
    if (stream == NULL || atomic_load(&stream->device->is_forked)) {
        return;
    }
    rondo_device *device = stream->device;
    rondo__stream_tag *tag = stream->tag;
    rondo__blame_destroyed_stream(stream);
    pthread_mutex_lock(&device->capture_list_lock);
    void (*close_scopes)(const rondo_stream *) = device->close_scopes;
    pthread_mutex_unlock(&device->capture_list_lock);
    if (close_scopes != NULL) {
        close_scopes(stream);
    }
    rondo__label_close_above(stream, 0);
    rondo__label_stack_destroy(stream->labels);
    // Held to the end: who finds the stream gone may rely on its work being done.
    pthread_mutex_lock(&tag->lock);
    tag->stream = NULL;
    device->backend->destroy_stream(stream);
    atomic_store_explicit(&tag->is_finished, true, memory_order_release);
    pthread_mutex_unlock(&tag->lock);
    rondo__stream_tag_release(tag);
    rondo_device_release(device);
}

rondo_device *rondo_stream_get_device(const rondo_stream *stream) {
    return stream != NULL ? stream->device : NULL;
}

void *rondo_stream_get_native(const rondo_stream *stream) {
    return stream != NULL ? stream->native : NULL;
}

rondo_status rondo_stream_synchronize(rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo__marks_prepare(stream);
    RETURN_IF_ERROR(rondo__mark_call(stream->device, stream, RONDO_CAUSE_SYNCHRONIZE,
                                     stream->device->backend->synchronize_stream(stream)));
    return rondo__failure_take(&stream->device->failure);
}

rondo_status rondo_stream_query(rondo_stream *stream, bool *out_is_idle) {
    RETURN_IF_ERROR(rondo__check_pointer(out_is_idle, __func__, "out_is_idle"));
    *out_is_idle = false;
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo__marks_prepare(stream);
    return rondo__mark_call(stream->device, stream, RONDO_CAUSE_SYNCHRONIZE,
                            stream->device->backend->query_stream(stream, out_is_idle));
}

// A wait makes no node, so it leaves no mark but that the stream joined the event's capture.
static rondo_status mark_wait(rondo_stream *stream, rondo_event *event, rondo_status status) {
    uint64_t id = atomic_load_explicit(&event->capture_id, memory_order_relaxed);
    if (status != RONDO_STATUS_OK) {
        rondo__blame_work(stream, "");
    } else if (id != 0 && atomic_load_explicit(&event->may_be_captured, memory_order_relaxed)) {
        rondo__marks_begin(stream, id);
    }
    return status;
}

rondo_status rondo_stream_wait_event(rondo_stream *stream, rondo_event *event) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    if (event == NULL) {
        return rondo__mark_work(stream, "", rondo__check_fail_null(__func__, "event"));
    }
    RETURN_IF_ERROR(rondo__check_alive(event->device, __func__));
    if (stream->device->backend != event->device->backend) {
        rondo_status status =
            RONDO_FAIL(INVALID,
                       "a stream of %s cannot wait for an event of %s: they have no common clock; "
                       "wait on the host with rondo_event_synchronize",
                       stream->device->name, event->device->name);
        rondo__blame_set_cause(RONDO_CAUSE_OTHER_DEVICE);
        return mark_wait(stream, event, status);
    }
    rondo_status status = rondo__event_keep_for_graph(event, stream, __func__);
    if (status != RONDO_STATUS_OK) {
        return mark_wait(stream, event, status);
    }
    if (atomic_load_explicit(&event->may_be_captured, memory_order_relaxed)) {
        atomic_store_explicit(&stream->may_record, true, memory_order_relaxed);
    }
    status = stream->device->backend->wait_event(stream, event);
    if (status != RONDO_STATUS_OK && stream->device != event->device) {
        rondo__blame_set_cause(RONDO_CAUSE_OTHER_DEVICE);
    }
    return mark_wait(stream, event, status);
}

rondo_status rondo_stream_is_capturing(rondo_stream *stream, bool *out_is_capturing) {
    RETURN_IF_ERROR(rondo__check_pointer(out_is_capturing, __func__, "out_is_capturing"));
    *out_is_capturing = false;
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo__capture_state state;
    RETURN_IF_ERROR(stream->device->backend->get_capture_state(stream, &state));
    *out_is_capturing = state == RONDO__CAPTURE_ACTIVE;
    return RONDO_STATUS_OK;
}

rondo_status rondo__stream_refuse_recording(rondo_stream *stream, const char *call) {
    if (__builtin_expect(!atomic_load_explicit(&stream->may_record, memory_order_relaxed), 1)) {
        return RONDO_STATUS_OK;
    }
    rondo__capture_state state;
    RETURN_IF_ERROR(stream->device->backend->get_capture_state(stream, &state));
    if (state != RONDO__CAPTURE_NONE) {
        return rondo__error_set(RONDO_STATUS_STATE, 0, "", __FILE__, __LINE__, call,
                                "stream %u records, and this is not recorded; call it on another "
                                "stream, or after the capture",
                                (unsigned)stream->number);
    }
    atomic_store_explicit(&stream->may_record, false, memory_order_relaxed);
    return RONDO_STATUS_OK;
}

// ---- tags -------------------------------------------------------------------------------------

rondo__stream_tag *rondo__stream_tag_retain(rondo_stream *stream) {
    atomic_fetch_add_explicit(&stream->tag->reference_count, 1, memory_order_relaxed);
    return stream->tag;
}

rondo__stream_tag *rondo__stream_tag_retain_again(rondo__stream_tag *tag) {
    atomic_fetch_add_explicit(&tag->reference_count, 1, memory_order_relaxed);
    return tag;
}

void rondo__stream_tag_release(rondo__stream_tag *tag) {
    if (tag == NULL ||
        atomic_fetch_sub_explicit(&tag->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    pthread_mutex_destroy(&tag->lock);
    rondo__free(tag);
}

bool rondo__stream_tag_is_finished(const rondo__stream_tag *tag) {
    return atomic_load_explicit(&tag->is_finished, memory_order_acquire);
}

static bool wait_for_stream(rondo_stream *stream, bool also_while_recording) {
    const rondo__backend *backend = stream->device->backend;
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    rondo_error saved;
    rondo__error_save(&saved);
    bool has_waited = backend->get_capture_state(stream, &state) == RONDO_STATUS_OK &&
                      state == RONDO__CAPTURE_NONE;
    if (has_waited || (also_while_recording && backend->drain_stream != NULL)) {
        // Nothing that is recorded is touched, so no global capture of anybody shall break.
        rondo__exempt_enter();
        rondo_status status = backend->drain_stream != NULL ? backend->drain_stream(stream)
                                                            : backend->synchronize_stream(stream);
        rondo__exempt_leave();
        // One that began to record just now.
        has_waited = status != RONDO_STATUS_STATE || backend->drain_stream != NULL;
        if (status != RONDO_STATUS_OK && has_waited) {
            // Not this caller's failure: kept for the next wait on the device.
            rondo__failure_put(&stream->device->failure);
        }
    }
    rondo__error_restore(&saved);
    return has_waited;
}

static bool wait_for_tag(rondo__stream_tag *tag, bool also_while_recording) {
    bool has_waited = true;
    // The lock keeps the stream from being destroyed while it is waited for.
    pthread_mutex_lock(&tag->lock);
    if (tag->stream != NULL && !atomic_load(&tag->stream->device->is_lost)) {
        has_waited = wait_for_stream(tag->stream, also_while_recording);
    }
    pthread_mutex_unlock(&tag->lock);
    return has_waited;
}

bool rondo__stream_tag_wait(rondo__stream_tag *tag) {
    return wait_for_tag(tag, false);
}

void rondo__stream_tag_drain(rondo__stream_tag *tag) {
    (void)wait_for_tag(tag, true);
}

uint64_t rondo__stream_tag_get_capture_id(rondo__stream_tag *tag) {
    uint64_t id = 0;
    // The lock keeps the stream from being destroyed meanwhile.
    pthread_mutex_lock(&tag->lock);
    rondo_stream *stream = tag->stream;
    if (stream != NULL &&
        atomic_load_explicit(&stream->device->open_capture_count, memory_order_acquire) > 0) {
        rondo__capture_state state = RONDO__CAPTURE_NONE;
        rondo_error saved;
        rondo__error_save(&saved);
        if (stream->device->backend->get_capture_id(stream, &state, &id) != RONDO_STATUS_OK ||
            state != RONDO__CAPTURE_ACTIVE) {
            id = 0;
        }
        rondo__error_restore(&saved);
    }
    pthread_mutex_unlock(&tag->lock);
    return id;
}

static rondo_status refuse_unless_idle(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(stream->device->backend->get_capture_state(stream, &state));
    return state == RONDO__CAPTURE_NONE
               ? RONDO_STATUS_OK
               : RONDO_FAIL(STATE,
                            "this must come after earlier work on stream %u, which records a "
                            "capture now and cannot be waited for; do it before or after that",
                            (unsigned)stream->number);
}

// Not rondo_event_record: that keeps notes on the stream, which are its own thread's.
static rondo_status record_from_outside(rondo_stream *stream, rondo_event *event) {
    RETURN_IF_ERROR(rondo__check_stream(stream, "rondo_event_record"));
    RETURN_IF_ERROR(refuse_unless_idle(stream));
    event->is_from_outside = true;
    RETURN_IF_ERROR(stream->device->backend->record_event(event, stream));
    // Its thread may have begun a capture in between: then the event stands for a place in that.
    return refuse_unless_idle(stream);
}

rondo_status rondo__stream_tag_record(rondo__stream_tag *tag, rondo_event *event,
                                      bool *out_was_recorded) {
    *out_was_recorded = false;
    rondo_status status = RONDO_STATUS_OK;
    // The lock keeps the stream from being destroyed meanwhile.
    pthread_mutex_lock(&tag->lock);
    if (tag->stream != NULL) {
        status = record_from_outside(tag->stream, event);
        *out_was_recorded = status == RONDO_STATUS_OK;
    }
    pthread_mutex_unlock(&tag->lock);
    return status;
}
