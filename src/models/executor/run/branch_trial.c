// executor/run/branch_trial.c — see branch_trial.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/branch_trial.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "base/thread_count.h"
#include "executor/compile/branch_levels.h"
#include "executor/compile/branches.h"
#include "executor/run/self_check.h"
#include "executor/state/op_span.h"
#include "executor/state/spans.h"
#include "graph/graph_object.h"
#include "rondo/label.h"

enum {
    RUNS_BEFORE = 3,  // of a plan: eager, captured, replayed
    ROUNDS_MAX = 7,
    TRIAL_NS = 50000000,  // for the replays of each graph, but one of each there is
    STRAIGHT_MAX = 3,     // plans of an executor whose trials were lost, in a row, before no more
    TURNS_LAST = 64,      // runs; those that are not waited for do not count for the trial
};
static const double gain_min = 1.1;    // estimated
static const double ratio_max = 0.97;  // measured

// ---- recording --------------------------------------------------------------------------------

static rondo_status make_streams(const rondo__unit *unit, rondo__branch_recorder *r) {
    rondo_status status = RONDO_STATUS_OK;
    r->event_count = r->item_count + 1 + r->branches.count;
    r->events = rondo__calloc(r->event_count, sizeof(rondo_event *));
    if (r->events == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t b = 1; b < r->branches.count && status == RONDO_STATUS_OK; ++b) {
        status = rondo_stream_create(unit->executor->device, NULL, &r->streams[b]);
    }
    for (size_t e = 0; e < r->event_count && status == RONDO_STATUS_OK; ++e) {
        if (e >= r->item_count || r->branches.items[e].is_awaited) {
            status = rondo_event_create(unit->executor->device, 0, &r->events[e]);
        }
    }
    return status;
}

