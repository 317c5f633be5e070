// executor/bound_run.c — runs whose feeds and fetches are named and checked once.
//
// What rondo_executor_run finds anew in each run is kept: where the tensors stand among inputs and
// outputs, that they are right, and the plan. The plan is the same as long as no feed has another
// type or shape, no plan was made or given up (which changes what plans are found by, too), no
// input's value is part of its key, and each output has one shape (others are compared with the
// symbols of the run). States must lie where they lay, in the shape that they had, and have their
// new values made there, and none of them is fed. Otherwise a run looks for its plan, as every run
// by names does.
// SPDX-License-Identifier: Apache-2.0
#include "executor/bound_run.h"

#include "backend/check.h"
#include "base/error.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "device/copy_note.h"
#include "executor/async.h"
#include "executor/compile/destroy.h"
#include "executor/compile/plan_cache.h"
#include "executor/compile/retire.h"
#include "executor/feeds.h"
#include "executor/run/branch_trial.h"
#include "executor/run/carried.h"
#include "executor/run/put_states.h"
#include "executor/run/self_check.h"
#include "executor/run/settle.h"
#include "executor/run/transfer.h"
#include "executor/state/governed.h"
#include "executor/state/limits.h"
#include "executor/variants.h"
#include "rondo/executor_stream.h"
#include "tensor/elements.h"

typedef struct bound_fetch {
    bool is_open;          // runs allocate it
    bool is_written;       // by a run that succeeded
    rondo_device *device;  // then where
} bound_fetch;

struct rondo_bound_run {
    rondo_executor *executor;
    rondo_tensor *feeds;  // in input order, optional inputs behind; dtype NONE: not fed
    // One for each output:
    rondo_tensor *results;  // where runs write
    bound_fetch *fetches;
    bool *wants;
    uint64_t fed_bytes;
    bool has_objects;     // a feed holds strings or tensors, which are looked at in each run
    bool feeds_optional;  // an optional input is fed
    rondo__fetch_memory memory;
    // What the run before has found:
    rondo_tensor *found;  // feeds as runs take them: with what states hold. Borrowed
    rondo__plan *plan;    // NULL: it is to be looked for
    uint64_t plan_changes;
    uint64_t state_changes;
    bool is_settled;          // as in rondo__fetch
    bool is_prepared;         // results fit the plan
    rondo__carried *carried;  // the run as one graph; NULL: not yet
    uint32_t steady_count;    // runs in a row that one graph could do,
    bool steady_waits;        // the last of which was waited for,
    bool is_mixed;            // and where a graph does only one kind: all were, or none
    bool is_moved;            // an entry was set since the graph was made
    bool is_refused;          // the plan cannot become one graph
};

enum { STEADY_RUNS = 2 };  // before a graph is made of them

// ---- life -------------------------------------------------------------------------------------

static size_t count_feeds(const rondo_executor *executor) {
    return executor->main.source->input_count + executor->main.source->optional_count;
}

// The plan is another one, or its graph no longer fits.
static void drop_carried(rondo_bound_run *run) {
    rondo__carried_destroy(run->carried);
    run->carried = NULL;
    run->steady_count = 0;
    run->is_refused = false;
}

void rondo__bound_run_free(rondo_bound_run *run) {
    if (run == NULL) {
        return;
    }
    drop_carried(run);
    const size_t feed_count = count_feeds(run->executor);
    for (size_t i = 0; run->feeds != NULL && i < feed_count; ++i) {
        rondo_tensor_deinit(&run->feeds[i]);
    }
    for (size_t i = 0; run->results != NULL && i < run->executor->main.source->output_count; ++i) {
        rondo_tensor_deinit(&run->results[i]);
    }
    rondo__free(run->feeds);
    rondo__free(run->found);
    rondo__free(run->results);
    rondo__free(run->fetches);
    rondo__free(run->wants);
    rondo__free(run);
}

