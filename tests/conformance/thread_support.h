// thread_support.h — what the cases with threads share.
//
// No assertions inside the threads: cmocka's belong to the thread that runs the case. A thread
// keeps the first status that was not OK and what it computed; the case checks both after the join.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include "conformance/conformance.h"

// What one thread leaves behind. The struct that a thread gets has it as "outcome".
typedef struct thread_outcome {
    pthread_t thread;
    uint32_t number;      // for messages
    rondo_status status;  // the first that was not OK
    char message[512];    // its error record's
    uint32_t got;
    uint32_t expected;
} thread_outcome;

void thread_start(thread_outcome *outcome, void *(*function)(void *), void *data);
void thread_join(thread_outcome *outcome);
// Fails unless every call succeeded and what was got is what was expected.
void thread_check(const thread_outcome *outcome);

// In the thread: keeps the status if it is the first that is not OK.
void thread_keep(thread_outcome *outcome, rondo_status status);
// In the thread, where "self" is its struct: makes the call unless an earlier one failed.
#define STEP(call)                                     \
    do {                                               \
        if (self->outcome.status == RONDO_STATUS_OK) { \
            thread_keep(&self->outcome, (call));       \
        }                                              \
    } while (0)
