// executor/run/run.c — see run.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/run.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/float_scope.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/ranks.h"
#include "executor/devices/streamed_weights.h"
#include "executor/devices/transfers.h"
#include "executor/run/bypass.h"
#include "executor/run/deferred_body.h"
#include "executor/run/input_lanes.h"
#include "executor/run/late_values.h"
#include "executor/run/probe.h"
#include "executor/run/run_counted.h"
#include "executor/run/self_check.h"
#include "executor/run/verbose.h"
#include "executor/state/governed.h"
#include "executor/state/limits.h"
#include "executor/state/op_span.h"
#include "graph/graph_object.h"
#include "graph/line.h"
#include "rondo/inspect.h"
#include "rondo/label.h"
#include "rondo/report.h"

// Names the node, and the first tensor that it makes.
static void blame_launch(const rondo__plan *plan, const rondo__node *node) {
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0) {
            rondo__error_prefix("making \"%.40s\"", plan->program->values[node->outputs[i]].name);
            break;
        }
    }
    rondo__node_blame(node);
}

static rondo_status launch_item(rondo_stream *stream, rondo__plan *plan, size_t i) {
    rondo__item *item = &plan->items[i];
    rondo_status status =
        item->kernel->launch(item->kernel, stream, item->inputs, item->outputs, item->workspace);
    if (status != RONDO_STATUS_OK) {
        blame_launch(plan, &plan->program->nodes[item->node]);
    }
    return status;
}

// Launches item `i` and, where it is one of the processor, those of the processor right behind it,
// but none from `end` on.
static rondo_status launch_group(rondo_stream *stream, rondo__plan *plan, size_t i, size_t end,
                                 size_t *out_count) {
    *out_count = rondo__host_ops_count(plan, i, end);
    if (*out_count == 0) {
        *out_count = 1;
        return launch_item(stream, plan, i);
    }
    const rondo_status status = rondo__host_ops_launch(stream, &plan->items[i], *out_count);
    if (status != RONDO_STATUS_OK) {
        blame_launch(plan, rondo__plan_get_node(plan, i));
    }
    return status;
}

// The same, with the weights that are brought for it.
static rondo_status launch_ready(const rondo__unit *unit, rondo__plan *plan,
                                 const rondo__step *step, size_t i, size_t *out_count) {
    rondo_stream *stream = rondo__step_get_stream(unit, plan, step);
    RETURN_IF_ERROR(rondo__streamed_enter(unit, plan, i));
    RETURN_IF_ERROR(rondo__ranks_enter(unit, plan, i, &stream));
    RETURN_IF_ERROR(launch_group(stream, plan, i, step->first_item + step->item_count, out_count));
    RETURN_IF_ERROR(rondo__ranks_leave(unit, plan, i));
    return rondo__streamed_leave(unit, plan, step, i);
}

static bool may_run_here(const rondo__plan *plan, const rondo__step *step) {
    bool may = true;
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        may = may && plan->items[i].kernel->may_run_here;
    }
    return may;
}

// Whether this thread, which waits for the run anyway, can do the ops of the step itself: on the
// host, behind all that is on the stream. To wake the stream's thread and to be woken takes 5 us
// each, and more on a virtual machine; a turn of a loop does so for each of its segments.
static bool can_compute_here(const rondo__unit *unit, const rondo__plan *plan,
                             const rondo__step *step) {
    bool is_idle = false;
    bool can = plan->run.is_fed && rondo_device_is_host(unit->executor->device) &&
               !rondo__hook_is_on(RONDO__HOOK_WORK) && may_run_here(plan, step);
    for (size_t i = step->first_item; i < step->first_item + step->item_count && can; ++i) {
        can = plan->items[i].kernel->run != NULL;
    }
    return can && rondo_stream_query(unit->stream, &is_idle) == RONDO_STATUS_OK && is_idle;
}

