// executor/self_check_calls.c — what a program asks of self-checks.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/write_struct.h"
#include "executor/run/self_check.h"

rondo_status rondo_executor_self_check(rondo_executor *executor, const rondo_binding *feeds,
                                       size_t feed_count, rondo_binding *fetches,
                                       size_t fetch_count, rondo_self_check_report *out_report) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_report, sizeof *out_report, __func__, "rondo_self_check_report"));
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    if (executor->graphs == RONDO_GRAPHS_OFF) {
        return RONDO_FAIL(STATE,
                          "graphs are off, so nothing is replayed; allow them with "
                          "rondo_executor_set_graphs");
    }
    if (executor->options.communicator != NULL) {
        return RONDO_FAIL(UNSUPPORTED, "a checked run computes twice, and other ranks would not");
    }
    RETURN_IF_ERROR(rondo__self_check_begin_report(executor));
    rondo_status status = rondo_executor_run(executor, feeds, feed_count, fetches, fetch_count);
    rondo__self_check_end_report(executor);
    if (status == RONDO_STATUS_OK) {
        rondo__write_struct(out_report, rondo__self_check_get_report(executor));
    }
    return status;
}

rondo_status rondo_executor_get_self_check(const rondo_executor *executor,
                                           rondo_self_check_report *out_report) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_report, sizeof *out_report, __func__, "rondo_self_check_report"));
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    const rondo_self_check_report *report = rondo__self_check_get_report(executor);
    if (report == NULL) {
        return RONDO_FAIL(STATE,
                          "no run was checked; set self_check_every, or call "
                          "rondo_executor_self_check");
    }
    rondo__write_struct(out_report, report);
    return RONDO_STATUS_OK;
}
