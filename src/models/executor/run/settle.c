// executor/run/settle.c — see settle.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/settle.h"

#include "backend/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/stream.h"
#include "executor/compile/device_control.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/ranks.h"
#include "executor/run/input_lanes.h"
#include "executor/run/put_states.h"
#include "executor/state/limits.h"
#include "executor/state/spans.h"
#include "rondo/executor_stream.h"

rondo_status rondo__unit_refuse_recording(const rondo__unit *unit, const char *call) {
    if (!rondo__stream_may_record(unit->stream)) {
        return RONDO_STATUS_OK;
    }
    bool is_recording = false;
    RETURN_IF_ERROR(rondo_stream_is_recording(unit->stream, &is_recording));
    return !is_recording
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, STATE,
                               "the executor's stream %u records, and this is not recorded; "
                               "rondo_executor_record makes the model a part of the capture, other "
                               "calls have to come after it",
                               (unsigned)unit->stream->number);
}

// Device times of the last of the runs, where the device tells them.
static void keep_times(rondo__async *async) {
    rondo__unit *active = async->active;
    const uint64_t now_ns = rondo__clock_now_ns();
    async->times.latency_ns = now_ns - async->start_ns;
    async->times.compute_ns = now_ns - async->times.compute_ns;
    active->runs.times = async->times;
    active->runs.has_unread_spans = async->has_spans;
    rondo__unit_read_spans(active);
}

// Returns the failure that a wait within a later call, or the program's own wait for the stream,
// has reported already.
static rondo_status check_told(const rondo__unit *unit, const rondo__async *async,
                               const char *call) {
    const bool has_failed = atomic_load(&unit->stream->failed_waits) != async->failed_waits;
    const rondo_status status =
        has_failed ? (rondo_status)atomic_load(&unit->stream->failed_status) : async->stop_status;
    return status == RONDO_STATUS_OK
               ? RONDO_STATUS_OK
               : rondo__error_set(
                     status, 0, "", __FILE__, __LINE__, call,
                     "work on the executor's stream failed, perhaps a run that was not "
                     "waited for; the call that waited meanwhile has told how (%s)",
                     rondo_status_get_name(status));
}

static rondo_status wait_for_runs(rondo_executor *executor, const rondo__async *async,
                                  const char *call) {
    RETURN_IF_ERROR(rondo__executor_synchronize(executor));
    RETURN_IF_ERROR(rondo__other_gpus_synchronize_all(executor));
    RETURN_IF_ERROR(rondo__ranks_check(executor));
    // A later call that failed may have dropped the plan.
    RETURN_IF_ERROR(rondo__device_control_check(executor, async->active->current));
    return check_told(&executor->main, async, call);
}

rondo_status rondo__executor_settle(rondo_executor *executor, const char *call) {
    RETURN_IF_ERROR(rondo__check_process(executor->device, call));
    RETURN_IF_ERROR(rondo__unit_refuse_recording(&executor->main, call));
    rondo__async *async = executor->caller.async;
    if (async == NULL || !async->is_under_way) {
        return RONDO_STATUS_OK;
    }
    async->is_under_way = false;
    const rondo_status status = wait_for_runs(executor, async, call);
    if (status != RONDO_STATUS_OK) {
        rondo__ranks_break(executor);
        rondo__states_lose(&executor->main);
        return status;
    }
    keep_times(async);
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_wait(rondo_executor *executor) {
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    return rondo__executor_settle(executor, __func__);
}
