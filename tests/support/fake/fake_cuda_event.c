// The fake driver's events.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "support/fake/fake_cuda_state.h"

static fake_event *get_event(rondo__cu_event handle, const char *name) {
    if (!fake_is_alive(handle, FAKE_EVENT)) {
        fake_violation("%s with a dead event", name);
        return NULL;
    }
    return (fake_event *)(void *)handle;
}

#define GET_EVENT(name)                                    \
    fake_event *event = get_event(event_handle, name);     \
    if (event == NULL) {                                   \
        return fake_leave(RONDO__CU_ERROR_INVALID_HANDLE); \
    }

rondo__cu_result fake_cuStreamWaitEvent(rondo__cu_stream handle, rondo__cu_event event_handle,
                                        unsigned int flags) {
    ENTER("cuStreamWaitEvent");
    NEED_CONTEXT("cuStreamWaitEvent");
    GET_STREAM("cuStreamWaitEvent");
    GET_EVENT("cuStreamWaitEvent");
    if (flags == RONDO__CU_EVENT_WAIT_EXTERNAL && stream->origin != NULL) {
        fake_node work = {.type = RONDO__CU_GRAPH_NODE_WAIT_EVENT, .event = event};
        return fake_submit(handle, "cuStreamWaitEvent", &work);
    }
    if (flags != 0) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (event->is_orphan) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (event->origin == NULL) {
        if (stream->origin != NULL && event->is_recorded) {
            stream->origin->is_broken = true;
            return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_ISOLATION);
        }
        fake_lazy_wait(stream, event);
        return fake_leave(code);
    }
    if (stream->origin != NULL && stream->origin != event->origin) {
        stream->origin->is_broken = true;
        event->origin->is_broken = true;
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (stream->origin == NULL) {
        stream->origin = event->origin;
        stream->dependency_count = 0;
    }
    fake_add_dependencies(stream, event->dependencies, event->dependency_count);
    return fake_leave(code);
}

rondo__cu_result fake_cuEventCreate(rondo__cu_event *out_event, unsigned int flags) {
    ENTER("cuEventCreate");
    NEED_CONTEXT("cuEventCreate");
    fake_event *event = fake_new_object(FAKE_EVENT, sizeof(*event));
    event->has_time = (flags & RONDO__CU_EVENT_DISABLE_TIMING) == 0;
    *out_event = (rondo__cu_event)(void *)event;
    return fake_leave(code);
}

rondo__cu_result fake_cuEventDestroy(rondo__cu_event event_handle) {
    rondo__cu_result code = fake_enter("cuEventDestroy");
    GET_EVENT("cuEventDestroy");
    fake_lazy_forget(event);
    fake_free_object(event);
    return fake_leave(code);
}

rondo__cu_result fake_cuEventRecord(rondo__cu_event event_handle, rondo__cu_stream handle) {
    ENTER("cuEventRecord");
    NEED_CONTEXT("cuEventRecord");
    GET_STREAM("cuEventRecord");
    GET_EVENT("cuEventRecord");
    if (stream->object.context != NULL && stream->object.context != event->object.context) {
        return fake_leave(RONDO__CU_ERROR_INVALID_HANDLE);
    }
    event->is_recorded = true;
    event->is_orphan = false;
    event->time_ns = fake_now_ns();
    event->origin = stream->origin;
    event->lazy_number = 0;
    if (stream->origin == NULL) {
        fake_lazy_record(stream, event);
    }
    memcpy(event->dependencies, stream->dependencies, sizeof(event->dependencies));
    event->dependency_count = stream->dependency_count;
    return fake_leave(code);
}

rondo__cu_result fake_cuEventRecordWithFlags(rondo__cu_event event_handle, rondo__cu_stream handle,
                                             unsigned int flags) {
    ENTER("cuEventRecordWithFlags");
    NEED_CONTEXT("cuEventRecordWithFlags");
    GET_STREAM("cuEventRecordWithFlags");
    GET_EVENT("cuEventRecordWithFlags");
    if (flags != RONDO__CU_EVENT_RECORD_EXTERNAL || stream->origin == NULL) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_EVENT_RECORD, .event = event};
    return fake_submit(handle, "cuEventRecordWithFlags", &work);
}

static rondo__cu_result touch_event(rondo__cu_event event_handle, const char *name) {
    ENTER(name);
    GET_EVENT(name);
    if (event->origin != NULL) {
        event->origin->is_broken = true;
        return fake_leave(RONDO__CU_ERROR_CAPTURED_EVENT);
    }
    if (event->is_orphan) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (fake_break_unsafe(name)) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    fake_lazy_run_event(event);
    return fake_leave(code);
}

rondo__cu_result fake_cuEventQuery(rondo__cu_event event_handle) {
    return touch_event(event_handle, "cuEventQuery");
}

rondo__cu_result fake_cuEventSynchronize(rondo__cu_event event_handle) {
    return touch_event(event_handle, "cuEventSynchronize");
}

rondo__cu_result fake_cuEventElapsedTime(float *out_milliseconds, rondo__cu_event start,
                                         rondo__cu_event end) {
    ENTER("cuEventElapsedTime");
    fake_event *first = get_event(start, "cuEventElapsedTime");
    fake_event *second = get_event(end, "cuEventElapsedTime");
    // The captures go on.
    if (first != NULL && second != NULL && (first->origin != NULL || second->origin != NULL)) {
        return fake_leave(RONDO__CU_ERROR_CAPTURED_EVENT);
    }
    if (first == NULL || second == NULL || !first->has_time || !second->has_time ||
        !first->is_recorded || !second->is_recorded) {
        return fake_leave(RONDO__CU_ERROR_INVALID_HANDLE);
    }
    *out_milliseconds = (float)((double)(int64_t)(second->time_ns - first->time_ns) * 1e-6);
    return fake_leave(code);
}

size_t fake_cuda_count_bytes(bool is_host) {
    size_t bytes = 0;
    pthread_mutex_lock(&g_fake.lock);
    for (fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        const fake_memory *memory = (const fake_memory *)object;
        bytes += object->kind == FAKE_MEMORY && memory->is_host == is_host ? memory->byte_count : 0;
    }
    pthread_mutex_unlock(&g_fake.lock);
    return bytes;
}
