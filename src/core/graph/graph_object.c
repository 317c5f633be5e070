// graph/graph_object.c — helpers of every call on a graph.
// SPDX-License-Identifier: Apache-2.0

#include "graph/graph_object.h"
#include "graph/images.h"

#include <string.h>

#include "backend/check.h"
#include "device/stream_tag.h"
#include "graph/graph_share.h"
#include "pool/arena_graph.h"

void rondo__graph_wait(rondo_graph *graph) {
    if (graph->last_stream != NULL) {
        if (!rondo__stream_tag_wait(graph->last_stream)) {
            // The stream records by now; the driver keeps what it runs, and the arena its memory.
            rondo__arena_hold_back(rondo__graph_get_participants(graph), graph->last_stream);
        }
        rondo__stream_tag_release(graph->last_stream);
        graph->last_stream = NULL;
    }
}

void rondo__graph_clear(rondo_graph *graph) {
    const rondo__backend *backend = graph->device->backend;
    rondo__graph_wait(graph);
    if (graph->executable != NULL) {
        backend->destroy_executable(graph->executable);
        graph->executable = NULL;
    }
    if (graph->recorded != NULL) {
        backend->destroy_template(graph->recorded);
        graph->recorded = NULL;
    }
    rondo__graph_forget_nodes(graph);
    rondo__participants_destroy(graph->participants);
    graph->participants = NULL;
    memset(&graph->stats, 0, sizeof graph->stats);
    graph->replay_count = 0;
    graph->executed_before = 0;
    graph->state = RONDO__GRAPH_EMPTY;
}

rondo_status rondo__graph_fail_not_ready(const rondo_graph *graph, const char *call) {
    return RONDO_FAIL_AS(call, STATE,
                         graph->state == RONDO__GRAPH_RECORDING
                             ? "graph \"%s\" still records; call rondo_graph_capture_end first"
                             : "graph \"%s\" holds nothing: it was not captured yet, or was reset",
                         graph->label);
}

rondo_status rondo__graph_check_template(const rondo_graph *graph, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    if (graph->state != RONDO__GRAPH_READY && graph->state != RONDO__GRAPH_RECORDED) {
        return rondo__graph_fail_not_ready(graph, call);
    }
    if (graph->recorded == NULL) {
        return RONDO_FAIL_AS(call, STATE,
                             "graph \"%s\" did not keep its template; create it with "
                             "options.keep = RONDO_KEEP_TEMPLATE",
                             graph->label);
    }
    return rondo__check_alive(graph->device, call);
}