static rondo_status compute_items(rondo__unit *unit, rondo__plan *plan, const rondo__step *step) {
    const uint64_t start_ns = rondo__clock_now_ns();
    const rondo__float_scope scope = rondo__float_enter();
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = step->first_item;
         i < step->first_item + step->item_count && status == RONDO_STATUS_OK; ++i) {
        const rondo__item *item = &plan->items[i];
        const rondo__hook_scope span =
            rondo__op_span_enter(&plan->program->nodes[item->node].op, NULL, i != step->first_item);
        status = item->kernel->run(item->kernel, item->inputs, item->outputs, item->workspace);
        rondo__hook_leave(&span);
        if (status != RONDO_STATUS_OK) {
            blame_launch(plan, &plan->program->nodes[item->node]);
        }
    }
    rondo__float_leave(&scope);
    unit->executor->work.here_ns += rondo__clock_now_ns() - start_ns;
    return status;
}

static rondo_status launch_items(rondo__unit *unit, rondo__plan *plan, const rondo__step *step) {
    rondo_stream *stream = rondo__step_get_stream(unit, plan, step);
    const size_t end = step->first_item + step->item_count;
    size_t count;
    RETURN_IF_ERROR(rondo__streamed_begin(unit, plan, step));
    rondo__ranks_start(plan, step);
    for (size_t i = step->first_item; i < end; i += count) {
        const rondo__hook_scope scope =
            rondo__op_span_enter(rondo__plan_get_op(plan, i), stream, i != step->first_item);
        const rondo_status status = launch_ready(unit, plan, step, i, &count);
        rondo__hook_leave(&scope);
        RETURN_IF_ERROR(status);
    }
    return rondo__ranks_join(unit, plan);
}

// Ops of the processor, by this thread and before anything is on a stream: a host function there
// starts some 25 us late on an H200.
static rondo_status run_ahead(rondo_executor *executor, const rondo__plan *plan,
                              const rondo__step *step) {
    rondo_status status = RONDO_STATUS_OK;
    const uint64_t start_ns = rondo__clock_now_ns();
    for (size_t i = 0; i < step->item_count && status == RONDO_STATUS_OK; ++i) {
        const rondo__item *item = &plan->items[step->first_item + i];
        const rondo__hook_scope scope =
            rondo__op_span_enter(&plan->program->nodes[item->node].op, NULL, i > 0);
        status = rondo__host_ops_run(item);
        rondo__hook_leave(&scope);
    }
    executor->work.here_ns += rondo__clock_now_ns() - start_ns;
    return status;
}

// An op may break the capture and not say so.
static rondo_status check_recording(rondo_stream *stream, const rondo__plan *plan, size_t i) {
    bool is_recording = false;
    RETURN_IF_ERROR(rondo_stream_is_recording(stream, &is_recording));
    if (!is_recording) {
        (void)RONDO_FAIL(STATE, "it broke the capture");
        rondo__node_blame(rondo__plan_get_node(plan, i));
        return RONDO_STATUS_STATE;
    }
    return RONDO_STATUS_OK;
}

// Names the nodes of one op, in dumps, reports and profiles.
static void format_label(const rondo__plan *plan, size_t i, char label[RONDO__OP_TITLE_BYTES]) {
    rondo__op_format_title(rondo__plan_get_op(plan, i), label);
}

static rondo_status open_label(rondo_stream *stream, const rondo__plan *plan, size_t i) {
    char label[RONDO__OP_TITLE_BYTES];
    format_label(plan, i, label);
    return rondo_label_push(stream, label);
}

// The watchdog of the executor, where it is of this stream's device; NULL: none.
static rondo_watchdog *get_watchdog(const rondo__unit *unit, const rondo_stream *stream) {
    return stream->device == unit->executor->device ? unit->executor->options.watchdog : NULL;
}

// A replay that stalls is told of with the op that it has come to.
static rondo_status mark_op(const rondo__unit *unit, rondo_graph *graph, rondo_stream *stream) {
    rondo_watchdog *watchdog = get_watchdog(unit, stream);
    return watchdog != NULL ? rondo_watchdog_mark(watchdog, graph, stream) : RONDO_STATUS_OK;
}

