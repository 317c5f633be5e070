// graph/node/put.c — work of any kind put on a stream.
// SPDX-License-Identifier: Apache-2.0
#include "graph/node/put.h"

#include "backend/check.h"
#include "base/read_options.h"

rondo_status rondo__put_check(const rondo_work *given, const char *call, rondo_work *out_work) {
    *out_work = (rondo_work){.struct_size = sizeof *out_work};
    RETURN_IF_ERROR(rondo__check_pointer(given, call, "work"));
    RETURN_IF_ERROR(rondo__read_options(given, out_work, sizeof *out_work, call, "rondo_work"));
    const rondo_work *work = out_work;
    if (work->kind != RONDO_NODE_KERNEL && work->kind != RONDO_NODE_HOST &&
        work->kind != RONDO_NODE_COPY && work->kind != RONDO_NODE_FILL &&
        work->kind != RONDO_NODE_CHILD) {
        return RONDO_FAIL_AS(call, INVALID,
                             "work of kind %d cannot be added; kernels, host functions, copies, "
                             "fills and graphs can",
                             (int)work->kind);
    }
    if ((work->kind == RONDO_NODE_COPY && work->byte_count == 0) ||
        (work->kind == RONDO_NODE_FILL && work->element_count == 0)) {
        return RONDO_FAIL_AS(call, INVALID, "a copy or fill of nothing makes no node");
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__put_work(rondo_stream *stream, const rondo_work *work) {
    switch (work->kind) {
        case RONDO_NODE_KERNEL:
            return rondo_stream_launch(stream, work->launch);
        case RONDO_NODE_HOST:
            return rondo_stream_call_host(stream, work->name, work->function, work->arguments,
                                          work->argument_bytes);
        case RONDO_NODE_COPY:
            return rondo_stream_copy(stream, work->destination, work->source, work->byte_count,
                                     work->copy_kind);
        case RONDO_NODE_FILL:
            return rondo_stream_fill(stream, work->destination, work->fill_value,
                                     work->element_bytes, work->element_count);
        default:
            return rondo_stream_add_graph(stream, work->graph);
    }
}
