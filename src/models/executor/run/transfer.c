// executor/run/transfer.c — see transfer.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/transfer.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/declared.h"
#include "executor/compile/device_control.h"
#include "executor/compile/plan_cache.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/ranks.h"
#include "executor/devices/transfers.h"
#include "executor/run/branch_trial.h"
#include "executor/run/carried.h"
#include "executor/run/fetch.h"
#include "executor/run/in_place_replay.h"
#include "executor/run/input_lanes.h"
#include "executor/run/late_values.h"
#include "executor/run/put_states.h"
#include "executor/run/run.h"
#include "executor/run/self_check.h"
#include "executor/run/settle.h"
#include "executor/state/governed.h"
#include "executor/state/limits.h"
#include "executor/state/objects.h"
#include "executor/state/op_span.h"
#include "executor/state/run_arena.h"
#include "executor/state/spans.h"

enum { SHORT_COPY_BYTES = 1024 };

// Copies within host memory. Profiles show the copies that control flow feeds to its bodies.
static void feed_memory(const rondo__unit *unit, const rondo__plan *plan, size_t i, void *to,
                        const void *from, size_t bytes) {
    rondo__hook_scope scope = {0};
    if (unit->depth > 0) {
        const rondo__copy_note note =
            rondo__plan_note_copy(plan, plan->program->inputs[i], NULL, "feed");
        scope = rondo__copy_tell_host(bytes, &note);
    }
    memcpy(to, from, bytes);
    rondo__hook_leave(&scope);
}

// In a plan of a GPU, puts an input that ops of the processor read into its value slot on the host.
// In an asynchronous run an input in host memory goes through an input lane.
static rondo_status feed_host_side(rondo__unit *unit, rondo__plan *plan, size_t i,
                                   const rondo_tensor *feed, bool waits) {
    const rondo__slot *slot = rondo__plan_get_host_input(plan, i);
    if (slot == NULL) {
        return RONDO_STATUS_OK;
    }
    if (slot->is_kept) {  // ops that go ahead may read what earlier work on the stream changes
        return waits ? rondo_stream_synchronize(unit->stream) : RONDO_STATUS_OK;
    }
    if (feed->device != unit->executor->device) {
        if (waits) {
            feed_memory(unit, plan, i, slot->address, feed->data, slot->bytes);
        }
        return RONDO_STATUS_OK;
    }
    plan->run.is_fed = false;
    plan->run.has_put = true;
    rondo__transfers_note(unit->executor, RONDO__TO_HOST, slot->bytes, false);
    const rondo__copy_note note =
        rondo__plan_note_copy(plan, plan->program->inputs[i], NULL, "feed");
    return rondo__transfers_copy(unit->stream, RONDO__TO_HOST, &note, slot->address, feed->data,
                                 slot->bytes);
}

