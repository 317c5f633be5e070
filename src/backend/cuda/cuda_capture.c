// Capture on CUDA streams.
//
// The device keeps a note for each capture that runs: which streams were forked from it, and what
// its conditional nodes need.
//
//   stream A   begin(7) -- record(e) ------------- wait(f) -- end
//   stream B                  wait(e): joins 7 -- record(f)
//
// What Rondo itself refuses never gets here (backend/forbid.h), so what breaks a capture in the
// driver's eyes is a call of the program's own, or one that the driver refused.
//
// Captures are known by serial numbers, never by stream, so that a stream destroyed in the middle
// or reused later cannot be taken for another.
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backend/blame.h"
#include "backend/cuda/cuda_capture.h"
#include "base/memory.h"
#include "base/thread.h"

// ---- threads ----------------------------------------------------------------------------------

// The former mode, or -1. What cannot be destroyed is lost, and a thread that stays relaxed no
// longer breaks what it should, so this is tried twice.
static int exchange_mode(const rondo__cuda_device *device, int wanted) {
    for (int i = 0; i < 2; i++) {
        int mode = wanted;
        if (device->api->cuThreadExchangeStreamCaptureMode(&mode) == RONDO__CU_SUCCESS) {
            return mode;
        }
    }
    return -1;
}

int rondo__cuda_relax(const rondo__cuda_device *device) {
    return exchange_mode(device, RONDO__CU_CAPTURE_MODE_RELAXED);
}

void rondo__cuda_restore(const rondo__cuda_device *device, int mode) {
    if (mode >= 0) {
        (void)exchange_mode(device, mode);
    }
}

// ---- notes on captures ------------------------------------------------------------------------

// The caller holds the lock. NULL when the capture has ended.
static rondo__cuda_capture *find_in(rondo__cuda_capture *list, uint64_t serial) {
    while (list != NULL && list->serial != serial) {
        list = list->next;
    }
    return list;
}

rondo__cuda_capture *rondo__cuda_find_capture(rondo__cuda_device *device, uint64_t serial) {
    return find_in(device->captures, serial);
}

bool rondo__cuda_is_unended(rondo__cuda_device *device, uint64_t serial) {
    pthread_mutex_lock(&device->capture_lock);
    bool is_found =
        find_in(device->captures, serial) != NULL || find_in(device->lost_bodies, serial) != NULL;
    for (const rondo__cuda_capture *c = device->captures; c != NULL && !is_found; c = c->next) {
        is_found = find_in(c->limbo, serial) != NULL;
    }
    pthread_mutex_unlock(&device->capture_lock);
    return is_found;
}

// The caller holds the lock.
static uint64_t list_capture(rondo__cuda_device *device, rondo__cuda_capture *capture) {
    capture->serial = ++device->last_capture;
    capture->root = capture->root == RONDO__CUDA_CAPTURE_IS_ROOT ? capture->serial : capture->root;
    capture->next = device->captures;
    device->captures = capture;
    return capture->serial;
}

uint64_t rondo__cuda_add_capture(rondo__cuda_device *device, rondo__cuda_capture *capture) {
    pthread_mutex_lock(&device->capture_lock);
    uint64_t serial = list_capture(device, capture);
    pthread_mutex_unlock(&device->capture_lock);
    return serial;
}

rondo__cuda_capture *rondo__cuda_unlist_capture(rondo__cuda_device *device, uint64_t serial) {
    rondo__cuda_capture **link = &device->captures;
    while (*link != NULL && (*link)->serial != serial) {
        link = &(*link)->next;
    }
    rondo__cuda_capture *capture = *link;
    if (capture != NULL) {
        *link = capture->next;
    }
    return capture;
}

rondo__cuda_capture *rondo__cuda_take_capture(rondo__cuda_device *device, uint64_t serial) {
    pthread_mutex_lock(&device->capture_lock);
    rondo__cuda_capture *capture = rondo__cuda_unlist_capture(device, serial);
    pthread_mutex_unlock(&device->capture_lock);
    return capture;
}

static void free_list(rondo__cuda_capture *capture) {
    while (capture != NULL) {
        rondo__cuda_capture *next = capture->next;
        free_list(capture->limbo);
        rondo__cuda_free_notes(capture->notes);
        rondo__free(capture);
        capture = next;
    }
}

