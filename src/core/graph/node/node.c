// graph/node/node.c — nodes by handle: asked for while a stream records, added, built by hand.
//
// A graph built by hand is a capture on a stream of its own, which the program never sees: before
// each node the stream is told what that depends on.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/node.h"

#include "backend/cause.h"
#include "backend/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "capture/label_stack.h"
#include "graph/graph_object.h"
#include "graph/node/put.h"
#include "graph/tracked.h"
#include "rondo/label.h"

// ---- handles ----------------------------------------------------------------------------------

// The graph's capture that the stream records into, outside of bodies.
static rondo_status find_capture(rondo_stream *stream, const char *call,
                                 rondo__capture **out_capture) {
    rondo__place place;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &place));
    *out_capture = place.capture;
    if (place.state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(stream, call);
    }
    if (place.state == RONDO__CAPTURE_NONE || place.capture == NULL) {
        return RONDO_FAIL_AS(call, STATE,
                             "stream %u records no graph of Rondo's; handles are for captures that "
                             "rondo_graph_capture_begin began",
                             (unsigned)stream->number);
    }
    if (place.id != place.capture->id) {
        return RONDO_FAIL_AS(call, UNSUPPORTED,
                             "stream %u records the body of a conditional node, whose nodes cannot "
                             "be patched",
                             (unsigned)stream->number);
    }
    return RONDO_STATUS_OK;
}

static rondo_status find_last(rondo_stream *stream, const char *call, rondo__capture *capture,
                              rondo_node *out_node) {
    rondo__node_handle last = 0;
    size_t count = 0;
    RETURN_IF_ERROR(stream->device->backend->get_frontier(stream, &last, 1, &count));
    if (count == 0) {
        return RONDO_FAIL_AS(call, STATE, "nothing was recorded on stream %u yet",
                             (unsigned)stream->number);
    }
    if (count > 1) {
        return RONDO_FAIL_AS(call, STATE,
                             "stream %u comes behind %zu nodes; ask right behind the call whose "
                             "node it is",
                             (unsigned)stream->number, count);
    }
    return rondo__tracked_add(capture, last, out_node);
}

rondo_status rondo_stream_get_last_node(rondo_stream *stream, rondo_node *out_node) {
    RETURN_IF_ERROR(rondo__check_pointer(out_node, __func__, "out_node"));
    *out_node = (rondo_node){0};
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    rondo__capture *capture;
    RETURN_IF_ERROR(find_capture(stream, __func__, &capture));
    return find_last(stream, __func__, capture, out_node);
}

rondo_status rondo_graph_get_node_index(rondo_graph *graph, rondo_node node, size_t *out_index) {
    RETURN_IF_ERROR(rondo__check_pointer(out_index, __func__, "out_index"));
    *out_index = 0;
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    size_t index = rondo__tracked_get_index(graph->tracked, node);
    if (index == SIZE_MAX) {
        return RONDO_FAIL(STATE, "the handle is none of what graph \"%s\" recorded last",
                          graph->label);
    }
    *out_index = index;
    return RONDO_STATUS_OK;
}

// ---- adding -----------------------------------------------------------------------------------

static rondo_status add_node(rondo_stream *stream, const char *call, const rondo_work *given,
                             rondo_node *out_node) {
    rondo_work work;
    rondo__capture *capture;
    rondo_status status = find_capture(stream, call, &capture);
    if (status == RONDO_STATUS_OK) {
        status = rondo__put_check(given, RONDO__PUT_ALL, call, &work);
    }
    if (status != RONDO_STATUS_OK) {
        return rondo__mark_missing(stream, "node", status);
    }
    RETURN_IF_ERROR(rondo__put_work(stream, &work));
    return out_node != NULL
               ? rondo__mark_missing(stream, "node", find_last(stream, call, capture, out_node))
               : RONDO_STATUS_OK;
}

rondo_status rondo_stream_add_node(rondo_stream *stream, const rondo_work *work,
                                   rondo_node *out_node) {
    if (out_node != NULL) {
        *out_node = (rondo_node){0};
    }
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    return add_node(stream, __func__, work, out_node);
}

// ---- graphs by hand ---------------------------------------------------------------------------

rondo_status rondo_graph_build_begin(rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, __func__, "graph"));
    RETURN_IF_ERROR(rondo__check_alive(graph->device, __func__));
    if (graph->device->backend->set_frontier == NULL) {
        return RONDO_FAIL(UNSUPPORTED, "graphs of %s cannot be built by hand", graph->device->name);
    }
    if (graph->builder == NULL) {
        RETURN_IF_ERROR(rondo_stream_create(graph->device, NULL, &graph->builder));
        graph->builder->is_lent = true;
    }
    RETURN_IF_ERROR(rondo_graph_capture_begin(graph, graph->builder, RONDO_CAPTURE_RELAXED));
    graph->capture->is_by_hand = true;
    return RONDO_STATUS_OK;
}

