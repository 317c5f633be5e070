// graph/device_bytes.c — what an executable costs in device memory: measured.
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"
#include "base/memory.h"
#include "graph/executable.h"
#include "graph/template.h"
#include "rondo/inspect.h"

enum {
    COPIES_MAX = 8192,   // beyond what the driver keeps of executables that are gone
    NODES_MAX = 100000,  // of all copies together
    GROWTH_BYTES_ENOUGH = 64 * 1024 * 1024
};

// The driver takes memory in chunks, and a chunk just taken is mostly empty. So what is counted is
// the growth from one chunk to a later one, over the copies made between them:
//
//   taken |            +-----+-----      bytes of a copy = growth between the first and the last
//         |      +-----'                 step, divided by the copies between them
//         |------'---------------> copies
//
// At first some copies go into memory that executables now gone have left, in between the steps. So
// the first half of the growth does not count, where there is more.
typedef struct step {
    size_t count;  // copies made when the memory grew; 0: no such step yet
    uint64_t bytes;
} step;

typedef struct growth {
    size_t copy_count;
    step first;
    step half;  // the last one in the first half of what is enough
    step last;
} growth;

// Makes copies until the driver's memory has grown enough to tell.
static rondo_status grow(rondo_graph *graph, rondo_stream *stream, rondo__executable **copies,
                         growth *out) {
    const rondo__backend *backend = graph->device->backend;
    size_t node_count = 0;
    RETURN_IF_ERROR(backend->count_nodes(graph->recorded, &node_count));
    uint64_t nodes = node_count > 0 ? node_count : 1;
    uint64_t start_bytes = 0;
    RETURN_IF_ERROR(backend->get_free_bytes(graph->device, &start_bytes));
    while (out->copy_count < COPIES_MAX &&
           out->last.bytes - out->first.bytes < GROWTH_BYTES_ENOUGH &&
           (out->copy_count < 2 || (out->copy_count + 1) * nodes <= NODES_MAX)) {
        RETURN_IF_ERROR(backend->instantiate(graph->recorded, &copies[out->copy_count]));
        out->copy_count += 1;
        RETURN_IF_ERROR(backend->upload(copies[out->copy_count - 1], stream));
        RETURN_IF_ERROR(backend->synchronize_stream(stream));
        uint64_t free_bytes = 0;
        RETURN_IF_ERROR(backend->get_free_bytes(graph->device, &free_bytes));
        uint64_t bytes = start_bytes > free_bytes ? start_bytes - free_bytes : 0;
        if (bytes > out->last.bytes) {
            out->last = (step){out->copy_count, bytes};
            out->first = out->first.count == 0 ? out->last : out->first;
            out->half = bytes - out->first.bytes <= GROWTH_BYTES_ENOUGH / 2 ? out->last : out->half;
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status fail_exclusive(void) {
    return RONDO_FAIL_AS("rondo_graph_measure_device_bytes", UNSUPPORTED,
                         "the driver makes one executable at a time of a graph with conditional "
                         "or memory nodes, or with device-updatable kernels, so copies of it "
                         "cannot be measured");
}

rondo_status rondo_graph_measure_device_bytes(rondo_graph *graph, uint64_t *out_bytes) {
    RETURN_IF_ERROR(rondo__check_pointer(out_bytes, __func__, "out_bytes"));
    *out_bytes = 0;
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    const rondo__backend *backend = graph->device->backend;
    if (backend->get_free_bytes == NULL) {
        return RONDO_FAIL(UNSUPPORTED,
                          "executables of device %s lie in ordinary memory, of which the whole "
                          "process allocates: there is nothing to measure",
                          graph->device->name);
    }
    bool is_exclusive = false;
    RETURN_IF_ERROR(rondo__graph_check_exclusive(graph->recorded, &is_exclusive));
    if (is_exclusive) {
        return fail_exclusive();
    }
    rondo_stream *stream = NULL;
    growth g = {0};
    rondo__executable **copies = rondo__calloc(COPIES_MAX, sizeof *copies);
    if (copies == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = rondo_stream_create(graph->device, NULL, &stream);
    if (status == RONDO_STATUS_OK) {
        status = grow(graph, stream, copies, &g);
    }
    for (size_t i = 0; i < g.copy_count; ++i) {
        backend->destroy_executable(copies[i]);
    }
    rondo_stream_destroy(stream);
    rondo__free(copies);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        return fail_exclusive();
    }
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    if (g.last.count == 0) {
        return RONDO_FAIL(UNSUPPORTED,
                          "the driver's memory did not grow over %zu executables, so that theirs "
                          "cannot be told",
                          g.copy_count);
    }
    const step from = g.last.count > g.half.count ? g.half : g.first;
    *out_bytes = g.last.count > from.count
                     ? (g.last.bytes - from.bytes) / (g.last.count - from.count)
                     : g.last.bytes / g.last.count;
    graph->stats.device_bytes = *out_bytes;
    graph->stats.device_bytes_is_estimate = false;
    return RONDO_STATUS_OK;
}
