// backend/cuda/graph/cuda_capture.c — the begin and the end of a capture on a CUDA stream.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_capture.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/graph/cuda_body.h"
#include "backend/cuda/graph/cuda_conditional.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

// ---- the begin --------------------------------------------------------------------------------

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
        stream->capture = rondo__cuda_list_capture(device, capture);
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

// ---- the end ----------------------------------------------------------------------------------

// What the driver gave, before it is a template.
typedef struct ended {
    rondo__cu_result code;
    rondo__cu_graph graph;         // NULL: none
    rondo__cuda_capture *capture;  // NULL: Rondo did not begin it
    bool is_graph_whole;           // otherwise a part of it is gone, and it must not be destroyed
} ended;

// A capture with a body that the driver broke yields nothing: its graph lacks a part.
static void end_bodies(rondo__cuda_device *device, ended *it) {
    if (it->capture == NULL || it->capture->limbo == NULL) {
        return;
    }
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    it->is_graph_whole = rondo__cuda_end_limbo(device, it->capture, it->graph != NULL);
    rondo__cuda_leave(device, was_pushed);
    if (it->code == RONDO__CU_SUCCESS) {
        it->code = RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
}

static void destroy_graph(rondo__cuda_device *device, rondo__cu_graph graph) {
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    (void)device->api->cuGraphDestroy(graph);
    rondo__cuda_leave(device, was_pushed);
}

static rondo_status make_template(rondo__cuda_device *device, const ended *it,
                                  rondo__template **out_template) {
    rondo__cuda_template *recorded = rondo__calloc(1, sizeof(*recorded));
    if (recorded == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    recorded->head.device = &device->head;
    recorded->native = it->graph;
    recorded->notes = it->capture != NULL ? it->capture->notes : NULL;
    for (rondo__cuda_note *note = recorded->notes; note != NULL; note = note->next) {
        for (uint32_t i = 0; i < note->branch_count; i++) {
            note->bodies[i].root = recorded;
        }
    }
    *out_template = &recorded->head;
    return RONDO_STATUS_OK;
}

static bool has_inner(rondo__cuda_device *device, const rondo__cuda_stream *stream) {
    if (!stream->is_origin) {
        return false;
    }
    pthread_mutex_lock(&device->capture_lock);
    const rondo__cuda_capture *capture = rondo__cuda_find_capture(device, stream->capture);
    const bool has = capture != NULL && capture->has_inner;
    pthread_mutex_unlock(&device->capture_lock);
    return has;
}

rondo_status rondo__cuda_end_capture(rondo_stream *stream_, rondo__template **out_template) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    const rondo__cuda_stream *stream = (const rondo__cuda_stream *)stream_;
    *out_template = NULL;
    if (stream->is_origin && stream->capture_mode != RONDO__CU_CAPTURE_MODE_RELAXED &&
        stream->capture_thread != rondo__thread_get_number()) {
        // The driver (580) refuses that, and yet ends the capture.
        return RONDO__CUDA_FAIL(device, RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                                "cuStreamEndCapture", "the capture yields no graph");
    }
    const rondo_status joined =
        has_inner(device, stream) ? rondo__cuda_check_joined(stream_) : RONDO_STATUS_OK;
    rondo_error unjoined;
    rondo__error_save(&unjoined);
    ended it = {.is_graph_whole = true};
    it.code = rondo__cuda_end_native(stream_, &it.graph, &it.capture);
    end_bodies(device, &it);
    rondo_status status = it.code == RONDO__CU_SUCCESS
                              ? make_template(device, &it, out_template)
                              : rondo__cuda_fail_end(device, it.code, it.capture);
    if (status == RONDO_STATUS_OK && joined != RONDO_STATUS_OK) {
        rondo__free(*out_template);
        *out_template = NULL;
        rondo__error_restore(&unjoined);
        status = joined;
    }
    if (status != RONDO_STATUS_OK) {
        if (it.graph != NULL && it.is_graph_whole) {
            destroy_graph(device, it.graph);
        }
        if (it.capture != NULL) {
            rondo__cuda_free_notes(it.capture->notes);
        }
    }
    rondo__free(it.capture);
    return status;
}

// ---- captures that were never ended ------------------------------------------------------------

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
