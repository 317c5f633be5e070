// graph/node/patch.c — see patch.h.
// SPDX-License-Identifier: Apache-2.0
#include "graph/node/patch.h"

#include <string.h>

#include "base/error.h"
#include "capture/host_memory.h"
#include "graph/graph_share.h"
#include "graph/node/guard_nodes.h"
#include "pool/arena_graph.h"
#include "pool/guard.h"

// ---- what memory they use ---------------------------------------------------------------------

// Participants that came behind those which the graph shares with graphs that it was recorded into.
static rondo__participant *get_later_participants(const rondo_graph *graph) {
    return rondo__graph_get_participants(graph) != graph->participants ? graph->participants->next
                                                                       : NULL;
}

static rondo_status note_in(rondo__participant *list, const void *address, const char *what) {
    for (rondo__participant *p = list; p != NULL; p = p->next) {
        if (p->type->note_address != NULL) {
            RETURN_IF_ERROR(p->type->note_address(p, NULL, address, what));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status note_address(const rondo_graph *graph, const void *address, const char *what) {
    RETURN_IF_ERROR(note_in(rondo__graph_get_participants(graph), address, what));
    return note_in(get_later_participants(graph), address, what);
}

// Memory that the node used before is not checked; it may be memory of the graph that other graphs
// have taken since.
static rondo_status note_words(const rondo_graph *graph, const rondo__node_image *image,
                               const rondo__node_image *former) {
    const char *what = image->info.name[0] != '\0' ? image->info.name : "a kernel";
    for (size_t i = 0; i + sizeof(uintptr_t) <= image->argument_bytes; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, image->arguments + i, sizeof word);
        const bool is_new =
            former == NULL || memcmp(&word, former->arguments + i, sizeof word) != 0;
        if (word >= 4096 && is_new) {
            RETURN_IF_ERROR(note_address(graph, (const void *)word, what));
        }
    }
    return RONDO_STATUS_OK;
}

static bool wants_addresses(const rondo__participant *list) {
    while (list != NULL && list->type->note_address == NULL) {
        list = list->next;
    }
    return list != NULL;
}

static rondo__participant *find_arena_graph(rondo__participant *list) {
    while (list != NULL && list->type != &rondo__arena_graph_type) {
        list = list->next;
    }
    return list;
}

// Sharers of the arena may have taken memory since the capture.
static rondo_status join_arena(rondo_graph *graph) {
    rondo__participant *former = find_arena_graph(rondo__graph_get_participants(graph));
    former = former != NULL ? former : find_arena_graph(get_later_participants(graph));
    rondo__participant *joined = former;
    rondo_status status = rondo__arena_join_late(graph->arena, graph->label, &joined);
    if (joined != former) {
        rondo__participant **link = &graph->participants;
        while (*link != NULL) {
            link = &(*link)->next;
        }
        *link = joined;
    }
    return status;
}

rondo_status rondo__graph_begin_patches(rondo_graph *graph, bool *out_wants_addresses) {
    if (graph->participants == NULL && !rondo__arena_watches_order(graph->arena)) {
        *out_wants_addresses = false;
        return RONDO_STATUS_OK;
    }
    rondo_status status = join_arena(graph);
    *out_wants_addresses = wants_addresses(rondo__graph_get_participants(graph)) ||
                           wants_addresses(get_later_participants(graph));
    return status;
}

static rondo_status refuse_gone(const rondo_graph *graph, const void *address, const char *call) {
    RETURN_IF_ERROR(rondo__guard_refuse_gone(rondo__graph_get_participants(graph), address, call));
    return rondo__guard_refuse_gone(get_later_participants(graph), address, call);
}

rondo_status rondo__graph_refuse_gone(const rondo_graph *graph, const rondo__node_image *image,
                                      const char *call) {
    const rondo__node_info *info = &image->info;
    if (info->kind == RONDO__NODE_COPY) {
        RETURN_IF_ERROR(refuse_gone(graph, info->source, call));
    }
    return info->kind == RONDO__NODE_COPY || info->kind == RONDO__NODE_FILL
               ? refuse_gone(graph, info->destination, call)
               : RONDO_STATUS_OK;
}

rondo_status rondo__graph_admit_copy(rondo_graph *graph, const rondo__node_image *image,
                                     const char *call) {
    const rondo__node_info *info = &image->info;
    if (info->copy_kind == RONDO_COPY_DEVICE_TO_DEVICE) {
        return RONDO_STATUS_OK;
    }
    bool is_source = info->copy_kind == RONDO_COPY_HOST_TO_DEVICE;
    return rondo__host_memory_patch_copy(graph->device, &graph->participants,
                                         is_source ? info->source : info->destination,
                                         (size_t)info->byte_count, call);
}

rondo_status rondo__graph_admit_addresses(const rondo_graph *graph, const rondo__node_image *image,
                                          const rondo__node_image *former) {
    const rondo__node_info *info = &image->info;
    const bool is_copy = info->kind == RONDO__NODE_COPY;
    RETURN_IF_ERROR(note_words(graph, image, former));
    if (is_copy && (former == NULL || info->source != former->info.source)) {
        RETURN_IF_ERROR(note_address(graph, info->source, "a copy"));
    }
    if ((is_copy || info->kind == RONDO__NODE_FILL) &&
        (former == NULL || info->destination != former->info.destination)) {
        RETURN_IF_ERROR(note_address(graph, info->destination, is_copy ? "a copy" : "a fill"));
    }
    return RONDO_STATUS_OK;
}

// The program may free memory that the nodes used before: a checked graph watches only what they
// use now. If host memory is short, it goes on watching both.
void rondo__graph_watch_nodes_anew(rondo_graph *graph) {
    rondo__participant *participants = rondo__graph_get_participants(graph);
    rondo_error saved;
    if (participants != graph->participants) {
        return;  // graphs that this one was recorded into do what they did, and share the watch
    }
    rondo__error_save(&saved);
    // Learned steps patch without such calls.
    const uint64_t call = graph->patch_call_count > 0 ? graph->patch_call_count : 1;
    if (rondo__guard_begin_anew(participants, call) == RONDO_STATUS_OK) {
        rondo_status status = rondo__graph_guard_nodes(graph);
        rondo__guard_end_anew(participants, status == RONDO_STATUS_OK);
    }
    rondo__error_restore(&saved);
}
