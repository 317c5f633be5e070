// graph/graph_capture.c — a graph's capture: begun, ended, given up.
//
// An end has five stages: the work is finished (scopes, participants), the stream stops recording,
// the template is looked at, the executable is made, and the graph is ready. Where one of them
// fails the capture is rolled back, and the report says what broke it first.
// SPDX-License-Identifier: Apache-2.0

#include "graph/graph_capture.h"

#include <string.h>

#include "backend/check.h"
#include "base/clock.h"
#include "base/log/logging.h"
#include "base/thread.h"
#include "capture/label_stack.h"
#include "capture/marks.h"
#include "device/scope_list.h"
#include "device/stream_destroy.h"
#include "device/stream_tag.h"
#include "graph/capture_report.h"
#include "graph/executable.h"
#include "graph/label/label.h"
#include "graph/node/guard_nodes.h"
#include "graph/tracked.h"
#include "pool/arena_graph.h"
#include "pool/guard.h"

static const char end_call[] = "rondo_graph_capture_end";

// Takes the capture, which has ended, out of the list; its participants are the graph's, and hear
// whether a graph came of it.
static void close_capture(rondo_graph *graph, bool has_succeeded) {
    rondo_stream *kept = NULL;
    graph->participants = rondo__capture_close(graph->capture, has_succeeded, &kept);
    graph->capture = NULL;
    graph->stream = NULL;
    rondo__hook_leave(&graph->scope);
    graph->scope = (rondo__hook_scope){0};
    rondo__stream_destroy_kept(kept);
}

// ---- begin ------------------------------------------------------------------------------------

// Takes the stream out of recording and drops what was recorded. Even if the backend fails, the
// stream is free afterwards; the error record stays as it was.
static void end_unwanted(rondo_graph *graph, rondo_stream *stream) {
    rondo_error saved;
    rondo__error_save(&saved);
    (void)graph->device->backend->end_capture(stream, &graph->recorded);
    if (graph->capture != NULL) {
        close_capture(graph, false);
    }
    rondo__graph_clear(graph);
    rondo__error_restore(&saved);
}

static rondo_status refuse_second_capture(rondo_stream *stream) {
    rondo__capture_state state;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    return state == RONDO__CAPTURE_NONE
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_graph_capture_begin", STATE,
                               "stream %u records already; end that capture first",
                               (unsigned)stream->number);
}

rondo_status rondo__graph_check_mode(rondo_capture_mode mode, const char *call) {
    return mode >= RONDO_CAPTURE_THREAD_LOCAL && mode <= RONDO_CAPTURE_RELAXED
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "%d is not a capture mode", (int)mode);
}

static rondo_status check_begin(const rondo_graph *graph, rondo_stream *stream,
                                rondo_capture_mode mode) {
    static const char call[] = "rondo_graph_capture_begin";
    RETURN_IF_ERROR(rondo__check_pointer(graph, call, "graph"));
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    RETURN_IF_ERROR(rondo__graph_check_mode(mode, call));
    if (graph->state == RONDO__GRAPH_RECORDING) {
        return RONDO_FAIL_AS(call, STATE,
                             "graph \"%s\" records already; end or abort that capture first",
                             graph->label);
    }
    if (graph->state != RONDO__GRAPH_EMPTY) {
        return RONDO_FAIL_AS(call, STATE,
                             "graph \"%s\" holds a capture; reset it first, or use another",
                             graph->label);
    }
    RETURN_IF_ERROR(rondo__check_same_device(graph->device, stream, call, "graph", graph->label));
    if (stream->is_legacy) {
        return RONDO_FAIL_AS(call, INVALID,
                             "the legacy default stream cannot record; use a stream from "
                             "rondo_stream_create or a non-default one of your own");
    }
    return atomic_load_explicit(&stream->may_record, memory_order_relaxed)
               ? refuse_second_capture(stream)
               : RONDO_STATUS_OK;
}

