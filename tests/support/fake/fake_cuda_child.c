// The fake driver's graphs inside graphs.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "support/fake/fake_cuda_state.h"

// A clone's nodes have handles of their own.
static void rename_nodes(fake_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
        graph->nodes[i].original = graph->nodes[i].identity;
        graph->nodes[i].identity = ++g_fake.node_identity;
        if (graph->nodes[i].child != NULL) {
            rename_nodes(graph->nodes[i].child);
        }
    }
}

// No longer in an order in which it could run; for who only lists it.
static void reverse_nodes(fake_graph *graph) {
    size_t count = graph->node_count;
    for (size_t i = 0; i < count / 2; i++) {
        fake_node node = graph->nodes[i];
        graph->nodes[i] = graph->nodes[count - 1 - i];
        graph->nodes[count - 1 - i] = node;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < graph->nodes[i].dependency_count; j++) {
            graph->nodes[i].dependencies[j] = count - 1 - graph->nodes[i].dependencies[j];
        }
    }
}

fake_graph *fake_clone_graph(const fake_graph *graph) {
    fake_graph *clone = fake_new_object(FAKE_GRAPH, sizeof(*clone));
    fake_copy_graph(graph, clone);
    rename_nodes(clone);
    return clone;
}

rondo__cu_result fake_cuGraphAddChildGraphNode(rondo__cu_graph_node *out_node,
                                               rondo__cu_graph handle,
                                               const rondo__cu_graph_node *dependencies,
                                               size_t dependency_count,
                                               rondo__cu_graph child_handle) {
    ENTER("cuGraphAddChildGraphNode");
    fake_graph *graph = fake_get_graph(handle, FAKE_GRAPH, "cuGraphAddChildGraphNode");
    fake_graph *child = fake_get_graph(child_handle, FAKE_GRAPH, "cuGraphAddChildGraphNode");
    if (graph == NULL || child == NULL || graph == child ||
        dependency_count > FAKE_DEPENDENCIES_MAX) {
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (!fake_may_be_copied(child)) {
        return fake_leave(RONDO__CU_ERROR_NOT_SUPPORTED);
    }
    size_t indices[FAKE_DEPENDENCIES_MAX];
    for (size_t i = 0; i < dependency_count; i++) {
        const fake_node *node = fake_find_node(dependencies[i]);
        if (node < graph->nodes || node >= graph->nodes + graph->node_count) {
            fake_violation("cuGraphAddChildGraphNode behind a node of another graph");
            return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
        }
        indices[i] = (size_t)(node - graph->nodes);
    }
    fake_graph *clone = fake_clone_graph(child);
    if (g_fake.options.reverses_copies) {
        reverse_nodes(clone);
    }
    fake_node *node = fake_append_node(graph, indices, dependency_count);
    node->type = RONDO__CU_GRAPH_NODE_GRAPH;
    node->child = clone;
    *out_node = (rondo__cu_graph_node)(uintptr_t)node->identity;
    return fake_leave(code);
}

rondo__cu_result fake_cuGraphChildGraphNodeGetGraph(rondo__cu_graph_node handle,
                                                    rondo__cu_graph *out_graph) {
    ENTER("cuGraphChildGraphNodeGetGraph");
    const fake_node *node = fake_find_node(handle);
    if (node == NULL || node->type != RONDO__CU_GRAPH_NODE_GRAPH) {
        fake_violation("cuGraphChildGraphNodeGetGraph with a wrong node");
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    *out_graph = (rondo__cu_graph)(void *)node->child;
    return fake_leave(code);
}
