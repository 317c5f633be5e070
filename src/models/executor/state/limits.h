// executor/state/limits.h — the limits of memory and of loop turns, and the word by which another
// thread cancels a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Makes the budgets of a caller's executor, whose options and source are set.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_make_budgets(rondo_executor *executor);

// A budget for the memory of one GPU.  Errors: NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__executor_make_device_budget(const rondo_executor *executor,
                                                               rondo__budget **out_budget);

// Device memory that counts against the executor's limit.
//
// Errors:    NO_MEMORY (the limit), NO_DEVICE_MEMORY, DRIVER, LOST.
// Ownership: free with rondo__executor_free, with the same size and owner.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_allocate(rondo_executor *executor, rondo__owner owner,
                                                     size_t bytes, void **out_address);
void rondo__executor_free(rondo_executor *executor, rondo__owner owner, void *address,
                          size_t bytes);  // NULL is fine

// Pinned memory, which counts as other host memory does.
//
// Errors:    NO_MEMORY, DRIVER, LOST.
// Ownership: free with rondo__executor_free_pinned, with the same size.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_allocate_pinned(rondo_executor *executor, size_t bytes,
                                                            void **out_address);
void rondo__executor_free_pinned(rondo_executor *executor, void *address, size_t bytes);

// The memory of the executor's GPU, and the part that the limit leaves.
//
// Threads:   one thread per executor.
uint64_t rondo__executor_get_device_room(const rondo_executor *executor);

// Memory on another GPU, within its budget.
//
// Errors:    NO_MEMORY (memory_limit_bytes), NO_DEVICE_MEMORY.
RONDO_MUST_USE rondo_status rondo__peer_allocate(rondo__peer *peer, rondo__owner owner,
                                                 size_t bytes, void **out_address);
void rondo__peer_free(rondo__peer *peer, rondo__owner owner, void *address, size_t bytes);

// The limit gives one status, whatever kind of memory reached it: that of a call since which the
// executor's budget has refused more than `refusals` times.
rondo_status rondo__executor_note_limit(const rondo_executor *executor, uint64_t refusals,
                                        rondo_status status);

// When a GPU has refused memory, adds who holds the most of what `budget` counts there.
void rondo__name_largest_on_gpu(const rondo__budget *budget, rondo_status status);

// Brackets each call of the caller's that compiles or runs: what is made meanwhile counts, and
// another thread may cancel. The size of the feeds decides the default limit. The end gets what the
// beginning returned, and how the call went.
rondo__budget *rondo__executor_begin_call(rondo_executor *executor, const rondo_binding *feeds,
                                          size_t feed_count);
// The same where the bytes of the feeds are known.
rondo__budget *rondo__executor_begin_fed(rondo_executor *executor, uint64_t fed_bytes);
void rondo__executor_end_call(rondo_executor *executor, rondo__budget *before, rondo_status status);

// Waits for the stream of a caller's executor; meanwhile another thread may cancel, as in a call.
//
// Errors:    as rondo_stream_synchronize.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_synchronize(rondo_executor *executor);

// CANCELLED when another thread said so.  Threads: one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_check_cancelled(const rondo_executor *executor);

// The errors of both limits, for callers that detect them in another way; and the turns that loops
// may take.
rondo_status rondo__executor_fail_cancelled(void);
rondo_status rondo__executor_fail_limit(const rondo_executor *executor);
int64_t rondo__executor_get_loop_limit(const rondo_executor *executor);

// Before each turn of a loop: BAD_DATA when the run has had too many, CANCELLED as above.
RONDO_MUST_USE rondo_status rondo__executor_count_turn(rondo_executor *executor);