static rondo_status start_recording(rondo_stream *stream, rondo_capture_mode mode,
                                    uint64_t *out_id) {
    rondo_status status = rondo__stream_tag_begin_capture(stream, mode, out_id);
    if (status == RONDO_STATUS_STATE && stream->is_wrapped) {
        // Perhaps a capture of the program's own: then say so. Asking first would cost every begin.
        rondo_error failure;
        rondo__error_save(&failure);
        RETURN_IF_ERROR(refuse_second_capture(stream));
        rondo__error_restore(&failure);
    }
    return status;
}

// Enters the capture, and the participants that it has from the beginning.
static rondo_status open_capture(rondo_graph *graph, rondo_stream *stream, uint64_t id,
                                 rondo_capture_mode mode) {
    RETURN_IF_ERROR(rondo__capture_open(graph->capture_memory, stream, id, mode, graph->label));
    graph->capture = graph->capture_memory;
    graph->capture->arena = graph->arena;
    graph->capture->snapshots_pageable = graph->snapshots_pageable;
    RETURN_IF_ERROR(rondo__label_join(graph->capture));
    RETURN_IF_ERROR(rondo__arena_join(graph->arena, graph->capture));
    return graph->checks_addresses ? rondo__guard_join(graph->capture) : RONDO_STATUS_OK;
}

rondo_status rondo_graph_capture_begin(rondo_graph *graph, rondo_stream *stream,
                                       rondo_capture_mode mode) {
    RETURN_IF_ERROR(check_begin(graph, stream, mode));
    if (graph->capture_memory == NULL) {
        graph->capture_memory = rondo__capture_create();
        if (graph->capture_memory == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    rondo__arena_settle(graph->arena);
    uint64_t id = 0;
    RETURN_IF_ERROR(start_recording(stream, mode, &id));
    rondo_status status = open_capture(graph, stream, id, mode);
    if (status != RONDO_STATUS_OK) {
        end_unwanted(graph, stream);
        return status;
    }
    if (graph->report.struct_size != 0) {
        memset(&graph->report, 0, sizeof graph->report);
    }
    atomic_store_explicit(&stream->may_record, true, memory_order_relaxed);
    graph->state = RONDO__GRAPH_RECORDING;
    graph->stream = stream;
    graph->mode = mode;
    graph->thread_number = rondo__thread_get_number();
    graph->begin_ns = rondo__clock_now_ns();
    if (rondo__hook_is_on(RONDO__HOOK_SPANS | RONDO__HOOK_RANGES)) {
        graph->scope = rondo__hook_begin_named(RONDO__SPAN_CAPTURE, "capture %s", graph->label);
    }
    return RONDO_STATUS_OK;
}

// ---- end --------------------------------------------------------------------------------------

// The driver lets a capture end on the thread that began it only, unless the mode is relaxed.
bool rondo__graph_may_end(const rondo_graph *graph) {
    return graph->mode == RONDO_CAPTURE_RELAXED ||
           graph->thread_number == rondo__thread_get_number();
}

// An end under way. What is known of the origin has to be asked before the backend ends the
// capture; what is known of the failure (`blame`) while the capture is there.
typedef struct ending {
    rondo_stream *origin;  // NULL: destroyed meanwhile
    uint64_t work_count;
    size_t label_depth;
    rondo_capture_cause fallback;  // the cause of a failure if no better one is known
    bool has_blame;                // otherwise nothing was wrong when it was looked at last
    rondo__blame blame;
} ending;

static rondo_status check_end(const rondo_graph *graph) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, end_call, "graph"));
    RETURN_IF_ERROR(rondo__check_process(graph->device, end_call));
    if (graph->state != RONDO__GRAPH_RECORDING) {
        return RONDO_FAIL_AS(end_call, STATE,
                             "graph \"%s\" does not record; call rondo_graph_capture_begin first",
                             graph->label);
    }
    if (!rondo__graph_may_end(graph)) {
        // Harmless: the thread that began can still end it.
        return RONDO_FAIL_AS(end_call, STATE,
                             "graph \"%s\": the thread that began the capture must end it, unless "
                             "the mode is relaxed",
                             graph->label);
    }
    return RONDO_STATUS_OK;
}

