// graph/record.c — a graph as one node of another capture, which holds a copy of the template.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>

#include "backend/cause.h"
#include "backend/check.h"
#include "graph/graph_share.h"
#include "graph/label/label.h"
#include "pool/arena_graph.h"

rondo_status rondo__graph_check_copyable(const rondo_graph *graph, const char *call,
                                         const char *cure) {
    const rondo__backend *backend = graph->device->backend;
    size_t count = 0;
    RETURN_IF_ERROR(backend->count_nodes(graph->recorded, &count));
    for (size_t i = 0; i < count; ++i) {
        rondo__node_info info;
        RETURN_IF_ERROR(backend->describe_node(graph->recorded, i, &info));
        if (info.kind == RONDO__NODE_CONDITIONAL) {
            return RONDO_FAIL_AS(call, UNSUPPORTED,
                                 "graph \"%s\" has a conditional node (number %zu), and those "
                                 "cannot be copied into another graph; %s",
                                 graph->label, i, cure);
        }
        if (info.is_memory) {
            return RONDO_FAIL_AS(
                call, UNSUPPORTED,
                "graph \"%s\" has a memory node (number %zu), as cudaMallocAsync and libraries "
                "record, and those cannot be copied into another graph; %s, "
                "or give the library a workspace (cublasSetWorkspace, behind each cublasSetStream)",
                graph->label, i, cure);
        }
    }
    return RONDO_STATUS_OK;
}

// A capture that the program began makes a graph whose replays Rondo does not see. Memory that no
// other graph shares needs no check.
static rondo_status check_foreign(const rondo_graph *graph) {
    for (const rondo__participant *participant = rondo__graph_get_participants(graph);
         participant != NULL; participant = participant->next) {
        bool is_own_memory = participant->type == &rondo__arena_graph_type &&
                             !atomic_load(&graph->arena->is_exposed);
        if (participant->type->prepare_replay != NULL && !is_own_memory) {
            return RONDO_FAIL_AS("rondo_stream_add_graph", UNSUPPORTED,
                                 "graph \"%s\" uses %s, which has to be asked before each "
                                 "replay, and this capture is not Rondo's; begin it with "
                                 "rondo_graph_capture_begin",
                                 graph->label, participant->type->name);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_recording(rondo_stream *stream) {
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    if (state == RONDO__CAPTURE_NONE) {
        return RONDO_FAIL_AS("rondo_stream_add_graph", STATE,
                             "stream %u does not record; rondo_graph_replay runs the graph",
                             (unsigned)stream->number);
    }
    if (state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(stream, "rondo_stream_add_graph");
    }
    return RONDO_STATUS_OK;
}

static rondo_status find_capture(const rondo_graph *graph, rondo_stream *stream,
                                 rondo__capture **out_capture, uint64_t *out_id) {
    static const char call[] = "rondo_stream_add_graph";
    RETURN_IF_ERROR(rondo__graph_check_template(graph, call));
    RETURN_IF_ERROR(rondo__check_same_device(graph->device, stream, call, "graph", graph->label));
    RETURN_IF_ERROR(check_recording(stream));
    return rondo__capture_find(stream, out_capture, out_id);
}

rondo_status rondo_stream_add_graph(rondo_stream *stream, rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo__capture *capture;
    uint64_t id;
    rondo_status found = find_capture(graph, stream, &capture, &id);
    if (found != RONDO_STATUS_OK) {
        return rondo__mark_missing(stream, "graph", found);
    }
    rondo__participant *added = NULL;
    rondo_status status = rondo__graph_check_copyable(graph, __func__, "record its work directly");
    if (status == RONDO_STATUS_OK && capture == NULL) {
        status = check_foreign(graph);
    } else if (status == RONDO_STATUS_OK && graph->participants != NULL) {
        status = rondo__graph_share_with(graph, capture, &added);
    }
    if (status == RONDO_STATUS_OK && capture != NULL) {
        status = rondo__participants_enter_child(graph->participants, capture, stream);
    }
    if (status == RONDO_STATUS_OK) {
        status = stream->device->backend->add_child(stream, graph->recorded);
    }
    if (status == RONDO_STATUS_OK && capture != NULL) {
        status = rondo__label_note_child(capture, id, stream, rondo__graph_get_participants(graph),
                                         graph->recorded);
    }
    if (status == RONDO_STATUS_OK && capture != NULL) {
        status = rondo__participants_leave_child(graph->participants, capture, stream);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__error_set_op(graph->label);
        if (added != NULL) {
            added->type->destroy(added);
        }
    } else if (added != NULL) {
        rondo__capture_add_participant(capture, added);
    }
    return rondo__mark_work(stream, "graph", status);
}