static rondo_status record_items(rondo__unit *unit, rondo__plan *plan, const rondo__step *step,
                                 rondo_graph *graph) {
    rondo_stream *stream = rondo__step_get_stream(unit, plan, step);
    const size_t end = step->first_item + step->item_count;
    size_t count = 1;
    RETURN_IF_ERROR(rondo__streamed_begin(unit, plan, step));
    rondo__ranks_start(plan, step);
    for (size_t i = step->first_item; i < end; i += count) {
        rondo_status status = rondo__probe_refuse_frozen(plan, i);
        if (status == RONDO_STATUS_OK) {
            status = open_label(stream, plan, i);
        }
        if (status == RONDO_STATUS_OK) {
            status = mark_op(unit, graph, stream);
        }
        if (status == RONDO_STATUS_OK) {
            status = launch_ready(unit, plan, step, i, &count);
        }
        if (status == RONDO_STATUS_OK && plan->run.is_probed) {
            status = check_recording(stream, plan, i);
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo_label_pop(stream);
        }
        if (status != RONDO_STATUS_OK) {
            plan->run.failed_item = i;
            return status;
        }
        if (rondo__self_check_is_expected(unit->executor)) {
            for (size_t k = 0; k < count; ++k) {
                rondo__self_check_mark(stream, &plan->items[i + k]);
            }
        }
    }
    return rondo__ranks_join(unit, plan);
}

// Whether the step's graph can be made node by node, without a capture: each kernel shows what it
// launches, and nothing else puts work between.
static bool may_line_up(const rondo__unit *unit, const rondo__plan *plan, const rondo__step *step) {
    bool may = plan->streamed == NULL && plan->ranks == NULL && !plan->run.is_probed &&
               get_watchdog(unit, rondo__step_get_stream(unit, plan, step)) == NULL;
    for (size_t i = step->first_item; i < step->first_item + step->item_count && may; ++i) {
        may = plan->items[i].kernel->visit_nodes != NULL && !plan->items[i].is_frozen;
    }
    return may;
}

static rondo_status append_node(void *line, const rondo__line_node *node) {
    return rondo__graph_line_append(line, node);
}

static rondo_status append_item(rondo__graph_line *line, const rondo_stream *stream,
                                const rondo__plan *plan, size_t i) {
    rondo__item *item = &plan->items[i];
    char label[RONDO__OP_TITLE_BYTES];
    if (line->labels != NULL) {
        format_label(plan, i, label);
        RETURN_IF_ERROR(rondo__graph_line_label(line, stream, label));
    }
    const rondo_status status = item->kernel->visit_nodes(item->kernel, item->inputs, item->outputs,
                                                          item->workspace, append_node, line);
    item->last_node = (rondo_node){.number = line->stats.node_count};
    if (status != RONDO_STATUS_OK) {
        blame_launch(plan, &plan->program->nodes[item->node]);
    }
    return status;
}

// Makes the graph from what the kernels show. UNSUPPORTED: only a capture can, and the graph is
// empty.
static rondo_status line_up(const rondo__unit *unit, rondo__plan *plan, const rondo__step *step,
                            rondo_graph *graph) {
    rondo_stream *stream = rondo__step_get_stream(unit, plan, step);
    rondo__graph_line line;
    if (!may_line_up(unit, plan, step)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__graph_line_begin(graph, stream, &line));
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        const rondo_status status = append_item(&line, stream, plan, i);
        if (status != RONDO_STATUS_OK) {
            rondo__graph_line_abandon(&line);
            plan->run.failed_item = status == RONDO_STATUS_UNSUPPORTED ? SIZE_MAX : i;
            return status;
        }
    }
    RETURN_IF_ERROR(rondo__graph_line_end(&line));
    if (rondo__self_check_is_expected(unit->executor)) {
        rondo__self_check_mark_line(graph, &plan->items[step->first_item], step->item_count);
    }
    return RONDO_STATUS_OK;
}