static void start_ending(const rondo_graph *graph, ending *it) {
    const rondo__capture *capture = graph->capture;
    it->origin = capture->origin;
    it->work_count = capture->origin != NULL ? capture->origin->marks.work_count : 0;
    it->label_depth = capture->label_depth;
    it->fallback = RONDO_CAUSE_OTHER;
    it->has_blame = false;
}

static void conclude(rondo_graph *graph, ending *it) {
    if (!it->has_blame) {
        rondo__blame_conclude(graph->capture, end_call, false, &it->blame);
        it->has_blame = true;
    }
}

// First stage: no scope may be open any more, and the participants record their last nodes. These
// are not the program's: to a report the last work is the work before them.
static rondo_status finish_work(rondo_graph *graph, ending *it) {
    rondo__capture *capture = graph->capture;
    rondo__scopes_refuse_open(capture);
    if (rondo__blame_is_broken(capture)) {
        conclude(graph, it);
        return RONDO_FAIL_AS(end_call, STATE,
                             "the capture was found broken, though its end went well");
    }
    if (graph->builder != NULL && graph->stream == graph->builder) {
        RETURN_IF_ERROR(rondo__tracked_join(capture, graph->builder));
    }
    if (it->origin != NULL && it->work_count == 0) {
        // The nodes were recorded on branches, or without Rondo. If the branches are not joined, no
        // call can ask for the nodes after the end.
        rondo__marks_take_exactly(it->origin);
    }
    if (it->origin == NULL || !rondo__capture_has_participants(capture)) {
        return rondo__capture_finish(capture);
    }
    rondo__stream_marks marks = it->origin->marks;
    rondo_status status = rondo__capture_finish(capture);
    it->origin->marks = marks;
    return status;
}

// Second: the stream records no more, whatever the first stage said, and the graph holds what was
// recorded. Where both fail, the end of the capture knows the cause.
static rondo_status stop_recording(rondo_graph *graph, const ending *it, rondo_status finished) {
    rondo_error failure;
    if (finished != RONDO_STATUS_OK) {
        rondo__error_save(&failure);
    }
    if (it->origin != NULL) {
        RETURN_IF_ERROR(graph->device->backend->end_capture(it->origin, &graph->recorded));
    }
    if (finished != RONDO_STATUS_OK) {
        rondo__error_restore(&failure);
    }
    return finished;
}

// Work that Rondo was asked for counts itself; other work, such as the program's own launches, has
// to be looked for.
static rondo_status warn_if_empty(rondo_graph *graph, const ending *it) {
    size_t node_count = 1;
    if (it->work_count == 0) {
        RETURN_IF_ERROR(graph->device->backend->count_nodes(graph->recorded, &node_count));
    }
    if (node_count == 0) {
        RONDO_LOG_WARN_F(
            "graph \"%s\" is empty: nothing was put on stream %u between begin and "
            "end. Did the work go to another stream or device?",
            graph->label, (unsigned)it->origin->number);
    }
    return RONDO_STATUS_OK;
}

// Third: what the graph wants to know of its nodes.
static rondo_status look_at_template(rondo_graph *graph, const ending *it) {
    graph->stats.capture_ns = rondo__clock_now_ns() - graph->begin_ns;
    graph->has_kinds = false;
    graph->participants = graph->capture->participants;
    RETURN_IF_ERROR(warn_if_empty(graph, it));
    // Without a template only a profile can ask for a node's label.
    rondo__tracked *tracked = rondo__tracked_find(graph->participants);
    if (tracked != NULL) {
        RETURN_IF_ERROR(rondo__tracked_resolve(tracked, graph->recorded));
    }
    if (graph->keeps_template || tracked != NULL || rondo__hook_is_on(RONDO__HOOK_LABELS)) {
        RETURN_IF_ERROR(rondo__label_resolve(graph->capture, graph->recorded));
    }
    return graph->checks_addresses ? rondo__graph_guard_nodes(graph) : RONDO_STATUS_OK;
}