void rondo__cuda_free_captures(rondo__cuda_device *device) {
    free_list(device->captures);
    free_list(device->lost_bodies);
}

bool rondo__cuda_is_capture_code(rondo__cu_result code) {
    return code >= RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           code <= RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

void rondo__cuda_note_record(rondo__cuda_event *event, rondo__cuda_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    if (stream->capture != 0 &&
        rondo__cuda_get_capture_state(&stream->head, &state) == RONDO_STATUS_OK &&
        state == RONDO__CAPTURE_NONE) {
        stream->capture = 0;  // that capture has ended
    }
    event->is_recorded = true;
    event->capture = stream->capture;
    event->stream_number = stream->head.number;
}

void rondo__cuda_note_wait(rondo__cuda_stream *stream, const rondo__cuda_event *event) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->head.device);
    rondo__cuda_capture *capture = rondo__cuda_find_capture(device, event->capture);
    if (capture != NULL) {
        bool is_member = stream->capture == event->capture;
        for (size_t i = 0; i < capture->member_count; i++) {
            if (capture->members[i].stream_number == event->stream_number) {
                capture->members[i].is_joined = true;
            }
        }
        if (!is_member && capture->member_count < RONDO__CUDA_MEMBERS_MAX) {
            capture->members[capture->member_count].stream_number = stream->head.number;
            capture->members[capture->member_count++].is_joined = false;
        }
        stream->capture = event->capture;
    }
}

// ---- begin and end ----------------------------------------------------------------------------

// Lists the capture. *out_id is 0 where it broke as it began. Whatever fails, the stream does not
// record.
static rondo__cu_result begin_native(rondo__cuda_stream *stream, rondo__cuda_capture *capture,
                                     uint64_t *out_id, const char **out_call) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->head.device);
    const rondo__cuda_api *api = device->api;
    rondo__cu_stream native = rondo__cuda_native_stream(&stream->head);
    *out_call = "cuStreamBeginCapture";
    pthread_mutex_lock(&device->capture_lock);
    while (device->wait_count > 0) {
        pthread_cond_wait(&device->has_waited, &device->capture_lock);
    }
    rondo__cu_result code = api->cuStreamBeginCapture(native, capture->mode);
    if (code == RONDO__CU_SUCCESS) {
        *out_call = "cuStreamGetCaptureInfo";
        int state = RONDO__CU_CAPTURE_STATUS_NONE;
        code = api->cuStreamGetCaptureInfo(native, &state, out_id, NULL, NULL, NULL);
        *out_id = state == RONDO__CU_CAPTURE_STATUS_ACTIVE ? *out_id : 0;
        rondo__cu_graph graph = NULL;
        if (code != RONDO__CU_SUCCESS) {
            (void)api->cuStreamEndCapture(native, &graph);
        }
        if (graph != NULL) {
            (void)api->cuGraphDestroy(graph);
        }
    }
    if (code == RONDO__CU_SUCCESS) {
        capture->driver_id = *out_id;
        stream->capture = list_capture(device, capture);
    }
    pthread_mutex_unlock(&device->capture_lock);
    return code;
}

