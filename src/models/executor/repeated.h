// executor/repeated.h — runs by names that repeat each other, as a bound run does them.
//
// A program that refills the same device tensors calls with the same names, tensors and order each
// time. After a few such calls the executor binds them, so that a call compares them with what is
// bound and looks nothing up: 4 to 20 us less a run on an H200, where a bound run is one replay.
// Tensors of host memory are left out: memory at the same address may have been pinned meanwhile,
// and be no longer. One call is kept; another takes its place after twice as many repetitions as
// the one before took, so that calls in turns do not have graphs made over and over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

typedef struct rondo__repeated rondo__repeated;

// The bound run that does this call; NULL: none does. It neither takes nor keeps the tensors.
rondo_bound_run *rondo__repeated_find(const rondo_executor *executor, const rondo_binding *feeds,
                                      size_t feed_count, const rondo_binding *fetches,
                                      size_t fetch_count);

// Counts a call that has succeeded, of which rondo__repeated_find knew nothing. Failures here mean
// that calls stay as they are.
void rondo__repeated_note(rondo_executor *executor, const rondo_binding *feeds, size_t feed_count,
                          const rondo_binding *fetches, size_t fetch_count);
