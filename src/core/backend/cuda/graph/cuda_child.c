// backend/cuda/graph/cuda_child.c — copies a template: into one node, or into another template.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/graph/cuda_child.h"

#include "backend/cuda/graph/cuda_recording.h"
#include "base/error.h"
#include "base/memory.h"

// ---- recording --------------------------------------------------------------------------------

// Adds the node behind the stream's frontier, and makes it the frontier.
static rondo_status add_node(rondo_stream *stream, rondo__cu_graph child) {
    const rondo__cuda_api *api = rondo__cuda_device_of(stream->device)->api;
    rondo__cu_stream native = rondo__cuda_native_stream(stream);
    int state = RONDO__CU_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    rondo__cu_graph graph = NULL;
    const rondo__cu_graph_node *frontier = NULL;
    const rondo__cu_edge_data *data = NULL;
    size_t count = 0;
    // The older form refuses to answer when an edge is programmatic. The new node waits for whole
    // predecessors in any case.
    rondo__cu_result code =
        (api->capabilities & RONDO__CUDA_CAN_LIST_TYPED_EDGES) != 0
            ? api->cuStreamGetCaptureInfo_v3(native, &state, &id, &graph, &frontier, &data, &count)
            : api->cuStreamGetCaptureInfo(native, &state, &id, &graph, &frontier, &count);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamGetCaptureInfo",
                                       "cannot ask where the capture stands");
    }
    if (state != RONDO__CU_CAPTURE_STATUS_ACTIVE) {
        return RONDO_FAIL_AS("rondo_stream_add_graph", STATE, "stream %u does not record",
                             (unsigned)stream->number);
    }
    rondo__cuda_note_inner(rondo__cuda_device_of(stream->device), id);
    rondo__cu_graph_node node = NULL;
    code = api->cuGraphAddChildGraphNode(&node, graph, frontier, count, child);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_STREAM_FAIL(stream, code, "cuGraphAddChildGraphNode",
                                       "cannot record the graph as a node");
    }
    code = api->cuStreamUpdateCaptureDependencies(native, &node, 1,
                                                  RONDO__CU_CAPTURE_SET_DEPENDENCIES);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_STREAM_FAIL(stream, code, "cuStreamUpdateCaptureDependencies",
                                       "cannot go on behind the recorded graph");
    }
    return RONDO_STATUS_OK;
}

// Finds a node that no body may hold, in the graph or in one inside it; *out_what stays NULL if
// there is none.
static rondo_status find_unfit(rondo__template *template_, const char **out_what) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    for (size_t i = 0; i < recorded->node_count && *out_what == NULL; i++) {
        int type = RONDO__CU_GRAPH_NODE_KERNEL;
        const rondo__cu_result code = device->api->cuGraphNodeGetType(recorded->nodes[i], &type);
        if (code != RONDO__CU_SUCCESS) {
            return RONDO__CUDA_FAIL(device, code, "cuGraphNodeGetType", "cannot look at node %zu",
                                    i);
        }
        if (type == RONDO__CU_GRAPH_NODE_HOST) {
            *out_what = "host functions";
        } else if (type == RONDO__CU_GRAPH_NODE_WAIT_EVENT ||
                   type == RONDO__CU_GRAPH_NODE_EVENT_RECORD) {
            *out_what = "external events";
        } else if (type == RONDO__CU_GRAPH_NODE_GRAPH) {
            rondo__template *child = NULL;
            RETURN_IF_ERROR(rondo__cuda_get_child(template_, i, &child));
            RETURN_IF_ERROR(find_unfit(child, out_what));
        }
    }
    return RONDO_STATUS_OK;
}

// The driver only refuses to instantiate what is around the body, without saying why.
static rondo_status check_body(rondo_stream *stream, rondo__template *template_) {
    const char *what = NULL;
    if (!rondo__cuda_records_body(stream)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(find_unfit(template_, &what));
    return what == NULL ? RONDO_STATUS_OK
                        : rondo__cuda_refuse_node_in_body(stream, "rondo_stream_add_graph", what);
}

rondo_status rondo__cuda_add_child(rondo_stream *stream, rondo__template *template_) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = check_body(stream, template_);
    if (status == RONDO_STATUS_OK) {
        status = add_node(stream, ((rondo__cuda_template *)template_)->native);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// ---- clones -----------------------------------------------------------------------------------

// The clone's nodes in the order of the template's, whatever the driver's order is.
static rondo_status find_nodes(const rondo__cuda_template *recorded, rondo__cuda_template *clone) {
    rondo__cuda_device *device = rondo__cuda_device_of(clone->head.device);
    clone->nodes = rondo__calloc(recorded->node_count + 1, sizeof(*clone->nodes));
    if (clone->nodes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < recorded->node_count; i++) {
        rondo__cu_result code = device->api->cuGraphNodeFindInClone(
            &clone->nodes[i], recorded->nodes[i], clone->native);
        if (code != RONDO__CU_SUCCESS) {
            return RONDO__CUDA_FAIL(device, code, "cuGraphNodeFindInClone",
                                    "cannot find node %zu in the clone", i);
        }
    }
    clone->node_count = recorded->node_count;
    clone->has_nodes = true;
    clone->has_only_kernels = recorded->has_only_kernels;
    return RONDO_STATUS_OK;
}

// In the context. After a failure the caller destroys the unfinished clone.
static rondo_status clone_native(rondo__cuda_template *recorded, rondo__cuda_template *clone) {
    rondo__cuda_device *device = rondo__cuda_device_of(clone->head.device);
    rondo__cu_result code = device->api->cuGraphClone(&clone->native, recorded->native);
    if (code != RONDO__CU_SUCCESS) {
        clone->is_borrowed = true;  // there is nothing to destroy
        return RONDO__CUDA_FAIL(
            device, code, "cuGraphClone", "cannot clone the graph%s; record it again",
            code == RONDO__CU_ERROR_NOT_SUPPORTED ? ", which has a device-updatable kernel" : "");
    }
    return find_nodes(recorded, clone);
}

rondo_status rondo__cuda_clone(rondo__template *template_, rondo__template **out_clone) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    bool was_pushed = false;
    *out_clone = NULL;
    RETURN_IF_ERROR(rondo__cuda_enter(rondo__cuda_device_of(template_->device), &was_pushed));
    rondo_status status = rondo__cuda_fetch_nodes(recorded);
    rondo__cuda_template *clone =
        status == RONDO_STATUS_OK ? rondo__calloc(1, sizeof(*clone)) : NULL;
    if (clone == NULL) {
        status = status == RONDO_STATUS_OK ? RONDO_STATUS_NO_MEMORY : status;
        goto leave;
    }
    clone->head.device = template_->device;
    status = clone_native(recorded, clone);
    if (status != RONDO_STATUS_OK) {
        rondo__cuda_destroy_template(&clone->head);
        goto leave;
    }
    *out_clone = &clone->head;

leave:
    rondo__cuda_leave(rondo__cuda_device_of(template_->device), was_pushed);
    return status;
}