rondo_status rondo__cuda_begin_capture(rondo_stream *stream_, rondo_capture_mode mode,
                                       uint64_t *out_id) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    static const int native_modes[] = {
        [RONDO_CAPTURE_THREAD_LOCAL] = RONDO__CU_CAPTURE_MODE_THREAD_LOCAL,
        [RONDO_CAPTURE_GLOBAL] = RONDO__CU_CAPTURE_MODE_GLOBAL,
        [RONDO_CAPTURE_RELAXED] = RONDO__CU_CAPTURE_MODE_RELAXED,
    };
    rondo__cuda_capture *capture = rondo__calloc(1, sizeof(*capture));
    if (capture == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    capture->mode = native_modes[mode];
    capture->root = RONDO__CUDA_CAPTURE_IS_ROOT;
    rondo__cu_result code = RONDO__CU_ERROR_INVALID_CONTEXT;
    rondo_status status = RONDO_STATUS_OK;
    bool was_pushed = false;
    const char *call = NULL;
    uint64_t id = 0;
    if (rondo__cuda_knows_context(stream_) && mode != RONDO_CAPTURE_GLOBAL) {
        code = begin_native(stream, capture, &id, &call);
    }
    if (code != RONDO__CU_SUCCESS) {
        status = rondo__cuda_enter(device, &was_pushed);
        if (status != RONDO_STATUS_OK) {
            goto free_capture;
        }
    }
    if (rondo__cuda_wants_context(code)) {
        if (mode == RONDO_CAPTURE_GLOBAL) {
            rondo__cuda_prepare_conditions(device);
        }
        code = begin_native(stream, capture, &id, &call);
    }
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, call, "cannot begin a capture");
    }
    rondo__cuda_leave(device, was_pushed);
    if (status != RONDO_STATUS_OK) {
        goto free_capture;
    }
    stream->capture_mode = capture->mode;
    stream->capture_thread = rondo__thread_get_number();
    stream->is_origin = true;
    if (out_id != NULL) {
        *out_id = id;
    }
    return status;

free_capture:
    rondo__free(capture);
    return status;
}

