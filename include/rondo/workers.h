// rondo/workers.h — processors that executors on the host share, for servers.
//
//   rondo_workers_create(8, &workers);
//   options.workers = workers;                    // of each executor
//   rondo_executor_create(program, device, &options, &executor);
//   ...
//   rondo_workers_release(workers);               // the executors keep it
//
// Ops of all these executors run on so many threads at a time and no more, however many of the
// program's threads run networks: a thread that comes to an op while all places are taken waits for
// one, about in the order of asking. A place that no thread asks for goes to a helper, which takes
// a share of the ops under way. So one request alone is as quick as all places make it, many at
// once do not get in each other's way, and processors that are left out stay free for the rest of
// the program.
//
// An op has as many threads as there are places, unless options.thread_count says so. Executors
// without workers share those of the device, which has a place for each processor; there
// the program's threads do not wait, and helpers come only while places are left.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_WORKERS_H
#define RONDO_WORKERS_H

#include <stdint.h>

#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_workers rondo_workers;

// Makes workers with so many places, 1 to 256. Threads start with the first work for them.
//
// Errors:    INVALID (count).
RONDO_API RONDO_MUST_USE rondo_status rondo_workers_create(uint32_t count,
                                                           rondo_workers **out_workers);

// Adds a reference.
RONDO_API void rondo_workers_retain(rondo_workers *workers);

// Gives up a reference. The last one ends the threads. In the child of a fork there
// are none, and only memory is freed. Not inside of an op.
RONDO_API void rondo_workers_release(rondo_workers *workers);

RONDO_EXTERN_C_END

#endif  // RONDO_WORKERS_H
