// base/thread_count.h — how many threads host work may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

enum { RONDO__HOST_THREAD_COUNT_MAX = 1024 };

// Threads that host work on the calling thread may use for one op: what was chosen for the thread;
// otherwise RONDO_NUM_THREADS, OMP_NUM_THREADS, or all there are.
int32_t rondo__host_get_thread_count(void);

// Chooses for the calling thread, up to the maximum above; 0 takes the choice back. Returns the
// former choice.
int32_t rondo__host_choose_thread_count(int32_t count);

// Processors that this process may run on.
int32_t rondo__host_get_processor_count(void);