// Puts the inputs where the plan wants them: device tensors in stream order, the others as they are
// now. On CUDA inputs in host memory go through pinned memory that the plan owns, so that the
// caller's memory is free again at once. In an asynchronous run they go through an input lane,
// because an earlier run may still read the pinned memory.
static rondo_status feed_inputs(rondo__unit *unit, rondo__plan *plan, const rondo_tensor *feeds,
                                bool waits) {
    const rondo_program *program = plan->program;
    // Inputs live until the end of a run, so the feeds of an earlier turn of the loop are still
    // there.
    const uint64_t loop = unit->runs.loop;
    const bool is_steady = loop != 0 && plan->run.loop == loop && unit->fed_plan == plan;
    const size_t fresh_count = is_steady ? unit->runs.steady_first : program->input_count;
    plan->run.loop = 0;
    unit->runs.took_device_feeds = false;
    plan->run.is_fed = waits;
    plan->run.copied_bytes = 0;
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__slot *slot = &plan->slots[program->inputs[i]];
        unit->runs.took_device_feeds =
            unit->runs.took_device_feeds || feeds[i].device == unit->executor->device;
        if (slot->kind == RONDO__SLOT_DYNAMIC) {
            rondo_tensor *place = &plan->run.dynamic[program->inputs[i]];
            rondo_tensor_deinit(place);
            if (rondo__late_values_is_on_gpu(unit->executor, &feeds[i]) ||
                (unit->depth > 0 && waits && rondo__dtype_is_plain(feeds[i].dtype))) {
                rondo_tensor_share(&feeds[i], place);  // whose bytes stay for the run
            } else {
                RETURN_IF_ERROR(rondo__unit_pass_object(unit, &feeds[i], place));
            }
        }
        if (slot->kind != RONDO__SLOT_ARENA || slot->bytes == 0 || i >= fresh_count) {
            continue;  // its value is part of the plan, or there
        }
        if (plan->run.is_in_place &&
            rondo__in_place_find(plan, program->inputs[i]) == feeds[i].data) {
            continue;
        }
        RETURN_IF_ERROR(feed_host_side(unit, plan, i, &feeds[i], waits));
        if (slot->is_on_host || slot->is_bound) {
            continue;
        }
        const rondo__copy_note note = rondo__plan_note_copy(plan, program->inputs[i], NULL, "feed");
        if (waits && feeds[i].device == unit->executor->device &&
            rondo__unit_copy_here(unit, slot->address, feeds[i].data, slot->bytes)) {
            plan->run.copied_bytes += slot->bytes;
            continue;
        }
        plan->run.has_put = true;
        if (feeds[i].device == unit->executor->device) {
            RETURN_IF_ERROR(rondo__stream_copy_noted(unit->stream, slot->address, feeds[i].data,
                                                     slot->bytes, RONDO_COPY_DEVICE_TO_DEVICE,
                                                     &note));
        } else if (waits && plan->memory.staging == NULL) {
            feed_memory(unit, plan, i, slot->address, feeds[i].data, slot->bytes);
            plan->run.copied_bytes += slot->bytes;
        } else if (waits) {
            char *staged = plan->memory.staging + plan->memory.input_staging[i];
            feed_memory(unit, plan, i, staged, feeds[i].data, slot->bytes);
            if (unit->depth > 0) {  // what a caller feeds is not counted
                rondo__transfers_note(unit->executor, RONDO__TO_DEVICE, slot->bytes, false);
            }
            RETURN_IF_ERROR(rondo__stream_copy_noted(unit->stream, slot->address, staged,
                                                     slot->bytes, RONDO_COPY_HOST_TO_DEVICE,
                                                     &note));
        }
    }
    plan->run.loop = loop;
    return waits ? RONDO_STATUS_OK : rondo__input_lanes_feed(unit, plan, feeds);
}

// Checks what only the run has told of the outputs.
static rondo_status check_dynamic(rondo__unit *unit, const rondo__plan *plan) {
    for (size_t i = 0; unit->depth == 0 && i < plan->program->output_count; ++i) {
        const int32_t value = plan->program->outputs[i];
        const rondo_tensor *result = &plan->run.dynamic[value];
        if (plan->slots[value].kind == RONDO__SLOT_DYNAMIC && result->dtype != RONDO_DTYPE_NONE) {
            RETURN_IF_ERROR(rondo__unit_check_output(unit, i, result->dtype, &result->shape));
        }
    }
    return RONDO_STATUS_OK;
}

static void count_run(rondo__unit *unit, rondo__plan *plan, bool was_replayed) {
    plan->run.count += 1;
    rondo__ranks_end(plan);
    unit->runs.eager_count += was_replayed ? 0 : 1;
    unit->runs.replay_count += was_replayed ? 1 : 0;
    unit->runs.has_run = true;
    unit->fed_plan = plan;
    if (unit->depth == 0) {
        unit->executor->variants.ran = unit;
        unit->executor->resources.crossings.run_count += 1;
    }
}

// Work on the stream still uses the plan's memory; other ranks wait for what will not come.
static void break_off(rondo__unit *unit, const rondo__plan *plan) {
    if (rondo__ranks_has_begun(plan)) {
        rondo__ranks_break(unit->executor);
    }
    (void)!rondo_stream_synchronize(unit->stream);
}

// The first failure stays the one reported.
static rondo_status give_up(rondo__unit *unit, const rondo__fetch *fetch, rondo_status status) {
    rondo_error saved;
    rondo__error_save(&saved);
    break_off(unit, fetch->plan);
    if (fetch->is_settled && unit->runs.has_begun) {
        rondo__states_begin(unit, fetch->plan);
    }
    rondo__states_end(unit, true);
    unit->runs.has_unread_spans = false;  // their events may tell of the run that failed
    rondo__fetch_drop(fetch);
    rondo__error_restore(&saved);
    return status;
}

static rondo_status run_steps(rondo__unit *unit, rondo__plan *plan, bool *out_was_replayed) {
    if (!plan->run.is_in_place) {
        return rondo__plan_run_steps(unit, plan, rondo__unit_run_tensors, out_was_replayed);
    }
    *out_was_replayed = true;
    return rondo__in_place_run(unit, plan);
}

