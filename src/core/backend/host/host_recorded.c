// backend/host/host_recorded.c — what can be asked of nodes while they are being recorded. A node's
// handle is its index.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_recorded.h"

#include "backend/host/host_capture.h"
#include "backend/host/host_device.h"
#include "base/error.h"

// The recording that the stream takes part in, also a broken one; NULL with a record when there is
// none. The caller holds device->capture_lock.
static rondo__host_template *get_recorded(rondo_stream *stream, const char *call) {
    rondo__host_capture *capture = atomic_load(&((rondo__host_stream *)stream)->capture);
    if (capture == NULL) {
        (void)RONDO_FAIL_AS(call, STATE, "stream %u does not record", (unsigned)stream->number);
        return NULL;
    }
    return capture->recorded;
}

rondo_status rondo__host_count_recorded(rondo_stream *stream, size_t *out_count) {
    rondo__host_device *device = rondo__host_device_of(stream->device);
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_template *recorded = get_recorded(stream, __func__);
    *out_count = recorded != NULL ? recorded->node_count : 0;
    pthread_mutex_unlock(&device->capture_lock);
    return recorded != NULL ? RONDO_STATUS_OK : RONDO_STATUS_STATE;
}

rondo_status rondo__host_describe_recorded(rondo_stream *stream, rondo__node_handle node,
                                           rondo__node_info *out_info) {
    rondo__host_device *device = rondo__host_device_of(stream->device);
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_template *recorded = get_recorded(stream, __func__);
    rondo_status status = recorded != NULL
                              ? rondo__host_describe_node(&recorded->head, node, out_info)
                              : RONDO_STATUS_STATE;
    pthread_mutex_unlock(&device->capture_lock);
    return status;
}

rondo_status rondo__host_list_handles(rondo__template *template_, rondo__node_handle *handles,
                                      size_t count) {
    (void)template_;
    for (size_t i = 0; i < count; ++i) {
        handles[i] = i;
    }
    return RONDO_STATUS_OK;
}
