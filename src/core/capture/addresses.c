// capture/addresses.c — telling participants which addresses recorded work uses.
// SPDX-License-Identifier: Apache-2.0

#include "capture/addresses.h"

#include <string.h>

#include "base/error.h"

void rondo__addresses_want(rondo__capture *capture) {
    if (!capture->wants_addresses) {
        capture->wants_addresses = true;
        atomic_fetch_add(&capture->device->watcher_count, 1);
    }
}

static rondo_status find_watcher(rondo_stream *stream, rondo__capture **out_capture) {
    *out_capture = NULL;
    if (!rondo__addresses_are_wanted(stream)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__capture_find(stream, out_capture, NULL));
    if (*out_capture != NULL && !(*out_capture)->wants_addresses) {
        *out_capture = NULL;
    }
    return RONDO_STATUS_OK;
}

static rondo_status note(rondo__capture *capture, rondo_stream *stream, const void *address,
                         const char *what) {
    pthread_mutex_lock(&capture->lock);
    rondo__participant *p = capture->participants;
    pthread_mutex_unlock(&capture->lock);
    while (p != NULL) {
        if (p->type->note_address != NULL) {
            RETURN_IF_ERROR(p->type->note_address(p, stream, address, what));
        }
        pthread_mutex_lock(&capture->lock);
        p = p->next;
        pthread_mutex_unlock(&capture->lock);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__addresses_note(rondo_stream *stream, const void *address, const char *what) {
    rondo__capture *capture;
    RETURN_IF_ERROR(find_watcher(stream, &capture));
    return capture != NULL ? note(capture, stream, address, what) : RONDO_STATUS_OK;
}

rondo_status rondo__addresses_note_words(rondo_stream *stream, const void *words, size_t bytes,
                                         const char *what) {
    rondo__capture *capture;
    RETURN_IF_ERROR(find_watcher(stream, &capture));
    for (size_t i = 0; capture != NULL && i + sizeof(uintptr_t) <= bytes; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (const char *)words + i, sizeof word);
        if (word >= 4096) {
            RETURN_IF_ERROR(note(capture, stream, (const void *)word, what));
        }
    }
    return RONDO_STATUS_OK;
}
