// graph/guard_nodes.c — which addresses the nodes of a checked graph use.
// SPDX-License-Identifier: Apache-2.0
#include "graph/guard_nodes.h"

#include "base/error.h"
#include "graph/template.h"
#include "pool/guard.h"

typedef struct kernel_place {
    rondo__participant *participants;
    const char *name;
} kernel_place;

static rondo_status guard_arguments(void *user_data, const void *bytes, size_t byte_count) {
    const kernel_place *place = user_data;
    return rondo__guard_note_arguments(place->participants, bytes, byte_count, place->name);
}

static rondo_status guard_node(void *user_data, const rondo__template_node *node) {
    rondo__participant *participants = user_data;
    const rondo__node_info *info = &node->info;
    if (info->kind == RONDO__NODE_KERNEL) {
        rondo__template *recorded = node->level->recorded;
        kernel_place place = {participants, info->name[0] != '\0' ? info->name : "a kernel"};
        return recorded->device->backend->visit_arguments(recorded, node->index, guard_arguments,
                                                          &place);
    }
    if (info->kind == RONDO__NODE_COPY) {
        RETURN_IF_ERROR(rondo__guard_note_node(participants, info->source, "a copy"));
        return rondo__guard_note_node(participants, info->destination, "a copy");
    }
    return info->kind == RONDO__NODE_FILL
               ? rondo__guard_note_node(participants, info->destination, "a fill")
               : RONDO_STATUS_OK;
}

rondo_status rondo__graph_guard_nodes(rondo_graph *graph) {
    static const rondo__template_visitor visitor = {.enter_node = guard_node};
    return rondo__template_visit(graph->recorded, &visitor, graph->participants);
}
