// device/stream_tag.c — what others keep of a stream: to wait for its work, and to come after it.
//
// A stream is used by one thread and may be destroyed, while its work still matters to others: to a
// pool whose memory it uses, or to a generator or an arena whose next use is on another stream.
// They keep the stream's tag, which outlives it. While another thread looks at the stream, the
// tag's lock prevents that it is destroyed or begins to record.
//
// Coming after a stream that records is the hard case. An event recorded on it now would be part of
// its capture, and a stream that waited for it would join that capture. So a watched stream records
// an event just before it begins to record or joins a capture, its left event:
//
//      stream A:   replay, draw | place | begin ...... recording ...... end | draw
//                       ^           ^                     |
//      stream B:        |           +------ follow(A) ----+     (waits for the place)
//                       +-- follow(A): event on A, wait for it
//
// Being watched costs only that event, once a capture.
//
// Rondo does not see a capture that the program begins with its own driver calls: there is no left
// event, and a call that must come after the stream is refused until that capture ends.
//
// Waiting for a stream that another thread uses is as hard: CUDA breaks the capture of a stream
// that is waited for, and that may have begun since the stream was asked about. So an event is put
// on it, by the backend in one step with the question, and waited for, which is harmless.
//
// Turned down: an event behind each use, which costs every replay a driver call for the sake of the
// few that change streams; and a lock from the question to the end of the wait, for which a begin
// of a capture would have to wait.
// SPDX-License-Identifier: Apache-2.0

#include "device/stream_tag.h"

#include <pthread.h>

#include "backend/check.h"
#include "base/memory.h"
#include "base/use_count.h"
#include "capture/capture.h"

struct rondo__stream_tag {
    atomic_int reference_count;
    uint32_t number;       // of the stream
    rondo_device *device;  // kept alive by those who keep the tag
    pthread_mutex_t lock;
    rondo_stream *stream;  // guarded by lock; NULL once destroyed
    atomic_bool is_finished;
    // Destroyed, but what it ran before may run still: its capture keeps it to the end, it was a
    // wrapper that could not be waited for, or it is lost.
    atomic_bool has_left_work;
    rondo_event *end;    // guarded by lock; waiters block on it; NULL until first needed
    bool is_watched;     // of the thread that uses the stream
    rondo_event *place;  // guarded by lock, as the two below; NULL: none was needed yet
    bool has_place;      // it stands for all work before the latest capture
    uint64_t place_id;   // of that capture; 0: it did not come to that
};

rondo__stream_tag *rondo__stream_tag_create(rondo_stream *stream) {
    rondo__stream_tag *tag = rondo__calloc(1, sizeof *tag);
    if (tag != NULL) {
        atomic_init(&tag->reference_count, 1);
        pthread_mutex_init(&tag->lock, NULL);
        tag->stream = stream;
        tag->number = stream->number;
        tag->device = stream->device;
    }
    return tag;
}

rondo__stream_tag *rondo__stream_tag_retain(rondo_stream *stream) {
    rondo__reference_take(&stream->tag->reference_count);
    return stream->tag;
}

rondo__stream_tag *rondo__stream_tag_retain_again(rondo__stream_tag *tag) {
    rondo__reference_take(&tag->reference_count);
    return tag;
}

rondo__stream_tag *rondo__stream_tag_watch(rondo_stream *stream) {
    stream->tag->is_watched = true;
    return rondo__stream_tag_retain(stream);
}

void rondo__stream_tag_release(rondo__stream_tag *tag) {
    if (tag == NULL || !rondo__reference_drop(&tag->reference_count)) {
        return;
    }
    rondo_event_destroy(tag->end);
    rondo_event_destroy(tag->place);
    pthread_mutex_destroy(&tag->lock);
    rondo__free(tag);
}

// ---- places: the caller holds the lock --------------------------------------------------------

static bool is_idle(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    rondo_error saved;
    rondo__error_save(&saved);
    bool is_known = stream->device->backend->get_capture_state(stream, &state) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    return is_known && state == RONDO__CAPTURE_NONE;
}

// Puts an event behind the work of the stream, which does not record. A failure shows only when the
// left event is needed.
static void leave_place(rondo__stream_tag *tag, rondo_stream *stream) {
    rondo_error saved;
    rondo__error_save(&saved);
    tag->place_id = 0;
    tag->has_place =
        tag->place != NULL || rondo_event_create(stream->device, 0, &tag->place) == RONDO_STATUS_OK;
    tag->has_place = tag->has_place &&
                     stream->device->backend->record_event(tag->place, stream) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
}