rondo_status rondo__bound_run_make(rondo_executor *executor, rondo_bound_run **out_run) {
    const size_t output_count = executor->main.source->output_count;
    rondo_bound_run *run = rondo__calloc(1, sizeof *run);
    if (run == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    run->executor = executor;
    run->feeds = rondo__calloc(count_feeds(executor) + 1, sizeof *run->feeds);
    run->found = rondo__calloc(count_feeds(executor) + 1, sizeof *run->found);
    run->results = rondo__calloc(output_count + 1, sizeof *run->results);
    run->fetches = rondo__calloc(output_count + 1, sizeof *run->fetches);
    run->wants = rondo__calloc(output_count + 1, sizeof *run->wants);
    if (run->feeds == NULL || run->found == NULL || run->results == NULL || run->fetches == NULL ||
        run->wants == NULL) {
        rondo__bound_run_free(run);
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_run = run;
    return RONDO_STATUS_OK;
}

rondo_status rondo_bound_run_create(rondo_executor *executor, rondo_bound_run **out_run) {
    RETURN_IF_ERROR(rondo__check_pointer(out_run, __func__, "out_run"));
    *out_run = NULL;
    RETURN_IF_ERROR(rondo__check_pointer(executor, __func__, "executor"));
    RETURN_IF_ERROR(rondo__check_process(executor->device, __func__));
    RETURN_IF_ERROR(rondo__bound_run_make(executor, out_run));
    rondo__executor_retain(executor);
    return RONDO_STATUS_OK;
}

void rondo_bound_run_destroy(rondo_bound_run *run) {
    if (run == NULL || atomic_load(&run->executor->device->is_forked)) {
        return;
    }
    rondo_executor *executor = run->executor;
    rondo__unit_drain(&executor->main);
    rondo__bound_run_free(run);
    rondo__executor_release(executor);
}

// ---- what is bound ----------------------------------------------------------------------------

// Gives up a tensor, which a run may still use that was not waited for.
static void drop(rondo_executor *executor, rondo_tensor *tensor) {
    const rondo__async *async = executor->caller.async;
    if (tensor->storage != NULL && async != NULL && async->is_under_way) {
        rondo_error saved;
        rondo__error_save(&saved);
        rondo__unit_drain(&executor->main);
        rondo__error_restore(&saved);
    }
    rondo_tensor_deinit(tensor);
}

// What is true of all feeds together.
static void sum_up_feeds(rondo_bound_run *run) {
    const size_t input_count = run->executor->main.source->input_count;
    run->fed_bytes = 0;
    run->has_objects = false;
    run->feeds_optional = false;
    for (size_t i = 0; i < count_feeds(run->executor); ++i) {
        const rondo_tensor *feed = &run->feeds[i];
        if (feed->dtype != RONDO_DTYPE_NONE) {
            const uint64_t bytes = rondo__tensor_measure(feed);
            run->fed_bytes =
                bytes > UINT64_MAX - run->fed_bytes ? UINT64_MAX : run->fed_bytes + bytes;
            run->has_objects = run->has_objects || !rondo__dtype_is_plain(feed->dtype);
            run->feeds_optional = run->feeds_optional || i >= input_count;
        }
    }
}

rondo_status rondo_bound_run_set_feed(rondo_bound_run *run, const char *name,
                                      const rondo_tensor *tensor) {
    RETURN_IF_ERROR(rondo__check_pointer(run, __func__, "run"));
    static const rondo_tensor nothing = {0};
    size_t index;
    RETURN_IF_ERROR(rondo__executor_find_input(run->executor, name, &index));
    if (tensor != NULL) {
        RETURN_IF_ERROR(rondo__executor_check_feed(run->executor, index, tensor));
    }
    const rondo_tensor *next = tensor != NULL ? tensor : &nothing;
    rondo_tensor *feed = &run->feeds[index];
    if (feed->dtype != next->dtype || !rondo_shape_is_equal(&feed->shape, &next->shape)) {
        run->plan = NULL;
    }
    rondo_tensor former = *feed;
    rondo_tensor_share(next, feed);
    if (tensor != NULL) {  // otherwise a state's value may be there
        run->found[index] = *feed;
    }
    drop(run->executor, &former);
    run->is_moved = true;
    sum_up_feeds(run);
    return RONDO_STATUS_OK;
}

// A tensor of strings or tensors is always the run's own.
static bool is_left_open(const rondo_tensor *tensor) {
    return tensor->data == NULL ||
           (tensor->dtype != RONDO_DTYPE_NONE && !rondo__dtype_is_plain(tensor->dtype));
}

// Runs write fetches in no order among each other.
static rondo_status refuse_overlap(const rondo_bound_run *run, size_t index,
                                   const rondo_tensor *result) {
    const rondo_program *program = run->executor->main.source;
    const uintptr_t begin = (uintptr_t)result->data;
    const uintptr_t past = begin + rondo_tensor_get_bytes(result);
    for (size_t i = 0; i < program->output_count; ++i) {
        const rondo_tensor *other = &run->results[i];
        const uintptr_t other_begin = (uintptr_t)other->data;
        if (i != index && run->wants[i] && !run->fetches[i].is_open && begin < past &&
            begin < other_begin + rondo_tensor_get_bytes(other) && other_begin < past) {
            return RONDO_FAIL_AS(
                "rondo_bound_run_set_fetch", INVALID,
                "fetches \"%s\" and \"%s\" overlap; bind each to memory of its own",
                program->values[program->outputs[index]].name,
                program->values[program->outputs[i]].name);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_bound_run_set_fetch(rondo_bound_run *run, const char *name,
                                       const rondo_tensor *tensor) {
    RETURN_IF_ERROR(rondo__check_pointer(run, __func__, "run"));
    size_t index;
    RETURN_IF_ERROR(rondo__executor_find_output(run->executor, name, NULL, &index));
    bound_fetch next = {0};
    rondo_tensor result = {0};
    if (tensor != NULL) {
        if (!rondo_tensor_is_on_host(tensor) && tensor->device != run->executor->device) {
            return RONDO_FAIL(INVALID, "fetch \"%s\" lies on %s, the executor runs on %s", name,
                              rondo_device_get_name(tensor->device),
                              rondo_device_get_name(run->executor->device));
        }
        next.is_open = is_left_open(tensor);
        next.device = tensor->device;
        if (!next.is_open) {
            RETURN_IF_ERROR(refuse_overlap(run, index, tensor));
            rondo_tensor_share(tensor, &result);
        }
    }
    rondo_tensor former = run->results[index];
    run->results[index] = result;
    run->fetches[index] = next;
    run->wants[index] = tensor != NULL;
    run->is_prepared = false;
    run->is_moved = true;
    drop(run->executor, &former);
    return RONDO_STATUS_OK;
}

rondo_status rondo_bound_run_set_allocator(rondo_bound_run *run, rondo_fetch_allocator allocate,
                                           void *user_data) {
    RETURN_IF_ERROR(rondo__check_pointer(run, __func__, "run"));
    for (size_t i = 0; i < run->executor->main.source->output_count; ++i) {
        if (run->fetches[i].is_open) {
            run->fetches[i].is_written = false;
            drop(run->executor, &run->results[i]);
        }
    }
    run->memory = (rondo__fetch_memory){allocate, user_data};
    run->is_prepared = false;
    run->is_moved = true;
    return RONDO_STATUS_OK;
}

rondo_status rondo_bound_run_get_fetch(rondo_bound_run *run, const char *name,
                                       rondo_tensor *out_tensor) {
    RETURN_IF_ERROR(rondo__check_pointer(out_tensor, __func__, "out_tensor"));
    *out_tensor = (rondo_tensor){0};
    RETURN_IF_ERROR(rondo__check_pointer(run, __func__, "run"));
    size_t index;
    RETURN_IF_ERROR(rondo__executor_find_output(run->executor, name, NULL, &index));
    if (!run->wants[index]) {
        return RONDO_FAIL(INVALID, "output \"%s\" is not bound", name);
    }
    if (!run->fetches[index].is_written) {
        return RONDO_FAIL(STATE, "output \"%s\" is written by a run, and none has succeeded", name);
    }
    rondo_tensor_share(&run->results[index], out_tensor);
    return RONDO_STATUS_OK;
}

// ---- a run ------------------------------------------------------------------------------------

// Whether nothing has changed since the last run, so that its plan needs no look-up.
static bool has_plan(const rondo_bound_run *run) {
    const rondo_executor *executor = run->executor;
    return run->plan != NULL && run->plan_changes == executor->main.plan_changes &&
           run->state_changes == executor->caller.state_changes &&
           (executor->caller.states == NULL || run->is_settled) &&
           executor->variants.is_training == executor->main.is_training;
}

static rondo_status check_objects(const rondo_bound_run *run) {
    for (size_t i = 0; run->has_objects && i < count_feeds(run->executor); ++i) {
        if (run->feeds[i].dtype != RONDO_DTYPE_NONE &&
            !rondo__dtype_is_plain(run->feeds[i].dtype)) {
            RETURN_IF_ERROR(rondo__executor_check_feed(run->executor, i, &run->feeds[i]));
        }
    }
    return RONDO_STATUS_OK;
}

static bool feeds_a_state(const rondo_bound_run *run) {
    bool feeds = false;
    for (size_t i = 0; i < run->executor->main.source->input_count; ++i) {
        feeds = feeds || (run->feeds[i].dtype != RONDO_DTYPE_NONE &&
                          rondo__state_find(run->executor, i) != NULL);
    }
    return feeds;
}

static bool has_late_outputs(const rondo__plan *plan) {
    bool has = false;
    for (size_t i = 0; i < plan->program->output_count; ++i) {
        has = has || plan->slots[plan->program->outputs[i]].kind == RONDO__SLOT_DYNAMIC;
    }
    return has;
}

// Sets unit and plan of the fetch.
static rondo_status find_plan(rondo_bound_run *run, rondo__fetch *fetch) {
    rondo_executor *executor = run->executor;
    rondo_tensor *feeds = run->found;
    if (has_plan(run)) {
        fetch->unit = executor->variants.active = &executor->main;
        fetch->plan = run->plan;
        fetch->is_settled = run->is_settled;
        rondo__unit_use_plan(fetch->unit, fetch->plan);
        return RONDO_STATUS_OK;
    }
    run->is_settled = false;
    for (size_t i = 0; i < count_feeds(executor); ++i) {
        feeds[i] = run->feeds[i];
    }
    RETURN_IF_ERROR(check_objects(run));
    RETURN_IF_ERROR(rondo__executor_complete_feeds(executor, feeds));
    RETURN_IF_ERROR(rondo__states_take_feeds(&executor->main, feeds));
    RETURN_IF_ERROR(rondo__executor_choose_variant(executor, feeds));
    fetch->unit = executor->variants.active;
    RETURN_IF_ERROR(rondo__unit_find_plan(fetch->unit, feeds, &fetch->plan));
    const bool stays = fetch->unit == &executor->main && !run->feeds_optional &&
                       !run->has_objects && !feeds_a_state(run) &&
                       !rondo__unit_has_keys(fetch->unit) && !has_late_outputs(fetch->plan) &&
                       fetch->plan->entry != NULL;
    run->plan = stays ? fetch->plan : NULL;
    run->plan_changes = executor->main.plan_changes;
    run->state_changes = executor->caller.state_changes;
    run->is_prepared = false;
    drop_carried(run);
    return RONDO_STATUS_OK;
}

// Whether an open fetch can be written by a run of the plan; its shape must be known ahead.
static bool fits(const rondo__plan *plan, size_t i, const rondo_tensor *tensor) {
    const rondo__slot *slot = &plan->slots[plan->program->outputs[i]];
    return slot->kind != RONDO__SLOT_DYNAMIC && tensor->data != NULL &&
           tensor->dtype == slot->dtype && rondo_shape_is_equal(&tensor->shape, &slot->shape);
}

// Where the run writes: the results, but for those that it is to allocate.
static rondo_tensor *lay_out_results(const rondo_bound_run *run, const rondo__plan *plan) {
    rondo_tensor *results = run->executor->ports.lists.results;
    for (size_t i = 0; !run->is_prepared && i < run->executor->main.source->output_count; ++i) {
        const rondo_tensor *bound = &run->results[i];
        const bool is_plain =
            bound->dtype == RONDO_DTYPE_NONE || rondo__dtype_is_plain(bound->dtype);
        results[i] = run->fetches[i].is_open && is_plain && !fits(plan, i, bound)
                         ? (rondo_tensor){.device = run->fetches[i].device}
                         : *bound;
    }
    return run->is_prepared ? run->results : results;
}

// Takes what the run has allocated. A former tensor of strings or tensors is freed already.
static void take_results(rondo_bound_run *run, const rondo__fetch *fetch) {
    bool is_prepared = true;
    for (size_t i = 0; !fetch->is_prepared && i < run->executor->main.source->output_count; ++i) {
        rondo_tensor *bound = &run->results[i];
        const rondo_tensor *result = &fetch->results[i];
        if (!run->wants[i]) {
            continue;
        }
        if (result->storage != bound->storage && rondo__dtype_is_plain(bound->dtype)) {
            drop(run->executor, bound);
        }
        *bound = *result;
        run->fetches[i].is_written = true;
        is_prepared =
            is_prepared && fits(fetch->plan, i, bound) && rondo__dtype_is_plain(result->dtype);
    }
    run->is_prepared = is_prepared;
}

// Whether the next run may leave states as this one has found them.
static void note_states(rondo_bound_run *run, const rondo__fetch *fetch) {
    const rondo__caller *caller = &run->executor->caller;
    if (!fetch->is_settled && caller->states != NULL && run->plan != NULL) {
        run->is_settled = rondo__states_are_settled(fetch);
        run->state_changes = caller->state_changes;
    }
}

// Whether one graph can do the whole run: the plan has been replayed and does the same work each
// time, and neither self-checks, ranks, listeners to copies nor the log need its steps.
static bool may_be_carried(const rondo_bound_run *run, const rondo__fetch *fetch) {
    const rondo_executor *executor = run->executor;
    const rondo__plan *plan = fetch->plan;
    if (run->plan == NULL || !fetch->is_prepared || plan->step_count != 1 ||
        (executor->caller.states != NULL && !fetch->is_settled)) {
        return false;
    }
    const rondo__step *step = &plan->steps[0];
    return step->run.graph != NULL && !step->is_ahead &&
           rondo__branches_are_settled(fetch->unit, plan) && executor->graphs != RONDO_GRAPHS_OFF &&
           rondo__governed_may_replay(executor) && plan->peer_count == 0 &&
           plan->streamed == NULL && plan->ranks == NULL &&
           executor->options.communicator == NULL && !rondo__self_check_is_on(executor) &&
           !rondo__self_check_is_expected(executor) && !rondo__copy_is_told() &&
           !RONDO_LOG_IS_WANTED(RONDO_LOG_DEBUG);
}

// Makes one graph of the whole run once runs repeat, so that this run replays it.
static rondo_status find_carried(rondo_bound_run *run, rondo__fetch *fetch,
                                 const rondo_tensor *feeds) {
    if (!may_be_carried(run, fetch)) {
        return RONDO_STATUS_OK;
    }
    if (run->carried != NULL && !rondo__carried_is_watched_so(run->carried)) {
        drop_carried(run);
    }
    if (run->carried != NULL && !rondo__carried_serves(run->carried, fetch->waits)) {
        drop_carried(run);
        run->is_mixed = true;
    }
    if (run->carried == NULL && run->is_mixed && run->steady_waits != fetch->waits) {
        run->steady_count = 0;
    }
    run->steady_waits = fetch->waits;
    if (run->is_moved) {
        if (run->carried == NULL || !rondo__carried_follow(run->carried, fetch, feeds)) {
            drop_carried(run);
        }
        run->is_moved = false;
    }
    if (run->carried == NULL && !run->is_refused && ++run->steady_count > STEADY_RUNS) {
        RETURN_IF_ERROR(rondo__carried_make(fetch, feeds, &run->carried));
        run->is_refused = run->carried == NULL;
    }
    fetch->carried = run->carried;
    return RONDO_STATUS_OK;
}

static rondo_status run_found(rondo_bound_run *run, rondo_event *done, bool waits) {
    rondo_executor *executor = run->executor;
    rondo__fetch fetch = {.wants = run->wants, .waits = waits};
    RETURN_IF_ERROR(find_plan(run, &fetch));
    rondo__governed_choose(fetch.unit, fetch.plan, waits);
    fetch.is_prepared = run->is_prepared;
    fetch.results = lay_out_results(run, fetch.plan);
    RETURN_IF_ERROR(find_carried(run, &fetch, run->found));
    executor->ports.lists.memory = run->memory.allocate != NULL ? &run->memory : NULL;
    rondo_status status;
    if (waits) {
        status = rondo__self_check_begin_run(executor);
        status = status == RONDO_STATUS_OK ? rondo__unit_run_fetch(&fetch, run->found) : status;
        rondo__self_check_end_run(executor);
    } else {
        status = rondo__executor_put_fetch(executor, &fetch, run->found, done);
    }
    executor->ports.lists.memory = NULL;
    if (status == RONDO_STATUS_OK) {
        take_results(run, &fetch);
        note_states(run, &fetch);
    }
    return status;
}

rondo_status rondo__bound_run_call(rondo_bound_run *run, rondo_event *done, bool waits) {
    rondo_executor *executor = run->executor;
    const rondo__hook_scope scope =
        rondo__hook_enter(RONDO__SPAN_RUN, waits ? "run" : "run, not waited for");
    rondo__budget *before = rondo__executor_begin_fed(executor, run->fed_bytes);
    const rondo_status status = run_found(run, done, waits);
    rondo__executor_end_call(executor, before, status);
    rondo__hook_leave(&scope);
    return status;
}

rondo_status rondo_bound_run_run(rondo_bound_run *run) {
    RETURN_IF_ERROR(rondo__check_pointer(run, __func__, "run"));
    RETURN_IF_ERROR(rondo__executor_settle(run->executor, __func__));
    return rondo__bound_run_call(run, NULL, true);
}

rondo_status rondo_bound_run_run_async(rondo_bound_run *run, rondo_event *done) {
    RETURN_IF_ERROR(rondo__check_pointer(run, __func__, "run"));
    RETURN_IF_ERROR(rondo__check_process(run->executor->device, __func__));
    RETURN_IF_ERROR(rondo__executor_check_done(run->executor, done, __func__));
    RETURN_IF_ERROR(rondo__unit_refuse_recording(&run->executor->main, __func__));
    return rondo__bound_run_call(run, done, false);
}
