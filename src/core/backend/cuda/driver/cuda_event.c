// backend/cuda/driver/cuda_event.c — events of the CUDA backend.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_event.h"

#include "backend/cuda/graph/cuda_frontier.h"
#include "backend/cuda/graph/cuda_recording.h"
#include "base/error.h"
#include "base/memory.h"

rondo_status rondo__cuda_create_event(rondo_device *device_, uint32_t flags,
                                      rondo_event **out_event) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    *out_event = NULL;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cuda_event *event = rondo__calloc(1, sizeof(*event));
    if (event == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto leave;
    }
    event->head.device = device_;
    event->head.flags = flags;
    unsigned int native_flags =
        (flags & RONDO_EVENT_TIMED) != 0 ? RONDO__CU_EVENT_DEFAULT : RONDO__CU_EVENT_DISABLE_TIMING;
    rondo__cu_result code = device->api->cuEventCreate(&event->native, native_flags);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuEventCreate", "cannot make an event on %s",
                                  device->head.name);
        goto free_event;
    }
    event->head.native = event->native;
    *out_event = &event->head;
    goto leave;

free_event:
    rondo__free(event);
leave:
    rondo__cuda_leave(device, was_pushed);
    return status;
}

void rondo__cuda_destroy_event(rondo_event *event_) {
    rondo__cuda_device *device = rondo__cuda_device_of(event_->device);
    rondo__cuda_event *event = (rondo__cuda_event *)event_;
    rondo_error saved;
    rondo__error_save(&saved);
    bool was_pushed = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    rondo__cuda_log_failure(device, device->api->cuEventDestroy(event->native), "cuEventDestroy");
    rondo__cuda_leave(device, was_pushed);
    rondo__free(event);
    rondo__error_restore(&saved);
}

// Whether a record of the event, or a wait for it, becomes a node of its own. The driver refuses
// the flags for that outside of a capture, and bodies cannot hold such nodes; `what` names them.
static rondo_status check_node(rondo_stream *stream, const rondo_event *event, const char *call,
                               const char *what, bool *out_is_node) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    if ((event->flags & RONDO_EVENT_EXTERNAL) != 0) {
        RETURN_IF_ERROR(rondo__cuda_get_capture_state(stream, &state));
    }
    *out_is_node = state != RONDO__CAPTURE_NONE;
    return *out_is_node ? rondo__cuda_refuse_node_in_body(stream, call, what) : RONDO_STATUS_OK;
}

