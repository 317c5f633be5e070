// capture/capture.c — the list of captures in progress on a device.
// SPDX-License-Identifier: Apache-2.0
#include "capture/capture.h"

#include <string.h>

#include "backend/cause.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "capture/label_stack.h"
#include "capture/marks.h"

rondo__capture *rondo__capture_create(void) {
    rondo__capture *capture = rondo__calloc(1, sizeof *capture);
    if (capture != NULL) {
        pthread_mutex_init(&capture->lock, NULL);
    }
    return capture;
}

void rondo__capture_destroy(rondo__capture *capture) {
    if (capture != NULL) {
        pthread_mutex_destroy(&capture->lock);
        rondo__free(capture);
    }
}

static atomic_int global_count;  // open captures in global mode, of all devices

bool rondo__capture_is_global_open(void) {
    return atomic_load_explicit(&global_count, memory_order_acquire) > 0;
}

// Under the list's lock: so a plain store does, at a tenth of the price.
static void add_open_count(rondo_device *device, int step) {
    int count = atomic_load_explicit(&device->open_capture_count, memory_order_relaxed);
    atomic_store_explicit(&device->open_capture_count, count + step, memory_order_release);
}

rondo_status rondo__capture_open(rondo__capture *capture, rondo_stream *origin, uint64_t id,
                                 rondo_capture_mode mode, const char *label) {
    rondo_device *device = origin->device;
    if (id == 0) {
        return RONDO_FAIL_AS("rondo_graph_capture_begin", STATE,
                             "the capture on stream %u ended as it began",
                             (unsigned)origin->number);
    }
    memset(capture, 0, offsetof(rondo__capture, lock));
    capture->id = id;
    capture->device = device;
    capture->origin = origin;
    capture->mode = mode;
    capture->label = label;
    capture->thread_number = rondo__thread_get_number();
    capture->label_depth = rondo__label_get_depth(origin);
    rondo__marks_begin(origin, id);
    pthread_mutex_lock(&device->capture_list_lock);
    capture->next = device->capture_list;
    device->capture_list = capture;
    add_open_count(device, 1);
    atomic_fetch_add(&global_count, mode == RONDO_CAPTURE_GLOBAL);
    pthread_mutex_unlock(&device->capture_list_lock);
    return RONDO_STATUS_OK;
}

static void free_bodies(rondo__capture_body *list) {
    while (list != NULL) {
        rondo__capture_body *body = list;
        list = body->next;
        rondo__free(body);
    }
}

