// graph/node/part.c — see part.h.
//
// Kernels, copies and fills are disabled in the executable; a host function, which no driver can
// disable, is replaced by one that does nothing.
// SPDX-License-Identifier: Apache-2.0
#include "graph/node/part.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/images.h"
#include "graph/template.h"

// ---- what a node needs ------------------------------------------------------------------------

// Edges lead to ever more nodes, until none is new.
static void spread(const rondo__edge_table *edges, bool *is_needed) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t e = edges->count; e-- > 0;) {
            const rondo__edge *edge = &edges->edges[e];
            if (is_needed[edge->to] && !is_needed[edge->from]) {
                is_needed[edge->from] = true;
                is_new = true;
            }
        }
    }
}

rondo_status rondo__graph_find_needed(rondo_graph *graph, const rondo_node *nodes,
                                      size_t node_count, bool *is_needed, size_t count) {
    rondo__edge_table edges;
    for (size_t i = 0; i < count; ++i) {
        is_needed[i] = false;
    }
    for (size_t i = 0; i < node_count; ++i) {
        size_t index = 0;
        if (nodes[i].recording == 0) {
            continue;
        }
        RETURN_IF_ERROR(rondo_graph_get_node_index(graph, nodes[i], &index));
        if (index < count) {
            is_needed[index] = true;
        }
    }
    RETURN_IF_ERROR(rondo__edge_table_init(graph->recorded, &edges));
    rondo__edge_table_sort(&edges);  // by `to`: mostly one walk from the end is enough
    spread(&edges, is_needed);
    rondo__edge_table_deinit(&edges);
    return RONDO_STATUS_OK;
}

// ---- switching --------------------------------------------------------------------------------

static void do_nothing(void *arguments) {
    (void)arguments;
}

static rondo_status check_switchable(rondo_graph *graph, size_t index,
                                     rondo__node_image **out_image) {
    RETURN_IF_ERROR(rondo__graph_get_image(graph, index, out_image));
    const rondo__node_image *image = *out_image;
    if (image->fixed == NULL || image->is_switchable || image->info.kind == RONDO__NODE_EMPTY) {
        return RONDO_STATUS_OK;
    }
    return RONDO_FAIL(UNSUPPORTED, "node %zu of graph \"%s\" cannot be switched off: %s", index,
                      graph->label, image->fixed);
}

// `function` keeps what a host function was meanwhile.
static rondo_status switch_node(rondo_graph *graph, size_t index, bool is_on, void **function) {
    union {
        rondo_host_function function;
        void *address;
    } nothing = {.function = do_nothing};
    rondo__node_image *image;
    size_t done;
    RETURN_IF_ERROR(check_switchable(graph, index, &image));
    switch (image->info.kind) {
        case RONDO__NODE_HOST:
            *function = is_on ? *function : image->function;
            image->function = is_on ? *function : nothing.address;
            return graph->device->backend->patch_nodes(graph->executable, graph->recorded, &image,
                                                       1, &done);
        case RONDO__NODE_EMPTY:
            return RONDO_STATUS_OK;
        default:
            image->is_enabled = is_on;
            return graph->device->backend->enable_node(graph->executable, graph->recorded, image);
    }
}

rondo_status rondo__graph_replay_part(rondo_graph *graph, rondo_stream *stream, const bool *is_on,
                                      size_t count, bool *out_is_whole) {
    rondo__node_image *image;
    *out_is_whole = true;
    for (size_t i = 0; i < count; ++i) {
        if (!is_on[i]) {
            RETURN_IF_ERROR(check_switchable(graph, i, &image));
        }
    }
    void **functions = rondo__calloc(count + 1, sizeof *functions);
    if (functions == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    size_t done = 0;
    for (; done < count && status == RONDO_STATUS_OK; ++done) {
        status = is_on[done] ? status : switch_node(graph, done, false, &functions[done]);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_replay(graph, stream);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(stream);
    }
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t i = 0; i < done; ++i) {
        *out_is_whole =
            (is_on[i] || switch_node(graph, i, true, &functions[i]) == RONDO_STATUS_OK) &&
            *out_is_whole;
    }
    rondo__error_restore(&saved);
    rondo__free(functions);
    return status;
}
