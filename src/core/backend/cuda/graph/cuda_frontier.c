// backend/cuda/graph/cuda_frontier.c — where a capture stands: its id, the nodes the next one will
// depend on, and what those depend on.
//
// The streams of a capture may be joined, and nodes be recorded, by the program's own driver calls;
// so nothing is kept here, the driver is asked each time.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_frontier.h"

#include "backend/cuda/graph/cuda_recording.h"
#include "base/error.h"
#include "base/memory.h"

enum { STACK_EDGES = 64 };

static rondo__capture_state translate_state(int native_state) {
    switch (native_state) {
        case RONDO__CU_CAPTURE_STATUS_ACTIVE:
            return RONDO__CAPTURE_ACTIVE;
        case RONDO__CU_CAPTURE_STATUS_INVALIDATED:
            return RONDO__CAPTURE_BROKEN;
        default:
            return RONDO__CAPTURE_NONE;
    }
}

// The driver's answer about a stream.
typedef struct answer {
    rondo__capture_state state;
    uint64_t id;   // 0: none, or not known
    size_t count;  // of the nodes that the next one will depend on
} answer;

static rondo__cu_result ask_driver(rondo_stream *stream, bool wants_nodes,
                                   rondo__node_handle *nodes, size_t capacity, answer *out_answer) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const rondo__cuda_api *api = device->api;
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    int state = RONDO__CU_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    rondo__cu_graph graph = NULL;
    const rondo__cu_graph_node *frontier = NULL;
    const rondo__cu_edge_data *data = NULL;
    size_t count = 0;
    rondo__cu_result code;
    pthread_mutex_lock(&device->capture_lock);
    if (!wants_nodes) {
        code = api->cuStreamGetCaptureInfo(native, &state, &id, NULL, NULL, NULL);
    } else if ((api->capabilities & RONDO__CUDA_CAN_LIST_TYPED_EDGES) != 0) {
        // The older form refuses to answer when an edge is programmatic.
        code =
            api->cuStreamGetCaptureInfo_v3(native, &state, &id, &graph, &frontier, &data, &count);
    } else {
        code = api->cuStreamGetCaptureInfo(native, &state, &id, &graph, &frontier, &count);
    }
    if (code == RONDO__CU_SUCCESS) {
        out_answer->state = translate_state(state);
    }
    if (out_answer->state == RONDO__CAPTURE_ACTIVE) {
        for (size_t i = 0; i < count && i < capacity; i++) {
            nodes[i] = (rondo__node_handle)frontier[i];
        }
        out_answer->id = id;
        out_answer->count = count;
    } else if (out_answer->state == RONDO__CAPTURE_BROKEN) {
        // The driver does not tell any more, but which capture it was is noted.
        const rondo__cuda_capture *capture =
            rondo__cuda_find_capture(device, ((rondo__cuda_stream *)stream)->capture);
        out_answer->id = capture != NULL ? capture->driver_id : 0;
    }
    pthread_mutex_unlock(&device->capture_lock);
    return code;
}

// Asks the driver once; with `wants_nodes` also for the nodes, at most `capacity` of them.
static rondo_status ask(rondo_stream *stream, bool wants_nodes, rondo__node_handle *nodes,
                        size_t capacity, answer *out_answer) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    *out_answer = (answer){.state = RONDO__CAPTURE_NONE};
    rondo__cu_result code = RONDO__CU_ERROR_INVALID_CONTEXT;
    if (rondo__cuda_knows_context(stream)) {
        code = ask_driver(stream, wants_nodes, nodes, capacity, out_answer);
    }
    if (__builtin_expect(rondo__cuda_wants_context(code), 0)) {
        bool was_pushed = false;
        RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
        code = ask_driver(stream, wants_nodes, nodes, capacity, out_answer);
        rondo__cuda_leave(device, was_pushed);
    }
    if (code == RONDO__CU_SUCCESS) {
        return RONDO_STATUS_OK;
    }
    return wants_nodes ? RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamGetCaptureInfo",
                                                 "cannot ask where the capture stands")
                       : RONDO__CUDA_FAIL(device, code, "cuStreamGetCaptureInfo",
                                          "cannot ask whether the stream records");
}

