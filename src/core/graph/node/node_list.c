// graph/node/node_list.c — a template's nodes and edges, for programs.
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"
#include "base/write_struct.h"
#include "graph/graph_share.h"
#include "graph/label/label.h"
#include "graph/template.h"
#include "rondo/inspect.h"

_Static_assert((int)RONDO_NODE_KERNEL == (int)RONDO__NODE_KERNEL &&
                   (int)RONDO_NODE_CONDITIONAL == (int)RONDO__NODE_CONDITIONAL &&
                   (int)RONDO_NODE_OTHER == (int)RONDO__NODE_OTHER,
               "the public kinds are the internal ones");

rondo_status rondo_graph_get_node_count(rondo_graph *graph, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    size_t count = 0;
    RETURN_IF_ERROR(graph->device->backend->count_nodes(graph->recorded, &count));
    *out_count = count;
    return RONDO_STATUS_OK;
}

// Nodes of the graphs inside a node, not counting those further inside.
static rondo_status count_inner(rondo__template *recorded, size_t index,
                                const rondo__node_info *info, size_t *out_count) {
    *out_count = 0;
    for (uint32_t branch = 0; branch < rondo__node_count_levels(info); ++branch) {
        rondo__template *inner;
        size_t count = 0;
        RETURN_IF_ERROR(rondo__node_get_level(recorded, index, info, branch, &inner));
        if (inner != NULL) {
            RETURN_IF_ERROR(recorded->device->backend->count_nodes(inner, &count));
        }
        *out_count += count;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_get_node(rondo_graph *graph, size_t index, rondo_graph_node *out_node) {
    RETURN_IF_ERROR(rondo__clear_struct(out_node, sizeof *out_node, __func__, "rondo_graph_node"));
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    const rondo__backend *backend = graph->device->backend;
    rondo__node_info info;
    RETURN_IF_ERROR(backend->describe_node(graph->recorded, (size_t)index, &info));
    size_t inner_count = 0;
    RETURN_IF_ERROR(count_inner(graph->recorded, (size_t)index, &info, &inner_count));
    const rondo_graph_node node = {
        .kind = (rondo_node_kind)info.kind,
        .name = info.name != NULL ? info.name : "",
        .label = rondo__label_of_index(rondo__graph_get_participants(graph), (size_t)index),
        .grid = {info.grid[0], info.grid[1], info.grid[2]},
        .block = {info.block[0], info.block[1], info.block[2]},
        .shared_bytes = info.shared_bytes,
        .copy_kind = info.copy_kind,
        .destination = info.destination,
        .source = info.source,
        .byte_count = info.byte_count,
        .fill_value = info.fill_value,
        .element_bytes = info.element_bytes,
        .width = info.width,
        .height = info.height,
        .depth = info.depth,
        .pitch_bytes = info.pitch_bytes,
        .event = info.event,
        .predicate = info.predicate,
        .branch_count = info.branch_count,
        .inner_count = inner_count,
        .native = info.native,
    };
    rondo__write_struct(out_node, &node);
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_list_edges(rondo_graph *graph, rondo_graph_edge *edges, size_t capacity,
                                    size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    if (capacity > 0) {
        RETURN_IF_ERROR(rondo__check_pointer(edges, __func__, "edges"));
    }
    rondo__edge_table table;
    RETURN_IF_ERROR(rondo__edge_table_init(graph->recorded, &table));
    for (size_t i = 0; i < table.count && i < capacity; ++i) {
        const rondo__edge *edge = &table.edges[i];
        edges[i] = (rondo_graph_edge){
            .from = edge->from, .to = edge->to, .is_programmatic = edge->kind != 0};
    }
    *out_count = table.count;
    rondo__edge_table_deinit(&table);
    return RONDO_STATUS_OK;
}