static rondo_status record_step(rondo__unit *unit, rondo__plan *plan, const rondo__step *step,
                                rondo_graph *graph) {
    RETURN_IF_ERROR(rondo_graph_capture_begin(graph, rondo__step_get_stream(unit, plan, step),
                                              RONDO_CAPTURE_THREAD_LOCAL));
    const rondo_status status = record_items(unit, plan, step, graph);
    if (status == RONDO_STATUS_OK) {
        return rondo_graph_capture_end(graph);
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_graph_capture_abort(graph);
    rondo__error_restore(&saved);
    return status;
}

// Keeps in a few words why a capture failed: what broke it, or what the op said.
static void note_failure(rondo__plan *plan, const rondo_graph *graph) {
    rondo_capture_report report = {.struct_size = sizeof report};
    const bool is_known =
        graph != NULL && rondo_graph_get_report(graph, &report) == RONDO_STATUS_OK &&
        report.cause >= RONDO_CAUSE_SYNCHRONIZE && report.cause <= RONDO_CAUSE_OTHER_DEVICE;
    (void)snprintf(plan->run.failure, sizeof plan->run.failure, "%.199s",
                   is_known ? report.what : rondo_error_get_last()->message);
}

// Records the segment. On failure the step is as before, and the stream usable.
static rondo_status capture_step(rondo__unit *unit, rondo__plan *plan, rondo__step *step) {
    rondo_graph_options options = {.struct_size = sizeof options};
    char label[48];
    (void)snprintf(label, sizeof label, "ops %zu to %zu", step->first_item,
                   step->first_item + step->item_count - 1);
    options.label = label;
    options.keep = unit->executor->options.keep_templates ||
                           rondo__self_check_is_expected(unit->executor) ||
                           rondo__verbose_wants_nodes(unit->executor) ||
                           rondo__probe_may_freeze(unit, plan, step)
                       ? RONDO_KEEP_TEMPLATE
                       : RONDO_KEEP_EXECUTABLE;
    rondo_graph *graph = NULL;
    rondo_stream *stream = rondo__step_get_stream(unit, plan, step);
    rondo_error before;
    rondo__error_save(&before);
    plan->run.failed_item = SIZE_MAX;
    rondo_status status = rondo_graph_create(rondo_stream_get_device(stream), &options, &graph);
    if (status != RONDO_STATUS_OK) {
        note_failure(plan, NULL);
        return status;
    }
    status = line_up(unit, plan, step, graph);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        rondo__error_restore(&before);
        status = record_step(unit, plan, step, graph);
    }
    if (status == RONDO_STATUS_OK) {
        step->run.graph = graph;
        step->run.captured_run = plan->run.count;
        step->run.may_run_here = may_run_here(plan, step);
    } else {
        rondo_error saved;
        rondo__error_save(&saved);
        note_failure(plan, graph);
        rondo_graph_destroy(graph);
        rondo__error_restore(&saved);
    }
    return status;
}

// Adds new graphs to what the plan takes; `taken` is what the thread held before.
static void count_graphs(rondo__unit *unit, rondo__plan *plan, size_t first, size_t last,
                         int64_t taken) {
    const int64_t held = rondo__memory_get_thread_bytes() - taken;
    plan->bytes += held > 0 ? (uint64_t)held : 0;
    for (size_t s = first; s <= last; ++s) {
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        if (plan->steps[s].run.graph != NULL &&
            rondo_graph_get_stats(plan->steps[s].run.graph, &stats) == RONDO_STATUS_OK) {
            plan->bytes += stats.device_bytes;
        }
    }
    rondo__lru_map_set_bytes(&unit->plans, plan->entry, plan->bytes);
}

// Captures a segment, or all but the ops in it that cannot be. In AUTO mode memory that is not to
// be had is no failure: the segment is launched op by op until a later try.
static rondo_status capture_segment(rondo__unit *unit, rondo__plan *plan, size_t *in_out_index) {
    rondo__step *step = &plan->steps[*in_out_index];
    const bool is_strict = unit->executor->graphs == RONDO_GRAPHS_ON;
    rondo_status status = capture_step(unit, plan, step);
    if (status == RONDO_STATUS_OK || status == RONDO_STATUS_LOST ||
        (is_strict && !rondo__probe_is_wanted(plan, step))) {
        return status;
    }
    if (!rondo__probe_is_passing(plan, step->run.failure_count, status)) {
        status = rondo__probe_segment(unit, plan, capture_step, in_out_index);
        step = &plan->steps[*in_out_index];
    }
    if (!is_strict && rondo__probe_is_passing(plan, step->run.failure_count, status)) {
        rondo__probe_postpone(plan, step, rondo_error_get_last()->message);
        status = RONDO_STATUS_OK;
    }
    return status;
}

