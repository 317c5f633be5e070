// graph/node/step.c — a step that is recorded, or run at once when it cannot be.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/update.h"

#include "backend/check.h"
#include "base/read_options.h"
#include "capture/label_stack.h"
#include "device/stream_tag.h"
#include "graph/graph_object.h"

// Whether the step failed because it was being recorded, so that it may succeed outside. A step
// that met a failure of its own kind (a wrong argument, a lost device) would only fail again.
static bool was_broken_by_recording(const rondo_graph *graph, rondo_status step_status) {
    const rondo_capture_report *report = &graph->report;
    switch (report->cause) {
        case RONDO_CAUSE_NONE:
        case RONDO_CAUSE_ABORTED:
        case RONDO_CAUSE_OTHER_DEVICE:
            return false;
        case RONDO_CAUSE_WORK_REFUSED:
            // A step that this device cannot record may still run.
            return step_status == RONDO_STATUS_UNSUPPORTED &&
                   report->status == RONDO_STATUS_UNSUPPORTED;
        default:
            return step_status == report->status;
    }
}

static rondo_status run_step(rondo_stream *stream, rondo_step_function step, void *user_data) {
    uint64_t sequence = rondo_error_get_last()->sequence;
    return rondo__error_note_callback(step(stream, user_data), sequence, "rondo_graph_capture_step",
                                      "the step");
}

// The step has ended the capture by itself: what it holds now is not this call's.
static rondo_status fail_ended(rondo_graph *graph) {
    rondo__graph_clear(graph);
    return RONDO_FAIL_AS("rondo_graph_capture_step", STATE,
                         "the step ended or aborted the capture of graph \"%s\" by itself; it "
                         "only puts work on the stream, and returns a failure to give up",
                         graph->label);
}

rondo_status rondo_graph_capture_step(rondo_graph *graph, rondo_stream *stream,
                                      const rondo_step_options *options, rondo_step_function step,
                                      void *user_data, rondo_step_outcome *out_outcome) {
    RETURN_IF_ERROR(rondo__check_pointer(out_outcome, __func__, "out_outcome"));
    *out_outcome = RONDO_STEP_NOTHING;
    if (step == NULL) {
        return rondo__check_fail_null(__func__, "step");
    }
    rondo_step_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_step_options"));
    RETURN_IF_ERROR(rondo_graph_capture_begin(graph, stream, wanted.mode));
    graph->capture->is_step = true;
    size_t label_depth = rondo__label_get_depth(stream);
    rondo__stream_tag *tag = rondo__stream_tag_retain(stream);
    bool may_run = !wanted.capture_only;
    graph->is_in_step = true;
    rondo_status status = run_step(stream, step, user_data);
    graph->is_in_step = false;
    if (status == RONDO_STATUS_OK && graph->state != RONDO__GRAPH_RECORDING) {
        status = fail_ended(graph);
        may_run = false;
    } else if (status == RONDO_STATUS_OK) {
        status = rondo_graph_capture_end(graph);
        if (status == RONDO_STATUS_OK) {
            *out_outcome = RONDO_STEP_CAPTURED;
        }
    } else {
        rondo_graph_capture_abort(graph);
        may_run = may_run && was_broken_by_recording(graph, status);
    }
    bool has_stream = !rondo__stream_tag_is_finished(tag);
    rondo__stream_tag_release(tag);
    // A step that destroyed a stream of its own would do so again, perhaps with the same handle.
    bool has_destroyed = graph->report.cause == RONDO_CAUSE_STREAM_DESTROYED;
    if (status != RONDO_STATUS_OK && may_run && has_stream && !has_destroyed) {
        graph->is_in_step = true;
        status = run_step(stream, step, user_data);
        graph->is_in_step = false;
        if (status == RONDO_STATUS_OK) {
            *out_outcome = RONDO_STEP_RAN_EAGERLY;
        }
    }
    if (has_stream) {
        rondo__label_close_above(stream, label_depth);
    }
    return status;
}

// ---- a step that is recorded again ------------------------------------------------------------

// Records into a graph beside this one, so that a failure leaves this one as it is.
static rondo_status create_spare(rondo_graph *graph) {
    const rondo_graph_options options = {
        .struct_size = sizeof options,
        .keep = RONDO_KEEP_TEMPLATE_ONLY,
        .label = graph->label,
        .arena = graph->has_given_arena ? graph->arena : NULL,
        .pageable_sources =
            graph->snapshots_pageable ? RONDO_PAGEABLE_SNAPSHOT : RONDO_PAGEABLE_REFUSE,
        .check_addresses = graph->checks_addresses,
    };
    return rondo_graph_create(graph->device, &options, &graph->spare);
}

// Whether what the spare graph records lies in this one's arena: an update changes that.
static bool fits_spare(const rondo_graph *graph) {
    const rondo_graph *spare = graph->spare;
    return graph->has_given_arena ? spare->arena == graph->arena : !spare->has_given_arena;
}

rondo_status rondo_graph_recapture(rondo_graph *graph, rondo_stream *stream,
                                   const rondo_step_options *options, rondo_step_function step,
                                   void *user_data, rondo_update_report *out_report) {
    RETURN_IF_ERROR(rondo__check_pointer(graph, __func__, "graph"));
    RETURN_IF_ERROR(rondo__check_alive(graph->device, __func__));
    if (graph->state == RONDO__GRAPH_RECORDING) {
        return RONDO_FAIL(STATE, "graph \"%s\" records; end or abort that capture first",
                          graph->label);
    }
    rondo_step_options wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(options, &wanted, sizeof wanted, __func__, "rondo_step_options"));
    wanted.capture_only = true;
    if (graph->spare != NULL && !fits_spare(graph)) {
        rondo_graph_destroy(graph->spare);
        graph->spare = NULL;
    }
    if (graph->spare == NULL) {
        RETURN_IF_ERROR(create_spare(graph));
    }
    rondo_step_outcome outcome;
    graph->is_in_step = true;
    rondo_status status =
        rondo_graph_capture_step(graph->spare, stream, &wanted, step, user_data, &outcome);
    graph->is_in_step = false;
    graph->report = graph->spare->report;
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo_graph_update(graph, graph->spare, out_report);
    if (status != RONDO_STATUS_OK) {
        rondo__graph_clear(graph->spare);
    }
    return status;
}
