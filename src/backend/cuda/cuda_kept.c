// Streams that were destroyed and have to be kept: the driver lets nobody wait for, or destroy, a
// stream that records.
//
//   orphans   take part in a capture that goes on. Its end destroys them.
//   strays    a capture began on them, and another thread destroyed them: only the thread that
//             began can end the capture, unless its mode is relaxed. That thread destroys them
//             when it ends or aborts the capture of the graph, or else when it next makes or
//             destroys a stream of the device. Where it does neither (it is gone), they stay.
//
// Either way those who remember the stream (backend/stream_tag.c) are told when its work is done.
#include "backend/cuda/cuda_capture.h"
#include "base/logging.h"
#include "base/memory.h"

void rondo__cuda_destroy_native(rondo__cuda_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->head.device);
    rondo__cu_stream native = rondo__cuda_native_stream(&stream->head);
    int mode = rondo__cuda_relax(device);
    if (!stream->is_scratch) {
        rondo__cu_result code = device->api->cuStreamSynchronize(native);
        rondo__cuda_log_failure(device, code, "cuStreamSynchronize");
        // Other failures are of the work that it has waited for.
        if (!rondo__cuda_is_capture_code(code)) {
            rondo__stream_tag_note_done(stream->head.tag);
        }
    }
    rondo__cuda_log_failure(device, device->api->cuStreamDestroy(native), "cuStreamDestroy");
    rondo__cuda_restore(device, mode);
}

// The caller holds the lock.
static void put(rondo__cuda_stream **list, rondo__cuda_stream *stream) {
    stream->next_kept = *list;
    *list = stream;
}

static void forget(rondo__cuda_stream *list) {
    while (list != NULL) {
        rondo__cuda_stream *next = list->next_kept;
        rondo__stream_tag_release(list->head.tag);
        rondo__free(list);
        list = next;
    }
}

// ---- orphans ----------------------------------------------------------------------------------

static rondo__cuda_capture *find_in(rondo__cuda_capture *list, uint64_t serial) {
    while (list != NULL && list->serial != serial) {
        list = list->next;
    }
    return list;
}

// Also a body that waits for its end. The caller holds the lock.
static rondo__cuda_capture *find_unended(rondo__cuda_device *device, uint64_t serial) {
    rondo__cuda_capture *found = find_in(device->captures, serial);
    for (const rondo__cuda_capture *c = device->captures; c != NULL && found == NULL; c = c->next) {
        found = find_in(c->limbo, serial);
    }
    return found;
}

void rondo__cuda_destroy_orphans(rondo__cuda_capture *capture) {
    for (rondo__cuda_stream *s = capture->orphans; s != NULL; s = s->next_kept) {
        rondo__cuda_destroy_native(s);
    }
    rondo__cuda_forget_orphans(capture);
}

void rondo__cuda_give_up_orphans(const rondo__cuda_capture *capture) {
    for (rondo__cuda_stream *s = capture->orphans; s != NULL; s = s->next_kept) {
        rondo__stream_tag_release(s->head.tag);  // it may keep the device open
        s->head.tag = NULL;
    }
}

void rondo__cuda_forget_orphans(rondo__cuda_capture *capture) {
    forget(capture->orphans);
    capture->orphans = NULL;
}

// ---- strays -----------------------------------------------------------------------------------

static rondo__cuda_stream *take_strays(rondo__cuda_device *device) {
    pthread_mutex_lock(&device->capture_lock);
    rondo__cuda_stream *strays = device->strays;
    device->strays = NULL;
    pthread_mutex_unlock(&device->capture_lock);
    return strays;
}

// False: another thread has to.
static bool end_capture(rondo__cuda_stream *stream) {
    rondo__template *recorded = NULL;
    if (rondo__cuda_end_capture(&stream->head, &recorded) == RONDO_STATUS_OK) {
        rondo__cuda_destroy_template(recorded);
    }
    return !stream->is_origin;
}

// The strays whose captures have ended now; the others go back to the list.
static rondo__cuda_stream *end_strays(rondo__cuda_device *device, rondo__cuda_stream *stray) {
    rondo__cuda_stream *ended = NULL;
    while (stray != NULL) {
        rondo__cuda_stream *next = stray->next_kept;
        if (end_capture(stray)) {
            put(&ended, stray);
        } else {
            pthread_mutex_lock(&device->capture_lock);
            put(&device->strays, stray);
            pthread_mutex_unlock(&device->capture_lock);
        }
        stray = next;
    }
    return ended;
}

void rondo__cuda_end_left_captures(rondo_device *device_) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    // Who has to end one must not miss it because another thread looks at it.
    pthread_mutex_lock(&device->stray_lock);
    rondo__cuda_stream *stray = take_strays(device);
    if (stray == NULL) {
        pthread_mutex_unlock(&device->stray_lock);
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    rondo__cuda_stream *ended = end_strays(device, stray);
    pthread_mutex_unlock(&device->stray_lock);
    // Waits for their work, which may itself wait for what another thread does next.
    for (rondo__cuda_stream *s = ended; s != NULL; s = s->next_kept) {
        rondo__cuda_destroy_native(s);
    }
    forget(ended);
    rondo__cuda_leave(device, was_pushed);
    rondo__error_restore(&saved);
}

void rondo__cuda_forget_strays(rondo__cuda_device *device) {
    rondo__cuda_stream *strays = take_strays(device);
    if (strays != NULL) {
        RONDO_LOG_WARN_F(
            "%s: streams that recorded were destroyed by other threads than those that began, "
            "which never ended the captures; they are lost until the end of the process",
            device->head.name);
    }
    forget(strays);
}

// ---- both -------------------------------------------------------------------------------------

bool rondo__cuda_keep_stream(rondo_stream *stream_) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    pthread_mutex_lock(&device->capture_lock);
    // A stream that joined takes part until the end, also once it was joined again.
    rondo__cuda_capture *capture = find_unended(device, stream->capture);
    rondo__cuda_capture *lost = find_in(device->lost_bodies, stream->capture);
    bool is_kept = stream->is_origin || capture != NULL || lost != NULL;
    if (stream->head.tag != NULL && is_kept) {
        if (lost == NULL) {
            (void)rondo__stream_tag_retain(stream_);
        } else {
            stream->head.tag = NULL;
        }
    }
    if (stream->is_origin) {
        put(&device->strays, stream);
    } else if (is_kept) {
        put(capture != NULL ? &capture->orphans : &lost->orphans, stream);
    }
    pthread_mutex_unlock(&device->capture_lock);
    return is_kept;
}