// The same, counted among what the plan takes.
static rondo_status capture_counted(rondo__unit *unit, rondo__plan *plan, size_t *in_out_index) {
    const size_t first = *in_out_index;
    const int64_t taken = rondo__memory_get_thread_bytes();
    RETURN_IF_ERROR(capture_segment(unit, plan, in_out_index));
    count_graphs(unit, plan, first, *in_out_index, taken);
    return RONDO_STATUS_OK;
}

// Captures what can be and has no graph yet.
static rondo_status capture_plan(rondo__unit *unit, rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        if (step->kind != RONDO__STEP_SEGMENT || step->is_ahead || step->run.graph != NULL ||
            plan->run.count < step->run.retry_run) {
            continue;
        }
        const size_t first = s;
        RETURN_IF_ERROR(capture_counted(unit, plan, &s));
        rondo__verbose_tell_graphs(unit, plan, first, s);
    }
    rondo__verbose_tell_bypassed(unit, plan);
    return RONDO_STATUS_OK;
}

static rondo_status capture_timed(rondo__unit *unit, rondo__plan *plan) {
    const bool is_timed = unit->executor->work.choice == RONDO__CHOICE_CAPTURE;
    const uint64_t start_ns = is_timed ? rondo__clock_now_ns() : 0;
    RETURN_IF_ERROR(capture_plan(unit, plan));
    if (is_timed) {
        rondo__governed_note_capture(unit, plan, rondo__clock_now_ns() - start_ns);
    }
    return RONDO_STATUS_OK;
}

// Looks in later runs, ever more rarely, whether a graph froze what changes.
static rondo_status check_frozen(rondo__unit *unit, rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        bool is_frozen = false;
        const uint64_t passed = plan->run.count - step->run.captured_run;
        const bool is_due = passed > 0 && (passed & (passed - 1)) == 0;
        if (step->run.graph == NULL || !is_due || !rondo__probe_may_freeze(unit, plan, step)) {
            continue;
        }
        RETURN_IF_ERROR(rondo__probe_frozen(unit, plan, capture_step, step, &is_frozen));
        if (is_frozen) {
            RETURN_IF_ERROR(capture_counted(unit, plan, &s));
        }
    }
    return RONDO_STATUS_OK;
}

// Inputs stay: they were fed, or a run is repeated.
static void drop_dynamic(rondo__plan *plan) {
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        if (plan->program->values[v].producer >= 0) {
            rondo_tensor_deinit(&plan->run.dynamic[v]);
        }
    }
    rondo__late_values_drop(plan);
}