rondo_status rondo__branches_open(const rondo__unit *unit, const rondo__plan *plan,
                                  const rondo__step *step, rondo__branch_recorder **out_recorder) {
    rondo__branch_recorder *r = rondo__calloc(1, sizeof *r);
    *out_recorder = NULL;
    if (r == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    r->first_item = step->first_item;
    r->item_count = step->item_count;
    rondo_status status = rondo__branches_find(unit->executor, plan, step, &r->branches);
    if (status == RONDO_STATUS_OK) {
        status = make_streams(unit, r);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__branches_close(r);
        return status;
    }
    *out_recorder = r;
    return RONDO_STATUS_OK;
}

static rondo_status record_item(rondo__branch_recorder *r, size_t i, bool *has_entered,
                                rondo__branch_launch launch, void *user_data) {
    const rondo__branched_item *place = &r->branches.items[i];
    rondo_stream *stream = r->streams[place->branch];
    if (!has_entered[place->branch]) {
        has_entered[place->branch] = true;
        RETURN_IF_ERROR(rondo_stream_wait_event(stream, r->events[r->item_count]));
    }
    for (size_t w = place->first_wait; w < place->first_wait + place->wait_count; ++w) {
        RETURN_IF_ERROR(rondo_stream_wait_event(stream, r->events[r->branches.waits[w]]));
    }
    RETURN_IF_ERROR(launch(user_data, r->first_item + i, stream));
    return place->is_awaited ? rondo_event_record(r->events[i], stream) : RONDO_STATUS_OK;
}

rondo_status rondo__branches_record(rondo__branch_recorder *r, rondo_stream *stream,
                                    rondo__branch_launch launch, void *user_data) {
    bool has_entered[RONDO__BRANCH_MAX] = {true};
    r->streams[0] = stream;
    RETURN_IF_ERROR(rondo_event_record(r->events[r->item_count], stream));
    for (size_t i = 0; i < r->item_count; ++i) {
        RETURN_IF_ERROR(record_item(r, i, has_entered, launch, user_data));
    }
    for (size_t b = 1; b < r->branches.count; ++b) {
        RETURN_IF_ERROR(rondo_event_record(r->events[r->item_count + b], r->streams[b]));
        RETURN_IF_ERROR(rondo_stream_wait_event(stream, r->events[r->item_count + b]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status launch_item(void *user_data, size_t i, rondo_stream *stream) {
    const rondo__plan *plan = user_data;
    const rondo__item *item = &plan->items[i];
    char label[RONDO__OP_TITLE_BYTES];
    rondo__op_format_title(&plan->program->nodes[item->node].op, label);
    RETURN_IF_ERROR(rondo_label_push(stream, label));
    RETURN_IF_ERROR(
        item->kernel->launch(item->kernel, stream, item->inputs, item->outputs, item->workspace));
    return rondo_label_pop(stream);
}

static rondo_status capture_branches(const rondo__unit *unit, rondo__plan *plan,
                                     rondo__branch_recorder *r, rondo_graph **out_graph) {
    const rondo_graph_options options = {.struct_size = sizeof options,
                                         .keep = unit->executor->options.keep_templates
                                                     ? RONDO_KEEP_TEMPLATE
                                                     : RONDO_KEEP_EXECUTABLE,
                                         .label = "branches"};
    rondo_graph *graph = NULL;
    RETURN_IF_ERROR(rondo_graph_create(unit->executor->device, &options, &graph));
    rondo_status status =
        rondo_graph_capture_begin(graph, unit->stream, RONDO_CAPTURE_THREAD_LOCAL);
    if (status == RONDO_STATUS_OK) {
        status = rondo__branches_record(r, unit->stream, launch_item, plan);
        if (status == RONDO_STATUS_OK) {
            status = rondo_graph_capture_end(graph);
        } else {
            rondo_graph_capture_abort(graph);
        }
    }
    if (status == RONDO_STATUS_OK) {
        *out_graph = graph;
    } else {
        rondo_graph_destroy(graph);
    }
    return status;
}

// ---- timing -----------------------------------------------------------------------------------

// As runs replay it: a straight line by this thread, where it may (run.c).
static rondo_status time_replay(const rondo__unit *unit, rondo_graph *graph, bool runs_here,
                                uint64_t *in_out_least_ns) {
    const uint64_t start_ns = rondo__clock_now_ns();
    bool ran_here;
    RETURN_IF_ERROR(runs_here ? rondo__graph_replay_here(graph, unit->stream, &ran_here)
                              : rondo_graph_replay(graph, unit->stream));
    RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
    const uint64_t took_ns = rondo__clock_now_ns() - start_ns;
    *in_out_least_ns = took_ns < *in_out_least_ns ? took_ns : *in_out_least_ns;
    return RONDO_STATUS_OK;
}

// Replays the step's straight line and the branched graph in turn.
static rondo_status compare(const rondo__unit *unit, const rondo__step *step, rondo_graph *branched,
                            bool *out_is_faster) {
    rondo_graph *straight = step->run.graph;
    const bool runs_here = step->run.may_run_here;
    uint64_t straight_ns = UINT64_MAX;
    uint64_t branched_ns = UINT64_MAX;
    RETURN_IF_ERROR(time_replay(unit, straight, runs_here, &straight_ns));
    const uint64_t fitting = TRIAL_NS / (straight_ns + 1);
    if (fitting > 0) {  // otherwise the first one counts
        RETURN_IF_ERROR(time_replay(unit, branched, false, &branched_ns));
        branched_ns = UINT64_MAX;
    }
    for (uint64_t k = 0; k < (fitting < ROUNDS_MAX ? fitting : ROUNDS_MAX) || k < 1; ++k) {
        RETURN_IF_ERROR(time_replay(unit, branched, false, &branched_ns));
        RETURN_IF_ERROR(time_replay(unit, straight, runs_here, &straight_ns));
    }
    *out_is_faster = (double)branched_ns < ratio_max * (double)straight_ns;
    RONDO_LOG_INFO_F("a segment takes %.3f ms as a straight line, %.3f ms with branches",
                     (double)straight_ns / 1e6, (double)branched_ns / 1e6);
    return RONDO_STATUS_OK;
}

// ---- the decision -----------------------------------------------------------------------------

static void swap_graphs(rondo__step_run *run) {
    rondo_graph *graph = run->graph;
    run->graph = run->other;
    run->other = graph;
}

// Runs of a plan with states take turns with both graphs: a replay more would change them.
static void note_turn(rondo__unit *unit, rondo__step *step) {
    rondo__step_run *run = &step->run;
    const size_t which = run->turn_count % 2;  // 1: with branches
    rondo__unit_read_spans(unit);
    const uint64_t took_ns = unit->runs.times.compute_ns;
    const bool is_warm = run->turn_count >= 2;
    if (is_warm && (run->least_ns[which] == 0 || took_ns < run->least_ns[which])) {
        run->least_ns[which] = took_ns;
    }
    swap_graphs(run);
    run->turn_count += 1;
    if (run->turn_count < 2 * (1 + ROUNDS_MAX)) {
        return;
    }
    const bool is_faster = (double)run->least_ns[1] < ratio_max * (double)run->least_ns[0];
    RONDO_LOG_INFO_F("a segment takes %.3f ms as a straight line, %.3f ms with branches",
                     (double)run->least_ns[0] / 1e6, (double)run->least_ns[1] / 1e6);
    if (is_faster) {
        swap_graphs(run);
    } else {
        run->branch_count = 1;
    }
    unit->straight_count = is_faster ? 0 : unit->straight_count + 1;
    rondo_graph_destroy(run->other);
    run->other = NULL;
}

static rondo_status choose(rondo__unit *unit, rondo__step *step, uint32_t count,
                           rondo_graph *graph) {
    bool is_faster = unit->executor->options.branches == RONDO_BRANCHES_ON;
    if (!is_faster && unit->executor->caller.states != NULL) {
        step->run.other = graph;
        step->run.branch_count = count;
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO_STATUS_OK;
    if (!is_faster) {
        status = compare(unit, step, graph, &is_faster);
        unit->straight_count = is_faster ? 0 : unit->straight_count + 1;
    }
    if (status == RONDO_STATUS_OK && is_faster) {
        rondo_graph *straight = step->run.graph;
        step->run.graph = graph;
        step->run.branch_count = count;
        graph = straight;
    }
    rondo_graph_destroy(graph);
    return status;
}

static rondo_status settle_step(rondo__unit *unit, rondo__plan *plan, rondo__step *step) {
    // Runs that take turns cost no replay more, and estimates know little of kernels that leave
    // room on a GPU.
    const bool is_wanted = unit->executor->options.branches == RONDO_BRANCHES_ON ||
                           unit->executor->caller.states != NULL;
    rondo__branch_recorder *r;
    rondo_graph *graph = NULL;
    step->run.branch_count = 1;
    RETURN_IF_ERROR(rondo__branches_open(unit, plan, step, &r));
    const rondo__branches *found = &r->branches;
    const uint32_t count = found->count;
    rondo_status status = RONDO_STATUS_OK;
    RONDO_LOG_INFO_F("a segment of %zu ops has %u branches, which gain %.2f times by estimate%s",
                     step->item_count, count, found->gain,
                     is_wanted || found->gain >= gain_min ? "" : ": not tried");
    if (count > 1 && (is_wanted || found->gain >= gain_min)) {
        status = capture_branches(unit, plan, r, &graph);
    }
    rondo__branches_close(r);
    return graph != NULL ? choose(unit, step, count, graph) : status;
}

// Whether branches could help at all.
static bool may_help(const rondo__unit *unit, const rondo__plan *plan) {
    const bool is_forced = unit->executor->options.branches == RONDO_BRANCHES_ON;
    const bool is_single = plan->step_count == 1 + rondo__plan_count_ahead(plan) &&
                           unit->straight_count < STRAIGHT_MAX;
    const uint32_t threads = unit->executor->options.thread_count;
    if (unit->executor->options.branches == RONDO_BRANCHES_OFF ||
        unit->executor->graphs == RONDO_GRAPHS_OFF || !(is_forced || is_single)) {
        return false;
    }
    return is_forced || !rondo_device_is_host(unit->executor->device) ||
           (threads > 0 ? (int32_t)threads : rondo__host_get_thread_count()) > 1;
}

// Whether now is the time.
static bool is_due(const rondo__unit *unit, const rondo__plan *plan) {
    return plan->run.count >= RUNS_BEFORE && !plan->run.is_in_place &&
           !rondo__self_check_is_on(unit->executor) && may_help(unit, plan);
}

bool rondo__branches_are_settled(const rondo__unit *unit, const rondo__plan *plan) {
    const rondo__step_run *run = &plan->steps[0].run;
    return run->other == NULL && (run->branch_count > 0 || !may_help(unit, plan));
}

bool rondo__branches_are_open(const rondo__unit *unit, const rondo__plan *plan) {
    const rondo__step_run *run = &plan->steps[0].run;
    return unit->executor->caller.states != NULL && plan->run.count <= TURNS_LAST &&
           (run->other != NULL || (run->branch_count == 0 && plan->run.count <= RUNS_BEFORE &&
                                   rondo__branch_levels_may_branch(unit, plan)));
}

void rondo__branches_settle(rondo__unit *unit, rondo__plan *plan) {
    bool has_open = false;
    for (size_t s = 0; s < plan->step_count; ++s) {
        if (plan->steps[s].run.other != NULL) {
            note_turn(unit, &plan->steps[s]);
        }
        has_open =
            has_open || (plan->steps[s].run.graph != NULL && plan->steps[s].run.branch_count == 0);
    }
    if (!has_open || !is_due(unit, plan)) {
        return;
    }
    const bool may_branch = rondo__branch_levels_may_branch(unit, plan);
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        if (step->run.graph == NULL || step->run.branch_count > 0) {
            continue;
        }
        step->run.branch_count = 1;
        const rondo_status status = may_branch ? settle_step(unit, plan, step) : RONDO_STATUS_OK;
        if (status != RONDO_STATUS_OK) {
            RONDO_LOG_INFO_F("a segment stays a straight line: %s",
                             rondo_error_get_last()->message);
        }
    }
    rondo__error_restore(&saved);
}
