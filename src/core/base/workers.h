// base/workers.h — threads that share the work of one op.
//
// The thread that runs an op cuts the work into chunks and begins with them; helpers that are awake
// take chunks, too. The thread does all chunks that no helper has taken. So an op waits for a
// helper only while the helper is inside a chunk; a helper that sleeps, or has lost its processor,
// costs nothing.
//
//   rondo__workers_place former = rondo__workers_enter((rondo__workers_place){workers, count});
//   rondo__workers_loop(row_count, 16, do_rows, &rows);     // by the kernel
//   rondo__workers_leave(former);
//
// Workers have a limit: helpers work only while fewer threads than that are inside. The limit of a
// device's workers is the number of processors, and threads of the program that run ops count; so
// four threads of a program that each run a network on four processors have no helpers, and one has
// three. Strict workers (rondo/workers.h) also make a thread wait that would exceed the limit.
//
// Chunks do not depend on the threads that take them, so results do not either.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rondo/workers.h"

typedef rondo_workers rondo__workers;

// A thread's workers, and how many threads one of its loops may have, itself included.
typedef struct rondo__workers_place {
    rondo__workers *workers;  // NULL: none, loops are not shared
    int32_t thread_count;
} rondo__workers_place;

// Does the elements [first, end) of something. Calls for different elements go on at once.
typedef void (*rondo__workers_work)(void *data, int64_t first, int64_t end);

// Workers with one reference. Their threads start when there is work for them.
//
// limit      threads that may be inside at once, from 1.
// is_strict  a thread that enters waits until the limit allows it.
//
// Errors:    NULL: NO_MEMORY, recorded.
rondo__workers *rondo__workers_create(int32_t limit, bool is_strict);
rondo__workers *rondo__workers_retain(rondo__workers *workers);
// The last one ends the helpers, and must not be one; in the child of a fork there are none. NULL
// is fine.
void rondo__workers_release(rondo__workers *workers);
int32_t rondo__workers_get_limit(const rondo__workers *workers);

// Gives the calling thread a place, until it leaves with the former one, which is returned. To
// enter the workers that one is in already changes the thread count only.
rondo__workers_place rondo__workers_enter(rondo__workers_place place);
void rondo__workers_leave(rondo__workers_place former);

// Where loops of the calling thread are shared while it is in none: it enters for each, with as
// many threads as host work may use there. NULL: nowhere, which is so from the beginning.
void rondo__workers_set_home(rondo__workers *workers);

// Kernels that this thread prepares from now on share their loops with those workers; NULL: with
// those of the device. Returns the former choice.
rondo__workers *rondo__workers_choose(rondo__workers *workers);
rondo__workers *rondo__workers_get_chosen(void);

// Does `work` for all of [0, count), and returns when it is done. Chunks have at least `grain`
// elements, so that one takes some microseconds; up to that many are done here at once.
//
// Threads:   safe; may be called from inside `work`.
// Cost:      some 100 ns where helpers are awake, and no heap.
void rondo__workers_loop(int64_t count, int64_t grain, rondo__workers_work work, void *data);

// Threads that they have started.
int32_t rondo__workers_count_helpers(rondo__workers *workers);
