// graph/node/read_node.c — nodes of a recording that are found by place or label, and what they do
// by now.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "backend/check.h"
#include "base/write_struct.h"
#include "graph/graph_share.h"
#include "graph/images.h"
#include "graph/label/label.h"
#include "graph/tracked.h"
#include "rondo/inspect.h"
#include "rondo/node.h"

rondo_status rondo_graph_get_node_handle(rondo_graph *graph, size_t index, rondo_node *out_node) {
    RETURN_IF_ERROR(rondo__check_pointer(out_node, __func__, "out_node"));
    *out_node = (rondo_node){0};
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    size_t count = 0;
    RETURN_IF_ERROR(graph->device->backend->count_nodes(graph->recorded, &count));
    if (index >= count) {
        return RONDO_FAIL(INVALID, "graph \"%s\" has %zu nodes; there is no node %zu", graph->label,
                          count, index);
    }
    return rondo__tracked_of_index(&graph->tracked, index, count, out_node);
}

// Whether a node's label is the scope's path, or lies in it.
static bool is_in_scope(const char *label, const char *scope, size_t length) {
    return strncmp(label, scope, length) == 0 && (label[length] == '\0' || label[length] == '/');
}

rondo_status rondo_graph_find_nodes(rondo_graph *graph, const char *label, rondo_node *nodes,
                                    size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__check_pointer(label, __func__, "label"));
    if (capacity > 0) {
        RETURN_IF_ERROR(rondo__check_pointer(nodes, __func__, "nodes"));
    }
    size_t node_count;
    RETURN_IF_ERROR(rondo_graph_get_node_count(graph, &node_count));
    const size_t length = strlen(label);
    size_t found = 0;
    for (size_t i = 0; i < node_count; ++i) {
        const char *own = rondo__label_of_index(rondo__graph_get_participants(graph), i);
        if (!is_in_scope(own, label, length)) {
            continue;
        }
        if (found < capacity) {
            RETURN_IF_ERROR(rondo__tracked_of_index(&graph->tracked, i, node_count, &nodes[found]));
        }
        found += 1;
    }
    *out_count = found;
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_read_node(rondo_graph *graph, rondo_node node,
                                   rondo_node_state *out_state) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_state, sizeof *out_state, __func__, "rondo_node_state"));
    size_t index;
    RETURN_IF_ERROR(rondo_graph_get_node_index(graph, node, &index));
    rondo__node_image *image;
    RETURN_IF_ERROR(rondo__graph_get_image(graph, index, &image));
    const rondo__node_info *info = &image->info;
    const rondo__launch_attributes *attributes = &image->attributes;
    const rondo_node_state state = {
        .kind = (rondo_node_kind)info->kind,
        .name = info->name != NULL ? info->name : "",
        .is_enabled = image->is_enabled,
        .can_be_patched = image->fixed == NULL,
        .function = image->function,
        .grid = {info->grid[0], info->grid[1], info->grid[2]},
        .block = {info->block[0], info->block[1], info->block[2]},
        .shared_bytes = info->shared_bytes,
        .arguments = image->is_opaque ? NULL : image->arguments,
        .argument_bytes = image->is_opaque ? 0 : image->argument_bytes,
        .copy_kind = info->copy_kind,
        .source = info->source,
        .destination = info->destination,
        .byte_count = info->byte_count,
        .fill_value = info->fill_value,
        .element_bytes = info->element_bytes,
        .cluster = {attributes->cluster[0], attributes->cluster[1], attributes->cluster[2]},
        .is_cooperative = attributes->is_cooperative != 0,
        .priority = (int32_t)attributes->priority,
        .event = info->event,
        .predicate = info->predicate,
    };
    rondo__write_struct(out_state, &state);
    return RONDO_STATUS_OK;
}
