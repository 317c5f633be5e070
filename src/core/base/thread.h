// base/thread.h — which thread this is, for messages; starting one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// A number that no other thread of the process has had; the first that asks is 1. (The address of a
// thread-local variable would do, but a thread that starts after another ended may get the same.)
uint64_t rondo__thread_get_number(void);

// The name the program gave this thread (pthread_setname_np); "" when none can be had.
void rondo__thread_get_name(char *out_name, size_t bytes);

// Starts a thread of the library's own, in the default floating-point environment. It gets none of
// the program's signals but those of faults of its own.
//
// name       at most 15 characters, shown by debuggers.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__thread_start(const char *name, void *(*function)(void *),
                                                void *argument, pthread_t *out_thread);
