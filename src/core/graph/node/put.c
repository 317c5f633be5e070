// graph/node/put.c — work of any kind put on a stream.
// SPDX-License-Identifier: Apache-2.0
#include "graph/node/put.h"

#include "backend/backend.h"
#include "backend/check.h"
#include "base/read_options.h"

static rondo_status check_event(const rondo_work *work, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(work->event, call, "work->event"));
    return (work->event->flags & RONDO_EVENT_EXTERNAL) != 0
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID,
                               "only external events make nodes: create it with "
                               "RONDO_EVENT_EXTERNAL; others order streams");
}

static rondo_status check_bodies(const rondo_work *work, const char *call) {
    const uint32_t count = work->body_count;
    RETURN_IF_ERROR(rondo__check_pointer(work->bodies, call, "work->bodies"));
    switch (work->scope) {
        case RONDO_SCOPE_SWITCH:
            return RONDO_STATUS_OK;  // the number is checked where it is recorded
        case RONDO_SCOPE_IF:
        case RONDO_SCOPE_WHILE:
        case RONDO_SCOPE_IF_ELSE:
            break;
        default:
            return RONDO_FAIL_AS(call, INVALID, "%d is not a kind of scope", (int)work->scope);
    }
    const uint32_t wanted = work->scope == RONDO_SCOPE_IF_ELSE ? 2 : 1;
    return count == wanted
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "this conditional node has %u bodies, not %u",
                               (unsigned)wanted, (unsigned)count);
}

rondo_status rondo__put_check(const rondo_work *given, uint32_t kinds, const char *call,
                              rondo_work *out_work) {
    *out_work = (rondo_work){.struct_size = sizeof *out_work};
    RETURN_IF_ERROR(rondo__check_pointer(given, call, "work"));
    RETURN_IF_ERROR(rondo__read_options(given, out_work, sizeof *out_work, call, "rondo_work"));
    const rondo_work *work = out_work;
    if (work->kind < 0 || work->kind > RONDO_NODE_OTHER || (kinds >> work->kind & 1) == 0) {
        return RONDO_FAIL_AS(
            call, INVALID,
            "work of kind %d cannot be %s; kernels, host functions, copies, fills "
            "and graphs can%s",
            (int)work->kind, kinds == RONDO__PUT_ALL ? "added" : "put by steps",
            kinds == RONDO__PUT_ALL ? ", external events and conditional nodes" : "");
    }
    if (work->kind == RONDO_NODE_EVENT_WAIT || work->kind == RONDO_NODE_EVENT_RECORD) {
        return check_event(work, call);
    }
    if (work->kind == RONDO_NODE_CONDITIONAL) {
        return check_bodies(work, call);
    }
    if ((work->kind == RONDO_NODE_COPY && work->byte_count == 0) ||
        (work->kind == RONDO_NODE_FILL && work->element_count == 0)) {
        return RONDO_FAIL_AS(call, INVALID, "a copy or fill of nothing makes no node");
    }
    return RONDO_STATUS_OK;
}

static rondo_status put_conditional(rondo_stream *stream, const rondo_work *work) {
    switch (work->scope) {
        case RONDO_SCOPE_SWITCH:
            return rondo_control_switch(stream, work->predicate, work->bodies, work->body_count,
                                        work->user_data);
        case RONDO_SCOPE_WHILE:
            return rondo_control_while(stream, work->predicate, work->bodies[0], work->user_data);
        default:
            return rondo_control_if(stream, work->predicate, work->bodies[0],
                                    work->scope == RONDO_SCOPE_IF_ELSE ? work->bodies[1] : NULL,
                                    work->user_data);
    }
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
        case RONDO_NODE_EVENT_WAIT:
            return rondo_stream_wait_event(stream, work->event);
        case RONDO_NODE_EVENT_RECORD:
            return rondo_event_record(work->event, stream);
        case RONDO_NODE_CONDITIONAL:
            return put_conditional(stream, work);
        default:
            return rondo_stream_add_graph(stream, work->graph);
    }
}
