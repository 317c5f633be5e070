// graph/images.c — see images.h.
// SPDX-License-Identifier: Apache-2.0
#include "graph/images.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/tracked.h"

static rondo_status make_room(rondo_graph *graph) {
    if (graph->images != NULL) {
        return RONDO_STATUS_OK;
    }
    size_t count = 0;
    RETURN_IF_ERROR(graph->device->backend->count_nodes(graph->recorded, &count));
    graph->images = rondo__calloc(count + 1, sizeof(rondo__node_image *));
    if (graph->images == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    graph->image_count = count;
    return RONDO_STATUS_OK;
}

static rondo_status read_image(rondo_graph *graph, size_t index, rondo__node_image **out_image) {
    const rondo__backend *backend = graph->device->backend;
    if (backend->read_node == NULL) {
        return RONDO_FAIL_AS("rondo_graph_patch", UNSUPPORTED, "nodes of %s cannot be patched",
                             graph->device->name);
    }
    RETURN_IF_ERROR(make_room(graph));
    if (index >= graph->image_count) {
        return RONDO_FAIL_AS("rondo_graph_patch", INVALID, "graph \"%s\" has no node %zu",
                             graph->label, index);
    }
    rondo__node_image *image = rondo__calloc_lines(sizeof *image);
    if (image == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = backend->read_node(graph->recorded, index, image);
    if (status != RONDO_STATUS_OK) {
        rondo__free(image);
        return status;
    }
    *out_image = graph->images[index] = image;
    return RONDO_STATUS_OK;
}

rondo_status rondo__graph_get_image(rondo_graph *graph, size_t index,
                                    rondo__node_image **out_image) {
    *out_image = index < graph->image_count ? graph->images[index] : NULL;
    return *out_image != NULL ? RONDO_STATUS_OK : read_image(graph, index, out_image);
}

void rondo__graph_forget_nodes(rondo_graph *graph) {
    for (size_t i = 0; i < graph->image_count; ++i) {
        if (graph->images[i] != NULL) {
            rondo__node_image_deinit(graph->images[i]);
            rondo__free(graph->images[i]);
        }
    }
    rondo__free(graph->images);
    graph->images = NULL;
    graph->image_count = 0;
    rondo__tracked_destroy(graph->tracked);
    graph->tracked = NULL;
}
