// Capture on CUDA streams.
//
// The driver names only the last call of a broken capture. So a stream keeps the record of the
// first of its calls that failed while it recorded, and the end of the capture reports that one.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/cuda_device.h"
#include "base/memory.h"

// How many captures this thread has begun and not ended, by mode. A capture that forbids unsafe
// calls to its own thread only (thread_local) need not forbid Rondo's own allocations, which touch
// nothing that is recorded; this tells when to lift the ban.
static _Thread_local struct {
    int32_t thread_local_count;
    int32_t global_count;
} g_open_captures;

int rondo__cuda_relax_thread(const rondo__cuda_device *device) {
    int mode = RONDO__CU_CAPTURE_MODE_RELAXED;
    if (g_open_captures.thread_local_count == 0 || g_open_captures.global_count > 0) {
        return -1;
    }
    if (device->api->cuThreadExchangeStreamCaptureMode(&mode) != RONDO__CU_SUCCESS) {
        return -1;
    }
    return mode;
}

void rondo__cuda_restore_thread(const rondo__cuda_device *device, int mode) {
    if (mode >= 0) {
        (void)device->api->cuThreadExchangeStreamCaptureMode(&mode);
    }
}

static void count_capture(int mode, int32_t step) {
    if (mode == RONDO__CU_CAPTURE_MODE_THREAD_LOCAL) {
        g_open_captures.thread_local_count += step;
    } else if (mode == RONDO__CU_CAPTURE_MODE_GLOBAL) {
        g_open_captures.global_count += step;
    }
}

rondo_status rondo__cuda_fail_on_stream(rondo_stream *stream_, rondo__cu_result code,
                                        const char *call, const char *file, int32_t line,
                                        const char *format, ...) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    char wanted[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(wanted, sizeof(wanted), format, arguments);
    va_end(arguments);
    rondo_status status =
        rondo__cuda_fail(device->api, &device->head, code, call, file, line, "%s", wanted);
    bool is_capture_code = code >= RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
                           code <= RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (is_capture_code && stream->capture_cause.status == RONDO_STATUS_OK) {
        rondo__error_save(&stream->capture_cause);
    }
    return status;
}

rondo_status rondo__cuda_begin_capture(rondo_stream *stream_, rondo_capture_mode mode) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    static const int native_modes[] = {
        [RONDO_CAPTURE_THREAD_LOCAL] = RONDO__CU_CAPTURE_MODE_THREAD_LOCAL,
        [RONDO_CAPTURE_GLOBAL] = RONDO__CU_CAPTURE_MODE_GLOBAL,
        [RONDO_CAPTURE_RELAXED] = RONDO__CU_CAPTURE_MODE_RELAXED,
    };
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_result code =
        device->api->cuStreamBeginCapture(rondo__cuda_native_stream(stream_), native_modes[mode]);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuStreamBeginCapture", "cannot begin a capture");
    } else {
        memset(&stream->capture_cause, 0, sizeof(stream->capture_cause));
        stream->capture_mode = native_modes[mode];
        stream->is_origin = true;
        count_capture(stream->capture_mode, 1);
    }
    rondo__cuda_leave(device, was_pushed);
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
    rondo__cu_result code =
        device->api->cuStreamIsCapturing(rondo__cuda_native_stream(stream), &native_state);
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

// The record of a capture that yields nothing: the first failing call of the stream when one was
// seen, otherwise what the driver says about the end.
static rondo_status fail_end(rondo__cuda_stream *stream, rondo__cu_result code) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->head.device);
    rondo_status status =
        RONDO__CUDA_FAIL(device, code, "cuStreamEndCapture", "the capture yields no graph");
    const rondo_error *cause = &stream->capture_cause;
    if (code == RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED && cause->status != RONDO_STATUS_OK) {
        status = rondo__error_set(cause->status, cause->driver_code, cause->driver_name,
                                  cause->file, cause->line, cause->call,
                                  "the capture was broken by %s: %s", cause->call, cause->message);
        rondo__error_set_op(cause->op);
    }
    return status;
}

rondo_status rondo__cuda_end_capture(rondo_stream *stream_, rondo__template **out_template) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    *out_template = NULL;
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);  // the stream must stop recording in any case
    rondo_status status = RONDO_STATUS_OK;
    rondo__cuda_template *recorded = NULL;
    rondo__cu_graph graph = NULL;
    rondo__cu_result code =
        device->api->cuStreamEndCapture(rondo__cuda_native_stream(stream_), &graph);
    if (code != RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
        count_capture(stream->capture_mode, -1);
        stream->capture_mode = RONDO__CU_CAPTURE_MODE_RELAXED;  // nothing left to count
        stream->is_origin = false;
    }
    if (code != RONDO__CU_SUCCESS) {
        status = fail_end(stream, code);
        goto leave;
    }
    if (graph == NULL) {
        // The driver may report a broken capture as success without a graph.
        status = fail_end(stream, RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED);
        goto leave;
    }
    recorded = rondo__calloc(1, sizeof(*recorded));
    if (recorded == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto destroy_graph;
    }
    recorded->head.device = stream_->device;
    recorded->native = graph;
    *out_template = &recorded->head;
    goto leave;

destroy_graph:
    (void)device->api->cuGraphDestroy(graph);
leave:
    rondo__cuda_leave(device, was_pushed);
    return status;
}
