// graph/step.c — a step that is recorded, or run at once when it cannot be.
// SPDX-License-Identifier: Apache-2.0
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
            // What this device cannot record, it may still be able to run.
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
    rondo_status status = run_step(stream, step, user_data);
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
        status = run_step(stream, step, user_data);
        if (status == RONDO_STATUS_OK) {
            *out_outcome = RONDO_STEP_RAN_EAGERLY;
        }
    }
    if (has_stream) {
        rondo__label_close_above(stream, label_depth);
    }
    return status;
}
