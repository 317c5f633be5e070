// support/cases/kernel_replay.c — see kernel_replay.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/kernel_replay.h"

#include <stdlib.h>
#include <string.h>

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

// ---- records ----------------------------------------------------------------------------------

static rondo_status prepare_from(const rondo__kernel_request *request, const void *bytes,
                                 size_t byte_count, rondo__kernel **out_kernel) {
    const rondo__record record = {.at = bytes, .past = (const uint8_t *)bytes + byte_count};
    rondo__kernel_request again = *request;
    again.ready = &record;
    return rondo__kernel_prepare(&again, out_kernel);
}

// Altered, the record is refused, or is another kernel, which is not launched.
static rondo_status alter(const rondo__kernel_request *request, const rondo__text *record) {
    static uint32_t random = 1;
    rondo_status status = RONDO_STATUS_OK;
    uint8_t *copy = malloc(record->length);
    for (int round = 0; copy != NULL && round < 1 && status == RONDO_STATUS_OK; ++round) {
        rondo__kernel *other = NULL;
        const size_t weight_count = request->weights->count;
        memcpy(copy, record->bytes, record->length);
        for (int i = 0; i < 2; ++i) {
            random = random * 1664525u + 1013904223u;
            copy[(random >> 8) % record->length] = (uint8_t)random;
        }
        status = prepare_from(request, copy, record->length - (random >> 30), &other);
        rondo__kernel_destroy(other);
        rondo__weight_list_cut(request->weights, weight_count);
    }
    free(copy);
    return status;
}

static rondo_status restore(const rondo__kernel_request *request, const rondo__text *record,
                            rondo__kernel **in_out_kernel) {
    rondo__text second = {0};
    rondo__kernel *restored = NULL;
    RETURN_IF_ERROR(alter(request, record));
    RETURN_IF_ERROR(prepare_from(request, record->bytes, record->length, &restored));
    rondo__kernel_destroy(*in_out_kernel);
    *in_out_kernel = restored;
    const bool is_same =
        rondo__kernel_write(request->device, restored, request->weights, &second) &&
        second.length == record->length && memcmp(second.bytes, record->bytes, record->length) == 0;
    rondo__text_deinit(&second);
    return is_same ? RONDO_STATUS_OK
                   : RONDO_FAIL_AS("kernel_restore", INTERNAL, "the record is of another kernel");
}

rondo_status kernel_restore(const rondo__kernel_request *request, rondo__kernel **in_out_kernel) {
    rondo__text record = {0};
    rondo_status status = RONDO_STATUS_OK;
    if (rondo__kernel_write(request->device, *in_out_kernel, request->weights, &record)) {
        status = restore(request, &record, in_out_kernel);
    }
    rondo__text_deinit(&record);
    return status;
}