// Brings the graphs to the device now, or the first replay would (85 us for 180 nodes on an H200).
static rondo_status upload_plan(rondo__unit *unit, rondo__plan *plan) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        if (plan->steps[s].run.graph != NULL) {
            RETURN_IF_ERROR(rondo_graph_upload(
                plan->steps[s].run.graph, rondo__step_get_stream(unit, plan, &plan->steps[s])));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__plan_capture_ahead(rondo__unit *unit, rondo__plan *plan) {
    // Not for a unit's only plan: its second run may never come. Not for a body, whose shapes may
    // change with each turn. Not where a plan draws: its generators may be at work in this run.
    if (plan->run.count > 0 || unit->executor->graphs == RONDO_GRAPHS_OFF ||
        unit->executor->graphs == RONDO_GRAPHS_MEASURED || unit->depth > 0 ||
        plan->random_count > 0 || unit->plans.stats.entry_count < 2) {
        return RONDO_STATUS_OK;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_status status = capture_plan(unit, plan);
    if (status == RONDO_STATUS_OK) {
        status = upload_plan(unit, plan);
    }
    if (status == RONDO_STATUS_LOST) {
        return status;
    }
    rondo__error_restore(&saved);  // what failed is tried, and reported, by the second run
    return RONDO_STATUS_OK;
}

// Before a step is run both ways. A plan that runs for the first time has no graphs yet, and
// captures a segment only behind an eager run of it. The capture may put several steps in its
// place.
static rondo_status prepare_check(rondo__unit *unit, rondo__plan *plan, size_t index) {
    const rondo__step *step = &plan->steps[index];
    if (step->kind != RONDO__STEP_SEGMENT || step->is_ahead || step->run.graph != NULL ||
        plan->run.count > 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__self_check_warm_up(unit, plan, step, launch_items));
    return capture_counted(unit, plan, &index);
}

// Ops of a step; copies between the sides are none.
static size_t count_ops(const rondo__plan *plan, rondo__step *step) {
    const rondo__transfer_counts *counts = rondo__transfers_count_step(plan, step);
    return step->kind == RONDO__STEP_COUNT ? 0
           : !rondo__step_has_kernels(step)
               ? 1
               : step->item_count - (size_t)rondo__transfers_get_total(counts);
}

// Counts what the step copies. For what is copied before a bypass or a count the run waits there.
static void note_crossings(rondo_executor *executor, const rondo__plan *plan, rondo__step *step) {
    rondo__transfers_log *log = &executor->resources.crossings;
    const rondo__brought brought = rondo__streamed_measure(plan, step);
    log->brought.count += brought.count;
    log->brought.bytes += brought.bytes;
    if (rondo__step_has_kernels(step)) {
        const rondo__transfer_counts *counts = rondo__transfers_count_step(plan, step);
        rondo__transfers_add(&log->all, counts);
        rondo__transfers_add(&log->pending, counts);
    } else {
        rondo__transfers_add(&log->stopped, &log->pending);
        log->pending = (rondo__transfer_counts){0};
    }
}

// Replays the step's graph; on the host here and now, with the workers' help.
static rondo_status replay_step(rondo__unit *unit, const rondo__plan *plan,
                                const rondo__step *step) {
    rondo_stream *stream = rondo__step_get_stream(unit, plan, step);
    rondo_watchdog *watchdog = get_watchdog(unit, stream);
    if (watchdog != NULL) {
        return rondo_watchdog_replay(watchdog, step->run.graph, stream);
    }
    if (!plan->run.is_fed || !step->run.may_run_here) {
        return rondo_graph_replay(step->run.graph, stream);
    }
    // Where this is the whole run, the caller has the time: a look at the clock takes 20 to 30 ns.
    const bool is_alone = unit->depth == 0 && plan->step_count == 1;
    const uint64_t start_ns = is_alone ? 0 : rondo__clock_now_ns();
    bool ran_here;
    const rondo_status status = rondo__graph_replay_here(step->run.graph, stream, &ran_here);
    if (is_alone) {
        unit->executor->work.is_all_here = ran_here;
    } else {
        unit->executor->work.here_ns += ran_here ? rondo__clock_now_ns() - start_ns : 0;
    }
    return status;
}

typedef struct run_mode {
    bool use_graphs;
    bool is_checked;
    bool is_logged;      // each op
    size_t graph_count;  // replayed so far
} run_mode;

// Runs one step, as a graph where it has one and may.
static rondo_status run_step(rondo__unit *unit, rondo__plan *plan, rondo__step *step,
                             rondo__body_runner run_body, run_mode *mode) {
    rondo_executor *executor = unit->executor;
    const size_t op_count = count_ops(plan, step);
    const bool is_replayed = mode->use_graphs && step->run.graph != NULL;
    rondo_status status = RONDO_STATUS_OK;
    executor->work.ran_count += op_count;
    note_crossings(executor, plan, step);
    if (step->kind == RONDO__STEP_COUNT) {
        status = rondo__counted_run(unit, plan, step);
    } else if (rondo__deferred_stays_on_device(plan, step)) {
        status = rondo__deferred_run_on_device(unit, plan, step, run_body);
    } else if (!rondo__step_has_kernels(step)) {
        status = rondo__bypass_run(unit, plan, step, run_body);
    } else if (step->is_ahead && plan->run.is_fed) {
        status = run_ahead(unit->executor, plan, step);
    } else if (mode->is_checked && step->run.graph != NULL) {
        status = rondo__self_check_segment(unit, plan, step, launch_items);
        executor->work.replayed_count += step->run.graph != NULL ? op_count : 0;
        mode->graph_count += step->run.graph != NULL ? 1 : 0;
    } else if (is_replayed) {
        status = replay_step(unit, plan, step);
        executor->work.replayed_count += op_count;
        mode->graph_count += 1;
    } else if (can_compute_here(unit, plan, step)) {
        status = compute_items(unit, plan, step);
    } else {
        status = launch_items(unit, plan, step);
    }
    if (status == RONDO_STATUS_OK && mode->is_logged) {
        rondo__verbose_log_step(unit, plan, step, is_replayed);
    }
    return status;
}

static rondo_status run_all(rondo__unit *unit, rondo__plan *plan, rondo__body_runner run_body,
                            run_mode *mode) {
    RETURN_IF_ERROR(rondo__other_gpus_begin(unit, plan));
    for (size_t s = 0; s < plan->step_count; ++s) {
        RETURN_IF_ERROR(rondo__executor_check_cancelled(unit->executor));
        if (mode->is_checked) {
            RETURN_IF_ERROR(prepare_check(unit, plan, s));
        }
        RETURN_IF_ERROR(rondo__other_gpus_enter(unit, plan, &plan->steps[s]));
        RETURN_IF_ERROR(run_step(unit, plan, &plan->steps[s], run_body, mode));
        RETURN_IF_ERROR(rondo__other_gpus_leave(unit, plan, &plan->steps[s]));
    }
    return rondo__other_gpus_end(unit, plan);
}

// Work on other streams than the executor's still uses the plan's memory.
static void wait_for_others(const rondo_executor *executor, const rondo__plan *plan) {
    rondo_error saved;
    rondo__error_save(&saved);
    (void)!rondo__other_gpus_synchronize(plan);
    rondo__streamed_drain(executor);
    rondo__ranks_drain(executor);
    rondo__error_restore(&saved);
}

rondo_status rondo__plan_run_steps(rondo__unit *unit, rondo__plan *plan,
                                   rondo__body_runner run_body, bool *out_was_replayed) {
    *out_was_replayed = false;
    const bool has_graphs =
        unit->executor->graphs != RONDO_GRAPHS_OFF && rondo__governed_may_replay(unit->executor);
    run_mode mode = {.use_graphs = has_graphs && plan->run.count > 0,
                     .is_checked = has_graphs && rondo__self_check_is_on(unit->executor),
                     .is_logged = RONDO_LOG_IS_WANTED(RONDO_LOG_DEBUG) || rondo__copy_is_logged()};
    if (plan->bypassed_count + plan->counted_count > 0) {
        drop_dynamic(plan);
    }
    if (mode.use_graphs) {
        RETURN_IF_ERROR(check_frozen(unit, plan));
        RETURN_IF_ERROR(capture_timed(unit, plan));
    }
    rondo_executor *executor = unit->executor;
    const uint64_t ran_before = executor->work.ran_count;
    const uint64_t replayed_before = executor->work.replayed_count;
    uint64_t start_ns = plan->run.first_replay_ns == 0 ? rondo__clock_now_ns() : 0;
    const rondo_status status = run_all(unit, plan, run_body, &mode);
    if (status != RONDO_STATUS_OK) {
        wait_for_others(unit->executor, plan);
        return status;
    }
    const uint64_t replayed_count = executor->work.replayed_count - replayed_before;
    const bool may_wait = unit->depth > 0 || !rondo__executor_is_putting(unit->executor);
    *out_was_replayed =
        replayed_count > 0 && 2 * replayed_count >= executor->work.ran_count - ran_before;
    rondo__verbose_tell_run(unit, plan, mode.graph_count);
    if (mode.graph_count > 0 && plan->run.first_replay_ns == 0 && may_wait) {
        RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
        plan->run.first_replay_ns = rondo__clock_now_ns() - start_ns;
    }
    return RONDO_STATUS_OK;
}
