// capture/blame.c — the first failure of a capture.
//
// Each failure is handled alike: its capture is found; the position of its step is noted once
// (blame_place.h); its cause is set once; and the thread's error record is restored, because the
// questions in between may have failed, too.
//
// The locks: device->capture_list_lock keeps a capture and its origin, capture->lock, inside it,
// guards the blame.
// SPDX-License-Identifier: Apache-2.0
#include "capture/blame.h"

#include "backend/cause.h"
#include "backend/open_devices.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"
#include "capture/blame_place.h"
#include "capture/capture.h"

// ---- finding the capture ----------------------------------------------------------------------

// The one that began on the stream. The caller holds device->capture_list_lock.
static rondo__capture *find_by_origin(const rondo_stream *stream) {
    rondo__capture *capture = stream->device->capture_list;
    while (capture != NULL && capture->origin != stream) {
        capture = capture->next;
    }
    return capture;
}

// After a fork another thread's locks are held for good, and nothing here can be recorded any more.
static bool has_open_captures(const rondo_device *device) {
    return atomic_load_explicit(&device->open_capture_count, memory_order_acquire) > 0 &&
           !atomic_load_explicit(&device->is_forked, memory_order_relaxed);
}

// The capture that the stream takes part in, if a graph began it. The backend knows; but of a
// broken capture a driver no longer tells the id, and then the stream's own memory must do: it is
// right unless the program joined the stream by driver calls of its own.
static rondo__capture *find_capture(rondo_stream *stream) {
    rondo_device *device = stream->device;
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    uint64_t id = 0;
    if (!has_open_captures(device)) {
        return NULL;
    }
    if (device->backend->get_capture_id(stream, &state, &id) == RONDO_STATUS_OK &&
        state == RONDO__CAPTURE_NONE) {
        return NULL;
    }
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__capture *capture =
        rondo__capture_find_listed(device, id != 0 ? id : stream->marks.capture_id);
    if (capture == NULL && state != RONDO__CAPTURE_ACTIVE) {
        capture = find_by_origin(stream);
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    return capture;
}

// No graph may come of the capture from now on. The caller holds its lock.
static void set_broken(rondo__capture *capture) {
    if (!atomic_load_explicit(&capture->blame.is_broken, memory_order_relaxed)) {
        atomic_store_explicit(&capture->blame.is_broken, true, memory_order_release);
        atomic_fetch_add_explicit(&capture->device->broken_capture_count, 1, memory_order_relaxed);
    }
}

static bool is_broken_now(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    return stream->device->backend->get_capture_state(stream, &state) == RONDO_STATUS_OK &&
           state == RONDO__CAPTURE_BROKEN;
}

// ---- failures ---------------------------------------------------------------------------------

// The caller holds capture->lock.
static void set_cause(rondo__capture *capture, const rondo_error *record, rondo_capture_cause cause,
                      const rondo_stream *stream) {
    rondo__blame *blame = &capture->blame;
    set_broken(capture);
    if (blame->has_cause) {
        return;
    }
    blame->has_cause = true;
    blame->record = *record;
    blame->thread_number = rondo__thread_get_number();
    rondo__thread_get_name(blame->thread_name, sizeof blame->thread_name);
    uint32_t unjoined = rondo__cause_get_unjoined(record);
    blame->stream_number = unjoined != 0 ? unjoined : stream != NULL ? stream->number : 0;
    bool is_other = blame->thread_number != capture->thread_number;
    blame->cause = is_other && capture->mode == RONDO_CAPTURE_GLOBAL &&
                           (cause == RONDO_CAUSE_ALLOCATION || cause == RONDO_CAUSE_SYNCHRONIZE)
                       ? RONDO_CAUSE_OTHER_THREAD
                       : cause;
}

void rondo__blame_work(rondo_stream *stream, const char *work) {
    rondo_error record;
    rondo__error_save(&record);
    rondo_capture_cause fallback =
        record.status == RONDO_STATUS_STATE ? RONDO_CAUSE_OTHER : RONDO_CAUSE_WORK_REFUSED;
    rondo_capture_cause cause = rondo__cause_classify(&record, fallback);
    rondo__capture *capture = find_capture(stream);
    if (capture != NULL) {
        if (record.op[0] == '\0' && cause != RONDO_CAUSE_UNSEEN_CALL) {
            rondo__text_fit(record.op, sizeof record.op, work);
        }
        pthread_mutex_lock(&capture->lock);
        rondo__blame_fill_place(capture, stream, record.call, true);
        set_cause(capture, &record, cause, stream);
        pthread_mutex_unlock(&capture->lock);
    }
    rondo__error_restore(&record);  // looking around may have failed, too
    if (capture == NULL || cause == RONDO_CAUSE_MERGE) {
        // Work on a stream outside may break captures that it knows nothing of.
        rondo__blame_call(stream->device, NULL, cause);
    }
    rondo__error_restore(&record);
}

// The caller holds device->capture_list_lock, which keeps the capture and its origin.
static void blame_if_broken(rondo__capture *capture, rondo_stream *stream,
                            const rondo_error *record, rondo_capture_cause cause) {
    bool is_own = capture->thread_number == rondo__thread_get_number();
    // The driver knows of a conditional body only that it is a capture of its own.
    bool is_in_body = stream != NULL && rondo__capture_holds(capture, stream->marks.capture_id);
    bool is_broken = capture->origin != NULL &&
                     (is_broken_now(capture->origin) || (is_in_body && is_broken_now(stream)));
    pthread_mutex_lock(&capture->lock);
    rondo__blame *blame = &capture->blame;
    if (is_broken && !blame->has_cause) {
        if (is_own) {
            rondo__blame_fill_place(capture, stream != NULL ? stream : capture->origin,
                                    record->call, true);
        }
        set_cause(capture, record, cause, stream != NULL ? stream : capture->origin);
    } else if (!is_broken && is_own && !blame->has_suspect) {
        blame->has_suspect = true;
        blame->suspect = *record;
        blame->suspect_cause = rondo__cause_classify(record, RONDO_CAUSE_OTHER);
    }
    pthread_mutex_unlock(&capture->lock);
}

typedef struct failed_call {
    const rondo_error *record;
    rondo_capture_cause cause;
} failed_call;

// CUDA's global mode is the process's: it forbids calls on other devices, too.
static void blame_elsewhere(rondo_device *other, void *data) {
    const failed_call *call = data;
    if (!has_open_captures(other)) {
        return;
    }
    pthread_mutex_lock(&other->capture_list_lock);
    for (rondo__capture *capture = other->capture_list; capture != NULL; capture = capture->next) {
        if (capture->mode == RONDO_CAPTURE_GLOBAL && capture->origin != NULL &&
            is_broken_now(capture->origin)) {
            blame_if_broken(capture, NULL, call->record, call->cause);
        }
    }
    pthread_mutex_unlock(&other->capture_list_lock);
}

void rondo__blame_break(rondo__capture *capture, rondo_stream *stream, rondo_capture_cause cause) {
    rondo_error record;
    rondo__error_save(&record);
    pthread_mutex_lock(&capture->lock);
    if (stream != NULL) {
        rondo__blame_fill_place(capture, stream, record.call, true);
    }
    set_cause(capture, &record, rondo__cause_classify(&record, cause),
              stream != NULL ? stream : capture->origin);
    pthread_mutex_unlock(&capture->lock);
    rondo__error_restore(&record);
}

void rondo__blame_call(rondo_device *device, rondo_stream *stream, rondo_capture_cause cause) {
    rondo_error record;
    rondo__error_save(&record);
    cause = rondo__cause_classify(&record, cause);
    if (record.status == RONDO_STATUS_STATE) {
        failed_call call = {.record = &record, .cause = cause};
        rondo__device_visit_others(device, blame_elsewhere, &call);
        rondo__error_restore(&record);
    }
    if (!has_open_captures(device)) {
        return;
    }
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__capture *known =
        stream != NULL ? rondo__capture_find_listed(device, stream->marks.capture_id) : NULL;
    for (rondo__capture *capture = device->capture_list; capture != NULL; capture = capture->next) {
        if (known == NULL || capture == known) {
            blame_if_broken(capture, stream, &record, cause);
        }
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    rondo__error_restore(&record);
}

void rondo__blame_note_place(rondo__capture *capture, rondo_stream *stream, const char *call) {
    rondo_error saved;
    rondo__error_save(&saved);
    pthread_mutex_lock(&capture->lock);
    if (is_broken_now(stream)) {
        set_broken(capture);
    }
    rondo__blame_fill_place(capture, stream, call, true);
    pthread_mutex_unlock(&capture->lock);
    rondo__error_restore(&saved);
}

bool rondo__blame_notice(rondo_stream *stream, const char *call) {
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    bool is_broken = rondo__capture_get_state(stream, &state) == RONDO_STATUS_OK &&
                     state == RONDO__CAPTURE_BROKEN;
    rondo__capture *capture = is_broken ? find_capture(stream) : NULL;
    if (capture != NULL) {
        pthread_mutex_lock(&capture->lock);
        set_broken(capture);
        rondo__blame_fill_place(capture, stream, call, true);
        pthread_mutex_unlock(&capture->lock);
    }
    rondo__error_restore(&saved);
    return is_broken;
}

static rondo__capture *find_begun_on(rondo_stream *stream) {
    pthread_mutex_lock(&stream->device->capture_list_lock);
    rondo__capture *capture = find_by_origin(stream);
    pthread_mutex_unlock(&stream->device->capture_list_lock);
    return capture;
}

void rondo__blame_destruction(rondo__capture *capture, rondo_stream *stream) {
    (void)RONDO_FAIL_AS("rondo_stream_destroy", STATE,
                        "stream %u was destroyed while it recorded; destroy streams after "
                        "the end of the capture",
                        (unsigned)stream->number);
    rondo_error record;
    rondo__error_save(&record);
    pthread_mutex_lock(&capture->lock);
    rondo__blame_fill_place(capture, stream, record.call, true);
    set_cause(capture, &record, RONDO_CAUSE_STREAM_DESTROYED, stream);
    pthread_mutex_unlock(&capture->lock);
}

bool rondo__blame_may_record(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    return stream->device->backend->get_capture_state(stream, &state) != RONDO_STATUS_OK ||
           state != RONDO__CAPTURE_NONE;
}

rondo__capture *rondo__blame_find_capture(rondo_stream *stream, bool is_recording) {
    if (!has_open_captures(stream->device)) {
        return NULL;
    }
    return is_recording ? find_capture(stream) : find_begun_on(stream);
}

void rondo__blame_given_up(rondo__capture *capture) {
    rondo_error saved;
    rondo__error_save(&saved);
    (void)RONDO_FAIL_AS("rondo_graph_capture_abort", STATE,
                        "another thread gave the capture up; the thread that began must end it, "
                        "unless the mode is relaxed");
    rondo_error record;
    rondo__error_save(&record);
    pthread_mutex_lock(&capture->device->capture_list_lock);
    rondo_stream *origin = capture->origin;
    pthread_mutex_lock(&capture->lock);
    set_cause(capture, &record, RONDO_CAUSE_ABORTED, origin);
    pthread_mutex_unlock(&capture->lock);
    pthread_mutex_unlock(&capture->device->capture_list_lock);
    rondo__error_restore(&saved);
}

bool rondo__blame_is_broken(rondo__capture *capture) {
    // Participants must not add to a broken capture; without any, its end tells soon enough.
    if (!rondo__capture_has_participants(capture)) {
        return atomic_load_explicit(&capture->blame.is_broken, memory_order_acquire);
    }
    pthread_mutex_lock(&capture->lock);
    if (!capture->blame.is_broken && capture->origin != NULL) {
        rondo_error saved;
        rondo__error_save(&saved);
        if (is_broken_now(capture->origin)) {
            set_broken(capture);
        }
        rondo__error_restore(&saved);
    }
    bool is_broken = capture->blame.is_broken;
    pthread_mutex_unlock(&capture->lock);
    return is_broken;
}

void rondo__blame_conclude(rondo__capture *capture, const char *call, bool is_given_up,
                           rondo__blame *out_blame) {
    rondo_error saved;
    rondo__error_save(&saved);
    pthread_mutex_lock(&capture->lock);
    rondo__blame *blame = &capture->blame;
    if (capture->origin != NULL) {
        if (is_broken_now(capture->origin)) {
            set_broken(capture);
        }
        rondo__blame_fill_place(capture, capture->origin, call, is_given_up || blame->is_broken);
    }
    *out_blame = *blame;
    pthread_mutex_unlock(&capture->lock);
    rondo__error_restore(&saved);
}