// The stream may have begun to record.
static void note_capture(rondo__stream_tag *tag, rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    rondo_error saved;
    rondo__error_save(&saved);
    if (stream->device->backend->get_capture_id(stream, &state, &tag->place_id) !=
        RONDO_STATUS_OK) {
        tag->place_id = 0;
    }
    rondo__error_restore(&saved);
}

// Whether the stream, which records, does so in the capture that the left event stands before. A
// broken one has no id in the driver's eyes; a stream is in one capture at a time.
static bool is_place_right(const rondo__stream_tag *tag, rondo_device *device,
                           rondo__capture_state state, uint64_t id) {
    if (!tag->has_place || tag->place_id == 0) {
        return false;
    }
    return state == RONDO__CAPTURE_BROKEN ? rondo__capture_is_open(device, tag->place_id)
                                          : id == tag->place_id;
}

// ---- the stream's own thread ------------------------------------------------------------------

rondo_status rondo__stream_tag_begin_capture(rondo_stream *stream, rondo_capture_mode mode,
                                             uint64_t *out_id) {
    const rondo__backend *backend = stream->device->backend;
    rondo__stream_tag *tag = stream->tag;
    if (!tag->is_watched) {
        return backend->begin_capture(stream, mode, out_id);
    }
    pthread_mutex_lock(&tag->lock);
    leave_place(tag, stream);
    rondo_status status = backend->begin_capture(stream, mode, out_id);
    if (status == RONDO_STATUS_OK) {
        tag->place_id = *out_id;
    }
    pthread_mutex_unlock(&tag->lock);
    return status;
}

rondo_status rondo__stream_tag_join(rondo_stream *stream, rondo_event *event) {
    rondo_device *device = stream->device;
    rondo__stream_tag *tag = stream->tag;
    if (!tag->is_watched || !atomic_load_explicit(&event->may_be_captured, memory_order_relaxed)) {
        return device->backend->wait_event(stream, event);
    }
    pthread_mutex_lock(&tag->lock);
    bool may_join = atomic_load(&device->open_capture_count) > 0 && is_idle(stream);
    if (may_join) {
        leave_place(tag, stream);
    }
    rondo_status status = device->backend->wait_event(stream, event);
    if (may_join && status == RONDO_STATUS_OK) {
        note_capture(tag, stream);
    }
    pthread_mutex_unlock(&tag->lock);
    return status;
}

