// executor/async.c — runs that are put on the stream and not waited for.
// SPDX-License-Identifier: Apache-2.0
#include "executor/async.h"

#include "backend/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log/hook.h"
#include "executor/compile/plan_cache.h"
#include "executor/feeds.h"
#include "executor/run/input_lanes.h"
#include "executor/run/put_states.h"
#include "executor/run/self_check.h"
#include "executor/run/settle.h"
#include "executor/run/transfer.h"
#include "executor/state/governed.h"
#include "executor/state/limits.h"
#include "executor/variants.h"
#include "rondo/executor_stream.h"

// From now on the program may record on the stream, so that nobody can wait for it.
static void give_stream(rondo_executor *executor) {
    const rondo__async *async = executor->caller.async;
    rondo_error saved;
    rondo__error_save(&saved);
    if (async != NULL && async->is_under_way &&
        rondo_event_record(async->finished, executor->main.stream) != RONDO_STATUS_OK) {
        (void)!rondo_stream_synchronize(executor->main.stream);
    }
    rondo__error_restore(&saved);
    executor->caller.may_record_stream = true;
}

rondo_stream *rondo_executor_get_stream(const rondo_executor *executor) {
    if (executor == NULL) {
        return NULL;
    }
    if (!executor->caller.may_record_stream && !atomic_load(&executor->device->is_forked)) {
        give_stream((rondo_executor *)(uintptr_t)executor);
    }
    return executor->main.stream;
}

rondo_status rondo__executor_put_fetch(rondo_executor *executor, const rondo__fetch *fetch,
                                       const rondo_tensor *feeds, rondo_event *done) {
    RETURN_IF_ERROR(rondo__async_make(executor));
    rondo__async *async = executor->caller.async;
    rondo_run_times times = {0};
    const uint64_t start_ns = rondo__clock_now_ns();
    RETURN_IF_ERROR(rondo__self_check_begin_run(executor));
    if (!async->is_under_way) {
        async->failed_waits = atomic_load(&executor->main.stream->failed_waits);
        async->stop_status = RONDO_STATUS_OK;
    }
    async->is_putting = true;
    const rondo_status status = rondo__unit_put_fetch(fetch, feeds, done, &times);
    async->is_putting = false;
    rondo__self_check_end_run(executor);
    RETURN_IF_ERROR(status);
    async->is_under_way = true;
    async->start_ns = start_ns;
    async->times = times;
    async->active = fetch->unit;
    async->has_spans = fetch->carried == NULL;
    return RONDO_STATUS_OK;
}

rondo_status rondo__executor_check_done(const rondo_executor *executor, const rondo_event *done,
                                        const char *call) {
    return done == NULL || done->device == executor->device
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "`done` is an event of %s, the executor runs on %s",
                               done->device->name, rondo_device_get_name(executor->device));
}