rondo_status rondo__cuda_get_capture_state(rondo_stream *stream, rondo__capture_state *out_state) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    if (stream->is_legacy) {
        // Never records; the driver would answer with an error while any other stream does.
        *out_state = RONDO__CAPTURE_NONE;
        return RONDO_STATUS_OK;
    }
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    int native_state = RONDO__CU_CAPTURE_STATUS_NONE;
    pthread_mutex_lock(&device->capture_lock);
    rondo__cu_result code =
        device->api->cuStreamIsCapturing(rondo__cuda_native_stream(stream), &native_state);
    pthread_mutex_unlock(&device->capture_lock);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuStreamIsCapturing",
                                  "cannot ask whether the stream records");
    } else if (native_state == RONDO__CU_CAPTURE_STATUS_ACTIVE) {
        *out_state = RONDO__CAPTURE_ACTIVE;
    } else if (native_state == RONDO__CU_CAPTURE_STATUS_INVALIDATED) {
        *out_state = RONDO__CAPTURE_BROKEN;
    } else {
        *out_state = RONDO__CAPTURE_NONE;
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// "stream 3, stream 5": the forked streams nobody waited for; all of them when each was waited for
// once, since then one of them went on afterwards.
uint32_t rondo__cuda_list_members(const rondo__cuda_capture *capture, char *out_text,
                                  size_t bytes) {
    bool are_all_joined = true;
    uint32_t first = 0;
    for (size_t i = 0; i < capture->member_count; i++) {
        are_all_joined = are_all_joined && capture->members[i].is_joined;
    }
    size_t used = 0;
    out_text[0] = '\0';
    for (size_t i = 0; i < capture->member_count; i++) {
        if ((are_all_joined || !capture->members[i].is_joined) && used + 16 < bytes) {
            int written = snprintf(out_text + used, bytes - used, "%sstream %u",
                                   used > 0 ? ", " : "", capture->members[i].stream_number);
            used += written > 0 ? (size_t)written : 0;
            first = first != 0 ? first : capture->members[i].stream_number;
        }
    }
    return first;
}

rondo_status rondo__cuda_fail_end(rondo__cuda_device *device, rondo__cu_result code,
                                  const rondo__cuda_capture *capture) {
    rondo_status status =
        RONDO__CUDA_FAIL(device, code, "cuStreamEndCapture", "the capture yields no graph");
    if (capture == NULL) {
        return status;
    }
    if (code == RONDO__CU_ERROR_STREAM_CAPTURE_UNJOINED && capture->member_count > 0) {
        char members[96];
        uint32_t first = rondo__cuda_list_members(capture, members, sizeof(members));
        status = RONDO_FAIL_DRIVER(RONDO_STATUS_STATE, code, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
                                   "cuStreamEndCapture",
                                   "%s forked inside the capture and was not joined; record an "
                                   "event on it and let the first stream wait for that",
                                   members);
        rondo__blame_set_unjoined(first);
    }
    return status;
}

rondo_status rondo__cuda_end_native(rondo_stream *stream_, rondo__cu_graph *out_graph,
                                    rondo__cuda_note **out_notes) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    rondo_status status = RONDO_STATUS_OK;
    rondo__cuda_capture *capture = NULL;
    rondo__cu_graph graph = NULL;
    bool is_body = stream->is_body;
    *out_graph = NULL;
    *out_notes = NULL;
    if (stream->is_origin && stream->capture_mode != RONDO__CU_CAPTURE_MODE_RELAXED &&
        stream->capture_thread != rondo__thread_get_number()) {
        // The driver refuses that for whole captures only; a broken one would end here, and the
        // thread that began it would never learn that it has one less.
        return RONDO__CUDA_FAIL(device, RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                                "cuStreamEndCapture", "the capture yields no graph");
    }
    bool was_pushed = false;
    bool is_inside = !rondo__cuda_knows_context(stream_);
    if (is_inside) {
        rondo__cuda_enter_cleanup(device, &was_pushed);
    }
    pthread_mutex_lock(&device->capture_lock);
    rondo__cu_result code =
        device->api->cuStreamEndCapture(rondo__cuda_native_stream(stream_), &graph);
    if (!is_inside && code != RONDO__CU_SUCCESS) {
        // What follows wants the context; the stream must stop recording in any case.
        rondo__cuda_enter_cleanup(device, &was_pushed);
        is_inside = true;
        if (rondo__cuda_wants_context(code)) {
            code = device->api->cuStreamEndCapture(rondo__cuda_native_stream(stream_), &graph);
        }
    }
    if (code != RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD && stream->is_origin) {
        capture = rondo__cuda_unlist_capture(device, stream->capture);
        stream->capture_mode = RONDO__CU_CAPTURE_MODE_RELAXED;  // nothing left to count
        stream->capture = 0;
        stream->is_origin = false;
        stream->is_body = false;
    }
    pthread_mutex_unlock(&device->capture_lock);
    bool has_limbo = capture != NULL && capture->limbo != NULL;
    bool is_plain = code == RONDO__CU_SUCCESS && graph != NULL && !has_limbo;
    if (!is_inside && !is_plain) {
        rondo__cuda_enter_cleanup(device, &was_pushed);
    }
    bool is_whole = !has_limbo || rondo__cuda_end_limbo(device, capture, graph != NULL);
    if (code == RONDO__CU_SUCCESS && (graph == NULL || has_limbo)) {
        // The driver may report a broken capture as success without a graph; and one with a body in
        // limbo lacks a part.
        code = RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (code != RONDO__CU_SUCCESS) {
        status = rondo__cuda_fail_end(device, code, capture);
        if (graph != NULL && !is_body && is_whole) {
            (void)device->api->cuGraphDestroy(graph);
        }
    } else {
        *out_graph = graph;
    }
    rondo__cuda_leave(device, was_pushed);
    if (capture != NULL) {
        if (status == RONDO_STATUS_OK) {
            *out_notes = capture->notes;
        } else {
            rondo__cuda_free_notes(capture->notes);
        }
        rondo__free(capture);
    }
    return status;
}

rondo_status rondo__cuda_end_capture(rondo_stream *stream, rondo__template **out_template) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cu_graph graph = NULL;
    rondo__cuda_note *notes = NULL;
    *out_template = NULL;
    RETURN_IF_ERROR(rondo__cuda_end_native(stream, &graph, &notes));
    rondo__cuda_template *recorded = rondo__calloc(1, sizeof(*recorded));
    if (recorded == NULL) {
        bool was_pushed = false;
        rondo__cuda_enter_cleanup(device, &was_pushed);
        (void)device->api->cuGraphDestroy(graph);
        rondo__cuda_leave(device, was_pushed);
        rondo__cuda_free_notes(notes);
        return RONDO_STATUS_NO_MEMORY;
    }
    recorded->head.device = stream->device;
    recorded->native = graph;
    recorded->notes = notes;
    for (rondo__cuda_note *note = notes; note != NULL; note = note->next) {
        for (uint32_t i = 0; i < note->branch_count; i++) {
            note->bodies[i].root = recorded;
        }
    }
    *out_template = &recorded->head;
    return RONDO_STATUS_OK;
}