// Waits for the stream in the thread that uses it. A stream that records can be waited for only by
// a backend that drains. False: it was not waited for.
static bool wait_for_stream(rondo_stream *stream, bool also_while_recording) {
    const rondo__backend *backend = stream->device->backend;
    const bool drains = backend->drain_stream != NULL;
    if (!is_idle(stream) && !(also_while_recording && drains)) {
        return false;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_status status =
        drains ? backend->drain_stream(stream) : backend->synchronize_stream(stream);
    const bool began_to_record = !drains && status == RONDO_STATUS_STATE;  // since it was asked
    if (status != RONDO_STATUS_OK && !began_to_record) {
        // Not this caller's failure: kept for the next wait on the device.
        rondo__failure_put(&stream->device->failure);
    }
    rondo__error_restore(&saved);
    return !began_to_record;
}

// A destroy of a stream that the backend made waits for its work. A wrapper's stream lives on, so
// its work is waited for here. True: it was. The caller holds the lock.
static bool finish_wrapped(rondo__stream_tag *tag, rondo_stream *stream) {
    rondo_device *device = stream->device;
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    uint64_t id = 0;
    rondo_error saved;
    rondo__error_save(&saved);
    bool may_wait = device->backend->get_capture_id(stream, &state, &id) == RONDO_STATUS_OK &&
                    state == RONDO__CAPTURE_NONE;
    rondo__error_restore(&saved);
    tag->has_place = !may_wait && is_place_right(tag, device, state, id);
    // To ask the legacy stream for anything breaks captures of others.
    return may_wait && (!stream->is_legacy || atomic_load(&device->open_capture_count) == 0) &&
           wait_for_stream(stream, false);
}

void rondo__stream_tag_note_kept(rondo_stream *stream) {
    atomic_store(&stream->tag->has_left_work, true);
    atomic_store_explicit(&stream->tag->is_finished, true, memory_order_release);
}

void rondo__stream_tag_destroy_stream(rondo_stream *stream) {
    rondo__stream_tag *tag = stream->tag;
    rondo_device *device = stream->device;
    pthread_mutex_lock(&tag->lock);
    bool is_remembered = atomic_load(&tag->reference_count) > 1 && !atomic_load(&device->is_lost);
    bool is_done = is_remembered && stream->is_wrapped && finish_wrapped(tag, stream);
    rondo_event_destroy(tag->end);
    tag->end = NULL;
    // The lock is held to the end, so that a thread that finds the stream gone knows what became of
    // its work.
    tag->stream = NULL;
    is_done = device->backend->destroy_stream(stream) || is_done;
    atomic_store(&tag->has_left_work, is_remembered && !is_done);
    tag->has_place = tag->has_place && is_remembered && !is_done;
    if (!tag->has_place) {
        rondo_event_destroy(tag->place);
        tag->place = NULL;
    }
    atomic_store_explicit(&tag->is_finished, true, memory_order_release);
    pthread_mutex_unlock(&tag->lock);
    rondo__stream_tag_release(tag);
    rondo_device_release(device);
}

// ---- others -----------------------------------------------------------------------------------

bool rondo__stream_tag_is_finished(const rondo__stream_tag *tag) {
    return atomic_load_explicit(&tag->is_finished, memory_order_acquire);
}

bool rondo__stream_tag_is_done(const rondo__stream_tag *tag) {
    return rondo__stream_tag_is_finished(tag) && !atomic_load(&tag->has_left_work);
}

// Waits for the work that a destroyed stream has left. Without a left event only a wait for the
// whole device shows that it is done, and that is forbidden while something records.
static bool wait_for_rest(rondo__stream_tag *tag, bool may_wait_for_device) {
    rondo_device *device = tag->device;
    bool may_wait =
        tag->has_place || (may_wait_for_device && atomic_load(&device->open_capture_count) == 0);
    if (!atomic_load(&tag->has_left_work) || !may_wait) {
        return !atomic_load(&tag->has_left_work);
    }
    rondo_error saved;
    rondo__error_save(&saved);
    if ((tag->has_place ? device->backend->synchronize_event(tag->place)
                        : device->backend->synchronize_device(device)) == RONDO_STATUS_OK) {
        atomic_store(&tag->has_left_work, false);
    }
    rondo__error_restore(&saved);
    return !atomic_load(&tag->has_left_work);
}

uint64_t rondo__stream_tag_get_position(rondo__stream_tag *tag, rondo__node_handle *nodes,
                                        size_t capacity, size_t *out_count) {
    uint64_t id = 0;
    *out_count = 0;
    // The lock keeps the stream from being destroyed meanwhile.
    pthread_mutex_lock(&tag->lock);
    rondo_stream *stream = tag->stream;
    if (stream != NULL &&
        atomic_load_explicit(&stream->device->open_capture_count, memory_order_acquire) > 0) {
        rondo__capture_state state = RONDO__CAPTURE_NONE;
        rondo_error saved;
        rondo__error_save(&saved);
        rondo_status status =
            stream->device->backend->get_position(stream, &state, &id, nodes, capacity, out_count);
        if (rondo_error_get_last()->sequence != saved.sequence) {
            rondo__error_restore(&saved);
        }
        if (status != RONDO_STATUS_OK || state != RONDO__CAPTURE_ACTIVE) {
            id = 0;
            *out_count = 0;
        }
    }
    pthread_mutex_unlock(&tag->lock);
    return id;
}

uint64_t rondo__stream_tag_get_capture_id(rondo__stream_tag *tag) {
    uint64_t id = 0;
    // The lock keeps the stream from being destroyed meanwhile.
    pthread_mutex_lock(&tag->lock);
    rondo_stream *stream = tag->stream;
    if (stream != NULL && !rondo__stream_tag_is_finished(tag) && rondo__stream_may_record(stream)) {
        rondo__capture_state state = RONDO__CAPTURE_NONE;
        rondo_error saved;
        rondo__error_save(&saved);
        if (stream->device->backend->get_capture_id(stream, &state, &id) != RONDO_STATUS_OK ||
            state == RONDO__CAPTURE_NONE) {
            id = 0;
        }
        rondo__error_restore(&saved);
    }
    pthread_mutex_unlock(&tag->lock);
    return id;
}

static rondo_status fail_gone(const rondo__stream_tag *tag, const char *call) {
    return RONDO_FAIL_AS(
        call, STATE,
        "this must come after the work of stream %u, which was destroyed while it recorded; only a "
        "wait for the whole device shows that this work is done, so first end the captures on %s",
        (unsigned)tag->number, tag->device->name);
}

static rondo_status record_from_outside(rondo_stream *stream, rondo_event *event) {
    RETURN_IF_ERROR(rondo__check_stream(stream, "rondo_event_record"));
    return stream->device->backend->record_from_outside(event, stream);
}

// Waits for the left event of a stream that records: for its work before the capture.
static bool wait_for_place(rondo__stream_tag *tag, rondo_stream *stream) {
    const rondo__backend *backend = tag->device->backend;
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    uint64_t id = 0;
    return backend->get_capture_id(stream, &state, &id) == RONDO_STATUS_OK &&
           state != RONDO__CAPTURE_NONE && is_place_right(tag, tag->device, state, id) &&
           backend->synchronize_event(tag->place) == RONDO_STATUS_OK;
}

// Puts an event on the stream and waits for it. OK: the stream was waited for; STATE: it records;
// otherwise there is no event.
static rondo_status wait_for_end(rondo__stream_tag *tag, rondo_stream *stream) {
    if (tag->end == NULL) {
        RETURN_IF_ERROR(rondo_event_create(tag->device, 0, &tag->end));
    }
    RETURN_IF_ERROR(record_from_outside(stream, tag->end));
    if (tag->device->backend->synchronize_event(tag->end) != RONDO_STATUS_OK) {
        rondo__failure_put(&tag->device->failure);
    }
    return RONDO_STATUS_OK;
}

// wait_for_stream in a thread that does not use the stream.
static bool wait_from_outside(rondo__stream_tag *tag, bool also_while_recording) {
    rondo_stream *stream = tag->stream;
    if (tag->device->backend->drain_stream != NULL || stream->is_legacy) {
        return wait_for_stream(stream, also_while_recording);
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_status status = wait_for_end(tag, stream);
    bool has_waited = status == RONDO_STATUS_OK;
    if (status == RONDO_STATUS_STATE) {
        has_waited = also_while_recording && wait_for_place(tag, stream);
    } else if (!has_waited) {
        // For want of memory, perhaps: then without an event.
        has_waited = wait_for_stream(stream, also_while_recording);
    }
    rondo__error_restore(&saved);
    return has_waited;
}

static bool wait_for_tag(rondo__stream_tag *tag, bool at_any_price) {
    bool has_waited = true;
    // The lock keeps the stream from being destroyed while it is waited for.
    pthread_mutex_lock(&tag->lock);
    if (!atomic_load(&tag->device->is_lost)) {
        has_waited = tag->stream != NULL ? wait_from_outside(tag, at_any_price)
                                         : wait_for_rest(tag, at_any_price);
    }
    pthread_mutex_unlock(&tag->lock);
    return has_waited;
}

bool rondo__stream_tag_wait(rondo__stream_tag *tag) {
    return wait_for_tag(tag, false);
}

bool rondo__stream_tag_wait_at_any_price(rondo__stream_tag *tag) {
    return wait_for_tag(tag, true);
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
    } else if (atomic_load(&tag->has_left_work)) {
        status = fail_gone(tag, "rondo_event_record");
    }
    pthread_mutex_unlock(&tag->lock);
    return status;
}

// The caller holds the lock, here and below.
static rondo_status follow_living(rondo_stream *stream, const rondo__stream_tag *tag,
                                  rondo_event *event) {
    const rondo__backend *backend = stream->device->backend;
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    uint64_t id = 0;
    RETURN_IF_ERROR(backend->get_capture_id(tag->stream, &state, &id));
    if (state != RONDO__CAPTURE_NONE && is_place_right(tag, stream->device, state, id)) {
        return backend->wait_event(stream, tag->place);
    }
    RETURN_IF_ERROR(record_from_outside(tag->stream, event));
    return backend->wait_event(stream, event);
}

// The stream was destroyed in the middle of a capture.
static rondo_status follow_gone(rondo_stream *stream, rondo__stream_tag *tag) {
    rondo_device *device = stream->device;
    if (tag->has_place) {
        return device->backend->wait_event(stream, tag->place);
    }
    if (atomic_load(&device->open_capture_count) > 0) {
        return fail_gone(tag, "rondo_stream_wait_event");
    }
    RETURN_IF_ERROR(device->backend->synchronize_device(device));
    atomic_store(&tag->has_left_work, false);
    return RONDO_STATUS_OK;
}

rondo_status rondo__stream_tag_follow(rondo_stream *stream, rondo__stream_tag *tag,
                                      rondo_event *event) {
    rondo_status status = RONDO_STATUS_OK;
    if (tag == stream->tag || rondo__stream_tag_is_done(tag)) {
        return status;
    }
    pthread_mutex_lock(&tag->lock);
    if (tag->stream != NULL) {
        status = follow_living(stream, tag, event);
    } else if (atomic_load(&tag->has_left_work)) {
        status = follow_gone(stream, tag);
    }
    pthread_mutex_unlock(&tag->lock);
    return status;
}