// Nothing of this run has been copied yet; a body's copies are those of the run around it.
static void begin_crossings(rondo__unit *unit) {
    if (unit->depth == 0) {
        unit->executor->resources.crossings.pending = (rondo__transfer_counts){0};
    }
}

// Until this run is done, there are no inputs with which to run again.
static void forget_fed(rondo__unit *unit) {
    unit->runs.has_begun = false;
    if (unit->depth == 0) {
        unit->executor->variants.ran = NULL;
    }
}

// The times of the steps that began at `start_ns`. Where the stream is still at work, compute_ns is
// their beginning until the end is known.
static void note_steps(const rondo_executor *executor, uint64_t start_ns,
                       rondo_run_times *out_times) {
    const uint64_t taken_ns = rondo__clock_now_ns() - start_ns;
    const bool is_done = executor->work.is_all_here;
    out_times->enqueue_ns = is_done ? 0 : taken_ns - executor->work.here_ns;
    out_times->compute_ns = is_done ? taken_ns : start_ns;
}

// Whether feeding took longer than a look at the clock.
static bool takes_time(const rondo__unit *unit, const rondo__plan *plan) {
    return plan->run.copied_bytes > SHORT_COPY_BYTES ||
           !rondo_device_is_host(unit->executor->device);
}

// Puts inputs, steps and outputs on the stream; the run has begun at `begun_ns`.
static rondo_status put_run(const rondo__fetch *fetch, rondo__plan *plan, const rondo_tensor *feeds,
                            uint64_t begun_ns, rondo_run_times *out_times) {
    rondo__unit *unit = fetch->unit;
    begin_crossings(unit);
    forget_fed(unit);
    RETURN_IF_ERROR(rondo__in_place_begin(fetch, plan, feeds));
    if (!fetch->is_prepared) {
        RETURN_IF_ERROR(rondo__fetch_prepare_known(fetch));
    }
    // Before states count as written: where a rank has left, the others keep what they have.
    RETURN_IF_ERROR(rondo__ranks_begin(unit, plan));
    if (!fetch->is_settled) {
        rondo__states_begin(unit, plan);
    }
    unit->runs.has_begun = true;
    RETURN_IF_ERROR(rondo__unit_mark(unit, 0, true));
    plan->run.has_put = !fetch->waits;  // lanes
    RETURN_IF_ERROR(feed_inputs(unit, plan, feeds, fetch->waits));
    RETURN_IF_ERROR(rondo__unit_mark(unit, 1, plan->run.has_put));
    const uint64_t fed_ns = takes_time(unit, plan) ? rondo__clock_now_ns() : begun_ns;
    const rondo_status status = run_steps(unit, plan, &out_times->was_replayed);
    note_steps(unit->executor, fed_ns, out_times);
    out_times->ran_op_count = unit->executor->work.ran_count;
    out_times->replayed_op_count = unit->executor->work.replayed_count;
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(check_dynamic(unit, plan));
    if (!fetch->is_prepared) {
        RETURN_IF_ERROR(rondo__fetch_prepare_found(fetch));
    }
    RETURN_IF_ERROR(rondo__unit_mark(unit, 2, true));
    plan->run.has_put = false;
    RETURN_IF_ERROR(rondo__fetch_put(fetch));
    if (!fetch->is_settled) {
        RETURN_IF_ERROR(rondo__states_put(fetch));
    }
    RETURN_IF_ERROR(rondo__unit_mark(unit, 3, plan->run.has_put));
    return rondo__plan_capture_ahead(unit, plan);
}

// The same for a run that is one replay as a whole (carried.h).
static rondo_status put_carried(const rondo__fetch *fetch, rondo__plan *plan,
                                const rondo_tensor *feeds, uint64_t begun_ns,
                                rondo_run_times *out_times) {
    rondo__unit *unit = fetch->unit;
    rondo_executor *executor = unit->executor;
    begin_crossings(unit);
    forget_fed(unit);
    plan->run.is_in_place = false;
    plan->run.is_fed = fetch->waits;
    plan->run.loop = 0;
    unit->runs.took_device_feeds = fetch->is_settled || rondo__carried_is_near(fetch->carried);
    RETURN_IF_ERROR(rondo__executor_check_cancelled(executor));
    unit->runs.has_begun = true;
    RETURN_IF_ERROR(rondo__carried_put(fetch, feeds));
    unit->runs.in_place_count += rondo__carried_is_in_place(fetch->carried) ? 1 : 0;
    executor->work.ran_count += plan->item_count;
    executor->work.replayed_count += plan->item_count;
    note_steps(executor, begun_ns, out_times);
    out_times->was_replayed = true;
    out_times->ran_op_count = executor->work.ran_count;
    out_times->replayed_op_count = executor->work.replayed_count;
    return RONDO_STATUS_OK;
}

