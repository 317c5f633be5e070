// graph/patch.c — see patch.h.
// SPDX-License-Identifier: Apache-2.0
#include "graph/patch.h"

#include <string.h>

#include "base/error.h"
#include "capture/host_memory.h"
#include "graph/guard_nodes.h"
#include "pool/guard.h"

// ---- what memory they use ---------------------------------------------------------------------

static rondo_status note_address(const rondo_graph *graph, const void *address, const char *what) {
    for (rondo__participant *p = graph->participants; p != NULL; p = p->next) {
        if (p->type->note_address != NULL) {
            RETURN_IF_ERROR(p->type->note_address(p, NULL, address, what));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status note_words(const rondo_graph *graph, const rondo__node_image *image) {
    const char *what = image->info.name[0] != '\0' ? image->info.name : "a kernel";
    for (size_t i = 0; i + sizeof(uintptr_t) <= image->argument_bytes; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, image->arguments + i, sizeof word);
        if (word >= 4096) {
            RETURN_IF_ERROR(note_address(graph, (const void *)word, what));
        }
    }
    return RONDO_STATUS_OK;
}

static bool wants_addresses(const rondo_graph *graph) {
    const rondo__participant *p = graph->participants;
    while (p != NULL && p->type->note_address == NULL) {
        p = p->next;
    }
    return p != NULL;
}

static rondo_status admit_copy(rondo_graph *graph, const rondo__node_info *info, const char *call) {
    if (info->copy_kind == RONDO_COPY_DEVICE_TO_DEVICE) {
        return RONDO_STATUS_OK;
    }
    bool is_source = info->copy_kind == RONDO_COPY_HOST_TO_DEVICE;
    return rondo__host_memory_patch_copy(graph->device, &graph->participants,
                                         is_source ? info->source : info->destination,
                                         (size_t)info->byte_count, call);
}

rondo_status rondo__graph_admit_images(rondo_graph *graph, rondo__node_image *const *images,
                                       size_t count, const char *call) {
    bool notes_addresses = wants_addresses(graph);
    for (size_t i = 0; i < count; ++i) {
        const rondo__node_info *info = &images[i]->info;
        if (info->kind == RONDO__NODE_COPY) {
            RETURN_IF_ERROR(admit_copy(graph, info, call));
        }
        if (!notes_addresses) {
            continue;
        }
        RETURN_IF_ERROR(note_words(graph, images[i]));
        if (info->kind == RONDO__NODE_COPY) {
            RETURN_IF_ERROR(note_address(graph, info->source, "a copy"));
        }
        if (info->kind == RONDO__NODE_COPY || info->kind == RONDO__NODE_FILL) {
            RETURN_IF_ERROR(note_address(graph, info->destination,
                                         info->kind == RONDO__NODE_COPY ? "a copy" : "a fill"));
        }
    }
    return RONDO_STATUS_OK;
}

// What the nodes used before may be freed now: a checked graph watches only what they use. Without
// memory for that it goes on watching both.
static void watch_anew(rondo_graph *graph) {
    rondo_error saved;
    rondo__error_save(&saved);
    size_t former_count = rondo__guard_begin_anew(graph->participants);
    rondo_status status = rondo__graph_guard_nodes(graph);
    rondo__guard_end_anew(graph->participants, former_count, status == RONDO_STATUS_OK);
    rondo__error_restore(&saved);
}

// ---- writing ----------------------------------------------------------------------------------

rondo_status rondo__graph_write_images(rondo_graph *graph, rondo__node_image *const *images,
                                       size_t count, size_t *out_done) {
    const rondo__backend *backend = graph->device->backend;
    rondo_status status = RONDO_STATUS_OK;
    *out_done = 0;
    while (*out_done < count && status == RONDO_STATUS_OK) {
        const rondo__node_image *image = images[*out_done];
        status = backend->patch_node(graph->executable, graph->recorded, image);
        *out_done += status == RONDO_STATUS_OK;
    }
    if (*out_done > 0 && graph->checks_addresses) {
        watch_anew(graph);
    }
    return status;
}
