// base/workers.h — threads that share the work of one op.
//
// The thread that runs an op is never idle and never alone for lack of others: it cuts the work
// into chunks and begins; helpers that are awake, or come to be, take chunks, too. What no helper
// has taken when it comes to it, it does itself. So an op waits for a helper only while that one is
// inside a chunk, and a helper that sleeps, or has lost its processor, costs nothing.
//
//   rondo__workers_place former = rondo__workers_enter((rondo__workers_place){workers, count});
//   rondo__workers_loop(row_count, 16, do_rows, &rows);     // by the kernel
//   rondo__workers_leave(former);
//
// Workers have a limit: helpers work only while fewer threads than that are inside. Those of a
// device have as many places as there are processors, and whoever runs ops counts; so four threads
// of a program that each run a network on four processors have no helpers, and one has three.
// Strict workers (those of rondo/workers.h) also make those wait that would be one too many.
//
// Chunks do not depend on who takes them, so results do not either.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BASE_WORKERS_H
#define RONDO_BASE_WORKERS_H

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
// is_strict  whoever enters waits until there is room.
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

#endif  // RONDO_BASE_WORKERS_H
