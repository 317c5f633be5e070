// executor/named_run.c — runs whose feeds and fetches are given by name, waited for or not.
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"
#include "base/error.h"
#include "base/log/hook.h"
#include "executor/async.h"
#include "executor/bound_run.h"
#include "executor/compile/plan_cache.h"
#include "executor/feeds.h"
#include "executor/repeated.h"
#include "executor/run/put_states.h"
#include "executor/run/self_check.h"
#include "executor/run/settle.h"
#include "executor/run/transfer.h"
#include "executor/state/governed.h"
#include "executor/state/limits.h"
#include "executor/variants.h"
#include "rondo/executor_stream.h"

rondo_status rondo_executor_run(rondo_executor *executor, const rondo_binding *feeds,
                                size_t feed_count, rondo_binding *fetches, size_t fetch_count) {
    rondo_bound_run *repeated =
        rondo__repeated_find(executor, feeds, feed_count, fetches, fetch_count);
    if (repeated != NULL) {
        RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
        return rondo__bound_run_call(repeated, NULL, true);
    }
    RETURN_IF_ERROR(
        rondo__executor_order_call(executor, feeds, feed_count, fetches, fetch_count, __func__));
    RETURN_IF_ERROR(rondo__executor_settle(executor, __func__));
    const rondo__call_lists *lists = &executor->ports.lists;
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_RUN, "run");
    rondo__budget *before = rondo__executor_begin_call(executor, feeds, feed_count);
    rondo_status status = rondo__states_take_feeds(&executor->main, lists->feeds);
    if (status == RONDO_STATUS_OK) {
        status = rondo__executor_choose_variant(executor, lists->feeds);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__self_check_begin_run(executor);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__unit_run_tensors(executor->variants.active, lists->feeds, lists->results,
                                         lists->wants);
    }
    rondo__self_check_end_run(executor);
    rondo__executor_end_call(executor, before, status);
    rondo__hook_leave(&scope);
    for (size_t f = 0; status == RONDO_STATUS_OK && f < fetch_count; ++f) {
        fetches[f].tensor = lists->results[lists->places[f]];
    }
    if (status == RONDO_STATUS_OK) {
        rondo__repeated_note(executor, feeds, feed_count, fetches, fetch_count);
    }
    return status;
}

static rondo_status put_run(rondo_executor *executor, rondo_event *done) {
    const rondo__call_lists *lists = &executor->ports.lists;
    RETURN_IF_ERROR(rondo__states_take_feeds(&executor->main, lists->feeds));
    RETURN_IF_ERROR(rondo__executor_choose_variant(executor, lists->feeds));
    rondo__fetch fetch = {
        .unit = executor->variants.active, .results = lists->results, .wants = lists->wants};
    RETURN_IF_ERROR(rondo__unit_find_plan(fetch.unit, lists->feeds, &fetch.plan));
    rondo__governed_choose(fetch.unit, fetch.plan, false);
    return rondo__executor_put_fetch(executor, &fetch, lists->feeds, done);
}

rondo_status rondo_executor_run_async(rondo_executor *executor, const rondo_binding *feeds,
                                      size_t feed_count, rondo_binding *fetches, size_t fetch_count,
                                      rondo_event *done) {
    rondo_bound_run *repeated =
        rondo__repeated_find(executor, feeds, feed_count, fetches, fetch_count);
    if (repeated != NULL) {
        RETURN_IF_ERROR(rondo__check_process(executor->device, __func__));
        RETURN_IF_ERROR(rondo__executor_check_done(executor, done, __func__));
        RETURN_IF_ERROR(rondo__unit_refuse_recording(&executor->main, __func__));
        return rondo__bound_run_call(repeated, done, false);
    }
    RETURN_IF_ERROR(
        rondo__executor_order_call(executor, feeds, feed_count, fetches, fetch_count, __func__));
    RETURN_IF_ERROR(rondo__executor_check_done(executor, done, __func__));
    RETURN_IF_ERROR(rondo__unit_refuse_recording(&executor->main, __func__));
    const rondo__hook_scope scope = rondo__hook_enter(RONDO__SPAN_RUN, "run, not waited for");
    rondo__budget *before = rondo__executor_begin_call(executor, feeds, feed_count);
    const rondo_status status = put_run(executor, done);
    rondo__executor_end_call(executor, before, status);
    rondo__hook_leave(&scope);
    const rondo__call_lists *lists = &executor->ports.lists;
    for (size_t f = 0; status == RONDO_STATUS_OK && f < fetch_count; ++f) {
        fetches[f].tensor = lists->results[lists->places[f]];
    }
    if (status == RONDO_STATUS_OK) {
        rondo__repeated_note(executor, feeds, feed_count, fetches, fetch_count);
    }
    return status;
}
