// thread_support.c — see thread_support.h.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/thread_support.h"

void thread_start(thread_outcome *outcome, void *(*function)(void *), void *data) {
    assert_int_equal(pthread_create(&outcome->thread, NULL, function, data), 0);
}

void thread_join(thread_outcome *outcome) {
    pthread_join(outcome->thread, NULL);
}

void thread_check(const thread_outcome *outcome) {
    if (outcome->status != RONDO_STATUS_OK) {
        fail_msg("thread %u: %s: %s", (unsigned)outcome->number,
                 rondo_status_get_name(outcome->status), outcome->message);
    }
    assert_int_equal(outcome->got, outcome->expected);
}

void thread_keep(thread_outcome *outcome, rondo_status status) {
    if (outcome->status == RONDO_STATUS_OK && status != RONDO_STATUS_OK) {
        outcome->status = status;
        snprintf(outcome->message, sizeof outcome->message, "%s", rondo_error_get_last()->message);
    }
}
