// backend/cuda/graph/cuda_recorded.c — what can be asked of nodes while they are being recorded. A
// node's handle is its CUgraphNode.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_recorded.h"

#include <string.h>

#include "backend/cuda/graph/cuda_recording.h"
#include "base/error.h"

rondo_status rondo__cuda_count_recorded(rondo_stream *stream, size_t *out_count) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const rondo__cuda_api *api = device->api;
    *out_count = 0;
    if (stream->is_legacy) {
        return RONDO_FAIL(STATE, "the legacy stream does not record");
    }
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    int state = RONDO__CU_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    rondo__cu_graph graph = NULL;
    size_t count = 0;
    rondo__cu_result code = api->cuStreamGetCaptureInfo(rondo__cuda_native_stream(stream), &state,
                                                        &id, &graph, NULL, NULL);
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuStreamGetCaptureInfo",
                                  "cannot ask where the capture stands");
    } else if (state != RONDO__CU_CAPTURE_STATUS_ACTIVE) {
        // If the capture is broken, the driver may have freed the graph already.
        status = RONDO_FAIL(STATE, "stream %u does not record", (unsigned)stream->number);
    } else {
        code = api->cuGraphGetNodes(graph, NULL, &count);
        if (code != RONDO__CU_SUCCESS) {
            status = RONDO__CUDA_FAIL(device, code, "cuGraphGetNodes", "cannot count the nodes");
        }
    }
    *out_count = count;
    rondo__cuda_leave(device, was_pushed);
    return status;
}

rondo_status rondo__cuda_describe_recorded(rondo_stream *stream, rondo__node_handle node,
                                           rondo__node_info *out_info) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cu_graph_node native = (rondo__cu_graph_node)node;
    RETURN_IF_ERROR(rondo__cuda_describe_native(device, native, out_info));
    if (out_info->kind == RONDO__NODE_CONDITIONAL) {
        pthread_mutex_lock(&device->capture_lock);
        uint64_t serial = ((rondo__cuda_stream *)stream)->capture;
        const rondo__cuda_capture *capture = rondo__cuda_find_capture(device, serial);
        if (capture != NULL) {
            capture = rondo__cuda_find_capture(device, capture->root);
        }
        if (capture != NULL) {
            rondo__cuda_describe_conditional(capture->notes, native, out_info);
        }
        pthread_mutex_unlock(&device->capture_lock);
    }
    return RONDO_STATUS_OK;
}