static void note_record(rondo__cuda_event *event, rondo__cuda_stream *stream) {
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

rondo_status rondo__cuda_record_event(rondo_event *event_, rondo_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cuda_event *event = (rondo__cuda_event *)event_;
    bool was_external = false;
    RETURN_IF_ERROR(check_node(stream, event_, "rondo_event_record", "records of external events",
                               &was_external));
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    rondo__cu_result code = was_external
                                ? device->api->cuEventRecordWithFlags(
                                      event->native, native, RONDO__CU_EVENT_RECORD_EXTERNAL)
                                : device->api->cuEventRecord(event->native, native);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code,
                                         was_external ? "cuEventRecordWithFlags" : "cuEventRecord",
                                         "cannot record the event");
    } else if (!was_external) {
        note_record(event, (rondo__cuda_stream *)stream);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_record_from_outside(rondo_event *event_, rondo_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cu_event event = ((rondo__cuda_event *)event_)->native;
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    const char *call = "cuStreamIsCapturing";
    int state = RONDO__CU_CAPTURE_STATUS_NONE;
    rondo__cu_result code = RONDO__CU_SUCCESS;
    pthread_mutex_lock(&device->capture_lock);
    if (!stream->is_legacy) {  // never records, and cannot be asked while others do
        code = device->api->cuStreamIsCapturing(native, &state);
    }
    if (code == RONDO__CU_SUCCESS && state == RONDO__CU_CAPTURE_STATUS_NONE) {
        call = "cuEventRecord";
        code = device->api->cuEventRecord(event, native);
    }
    pthread_mutex_unlock(&device->capture_lock);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, call, "cannot record an event on stream %u",
                                  (unsigned)stream->number);
    } else if (state != RONDO__CU_CAPTURE_STATUS_NONE) {
        status = rondo__stream_fail_recording(stream);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_query_event(rondo_event *event_, bool *out_is_complete) {
    rondo__cuda_device *device = rondo__cuda_device_of(event_->device);
    rondo__cuda_event *event = (rondo__cuda_event *)event_;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    int mode = rondo__cuda_relax(device);
    rondo__cu_result code = device->api->cuEventQuery(event->native);
    rondo__cuda_restore(device, mode);
    if (code == RONDO__CU_SUCCESS || code == RONDO__CU_ERROR_NOT_READY) {
        *out_is_complete = code == RONDO__CU_SUCCESS;
    } else {
        status = RONDO__CUDA_FAIL(device, code, "cuEventQuery", "cannot look at the event");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_synchronize_event(rondo_event *event_) {
    rondo__cuda_device *device = rondo__cuda_device_of(event_->device);
    rondo__cuda_event *event = (rondo__cuda_event *)event_;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    int mode = rondo__cuda_relax(device);
    rondo__cu_result code = device->api->cuEventSynchronize(event->native);
    rondo__cuda_restore(device, mode);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuEventSynchronize", "cannot wait for the event");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_get_elapsed_ns(rondo_event *start, rondo_event *end, int64_t *out_ns) {
    rondo__cuda_device *device = rondo__cuda_device_of(start->device);
    if ((start->flags & end->flags & RONDO_EVENT_TIMED) == 0) {
        return RONDO_FAIL_AS("rondo_event_get_elapsed_ns", STATE,
                             "the event keeps no time; create it with the flag RONDO_EVENT_TIMED");
    }
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    float milliseconds = 0;
    int mode = rondo__cuda_relax(device);
    rondo__cu_result code = device->api->cuEventElapsedTime(
        &milliseconds, ((rondo__cuda_event *)start)->native, ((rondo__cuda_event *)end)->native);
    rondo__cuda_restore(device, mode);
    switch (code) {
        case RONDO__CU_SUCCESS:
            *out_ns = (int64_t)((double)milliseconds * 1e6);
            break;
        case RONDO__CU_ERROR_NOT_READY:
            status = RONDO_FAIL_DRIVER(RONDO_STATUS_STATE, code, "CUDA_ERROR_NOT_READY",
                                       "cuEventElapsedTime",
                                       "an event has not happened yet; wait for it first");
            break;
        case RONDO__CU_ERROR_INVALID_HANDLE:
            status = RONDO_FAIL_DRIVER(RONDO_STATUS_STATE, code, "CUDA_ERROR_INVALID_HANDLE",
                                       "cuEventElapsedTime",
                                       "an event was never recorded; record it on a stream first");
            break;
        default:
            status = RONDO__CUDA_FAIL(device, code, "cuEventElapsedTime",
                                      "cannot tell the time between the events");
            break;
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// Tells the capture that the stream waits for the event. The caller holds the capture lock.
static void note_wait(rondo__cuda_stream *stream, const rondo__cuda_event *event) {
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

rondo_status rondo__cuda_wait_event(rondo_stream *stream, rondo_event *event_) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cuda_event *event = (rondo__cuda_event *)event_;
    bool was_external = false;
    RETURN_IF_ERROR(check_node(stream, event_, "rondo_stream_wait_event",
                               "waits for external events", &was_external));
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    bool may_join = event->capture != 0;
    if (may_join) {
        pthread_mutex_lock(&device->capture_lock);
    }
    rondo__cu_result code =
        device->api->cuStreamWaitEvent(rondo__cuda_native_stream(stream), event->native,
                                       was_external ? RONDO__CU_EVENT_WAIT_EXTERNAL : 0);
    if (may_join) {
        if (code == RONDO__CU_SUCCESS) {
            note_wait((rondo__cuda_stream *)stream, event);
        }
        pthread_mutex_unlock(&device->capture_lock);
    }
    if (code == RONDO__CU_ERROR_INVALID_VALUE && event->capture != 0) {
        status = RONDO_FAIL_DRIVER(RONDO_STATUS_STATE, code, "CUDA_ERROR_INVALID_VALUE",
                                   "cuStreamWaitEvent",
                                   "the event was recorded in a capture that has ended, so it "
                                   "stands for nothing; record it again");
    } else if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamWaitEvent",
                                         "the stream cannot wait for the event");
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}
