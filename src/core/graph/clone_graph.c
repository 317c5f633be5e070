// graph/clone_graph.c — a second graph of one recording.
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"
#include "base/error.h"
#include "graph/graph_share.h"
#include "rondo/node.h"

static const char call[] = "rondo_graph_clone";

static rondo_status check(const rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__graph_check_template(graph, call));
    if (graph->device->backend->clone == NULL) {
        return RONDO_FAIL_AS(call, UNSUPPORTED, "graphs of %s cannot be cloned; record it again",
                             graph->device->name);
    }
    if (graph->checks_addresses) {
        return RONDO_FAIL_AS(
            call, UNSUPPORTED,
            "graph \"%s\" checks addresses, and that check knows the patches of one "
            "graph; clone one without check_addresses, or record it again",
            graph->label);
    }
    return rondo__graph_check_copyable(graph, call, "record it again");
}

// An empty graph that keeps what `graph` does, in the same memory.
static rondo_status create_like(rondo_graph *graph, const char *label, rondo_graph **out_clone) {
    const rondo_graph_options options = {
        .struct_size = sizeof options,
        .keep = graph->defers_instantiation ? RONDO_KEEP_TEMPLATE_ONLY : RONDO_KEEP_TEMPLATE,
        .label = label != NULL ? label : graph->label,
        .arena = graph->arena,
        .pageable_sources =
            graph->snapshots_pageable ? RONDO_PAGEABLE_SNAPSHOT : RONDO_PAGEABLE_REFUSE,
    };
    return rondo_graph_create(graph->device, &options, out_clone);
}

static rondo_status fill_in(rondo_graph *graph, rondo_graph *clone) {
    RETURN_IF_ERROR(graph->device->backend->clone(graph->recorded, &clone->recorded));
    clone->state = RONDO__GRAPH_RECORDED;
    RETURN_IF_ERROR(rondo__graph_share_own(graph, clone));
    return clone->defers_instantiation ? RONDO_STATUS_OK : rondo_graph_instantiate(clone);
}

rondo_status rondo_graph_clone(rondo_graph *graph, const char *label, rondo_graph **out_clone) {
    RETURN_IF_ERROR(rondo__check_pointer(out_clone, call, "out_clone"));
    *out_clone = NULL;
    RETURN_IF_ERROR(check(graph));
    rondo_graph *clone;
    RETURN_IF_ERROR(create_like(graph, label, &clone));
    const rondo_status status = fill_in(graph, clone);
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo_graph_destroy(clone);
        rondo__error_restore(&saved);
        return status;
    }
    *out_clone = clone;
    return RONDO_STATUS_OK;
}
