// backend/cuda/driver/cuda_stream.c — streams and events of the CUDA backend.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_stream.h"

#include "backend/cuda/graph/cuda_body.h"
#include "backend/cuda/graph/cuda_capture.h"
#include "backend/cuda/graph/cuda_frontier.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"

// ---- streams ----------------------------------------------------------------------------------

static rondo__cuda_stream *new_stream(rondo_device *device) {
    rondo__cuda_stream *stream = rondo__calloc(1, sizeof(*stream));
    if (stream != NULL) {
        stream->head.device = device;
        stream->capture_mode = RONDO__CU_CAPTURE_MODE_RELAXED;
    }
    return stream;
}

rondo_status rondo__cuda_create_stream(rondo_device *device_, int32_t priority,
                                       rondo_stream **out_stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    *out_stream = NULL;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cuda_stream *stream = new_stream(device_);
    if (stream == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto leave;
    }
    rondo__cu_stream native = NULL;
    rondo__cu_result code;
    if (priority == 0) {
        code = device->api->cuStreamCreate(&native, RONDO__CU_STREAM_NON_BLOCKING);
    } else {
        const int level = rondo__cuda_level_of(priority);
        status = rondo__cuda_api_require(device->api, RONDO__CUDA_CAN_PRIORITISE_STREAMS);
        if (status != RONDO_STATUS_OK) {
            goto free_stream;
        }
        code =
            device->api->cuStreamCreateWithPriority(&native, RONDO__CU_STREAM_NON_BLOCKING, level);
        atomic_store(&device->has_priorities, true);
    }
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code,
                                  priority == 0 ? "cuStreamCreate" : "cuStreamCreateWithPriority",
                                  "cannot make a stream on %s", device->head.name);
        goto free_stream;
    }
    stream->head.native = native;
    *out_stream = &stream->head;
    goto leave;

free_stream:
    rondo__free(stream);
leave:
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_wrap_stream(rondo_device *device_, void *native,
                                     rondo_stream **out_stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    *out_stream = NULL;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_context context = NULL;
    rondo__cu_result code = device->api->cuStreamGetCtx((rondo__cu_stream)native, &context);
    if (code == RONDO__CU_ERROR_INVALID_HANDLE || code == RONDO__CU_ERROR_INVALID_VALUE ||
        code == RONDO__CU_ERROR_INVALID_CONTEXT) {
        status = RONDO_FAIL_DRIVER(RONDO_STATUS_INVALID, code, "", "cuStreamGetCtx",
                                   "%p is no stream that lives (any more)", native);
        goto leave;
    }
    if (code != RONDO__CU_SUCCESS) {
        status =
            RONDO__CUDA_FAIL(device, code, "cuStreamGetCtx", "cannot look at stream %p", native);
        goto leave;
    }
    if (context != device->context) {
        status =
            RONDO_FAIL_AS("rondo_stream_wrap", INVALID,
                          "stream %p belongs to another device or to a context of its own; Rondo "
                          "works in the primary context of %s",
                          native, device->head.name);
        goto leave;
    }
    rondo__cuda_stream *stream = new_stream(device_);
    if (stream == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto leave;
    }
    int priority = 0;
    if ((device->api->capabilities & RONDO__CUDA_CAN_PRIORITISE_STREAMS) != 0 &&
        device->api->cuStreamGetPriority((rondo__cu_stream)native, &priority) ==
            RONDO__CU_SUCCESS &&
        priority != 0) {
        atomic_store(&device->has_priorities, true);
    }
    stream->head.native = native;
    stream->head.is_wrapped = true;
    stream->head.is_legacy = native == NULL || native == (void *)RONDO__CU_STREAM_LEGACY;
    *out_stream = &stream->head;

leave:
    rondo__cuda_leave(device, was_pushed);
    return status;
}

static bool is_recording(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    bool is_known = rondo__cuda_get_capture_state(stream, &state) == RONDO_STATUS_OK;
    if (is_known) {
        return state != RONDO__CAPTURE_NONE;
    }
    return rondo__cuda_is_unended(rondo__cuda_device_of(stream->device),
                                  ((rondo__cuda_stream *)stream)->capture);
}

// A stream may be destroyed in the middle of a capture, as an error path of a caller does: the
// capture is ended first, and what it recorded is thrown away.
// False: it records still, so that the driver must not destroy it, or is a wrapper now, since a
// body in limbo has the native stream.
static bool give_up_capture(rondo_stream *stream) {
    if (!is_recording(stream)) {
        return true;
    }
    rondo__template *recorded = NULL;
    if (((rondo__cuda_stream *)stream)->is_body) {
        (void)rondo__cuda_end_body_capture(stream);
        if (stream->is_wrapped) {
            return false;
        }
    } else if (rondo__cuda_end_capture(stream, &recorded) == RONDO_STATUS_OK) {
        rondo__cuda_destroy_template(recorded);
    }
    return !is_recording(stream);
}

// True: its work was waited for.
static bool destroy_native(rondo__cuda_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->head.device);
    rondo__cu_stream native = rondo__cuda_native_stream(&stream->head);
    bool is_done = stream->is_scratch;  // has recorded bodies, and nothing else
    int mode = rondo__cuda_relax(device);
    if (!is_done) {
        rondo__cu_result code = device->api->cuStreamSynchronize(native);
        rondo__cuda_log_failure(device, code, "cuStreamSynchronize");
        // Other failures are of the work that it has waited for.
        is_done = !rondo__cuda_is_capture_code(code);
    }
    rondo__cuda_log_failure(device, device->api->cuStreamDestroy(native), "cuStreamDestroy");
    rondo__cuda_restore(device, mode);
    return is_done;
}

bool rondo__cuda_destroy_stream(rondo_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo_error saved;
    rondo__error_save(&saved);
    bool was_pushed = false;
    bool is_done = ((rondo__cuda_stream *)stream)->is_scratch;
    if (!stream->is_wrapped) {
        rondo__cuda_enter_cleanup(device, &was_pushed);
        if (give_up_capture(stream)) {
            is_done = destroy_native((rondo__cuda_stream *)stream);
        } else if (!stream->is_wrapped) {
            RONDO_LOG_WARN_F(
                "%s: stream %u records a capture that only the thread which began it could end; "
                "the "
                "stream is lost until the end of the process",
                device->head.name, (unsigned)stream->number);
        }
        rondo__cuda_leave(device, was_pushed);
    }
    rondo__free(stream);
    rondo__error_restore(&saved);
    return is_done;
}

rondo_status rondo__cuda_synchronize_stream(rondo_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    int mode = rondo__cuda_relax(device);
    rondo__cu_result code = device->api->cuStreamSynchronize(rondo__cuda_native_stream(stream));
    rondo__cuda_restore(device, mode);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamSynchronize",
                                         "cannot wait for the stream");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_query_stream(rondo_stream *stream, bool *out_is_idle) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    int mode = rondo__cuda_relax(device);
    rondo__cu_result code = device->api->cuStreamQuery(rondo__cuda_native_stream(stream));
    rondo__cuda_restore(device, mode);
    if (code == RONDO__CU_SUCCESS || code == RONDO__CU_ERROR_NOT_READY) {
        *out_is_idle = code == RONDO__CU_SUCCESS;
    } else {
        status =
            RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamQuery", "cannot look at the stream");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}
