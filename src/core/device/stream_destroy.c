// device/stream_destroy.c — the end of a stream, also in the middle of a capture.
// SPDX-License-Identifier: Apache-2.0
#include "device/stream_destroy.h"

#include "base/error.h"
#include "base/log/logging.h"
#include "base/thread.h"
#include "capture/label_stack.h"
#include "device/scope_list.h"
#include "device/stream_tag.h"

// Ends the capture that began on the stream, as rondo_stream_destroy promises, where this thread
// may. Nothing comes of it. False: the thread that began has to end it.
static bool give_up(rondo__capture *capture, rondo_stream *stream) {
    rondo_device *device = stream->device;
    if (capture->mode != RONDO_CAPTURE_RELAXED &&
        capture->thread_number != rondo__thread_get_number()) {
        return false;
    }
    rondo__template *recorded = NULL;
    if (device->backend->end_capture(stream, &recorded) == RONDO_STATUS_OK) {
        device->backend->destroy_template(recorded);
    }
    return true;
}

static void forget_origin(rondo__capture *capture) {
    pthread_mutex_lock(&capture->device->capture_list_lock);
    capture->origin = NULL;
    pthread_mutex_unlock(&capture->device->capture_list_lock);
}

// The capture that must keep the stream to its end; NULL: none. One that began on the stream is
// given up, where this thread may, and has no origin from now on.
static rondo__capture *leave_capture(rondo_stream *stream) {
    if (atomic_load_explicit(&stream->device->open_capture_count, memory_order_acquire) == 0) {
        return NULL;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    bool is_recording = rondo__blame_may_record(stream);
    rondo__capture *capture = rondo__blame_find_capture(stream, is_recording);
    bool is_origin = capture != NULL && capture->origin == stream;
    if (capture != NULL && capture->had_scopes) {
        rondo__scopes_close(capture, is_origin ? NULL : stream);
    }
    // A wrapped stream that was forked lives on without its wrapper.
    if (capture != NULL && (is_origin || !stream->is_wrapped)) {
        rondo__blame_destruction(capture, stream);
    }
    bool is_kept = capture != NULL && is_recording && !stream->is_wrapped;
    if (is_origin) {
        is_kept = !give_up(capture, stream) && is_kept;
        if (!is_kept) {
            forget_origin(capture);
        }
    } else if (is_kept) {
        is_kept = rondo__blame_may_record(stream);  // the end of a body let go of it
    }
    rondo__error_restore(&saved);
    return is_kept ? capture : NULL;
}

void rondo_stream_destroy(rondo_stream *stream) {
    if (stream == NULL || atomic_load(&stream->device->is_forked)) {
        return;
    }
    if (stream->is_lent) {
        RONDO_LOG_WARN_F(
            "rondo_stream_destroy: stream %u is lent to a function of the program, and is left as "
            "it is; who lent it frees it",
            (unsigned)stream->number);
        return;
    }
    rondo__capture *keeper = leave_capture(stream);
    rondo__scopes_close_on(stream);
    rondo__label_close_above(stream, 0);
    rondo__label_stack_destroy(stream->labels);
    stream->labels = NULL;
    if (keeper == NULL) {
        rondo__stream_tag_destroy_stream(stream);
        return;
    }
    rondo__stream_tag_note_kept(stream);
    if (!rondo__capture_keep_stream(keeper, stream)) {
        rondo__stream_tag_destroy_stream(stream);
    }
}

void rondo__stream_destroy_own(rondo_stream *stream) {
    if (stream != NULL) {
        stream->is_lent = false;
        rondo_stream_destroy(stream);
    }
}

void rondo__stream_destroy_kept(rondo_stream *list) {
    while (list != NULL) {
        rondo_stream *stream = list;
        list = stream->next_kept;
        rondo__stream_tag_destroy_stream(stream);
    }
}