// Fourth: the executable, now or on demand.
static rondo_status make_executable(rondo_graph *graph, ending *it) {
    if (graph->defers_instantiation) {
        return RONDO_STATUS_OK;
    }
    it->fallback = RONDO_CAUSE_INSTANTIATION;
    RETURN_IF_ERROR(rondo__graph_instantiate(graph));
    // Nodes are patched through their template.
    if (!graph->keeps_template && rondo__tracked_find(graph->participants) == NULL) {
        graph->device->backend->destroy_template(graph->recorded);
        graph->recorded = NULL;
    }
    return RONDO_STATUS_OK;
}

// Fifth: the graph is ready.
static rondo_status accept(rondo_graph *graph, const ending *it) {
    close_capture(graph, true);
    graph->tracked = rondo__tracked_detach(&graph->participants);
    atomic_store_explicit(&it->origin->may_record, false, memory_order_relaxed);
    graph->state = graph->defers_instantiation ? RONDO__GRAPH_RECORDED : RONDO__GRAPH_READY;
    return RONDO_STATUS_OK;
}

// Or it is empty, and the report is written.
static rondo_status roll_back(rondo_graph *graph, ending *it) {
    conclude(graph, it);
    rondo_status status = rondo__graph_report_failure(graph, &it->blame, it->fallback);
    if (it->origin != NULL) {
        rondo__label_close_above(it->origin, it->label_depth);
    }
    close_capture(graph, false);
    rondo__graph_clear(graph);
    return status;
}

rondo_status rondo_graph_capture_end(rondo_graph *graph) {
    RETURN_IF_ERROR(check_end(graph));
    ending it;
    start_ending(graph, &it);
    rondo_status status = finish_work(graph, &it);
    status = stop_recording(graph, &it, status);
    if (status == RONDO_STATUS_OK) {
        status = look_at_template(graph, &it);
    }
    if (status == RONDO_STATUS_OK) {
        status = make_executable(graph, &it);
    }
    return status == RONDO_STATUS_OK ? accept(graph, &it) : roll_back(graph, &it);
}

rondo_status rondo__graph_capture_look(rondo_graph *graph, rondo__graph_look look,
                                       void *user_data) {
    RETURN_IF_ERROR(check_end(graph));
    ending it;
    start_ending(graph, &it);
    rondo_status status = finish_work(graph, &it);
    status = stop_recording(graph, &it, status);
    if (status == RONDO_STATUS_OK) {
        status = look_at_template(graph, &it);
    }
    if (status != RONDO_STATUS_OK) {
        return roll_back(graph, &it);
    }
    status = look(user_data, graph->recorded, graph->participants);
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__label_close_above(it.origin, it.label_depth);
    atomic_store_explicit(&it.origin->may_record, false, memory_order_relaxed);
    close_capture(graph, false);
    rondo__graph_clear(graph);
    rondo__error_restore(&saved);
    return status;
}

// ---- abort ------------------------------------------------------------------------------------

void rondo_graph_capture_abort(rondo_graph *graph) {
    if (graph == NULL || graph->state != RONDO__GRAPH_RECORDING ||
        atomic_load(&graph->device->is_forked)) {
        return;
    }
    if (rondo__graph_may_end(graph)) {
        rondo__graph_give_up(graph);
    } else {
        rondo__blame_given_up(graph->capture);
    }
}

void rondo__graph_give_up(rondo_graph *graph) {
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_stream *stream = graph->stream;
    bool has_origin = graph->capture->origin != NULL;
    size_t label_depth = graph->capture->label_depth;
    rondo__blame blame;
    rondo__scopes_note_place(graph->capture, "rondo_graph_capture_abort");
    rondo__blame_conclude(graph->capture, "rondo_graph_capture_abort", true, &blame);
    rondo__scopes_roll_back(graph->capture);  // what fails from now on is not the program's
    if (has_origin) {
        // Whatever the backend says of that, the stream is free afterwards.
        (void)graph->device->backend->end_capture(stream, &graph->recorded);
        rondo__label_close_above(stream, label_depth);
    }
    close_capture(graph, false);
    rondo__graph_report_abort(graph, &blame);
    rondo__graph_clear(graph);
    rondo__error_restore(&saved);
}