static rondo_status set_predecessors(rondo_graph *graph, const rondo_node *after, size_t count,
                                     const char *call) {
    rondo__node_handle few[16];
    rondo__node_handle *handles = few;
    if (count > sizeof few / sizeof few[0]) {
        handles = rondo__calloc(count, sizeof *handles);
        if (handles == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        if (!rondo__tracked_get_handle(graph->capture, after[i], &handles[i])) {
            status = RONDO_FAIL_AS(call, STATE, "after[%zu] is no node of graph \"%s\"", i,
                                   graph->label);
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = graph->device->backend->set_frontier(graph->builder, handles, count);
    }
    if (handles != few) {
        rondo__free(handles);
    }
    return status;
}

// OK when the graph is being built, and no function of a step or body makes this call.
static rondo_status check_built(rondo_graph *graph, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    RETURN_IF_ERROR(rondo__check_alive(graph->device, call));
    if (graph->state != RONDO__GRAPH_RECORDING || graph->stream != graph->builder) {
        return RONDO_FAIL_AS(call, STATE,
                             "graph \"%s\" is not being built; call rondo_graph_build_begin",
                             graph->label);
    }
    if (!graph->is_in_step) {
        return RONDO_STATUS_OK;
    }
    const rondo_status status = RONDO_FAIL_AS(
        call, STATE,
        "the function of a step or body adds to graph \"%s\", which records it; put the work on "
        "the stream that the function is given",
        graph->label);
    return rondo__mark_missing(graph->builder, "node", status);
}

// Lets the next node come behind those.
static rondo_status stand_behind(rondo_graph *graph, const rondo_node *after, size_t after_count,
                                 const char *call) {
    rondo_status status =
        after_count > 0 ? rondo__check_pointer(after, call, "after") : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK) {
        if (rondo__capture_refuse_broken(graph->builder, call) != RONDO_STATUS_OK) {
            return RONDO_FAIL_AS(call, STATE,
                                 "an earlier failure broke graph \"%s\"; rondo_graph_capture_end "
                                 "says which, and the graph can be built again",
                                 graph->label);
        }
        status = set_predecessors(graph, after, after_count, call);
    }
    return status == RONDO_STATUS_OK ? status : rondo__mark_missing(graph->builder, "node", status);
}

// Fails if a function of the program, which has just run, has ended or aborted the graph.
static rondo_status check_unended(rondo_graph *graph, const char *call) {
    return graph->state == RONDO__GRAPH_RECORDING && graph->stream == graph->builder
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(
                     call, STATE,
                     "a function that recorded into graph \"%s\" has ended or aborted it; "
                     "it only puts work on the stream",
                     graph->label);
}

// Every node gets a handle: the end of the graph comes behind each of them. `out_node` may be one
// of `after`, so it is written last.
rondo_status rondo_graph_add_node(rondo_graph *graph, const rondo_node *after, size_t after_count,
                                  const rondo_work *work, rondo_node *out_node) {
    rondo_node added = {0};
    rondo_status status = check_built(graph, __func__);
    if (status == RONDO_STATUS_OK) {
        status = stand_behind(graph, after, after_count, __func__);
    }
    if (status == RONDO_STATUS_OK) {
        graph->is_in_step = true;
        status = add_node(graph->builder, __func__, work, &added);
        graph->is_in_step = false;
    }
    if (out_node != NULL) {
        *out_node = added;
    }
    return status;
}

// ---- steps between nodes ----------------------------------------------------------------------

static rondo_status run_step(rondo_graph *graph, rondo_step_function step, void *user_data) {
    static const char call[] = "rondo_graph_add_step";
    const uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_stream *stream = graph->builder;
    const size_t label_depth = rondo__label_get_depth(stream);
    graph->is_in_step = true;
    rondo_status status = step(stream, user_data);
    graph->is_in_step = false;
    status = rondo__error_note_callback(status, sequence, call, "the step");
    RETURN_IF_ERROR(check_unended(graph, call));
    while (status == RONDO_STATUS_OK && rondo__label_get_depth(stream) > label_depth) {
        status = rondo_label_pop(stream);
    }
    rondo__label_close_above(stream, label_depth);
    return status == RONDO_STATUS_OK ? status : rondo__mark_missing(stream, "step", status);
}

// Handles of the nodes that the builder stands behind.
static rondo_status list_last(rondo_graph *graph, rondo_node *nodes, size_t capacity,
                              size_t *out_count) {
    const rondo__backend *backend = graph->device->backend;
    size_t count = 0;
    RETURN_IF_ERROR(backend->get_frontier(graph->builder, NULL, 0, &count));
    rondo__node_handle *handles = rondo__calloc(count + 1, sizeof *handles);
    if (handles == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = backend->get_frontier(graph->builder, handles, count, &count);
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        rondo_node node;
        status = rondo__tracked_add(graph->capture, handles[i], &node);
        if (i < capacity) {
            nodes[i] = node;
        }
    }
    rondo__free(handles);
    *out_count = status == RONDO_STATUS_OK ? count : 0;
    return status;
}

rondo_status rondo_graph_add_step(rondo_graph *graph, const rondo_node *after, size_t after_count,
                                  rondo_step_function step, void *user_data, rondo_node *nodes,
                                  size_t capacity, size_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(check_built(graph, __func__));
    rondo_status status =
        capacity > 0 ? rondo__check_pointer(nodes, __func__, "nodes") : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK && step == NULL) {
        status = rondo__check_fail_null(__func__, "step");
    }
    if (status != RONDO_STATUS_OK) {
        return rondo__mark_missing(graph->builder, "step", status);
    }
    RETURN_IF_ERROR(stand_behind(graph, after, after_count, __func__));
    RETURN_IF_ERROR(run_step(graph, step, user_data));
    status = list_last(graph, nodes, capacity, out_count);
    return status == RONDO_STATUS_OK ? status : rondo__mark_missing(graph->builder, "step", status);
}
