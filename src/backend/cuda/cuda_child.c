// Graphs inside graphs: recording a template as one node, and looking into such nodes.
#include "backend/cuda/cuda_device.h"
#include "base/memory.h"

// ---- looking inside ---------------------------------------------------------------------------

rondo_status rondo__cuda_borrow_template(rondo__cuda_template *parent, rondo__cu_graph native,
                                         rondo__template **out_template) {
    *out_template = NULL;
    for (rondo__cuda_template *child = parent->children; child != NULL; child = child->next) {
        if (child->native == native) {
            *out_template = &child->head;
            return RONDO_STATUS_OK;
        }
    }
    rondo__cuda_template *child = rondo__calloc(1, sizeof(*child));
    if (child == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    child->head.device = parent->head.device;
    child->native = native;
    child->is_borrowed = true;
    child->next = parent->children;
    parent->children = child;
    *out_template = &child->head;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_get_child(rondo__template *template_, size_t index,
                                   rondo__template **out_child) {
    rondo__cuda_template *recorded = (rondo__cuda_template *)template_;
    rondo__cuda_device *device = rondo__cuda_device_of(template_->device);
    *out_child = NULL;
    RETURN_IF_ERROR(rondo__cuda_fetch_nodes(recorded));
    if (index >= recorded->node_count) {
        return RONDO_FAIL(INVALID, "there is no node %zu, the graph has %zu", index,
                          recorded->node_count);
    }
    rondo__cu_graph native = NULL;
    rondo__cu_result code =
        device->api->cuGraphChildGraphNodeGetGraph(recorded->nodes[index], &native);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphChildGraphNodeGetGraph",
                                "cannot look into node %zu", index);
    }
    return rondo__cuda_borrow_template(recorded, native, out_child);
}

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
        return RONDO_FAIL_AS("rondo_graph_record", STATE, "stream %u does not record",
                             (unsigned)stream->number);
    }
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

rondo_status rondo__cuda_add_child(rondo_stream *stream, rondo__template *template_) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = add_node(stream, ((rondo__cuda_template *)template_)->native);
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// ---- executables ------------------------------------------------------------------------------

rondo_status rondo__cuda_get_flags(rondo__executable *executable, uint64_t *out_flags) {
    rondo__cuda_device *device = rondo__cuda_device_of(executable->device);
    *out_flags = 0;
    RETURN_IF_ERROR(rondo__cuda_api_require(device->api, RONDO__CUDA_CAN_QUERY_FLAGS));
    rondo__cu_result code =
        device->api->cuGraphExecGetFlags(((rondo__cuda_executable *)executable)->native, out_flags);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphExecGetFlags",
                                "cannot ask for the flags of the executable");
    }
    return RONDO_STATUS_OK;
}
