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
#include "graph/graph_object.h"

enum {
    RUNS_BEFORE = 3,  // of a plan: eager, captured, replayed
    ROUNDS_MAX = 7,
    TRIAL_NS = 50000000,  // for the replays of each graph, but one of each there is
    STRAIGHT_MAX = 3,     // plans of an executor whose trials were lost, in a row, before no more
};
static const double gain_min = 1.1;    // estimated
static const double ratio_max = 0.97;  // measured

// ---- recording --------------------------------------------------------------------------------

typedef struct recorder {
    rondo__unit *unit;
    rondo__plan *plan;
    const rondo__step *step;
    const rondo__branches *branches;
    rondo_stream *streams[RONDO__BRANCH_MAX];  // the first is the executor's
    bool has_entered[RONDO__BRANCH_MAX];
    size_t event_count;
    rondo_event **events;  // one for each item; the next for the start; then for ends of branches
} recorder;

static void recorder_deinit(recorder *r) {
    for (size_t b = 1; b < RONDO__BRANCH_MAX; ++b) {
        rondo_stream_destroy(r->streams[b]);
    }
    for (size_t e = 0; r->events != NULL && e < r->event_count; ++e) {
        rondo_event_destroy(r->events[e]);
    }
    rondo__free(r->events);
}

static rondo_status recorder_init(rondo__unit *unit, rondo__plan *plan, const rondo__step *step,
                                  const rondo__branches *branches, recorder *out_recorder) {
    recorder r = {.unit = unit, .plan = plan, .step = step, .branches = branches};
    r.streams[0] = unit->stream;
    r.has_entered[0] = true;
    r.event_count = step->item_count + 1 + branches->count;
    r.events = rondo__calloc(r.event_count, sizeof(rondo_event *));
    rondo_status status = r.events == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    for (size_t b = 1; b < branches->count && status == RONDO_STATUS_OK; ++b) {
        status = rondo_stream_create(unit->executor->device, NULL, &r.streams[b]);
    }
    for (size_t e = 0; e < r.event_count && status == RONDO_STATUS_OK; ++e) {
        if (e >= step->item_count || branches->items[e].is_awaited) {
            status = rondo_event_create(unit->executor->device, 0, &r.events[e]);
        }
    }
    if (status != RONDO_STATUS_OK) {
        r.streams[0] = NULL;
        recorder_deinit(&r);
        return status;
    }
    *out_recorder = r;
    return RONDO_STATUS_OK;
}

static rondo_status record_item(recorder *r, size_t i) {
    const rondo__branched_item *place = &r->branches->items[i];
    const rondo__item *item = &r->plan->items[r->step->first_item + i];
    rondo_stream *stream = r->streams[place->branch];
    if (!r->has_entered[place->branch]) {
        r->has_entered[place->branch] = true;
        RETURN_IF_ERROR(rondo_stream_wait_event(stream, r->events[r->step->item_count]));
    }
    for (size_t w = place->first_wait; w < place->first_wait + place->wait_count; ++w) {
        RETURN_IF_ERROR(rondo_stream_wait_event(stream, r->events[r->branches->waits[w]]));
    }
    RETURN_IF_ERROR(
        item->kernel->launch(item->kernel, stream, item->inputs, item->outputs, item->workspace));
    return place->is_awaited ? rondo_event_record(r->events[i], stream) : RONDO_STATUS_OK;
}

static rondo_status record_all(recorder *r) {
    const size_t count = r->step->item_count;
    RETURN_IF_ERROR(rondo_event_record(r->events[count], r->streams[0]));
    for (size_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(record_item(r, i));
    }
    for (size_t b = 1; b < r->branches->count; ++b) {
        RETURN_IF_ERROR(rondo_event_record(r->events[count + b], r->streams[b]));
        RETURN_IF_ERROR(rondo_stream_wait_event(r->streams[0], r->events[count + b]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status capture_branches(recorder *r, rondo_graph **out_graph) {
    const rondo_graph_options options = {.struct_size = sizeof options, .label = "branches"};
    rondo_graph *graph = NULL;
    RETURN_IF_ERROR(rondo_graph_create(r->unit->executor->device, &options, &graph));
    rondo_status status =
        rondo_graph_capture_begin(graph, r->streams[0], RONDO_CAPTURE_THREAD_LOCAL);
    if (status == RONDO_STATUS_OK) {
        status = record_all(r);
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

static rondo_status record_branches(rondo__unit *unit, rondo__plan *plan, const rondo__step *step,
                                    const rondo__branches *branches, rondo_graph **out_graph) {
    recorder r;
    *out_graph = NULL;
    RETURN_IF_ERROR(recorder_init(unit, plan, step, branches, &r));
    const rondo_status status = capture_branches(&r, out_graph);
    recorder_deinit(&r);
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

static rondo_status settle_step(rondo__unit *unit, rondo__plan *plan, rondo__step *step) {
    const bool is_forced = unit->executor->options.branches == RONDO_BRANCHES_ON;
    rondo__branches branches;
    rondo_graph *graph = NULL;
    bool is_faster = is_forced;
    step->run.branch_count = 1;
    RETURN_IF_ERROR(rondo__branches_find(unit->executor, plan, step, &branches));
    rondo_status status = RONDO_STATUS_OK;
    RONDO_LOG_INFO_F("a segment of %zu ops has %u branches, which gain %.2f times by estimate%s",
                     step->item_count, branches.count, branches.gain,
                     is_forced || branches.gain >= gain_min ? "" : ": not tried");
    if (branches.count > 1 && (is_forced || branches.gain >= gain_min)) {
        status = record_branches(unit, plan, step, &branches, &graph);
    }
    if (status == RONDO_STATUS_OK && graph != NULL && !is_forced) {
        status = compare(unit, step, graph, &is_faster);
        unit->straight_count = is_faster ? 0 : unit->straight_count + 1;
    }
    if (status == RONDO_STATUS_OK && graph != NULL && is_faster) {
        rondo_graph_destroy(step->run.graph);
        step->run.graph = graph;
        step->run.branch_count = branches.count;
        graph = NULL;
    }
    rondo_graph_destroy(graph);
    rondo__branches_deinit(&branches);
    return status;
}

// Whether now is the time, and branches could help at all.
static bool is_due(const rondo__unit *unit, const rondo__plan *plan) {
    const bool is_forced = unit->executor->options.branches == RONDO_BRANCHES_ON;
    const bool is_single = plan->step_count == 1 + rondo__plan_count_ahead(plan) &&
                           unit->straight_count < STRAIGHT_MAX;
    const uint32_t threads = unit->executor->options.thread_count;
    if (unit->executor->options.branches == RONDO_BRANCHES_OFF ||
        unit->executor->graphs == RONDO_GRAPHS_OFF || plan->run.count < RUNS_BEFORE ||
        plan->run.is_in_place || rondo__self_check_is_on(unit->executor) ||
        !(is_forced || is_single)) {
        return false;
    }
    return is_forced || !rondo_device_is_host(unit->executor->device) ||
           (threads > 0 ? (int32_t)threads : rondo__host_get_thread_count()) > 1;
}

void rondo__branches_settle(rondo__unit *unit, rondo__plan *plan) {
    bool has_open = false;
    for (size_t s = 0; s < plan->step_count; ++s) {
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
