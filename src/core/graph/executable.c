// graph/executable.c — the executable of a graph: made from its template, put in place, given up.
// SPDX-License-Identifier: Apache-2.0
#include "graph/executable.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log/hook.h"
#include "graph/images.h"
#include "graph/template.h"

// Adds up kernels and copies. Kinds are cheaper to count than nodes are to describe, so only a
// level with levels inside is gone through.
static rondo_status count_level(void *user_data, rondo__template_level *level) {
    rondo_graph_stats *stats = user_data;
    size_t counts[RONDO__NODE_KIND_COUNT] = {0};
    if (level->recorded == NULL) {
        return RONDO_STATUS_OK;
    }
    const rondo__backend *backend = level->recorded->device->backend;
    RETURN_IF_ERROR(backend->count_kinds(level->recorded, counts));
    for (size_t kind = 0; kind < RONDO__NODE_KIND_COUNT && level->depth == 0; ++kind) {
        stats->node_count += counts[kind];
    }
    stats->kernel_count += counts[RONDO__NODE_KERNEL];
    stats->kernel_count += backend == &rondo__backend_host ? counts[RONDO__NODE_HOST] : 0;
    stats->copy_count += counts[RONDO__NODE_COPY] + counts[RONDO__NODE_FILL];
    level->skips_rest = counts[RONDO__NODE_CHILD] + counts[RONDO__NODE_CONDITIONAL] == 0;
    const bool is_child = level->node != NULL && level->node->info.kind == RONDO__NODE_CHILD;
    return backend->get_free_bytes != NULL
               ? rondo__graph_estimate_level(level->recorded, is_child, &stats->device_bytes)
               : RONDO_STATUS_OK;
}

// Counted once, by the instantiation, so that the statistics are O(1), and a capture does not pay
// for statistics that the program does not read.
rondo_status rondo__graph_count_kinds(rondo__template *recorded, rondo_graph_stats *in_out_stats) {
    static const rondo__template_visitor visitor = {.enter_level = count_level};
    in_out_stats->node_count = 0;
    in_out_stats->kernel_count = 0;
    in_out_stats->copy_count = 0;
    in_out_stats->device_bytes = 0;
    in_out_stats->device_bytes_is_estimate = recorded->device->backend->get_free_bytes != NULL;
    return rondo__template_visit(recorded, &visitor, in_out_stats);
}

rondo_status rondo__graph_make_executable(rondo_graph *graph, rondo__template *recorded,
                                          rondo__executable **out_executable,
                                          rondo_graph_stats *in_out_stats) {
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_INSTANTIATE, "instantiate");
    uint64_t start = rondo__clock_now_ns();
    rondo_status status = graph->device->backend->instantiate(recorded, out_executable);
    rondo__hook_leave(&scope);
    if (status != RONDO_STATUS_OK) {
        rondo__error_set_op(graph->label);
        return status;
    }
    in_out_stats->instantiate_ns = rondo__clock_now_ns() - start;
    return RONDO_STATUS_OK;
}

void rondo__graph_drop_executable(rondo_graph *graph) {
    const rondo__backend *backend = graph->device->backend;
    // Replays of one graph come one behind another; a driver orders those of one executable.
    rondo__graph_wait(graph);
    if (backend->count_executed != NULL) {
        graph->executed_before += backend->count_executed(graph->executable);
    }
    backend->destroy_executable(graph->executable);
    rondo__graph_forget_nodes(graph);
    graph->executable = NULL;
    graph->state = RONDO__GRAPH_RECORDED;
}

void rondo__graph_set_executable(rondo_graph *graph, rondo__executable *executable) {
    if (graph->executable != NULL) {
        rondo__graph_drop_executable(graph);
    }
    graph->executable = executable;
    graph->state = RONDO__GRAPH_READY;
}

rondo_status rondo__graph_instantiate(rondo_graph *graph) {
    rondo__executable *executable = NULL;
    if (!graph->has_kinds) {
        RETURN_IF_ERROR(rondo__graph_count_kinds(graph->recorded, &graph->stats));
        graph->has_kinds = true;
    }
    if (graph->executable != NULL) {
        bool is_exclusive = false;
        RETURN_IF_ERROR(rondo__graph_check_exclusive(graph->recorded, &is_exclusive));
        if (is_exclusive) {
            rondo__graph_drop_executable(graph);
        }
    }
    rondo_status status =
        rondo__graph_make_executable(graph, graph->recorded, &executable, &graph->stats);
    if (status == RONDO_STATUS_UNSUPPORTED && graph->executable != NULL) {
        // Perhaps only beside the former one: no kind of node tells of device-updatable kernels.
        rondo__graph_drop_executable(graph);
        status = rondo__graph_make_executable(graph, graph->recorded, &executable, &graph->stats);
    }
    RETURN_IF_ERROR(status);
    rondo__graph_set_executable(graph, executable);
    return RONDO_STATUS_OK;
}
