// graph/node/guard_nodes.c — which addresses the nodes of a checked graph use.
// SPDX-License-Identifier: Apache-2.0
#include "graph/node/guard_nodes.h"

#include "base/error.h"
#include "graph/images.h"
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

static const char *get_name(const rondo__node_info *info) {
    return info->name[0] != '\0' ? info->name : "a kernel";
}

static rondo_status guard_ends(const rondo_graph *graph, const rondo__node_info *info) {
    if (info->kind == RONDO__NODE_COPY) {
        RETURN_IF_ERROR(rondo__guard_note_node(graph->participants, info->source, "a copy"));
        return rondo__guard_note_node(graph->participants, info->destination, "a copy");
    }
    return info->kind == RONDO__NODE_FILL
               ? rondo__guard_note_node(graph->participants, info->destination, "a fill")
               : RONDO_STATUS_OK;
}

// A node as it was patched.
static rondo_status guard_image(const rondo_graph *graph, const rondo__node_image *image) {
    RETURN_IF_ERROR(rondo__guard_note_arguments(graph->participants, image->arguments,
                                                image->argument_bytes, get_name(&image->info)));
    return guard_ends(graph, &image->info);
}

// Behind a patch the recording of host functions does not help any more: their arguments are read.
static rondo_status guard_host(rondo_graph *graph, size_t index) {
    rondo__node_image *image;
    RETURN_IF_ERROR(rondo__graph_get_image(graph, index, &image));
    return guard_image(graph, image);
}

static rondo_status guard_node(void *user_data, const rondo__template_node *node) {
    rondo_graph *graph = user_data;
    const rondo__node_info *info = &node->info;
    bool may_be_patched = graph->images != NULL && node->level->depth == 0;
    const rondo__node_image *image = may_be_patched ? graph->images[node->index] : NULL;
    rondo__guard_begin_node(graph->participants, image != NULL ? image->named_at : 0);
    if (image != NULL) {
        return guard_image(graph, image);
    }
    if (may_be_patched && info->kind == RONDO__NODE_HOST) {
        return guard_host(graph, node->index);
    }
    if (info->kind == RONDO__NODE_KERNEL) {
        rondo__template *recorded = node->level->recorded;
        kernel_place place = {graph->participants, get_name(info)};
        return recorded->device->backend->visit_arguments(recorded, node->index, guard_arguments,
                                                          &place);
    }
    return guard_ends(graph, info);
}

rondo_status rondo__graph_guard_nodes(rondo_graph *graph) {
    static const rondo__template_visitor visitor = {.enter_node = guard_node};
    return rondo__template_visit(graph->recorded, &visitor, graph);
}
