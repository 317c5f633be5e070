// backend/cuda/graph/cuda_recording.c — capture on CUDA streams.
//
// The device keeps a note for each capture that runs: which streams were forked from it, and what
// its conditional nodes need.
//
//   stream A   begin(7) -- record(e) ------------- wait(f) -- end
//   stream B                  wait(e): joins 7 -- record(f)
//
// What Rondo itself refuses never gets here (capture/forbid.h), so what breaks a capture in the
// driver's eyes is a call of the program's own, or one that the driver refused.
//
// Captures are known by serial numbers, never by stream, so that a stream destroyed in the middle
// or reused later cannot be taken for another.
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <string.h>

#include "backend/cause.h"
#include "backend/cuda/graph/cuda_recording.h"
#include "base/error.h"

// ---- the list ---------------------------------------------------------------------------------

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
uint64_t rondo__cuda_list_capture(rondo__cuda_device *device, rondo__cuda_capture *capture) {
    capture->serial = ++device->last_capture;
    capture->root = capture->root == RONDO__CUDA_CAPTURE_IS_ROOT ? capture->serial : capture->root;
    capture->next = device->captures;
    device->captures = capture;
    return capture->serial;
}

uint64_t rondo__cuda_add_capture(rondo__cuda_device *device, rondo__cuda_capture *capture) {
    pthread_mutex_lock(&device->capture_lock);
    uint64_t serial = rondo__cuda_list_capture(device, capture);
    pthread_mutex_unlock(&device->capture_lock);
    return serial;
}

static rondo__cuda_capture *unlist_capture(rondo__cuda_device *device, uint64_t serial) {
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
    rondo__cuda_capture *capture = unlist_capture(device, serial);
    pthread_mutex_unlock(&device->capture_lock);
    return capture;
}

// ---- what is noted ----------------------------------------------------------------------------

bool rondo__cuda_keep_note(rondo__cuda_device *device, uint64_t serial, rondo__cuda_note *note) {
    pthread_mutex_lock(&device->capture_lock);
    rondo__cuda_capture *capture = rondo__cuda_find_capture(device, serial);
    if (capture != NULL) {
        capture = rondo__cuda_find_capture(device, capture->root);
    }
    if (capture != NULL) {
        note->next = capture->notes;
        capture->notes = note;
    }
    pthread_mutex_unlock(&device->capture_lock);
    return capture != NULL;
}

void rondo__cuda_note_inner(rondo__cuda_device *device, uint64_t driver_id) {
    pthread_mutex_lock(&device->capture_lock);
    for (rondo__cuda_capture *capture = device->captures; capture != NULL;
         capture = capture->next) {
        capture->has_inner = capture->has_inner || capture->driver_id == driver_id;
    }
    pthread_mutex_unlock(&device->capture_lock);
}

// "stream 3, stream 5": the forked streams that no stream waited for. If each was waited for once,
// all of them: then one of them went on afterwards.
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

// The caller holds the lock. NULL unless the serial is that of a body which is being recorded.
static rondo__cuda_capture *find_body(rondo__cuda_device *device, uint64_t serial) {
    rondo__cuda_capture *capture = serial != 0 ? rondo__cuda_find_capture(device, serial) : NULL;
    return capture != NULL && capture->root != capture->serial ? capture : NULL;
}

bool rondo__cuda_records_body(const rondo_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const uint64_t serial = ((const rondo__cuda_stream *)stream)->capture;
    if (serial == 0) {
        return false;
    }
    pthread_mutex_lock(&device->capture_lock);
    bool is_found = find_body(device, serial) != NULL;
    pthread_mutex_unlock(&device->capture_lock);
    return is_found;
}

rondo_status rondo__cuda_refuse_node_in_body(rondo_stream *stream, const char *call,
                                             const char *what) {
    if (!rondo__cuda_records_body(stream)) {
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL_AS(call, UNSUPPORTED,
                         "there are no %s inside conditional bodies on CUDA; use kernels, copies "
                         "and fills there, and do this before or after the scope",
                         what);
}

// ---- the end ----------------------------------------------------------------------------------

bool rondo__cuda_is_capture_code(rondo__cu_result code) {
    return code >= RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           code <= RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD;
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
        rondo__cause_set_unjoined(first);
    }
    return status;
}

// The call of the driver, by the context that it wants.
static rondo__cu_result end_in_driver(rondo_stream *stream, rondo__cu_graph *out_graph) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    rondo__cu_result code = RONDO__CU_ERROR_INVALID_CONTEXT;
    if (rondo__cuda_knows_context(stream)) {
        code = device->api->cuStreamEndCapture(native, out_graph);
    }
    if (rondo__cuda_wants_context(code)) {
        // The stream must stop recording, also when the context cannot be selected.
        bool was_pushed = false;
        rondo__cuda_enter_cleanup(device, &was_pushed);
        code = device->api->cuStreamEndCapture(native, out_graph);
        rondo__cuda_leave(device, was_pushed);
    }
    return code;
}

rondo__cu_result rondo__cuda_end_native(rondo_stream *stream_, rondo__cu_graph *out_graph,
                                        rondo__cuda_capture **out_capture) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    *out_graph = NULL;
    *out_capture = NULL;
    pthread_mutex_lock(&device->capture_lock);
    rondo__cu_result code = end_in_driver(stream_, out_graph);
    if (code != RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD && stream->is_origin) {
        *out_capture = unlist_capture(device, stream->capture);
        stream->capture_mode = RONDO__CU_CAPTURE_MODE_RELAXED;  // nothing left to count
        stream->capture = 0;
        stream->is_origin = false;
        stream->is_body = false;
    }
    pthread_mutex_unlock(&device->capture_lock);
    // The driver may report a broken capture as success without a graph.
    return code == RONDO__CU_SUCCESS && *out_graph == NULL
               ? RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED
               : code;
}
