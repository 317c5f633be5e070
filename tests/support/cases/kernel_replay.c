// support/cases/kernel_replay.c — see kernel_replay.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/kernel_replay.h"

#include "base/error.h"
#include "graph/line.h"
#include "rondo/graph.h"

typedef struct work {
    rondo__kernel *kernel;
    rondo_stream *stream;
    const void *const *inputs;
    void *const *outputs;
    void *workspace;
} work;

static rondo_status append_node(void *line, const rondo__line_node *node) {
    return rondo__graph_line_append(line, node);
}

static rondo_status line_up(const work *w, rondo_graph *graph) {
    rondo__graph_line line;
    RETURN_IF_ERROR(rondo__graph_line_begin(graph, w->stream, &line));
    const rondo_status status =
        w->kernel->visit_nodes(w->kernel, w->inputs, w->outputs, w->workspace, append_node, &line);
    if (status != RONDO_STATUS_OK) {
        rondo__graph_line_abandon(&line);
        return status;
    }
    return rondo__graph_line_end(&line);
}

static rondo_status capture(const work *w, rondo_graph *graph) {
    RETURN_IF_ERROR(rondo_graph_capture_begin(graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    const rondo_status status =
        w->kernel->launch(w->kernel, w->stream, w->inputs, w->outputs, w->workspace);
    const rondo_status ended = rondo_graph_capture_end(graph);
    return status != RONDO_STATUS_OK ? status : ended;
}

rondo_status kernel_replay(rondo__kernel *kernel, rondo_stream *stream, const void *const *inputs,
                           void *const *outputs, void *workspace, bool by_nodes) {
    const work w = {kernel, stream, inputs, outputs, workspace};
    rondo_graph *graph = NULL;
    RETURN_IF_ERROR(rondo_graph_create(rondo_stream_get_device(stream), NULL, &graph));
    rondo_status status =
        by_nodes && kernel->visit_nodes != NULL ? line_up(&w, graph) : RONDO_STATUS_UNSUPPORTED;
    status = status == RONDO_STATUS_UNSUPPORTED ? capture(&w, graph) : status;
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_replay(graph, stream);
    }
    rondo_graph_destroy(graph);
    return status;
}
