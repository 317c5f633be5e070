// The fake driver's answers about captures in progress.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "support/fake/fake_cuda_state.h"

static rondo__cu_graph_node handle_at(const fake_graph *graph, size_t index) {
    return (rondo__cu_graph_node)(uintptr_t)graph->nodes[index].identity;
}

static rondo__cu_result get_info(const char *name, rondo__cu_stream handle, int *out_status,
                                 uint64_t *out_id, rondo__cu_graph *out_graph,
                                 const rondo__cu_graph_node **out_dependencies,
                                 size_t *out_dependency_count) {
    ENTER(name);
    if (!fake_may_launch(handle, name)) {
        return fake_leave(RONDO__CU_ERROR_INVALID_CONTEXT);
    }
    GET_STREAM(name);
    *out_status = fake_get_capture_status(stream);
    fake_stream *origin = stream->origin;
    if (origin == NULL) {
        return fake_leave(code);
    }
    if (out_id != NULL) {
        *out_id = origin->capture_id;
    }
    if (out_graph != NULL) {
        *out_graph = (rondo__cu_graph)(void *)origin->graph;
    }
    if (out_dependencies != NULL) {
        for (size_t i = 0; i < stream->dependency_count; i++) {
            stream->frontier[i] = handle_at(origin->graph, stream->dependencies[i]);
        }
        *out_dependencies = stream->frontier;
    }
    if (out_dependency_count != NULL) {
        *out_dependency_count = stream->dependency_count;
    }
    return fake_leave(code);
}

rondo__cu_result fake_cuStreamGetCaptureInfo(rondo__cu_stream handle, int *out_status,
                                             uint64_t *out_id, rondo__cu_graph *out_graph,
                                             const rondo__cu_graph_node **out_dependencies,
                                             size_t *out_dependency_count) {
    return get_info("cuStreamGetCaptureInfo", handle, out_status, out_id, out_graph,
                    out_dependencies, out_dependency_count);
}

rondo__cu_result fake_cuStreamGetCaptureInfo_v3(rondo__cu_stream handle, int *out_status,
                                                uint64_t *out_id, rondo__cu_graph *out_graph,
                                                const rondo__cu_graph_node **out_dependencies,
                                                const rondo__cu_edge_data **out_data,
                                                size_t *out_dependency_count) {
    static const rondo__cu_edge_data plain[FAKE_DEPENDENCIES_MAX];
    if (out_data != NULL) {
        *out_data = plain;
    }
    return get_info("cuStreamGetCaptureInfo_v3", handle, out_status, out_id, out_graph,
                    out_dependencies, out_dependency_count);
}

// The node behind a handle, and its graph; NULL when there is none.
static const fake_node *find_node(rondo__cu_graph_node handle, const fake_graph **out_graph) {
    const fake_node *node = NULL;
    for (fake_object *object = g_fake.objects; object != NULL && node == NULL;
         object = object->next) {
        *out_graph = (const fake_graph *)object;
        node = object->kind == FAKE_GRAPH ? fake_find_in_graph(*out_graph, handle) : NULL;
    }
    return node;
}

static rondo__cu_result list_dependencies(const char *name, rondo__cu_graph_node handle,
                                          rondo__cu_graph_node *nodes, size_t *in_out_count) {
    ENTER(name);
    const fake_graph *graph = NULL;
    const fake_node *node = find_node(handle, &graph);
    if (node == NULL) {
        fake_violation("%s of a node that is not there", name);
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    for (size_t i = 0; nodes != NULL && i < *in_out_count && i < node->dependency_count; i++) {
        nodes[i] = handle_at(graph, node->dependencies[i]);
    }
    if (nodes == NULL || *in_out_count > node->dependency_count) {
        *in_out_count = node->dependency_count;
    }
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphNodeGetDependencies(rondo__cu_graph_node handle,
                                                 rondo__cu_graph_node *nodes,
                                                 size_t *in_out_count) {
    return list_dependencies("cuGraphNodeGetDependencies", handle, nodes, in_out_count);
}

rondo__cu_result fake_cuGraphNodeGetDependencies_v2(rondo__cu_graph_node handle,
                                                    rondo__cu_graph_node *nodes,
                                                    rondo__cu_edge_data *data,
                                                    size_t *in_out_count) {
    if (nodes != NULL && data != NULL) {
        memset(data, 0, *in_out_count * sizeof(*data));
    }
    return list_dependencies("cuGraphNodeGetDependencies_v2", handle, nodes, in_out_count);
}

rondo__cu_result fake_cuStreamUpdateCaptureDependencies(rondo__cu_stream handle,
                                                        rondo__cu_graph_node *nodes, size_t count,
                                                        unsigned int flags) {
    ENTER("cuStreamUpdateCaptureDependencies");
    GET_STREAM("cuStreamUpdateCaptureDependencies");
    if (stream->origin == NULL) {
        return fake_leave(RONDO__CU_ERROR_ILLEGAL_STATE);
    }
    if (stream->origin->is_broken) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    if (flags == RONDO__CU_CAPTURE_SET_DEPENDENCIES) {
        stream->dependency_count = 0;
    } else if (flags != RONDO__CU_CAPTURE_ADD_DEPENDENCIES) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    for (size_t i = 0; i < count; i++) {
        const fake_graph *graph = NULL;
        const fake_node *node = find_node(nodes[i], &graph);
        if (node == NULL || graph != stream->origin->graph) {
            return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
        }
        size_t index = (size_t)(node - graph->nodes);
        fake_add_dependencies(stream, &index, 1);
    }
    return fake_leave(code);
}
