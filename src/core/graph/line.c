// graph/line.c — see line.h.
// SPDX-License-Identifier: Apache-2.0
#include "graph/line.h"

#include "backend/check.h"
#include "base/clock.h"
#include "device/work.h"
#include "graph/executable.h"

rondo_status rondo__graph_line_begin(rondo_graph *graph, rondo_stream *stream,
                                     rondo__graph_line *out_line) {
    const rondo__backend *backend = graph->device->backend;
    static const char call[] = "rondo_graph_capture_begin";
    rondo__graph_line line = {.graph = graph, .begin_ns = rondo__clock_now_ns()};
    if (graph->state != RONDO__GRAPH_EMPTY || stream->device != graph->device) {
        return RONDO_FAIL_AS(call, INTERNAL, "graph \"%s\" is not empty, or of another device",
                             graph->label);
    }
    RETURN_IF_ERROR(rondo__check_alive(graph->device, call));
    if (backend->begin_line == NULL || graph->checks_addresses) {
        return RONDO_FAIL_AS(call, UNSUPPORTED, "graph \"%s\" has to be captured", graph->label);
    }
    if (graph->keeps_template || rondo__hook_is_on(RONDO__HOOK_LABELS)) {
        RETURN_IF_ERROR(rondo__label_line_create(&line.labels));
    }
    const rondo_status status = backend->begin_line(stream, &line.recorded);
    if (status != RONDO_STATUS_OK) {
        rondo__label_line_destroy(line.labels);
        return status;
    }
    if (rondo__hook_is_on(RONDO__HOOK_SPANS | RONDO__HOOK_RANGES)) {
        line.scope = rondo__hook_begin_named(RONDO__SPAN_CAPTURE, "capture %s", graph->label);
    }
    *out_line = line;
    return RONDO_STATUS_OK;
}

rondo_status rondo__graph_line_label(rondo__graph_line *line, const rondo_stream *stream,
                                     const char *text) {
    return line->labels != NULL ? rondo__label_line_open(line->labels, stream, text)
                                : RONDO_STATUS_OK;
}

// As the call checks that puts the same on a stream.
static rondo_status check_node(const rondo__line_node *node) {
    const rondo_launch *launch = node->launch;
    rondo_launch whole;
    return node->kind == RONDO__NODE_KERNEL
               ? rondo__work_check_launch(&launch, &whole, "rondo_stream_launch")
           : node->kind == RONDO__NODE_COPY
               ? rondo__work_check_copy(node->destination, node->source, node->bytes,
                                        RONDO_COPY_DEVICE_TO_DEVICE, "rondo_stream_copy")
               : rondo__work_check_fill(node->destination, 1, node->bytes, "rondo_stream_fill");
}

rondo_status rondo__graph_line_append(rondo__graph_line *line, const rondo__line_node *node) {
    const bool is_kernel = node->kind == RONDO__NODE_KERNEL;
    RETURN_IF_ERROR(check_node(node));
    if (!is_kernel && node->bytes == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(line->graph->device->backend->append_node(line->recorded, node));
    line->stats.node_count += 1;
    line->stats.kernel_count += is_kernel ? 1 : 0;
    line->stats.copy_count += is_kernel ? 0 : 1;
    return line->labels != NULL ? rondo__label_line_add(line->labels) : RONDO_STATUS_OK;
}

// What the end of a capture does with the template.
static rondo_status finish(rondo__graph_line *line, rondo_graph *graph) {
    graph->stats = line->stats;
    graph->stats.capture_ns = rondo__clock_now_ns() - line->begin_ns;
    rondo__graph_estimate_line(&graph->stats);
    graph->has_kinds = true;
    if (line->labels != NULL) {
        RETURN_IF_ERROR(rondo__label_line_end(line->labels, graph->recorded, &graph->participants));
    }
    graph->state = RONDO__GRAPH_RECORDED;
    if (graph->defers_instantiation) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__graph_instantiate(graph));
    if (!graph->keeps_template) {
        graph->device->backend->destroy_template(graph->recorded);
        graph->recorded = NULL;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__graph_line_end(rondo__graph_line *line) {
    rondo_graph *graph = line->graph;
    graph->recorded = line->recorded;
    line->recorded = NULL;
    const rondo_status status = finish(line, graph);
    rondo__graph_line_abandon(line);
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo__graph_clear(graph);
        rondo__error_restore(&saved);
    }
    return status;
}

void rondo__graph_line_abandon(rondo__graph_line *line) {
    if (line->recorded != NULL) {
        line->graph->device->backend->destroy_template(line->recorded);
        line->recorded = NULL;
    }
    rondo__label_line_destroy(line->labels);
    line->labels = NULL;
    rondo__hook_leave(&line->scope);
}