static rondo_status wait_for(rondo__unit *unit, const rondo__plan *plan) {
    RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
    RETURN_IF_ERROR(rondo__other_gpus_synchronize(plan));
    RETURN_IF_ERROR(rondo__ranks_check(unit->executor));
    return rondo__device_control_check(unit->executor, plan);
}

// The arena of a whole run may be shared; that of a body lies in its executor.
static rondo_status enter_arena(const rondo__unit *unit, bool waits) {
    const bool by_thread = waits && rondo_device_is_host(unit->executor->device);
    return unit->depth == 0 ? rondo__run_arena_enter(unit->executor, by_thread) : RONDO_STATUS_OK;
}

static rondo_status leave_arena(const rondo__unit *unit, bool is_waited_for, rondo_status status) {
    if (unit->depth > 0 || unit->executor->options.run_arena == NULL) {
        return status;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    const rondo_status left = rondo__run_arena_leave(unit->executor, is_waited_for);
    if (status != RONDO_STATUS_OK) {
        rondo__error_restore(&saved);
        return status;
    }
    return left;
}

// Whether a run is over only when the stream was waited for. One whose results stay where they are
// made is waited for where the processor writes one of them, where another GPU takes part, and
// where a loop on the device may have been stopped.
static bool is_waited_for(const rondo__fetch *fetch) {
    const rondo__plan *plan = fetch->plan;
    bool is =
        !fetch->unit->stays_on_device || plan->peer_count > 0 || rondo__fetch_leaves_pinned(fetch);
    for (size_t i = 0; !is && i < plan->item_count; ++i) {
        is = (rondo__plan_get_op(plan, i)->def->flags & RONDO__OP_CONTROL) != 0;
    }
    return is;
}

rondo_status rondo__unit_run_tensors(rondo__unit *unit, const rondo_tensor *feeds,
                                     rondo_tensor *results, const bool *wants) {
    rondo__plan *plan;
    RETURN_IF_ERROR(rondo__unit_find_plan(unit, feeds, &plan));
    if (unit->depth == 0) {
        rondo__governed_choose(unit, plan, true);
    }
    const rondo__fetch fetch = {
        .unit = unit, .plan = plan, .results = results, .wants = wants, .waits = true};
    return rondo__unit_run_fetch(&fetch, feeds);
}

rondo_status rondo__unit_run_fetch(const rondo__fetch *fetch, const rondo_tensor *feeds) {
    rondo__unit *unit = fetch->unit;
    rondo__plan *plan = fetch->plan;
    rondo_run_times times = {0};
    const uint64_t start_ns = rondo__clock_now_ns();
    RETURN_IF_ERROR(enter_arena(unit, true));
    rondo_status status = fetch->carried != NULL ? put_carried(fetch, plan, feeds, start_ns, &times)
                                                 : put_run(fetch, plan, feeds, start_ns, &times);
    if (status == RONDO_STATUS_OK && is_waited_for(fetch)) {
        status = wait_for(unit, plan);
    }
    if (status != RONDO_STATUS_OK) {
        status = give_up(unit, fetch, status);
    }
    status = leave_arena(unit, true, status);
    RETURN_IF_ERROR(status);
    if (!unit->executor->work.is_all_here) {
        times.compute_ns = rondo__clock_now_ns() - times.compute_ns;
    }
    rondo__fetch_finish(fetch);
    if (!fetch->is_settled) {
        rondo__states_end(unit, false);
    }
    times.latency_ns = rondo__clock_now_ns() - start_ns;
    unit->runs.times = times;
    unit->runs.has_unread_spans = fetch->carried == NULL;
    rondo__governed_note_run(unit, plan, times.latency_ns);
    count_run(unit, plan, times.was_replayed);
    rondo__branches_settle(unit, plan);
    return RONDO_STATUS_OK;
}

// Records the end of the run: in the executor's own event, if the program may record on the stream,
// which then cannot be waited for; and in the caller's.
static rondo_status mark_end(rondo__unit *unit, rondo_event *done) {
    if (unit->executor->caller.may_record_stream) {
        RETURN_IF_ERROR(rondo_event_record(unit->executor->caller.async->finished, unit->stream));
    }
    return done != NULL ? rondo_event_record(done, unit->stream) : RONDO_STATUS_OK;
}

rondo_status rondo__unit_put_fetch(const rondo__fetch *fetch, const rondo_tensor *feeds,
                                   rondo_event *done, rondo_run_times *out_times) {
    rondo__plan *plan = fetch->plan;
    rondo__unit *unit = fetch->unit;
    rondo__unit_read_spans(unit);  // of a run before, whose events come to tell of this one
    RETURN_IF_ERROR(enter_arena(unit, false));
    const uint64_t begun_ns = rondo__clock_now_ns();
    rondo_status status = fetch->carried != NULL
                              ? put_carried(fetch, plan, feeds, begun_ns, out_times)
                              : put_run(fetch, plan, feeds, begun_ns, out_times);
    if (status == RONDO_STATUS_OK) {
        status = mark_end(unit, done);
    }
    const bool has_failed = status != RONDO_STATUS_OK;
    status = has_failed ? give_up(unit, fetch, status) : status;
    status = leave_arena(unit, has_failed, status);
    RETURN_IF_ERROR(status);
    rondo__fetch_finish(fetch);
    if (!fetch->is_settled) {
        rondo__states_end(unit, false);
    }
    count_run(unit, plan, out_times->was_replayed);
    return RONDO_STATUS_OK;
}

// The unit whose last run left its inputs in its plan.
static rondo_status find_fed_unit(const rondo_executor *executor, rondo__unit **out_unit) {
    rondo__unit *unit = executor->variants.ran;
    if (unit == NULL || unit->fed_plan == NULL) {
        return RONDO_FAIL(STATE,
                          "nothing has run yet, or the last run failed, or its plan was dropped; "
                          "call rondo_executor_run first");
    }
    if (unit->runs.took_device_feeds) {
        return RONDO_FAIL(STATE,
                          "the inputs of the last run were device tensors, which are the "
                          "program's; run again with them");
    }
    if (!rondo__run_arena_holds(executor)) {
        return RONDO_FAIL(STATE,
                          "the inputs of the last run are gone: another executor that shares the "
                          "run arena has run since");
    }
    *out_unit = unit;
    return RONDO_STATUS_OK;
}

static rondo_status rerun_steps(rondo__unit *unit, rondo__plan *plan, uint64_t start_ns,
                                rondo_run_times *out_times) {
    rondo_status status = rondo__self_check_begin_run(unit->executor);
    begin_crossings(unit);
    plan->run.is_fed = true;  // by the run before
    rondo__governed_choose(unit, plan, false);
    if (status == RONDO_STATUS_OK) {
        status = rondo__ranks_begin(unit, plan);
    }
    if (status == RONDO_STATUS_OK) {
        status =
            rondo__plan_run_steps(unit, plan, rondo__unit_run_tensors, &out_times->was_replayed);
    }
    rondo__self_check_end_run(unit->executor);
    note_steps(unit->executor, start_ns, out_times);
    if (status == RONDO_STATUS_OK) {
        status = wait_for(unit, plan);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_error saved;
        rondo__error_save(&saved);
        break_off(unit, plan);
        rondo__error_restore(&saved);
    }
    return status;
}

rondo_status rondo_executor_rerun(rondo_executor *executor) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    rondo__unit *unit = NULL;
    RETURN_IF_ERROR(find_fed_unit(executor, &unit));
    RETURN_IF_ERROR(enter_arena(unit, true));
    rondo__plan *plan = unit->fed_plan;
    rondo_run_times times = {0};
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_RUN, "run again");
    const uint64_t start_ns = rondo__clock_now_ns();
    rondo__budget *before = rondo__executor_begin_call(executor, NULL, 0);
    rondo_status status = rerun_steps(unit, plan, start_ns, &times);
    status = leave_arena(unit, true, status);
    rondo__executor_end_call(executor, before, status);
    rondo__hook_leave(&scope);
    RETURN_IF_ERROR(status);
    times.latency_ns = rondo__clock_now_ns() - start_ns;
    times.compute_ns = times.latency_ns;
    times.ran_op_count = executor->work.ran_count;
    times.replayed_op_count = executor->work.replayed_count;
    unit->runs.times = times;
    unit->runs.has_unread_spans = false;
    count_run(unit, plan, times.was_replayed);
    rondo__branches_settle(unit, plan);
    return RONDO_STATUS_OK;
}