bool rondo__capture_keep_stream(rondo__capture *capture, rondo_stream *stream) {
    rondo_device *device = stream->device;
    pthread_mutex_lock(&device->capture_list_lock);
    const rondo__capture *listed = device->capture_list;
    while (listed != NULL && listed != capture) {
        listed = listed->next;
    }
    if (listed != NULL) {
        stream->next_kept = capture->kept_streams;
        capture->kept_streams = stream;
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    return listed != NULL;
}

rondo__participant *rondo__capture_close(rondo__capture *capture, bool has_succeeded,
                                         rondo_stream **out_kept) {
    rondo_device *device = capture->device;
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__capture **link = &device->capture_list;
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    add_open_count(device, -1);
    atomic_fetch_sub(&global_count, capture->mode == RONDO_CAPTURE_GLOBAL);
    if (atomic_load_explicit(&capture->blame.is_broken, memory_order_relaxed)) {
        atomic_fetch_sub_explicit(&device->broken_capture_count, 1, memory_order_relaxed);
    }
    if (capture->wants_addresses) {
        atomic_fetch_sub(&device->watcher_count, 1);
    }
    pthread_mutex_unlock(&device->capture_list_lock);

    rondo__participant *participants = capture->participants;
    for (rondo__participant *p = participants; p != NULL; p = p->next) {
        if (p->type->close != NULL) {
            p->type->close(p, capture, has_succeeded);
        }
    }
    *out_kept = capture->kept_streams;
    free_bodies(capture->bodies);
    free_bodies(capture->closed_bodies);
    return participants;
}

// ---- finding ----------------------------------------------------------------------------------

static const rondo__capture_body *find_body(const rondo__capture_body *list, uint64_t id) {
    while (list != NULL && list->id != id) {
        list = list->next;
    }
    return list;
}

const rondo__capture_body *rondo__capture_get_body(const rondo__capture *capture, uint64_t id) {
    const rondo__capture_body *body = find_body(capture->bodies, id);
    return body != NULL ? body : find_body(capture->closed_bodies, id);
}

const rondo__capture_body *rondo__capture_find_body(rondo__capture *capture, uint64_t id) {
    pthread_mutex_lock(&capture->lock);
    const rondo__capture_body *body = rondo__capture_get_body(capture, id);
    pthread_mutex_unlock(&capture->lock);
    return body;
}

bool rondo__capture_holds(rondo__capture *capture, uint64_t id) {
    return capture->id == id || rondo__capture_find_body(capture, id) != NULL;
}

// Whether that is the id of the capture, or of one of its bodies that is open.
static bool is_recording(rondo__capture *capture, uint64_t id) {
    if (capture->id == id) {
        return true;
    }
    pthread_mutex_lock(&capture->lock);
    bool is_open = find_body(capture->bodies, id) != NULL;
    pthread_mutex_unlock(&capture->lock);
    return is_open;
}

rondo__capture *rondo__capture_find_listed(rondo_device *device, uint64_t id) {
    rondo__capture *capture = device->capture_list;
    while (capture != NULL && (id == 0 || !is_recording(capture, id))) {
        capture = capture->next;
    }
    return capture;
}

static rondo__capture *find_by_id(rondo_device *device, uint64_t id) {
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__capture *capture = rondo__capture_find_listed(device, id);
    pthread_mutex_unlock(&device->capture_list_lock);
    return capture;
}

bool rondo__capture_is_open(rondo_device *device, uint64_t id) {
    return find_by_id(device, id) != NULL;
}

rondo_status rondo__capture_find(rondo_stream *stream, rondo__capture **out_capture,
                                 uint64_t *out_id) {
    rondo_device *device = stream->device;
    *out_capture = NULL;
    if (out_id != NULL) {
        *out_id = 0;
    }
    if (atomic_load_explicit(&device->open_capture_count, memory_order_acquire) == 0) {
        return RONDO_STATUS_OK;
    }
    rondo__capture_state state = RONDO__CAPTURE_BROKEN;
    uint64_t id = 0;
    if (!stream->is_orphan) {
        RETURN_IF_ERROR(device->backend->get_capture_id(stream, &state, &id));
    }
    if (state == RONDO__CAPTURE_NONE) {
        return RONDO_STATUS_OK;
    }
    if (state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(stream, "a recorded call");
    }
    rondo__capture *capture = find_by_id(device, id);
    if (capture != NULL && atomic_load_explicit(&capture->blame.is_broken, memory_order_acquire)) {
        return rondo__cause_fail_broken(stream, "a recorded call");
    }
    *out_capture = capture;
    if (capture != NULL && out_id != NULL) {
        *out_id = id;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__capture_locate(rondo_stream *stream, rondo__place *out_place) {
    rondo_device *device = stream->device;
    *out_place = (rondo__place){.state = RONDO__CAPTURE_NONE};
    if (stream->is_orphan) {  // the backend may have let go of its native stream
        out_place->state = RONDO__CAPTURE_BROKEN;
        return RONDO_STATUS_OK;
    }
    if (!rondo__stream_may_record(stream)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(device->backend->get_capture_id(stream, &out_place->state, &out_place->id));
    if (out_place->state == RONDO__CAPTURE_NONE) {
        return RONDO_STATUS_OK;
    }
    out_place->capture = find_by_id(device, out_place->id);
    if (out_place->capture != NULL &&
        atomic_load_explicit(&out_place->capture->blame.is_broken, memory_order_acquire)) {
        out_place->state = RONDO__CAPTURE_BROKEN;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__capture_get_state(rondo_stream *stream, rondo__capture_state *out_state) {
    rondo__place place;
    rondo_status status = rondo__capture_locate(stream, &place);
    *out_state = place.state;
    return status;
}

rondo_status rondo__capture_check_broken(rondo_stream *stream, const char *call) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    return state == RONDO__CAPTURE_BROKEN ? rondo__cause_fail_broken(stream, call)
                                          : RONDO_STATUS_OK;
}

rondo_status rondo__capture_refuse_foreign(rondo_stream *stream, const char *call,
                                           const char *what) {
    rondo__place place;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &place));
    if (place.state == RONDO__CAPTURE_NONE || place.capture != NULL) {
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(call, STATE,
                         "stream %u records into a capture that Rondo did not begin, so the %s "
                         "would never learn how long its memory is needed; begin the capture "
                         "with rondo_graph_capture_begin, or allocate before it",
                         (unsigned)stream->number, what);
}

void rondo__capture_note_block(rondo__capture *capture, const void *address, size_t bytes) {
    rondo__capture_blocks *blocks = capture->blocks;
    if (blocks == NULL) {
        return;
    }
    pthread_mutex_lock(&capture->lock);
    if (RONDO__ARRAY_RESERVE(blocks->list, blocks->capacity, blocks->count + 1) ==
        RONDO_STATUS_OK) {
        blocks->list[blocks->count++] =
            (struct rondo__capture_block){.begin = (uintptr_t)address, .bytes = bytes};
    } else {
        blocks->is_incomplete = true;
    }
    pthread_mutex_unlock(&capture->lock);
}

rondo__participant *rondo__capture_find_participant(rondo__capture *capture,
                                                    const rondo__participant_type *type,
                                                    const void *key) {
    if (!rondo__capture_has_participants(capture)) {
        return NULL;
    }
    pthread_mutex_lock(&capture->lock);
    rondo__participant *participant = capture->participants;
    while (participant != NULL && (participant->type != type || participant->key != key)) {
        participant = participant->next;
    }
    pthread_mutex_unlock(&capture->lock);
    return participant;
}

void rondo__capture_add_participant(rondo__capture *capture, rondo__participant *participant) {
    participant->next = NULL;
    pthread_mutex_lock(&capture->lock);
    rondo__participant *last = capture->participants;
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    if (last != NULL) {
        last->next = participant;
    } else {
        capture->participants = participant;
    }
    pthread_mutex_unlock(&capture->lock);
}

rondo_status rondo__capture_add_body(rondo__capture *capture, rondo_stream *parent,
                                     rondo__node_handle node, uint32_t branch, rondo_stream *body,
                                     uint64_t *out_id) {
    const rondo__backend *backend = capture->device->backend;
    *out_id = 0;
    rondo__capture_body *entry = rondo__calloc(1, sizeof *entry);
    if (entry == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__capture_state state;
    rondo_status status = backend->get_capture_id(parent, &state, &entry->parent_id);
    if (status == RONDO_STATUS_OK) {
        status = backend->get_capture_id(body, &state, &entry->id);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(entry);
        return status;
    }
    entry->node = node;
    entry->branch = branch;
    entry->parent = parent;
    entry->stream = body;
    entry->stream_number = body->number;
    entry->thread_number = rondo__thread_get_number();
    *out_id = entry->id;
    rondo__marks_begin(body, entry->id);
    pthread_mutex_lock(&capture->lock);
    entry->next = capture->bodies;
    capture->bodies = entry;
    pthread_mutex_unlock(&capture->lock);
    return RONDO_STATUS_OK;
}

void rondo__capture_close_body(rondo__capture *capture, const rondo_stream *body) {
    pthread_mutex_lock(&capture->lock);
    rondo__capture_body **link = &capture->bodies;
    while (*link != NULL && (*link)->stream != body) {
        link = &(*link)->next;
    }
    rondo__capture_body *entry = *link;
    if (entry != NULL) {
        *link = entry->next;
        entry->stream = NULL;
        entry->next = capture->closed_bodies;
        capture->closed_bodies = entry;
    }
    pthread_mutex_unlock(&capture->lock);
}

// ---- the participants' turns ------------------------------------------------------------------

// The list may grow while it is walked (by a participant that brings another), but nothing leaves
// it.
static rondo__participant *get_next(rondo__capture *capture, rondo__participant *participant) {
    if (!rondo__capture_has_participants(capture)) {
        return NULL;
    }
    pthread_mutex_lock(&capture->lock);
    rondo__participant *next = participant != NULL ? participant->next : capture->participants;
    pthread_mutex_unlock(&capture->lock);
    return next;
}

rondo_status rondo__capture_finish(rondo__capture *capture) {
    for (rondo__participant *p = get_next(capture, NULL); p != NULL; p = get_next(capture, p)) {
        if (p->type->finish != NULL) {
            RETURN_IF_ERROR(p->type->finish(p, capture));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__capture_enter_scope(rondo__capture *capture, rondo_stream *parent) {
    for (rondo__participant *p = get_next(capture, NULL); p != NULL; p = get_next(capture, p)) {
        if (p->type->enter_scope != NULL) {
            RETURN_IF_ERROR(p->type->enter_scope(p, capture, parent));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__capture_leave_body(rondo__capture *capture, rondo_stream *body) {
    for (rondo__participant *p = get_next(capture, NULL); p != NULL; p = get_next(capture, p)) {
        if (p->type->leave_body != NULL) {
            RETURN_IF_ERROR(p->type->leave_body(p, capture, body));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__participants_enter_child(rondo__participant *list, rondo__capture *capture,
                                             rondo_stream *stream) {
    for (rondo__participant *p = list; p != NULL; p = p->next) {
        if (p->type->enter_child != NULL) {
            RETURN_IF_ERROR(p->type->enter_child(p, capture, stream));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__participants_leave_child(rondo__participant *list, rondo__capture *capture,
                                             rondo_stream *stream) {
    for (rondo__participant *p = list; p != NULL; p = p->next) {
        if (p->type->leave_child != NULL) {
            RETURN_IF_ERROR(p->type->leave_child(p, capture, stream));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__participants_prepare_replay(rondo__participant *list, rondo_stream *stream) {
    for (rondo__participant *p = list; p != NULL; p = p->next) {
        rondo_status status = RONDO_STATUS_OK;
        if (p->type->prepare_replay != NULL) {
            status = p->type->prepare_replay(p, stream);
        }
        if (__builtin_expect(status != RONDO_STATUS_OK, 0)) {
            rondo__participants_cancel_replay(list, p);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

void rondo__participants_cancel_replay(rondo__participant *list, const rondo__participant *end) {
    for (rondo__participant *p = list; p != end; p = p->next) {
        if (p->type->cancel_replay != NULL) {
            p->type->cancel_replay(p);
        }
    }
}

void rondo__participants_note_replay(rondo__participant *list, rondo_stream *stream) {
    for (rondo__participant *p = list; p != NULL; p = p->next) {
        if (p->type->note_replay != NULL) {
            p->type->note_replay(p, stream);
        }
    }
}

void rondo__participants_destroy(rondo__participant *list) {
    while (list != NULL) {
        rondo__participant *next = list->next;
        list->type->destroy(list);
        list = next;
    }
}
