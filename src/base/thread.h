// base/thread.h — which thread this is, for messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BASE_THREAD_H
#define RONDO_BASE_THREAD_H

#include <stddef.h>
#include <stdint.h>

// A number that no other thread of the process has had; the first that asks is 1. (The address of a
// thread-local variable would do, but a thread that starts after another ended may get the same.)
uint64_t rondo__thread_get_number(void);

// The name the program gave this thread (pthread_setname_np); "" when none can be had.
void rondo__thread_get_name(char *out_name, size_t bytes);

#endif  // RONDO_BASE_THREAD_H