static rondo_status get_position(rondo_stream *stream, bool wants_nodes,
                                 rondo__capture_state *out_state, uint64_t *out_id,
                                 rondo__node_handle *nodes, size_t capacity, size_t *out_count) {
    answer said;
    *out_state = RONDO__CAPTURE_NONE;
    *out_id = 0;
    *out_count = 0;
    if (stream->is_legacy) {
        return RONDO_STATUS_OK;  // never records; asking is an error while another stream does
    }
    RETURN_IF_ERROR(ask(stream, wants_nodes, nodes, capacity, &said));
    *out_state = said.state;
    *out_id = said.id;
    *out_count = *out_state == RONDO__CAPTURE_ACTIVE ? said.count : 0;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_get_capture_id(rondo_stream *stream, rondo__capture_state *out_state,
                                        uint64_t *out_id) {
    size_t count;
    return get_position(stream, false, out_state, out_id, NULL, 0, &count);
}

rondo_status rondo__cuda_get_position(rondo_stream *stream, rondo__capture_state *out_state,
                                      uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                      size_t *out_count) {
    rondo_status status = get_position(stream, true, out_state, out_id, nodes, capacity, out_count);
    const rondo__cuda_api *api = rondo__cuda_device_of(stream->device)->api;
    if (status == RONDO_STATUS_OK || (api->capabilities & RONDO__CUDA_CAN_LIST_TYPED_EDGES) != 0) {
        return status;
    }
    // An edge that it cannot list hides the nodes, but not the rest.
    RETURN_IF_ERROR(rondo__cuda_get_capture_id(stream, out_state, out_id));
    *out_count = *out_id != 0 ? SIZE_MAX : 0;
    return RONDO_STATUS_OK;
}

// Also in a capture that Rondo broke.
rondo_status rondo__cuda_get_frontier(rondo_stream *stream, rondo__node_handle *nodes,
                                      size_t capacity, size_t *out_count) {
    answer said;
    *out_count = 0;
    RETURN_IF_ERROR(ask(stream, true, nodes, capacity, &said));
    if (said.state != RONDO__CAPTURE_ACTIVE) {
        return RONDO_FAIL(STATE, "stream %u does not record", (unsigned)stream->number);
    }
    *out_count = said.count;
    return RONDO_STATUS_OK;
}

static rondo__cu_result get_dependencies(const rondo__cuda_api *api, rondo__cu_graph_node node,
                                         rondo__cu_graph_node *nodes, rondo__cu_edge_data *data,
                                         size_t *in_out_count) {
    if ((api->capabilities & RONDO__CUDA_CAN_LIST_TYPED_EDGES) != 0) {
        return api->cuGraphNodeGetDependencies_v2(node, nodes, data, in_out_count);
    }
    return api->cuGraphNodeGetDependencies(node, nodes, in_out_count);
}

rondo_status rondo__cuda_get_predecessors(rondo_stream *stream, rondo__node_handle node,
                                          rondo__node_handle *nodes, size_t capacity,
                                          size_t *out_count) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const rondo__cuda_api *api = device->api;
    rondo__cu_graph_node native = (rondo__cu_graph_node)node;
    rondo__cu_graph_node stack_nodes[STACK_EDGES];
    rondo__cu_edge_data stack_data[STACK_EDGES];
    rondo__cu_graph_node *from = stack_nodes;
    rondo__cu_edge_data *data = stack_data;
    *out_count = 0;
    rondo_status status = RONDO_STATUS_OK;
    size_t count = STACK_EDGES;
    rondo__cu_result code = get_dependencies(api, native, from, data, &count);
    if (code == RONDO__CU_SUCCESS && count == STACK_EDGES) {
        // Perhaps there are more than fit.
        code = get_dependencies(api, native, NULL, NULL, &count);
        if (code == RONDO__CU_SUCCESS && count > STACK_EDGES) {
            from = rondo__calloc(count, sizeof(*from));
            data = rondo__calloc(count, sizeof(*data));
            if (from == NULL || data == NULL) {
                status = RONDO_STATUS_NO_MEMORY;
                goto free_room;
            }
            code = get_dependencies(api, native, from, data, &count);
        }
    }
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuGraphNodeGetDependencies",
                                  "cannot ask what a recorded node depends on");
        goto free_room;
    }
    for (size_t i = 0; i < count && i < capacity; i++) {
        nodes[i] = (rondo__node_handle)from[i];
    }
    *out_count = count;

free_room:
    if (from != stack_nodes) {
        rondo__free(from);
        rondo__free(data);
    }
    return status;
}

static rondo_status change_dependencies(rondo_stream *stream, const rondo__node_handle *nodes,
                                        size_t count, unsigned int flags) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cu_graph_node few[STACK_EDGES];
    rondo__cu_graph_node *natives =
        count <= STACK_EDGES ? few : rondo__calloc(count, sizeof(*natives));
    if (natives == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        natives[i] = (rondo__cu_graph_node)nodes[i];
    }
    bool was_pushed = false;
    rondo_status status = rondo__cuda_enter(device, &was_pushed);
    if (status == RONDO_STATUS_OK) {
        rondo__cu_result code = device->api->cuStreamUpdateCaptureDependencies(
            rondo__cuda_native_stream(stream), natives, count, flags);
        if (code != RONDO__CU_SUCCESS) {
            status = RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamUpdateCaptureDependencies",
                                             "cannot make the next node depend on %zu earlier ones",
                                             count);
        }
        rondo__cuda_leave(device, was_pushed);
    }
    if (natives != few) {
        rondo__free(natives);
    }
    return status;
}

rondo_status rondo__cuda_add_dependencies(rondo_stream *stream, const rondo__node_handle *nodes,
                                          size_t count) {
    return count == 0
               ? RONDO_STATUS_OK
               : change_dependencies(stream, nodes, count, RONDO__CU_CAPTURE_ADD_DEPENDENCIES);
}

rondo_status rondo__cuda_set_frontier(rondo_stream *stream, const rondo__node_handle *nodes,
                                      size_t count) {
    return change_dependencies(stream, nodes, count, RONDO__CU_CAPTURE_SET_DEPENDENCIES);
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
