// executor/feeds.h — named feeds and fetches: each kind of mistake in them has a message of its
// own.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_FEEDS_H
#define RONDO_EXECUTOR_FEEDS_H

#include "executor/state/plan.h"

// Checks named feeds and puts them into input order (borrowed); all inputs must be there.
//
// Errors:    INVALID.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_order_feeds(rondo__unit *unit, const rondo_binding *feeds,
                                                    size_t feed_count, rondo_tensor *out_tensors);

// Checks the arguments of a call that runs, and fills executor->ports.lists, which forget the one
// before.
//
// Errors:    INVALID.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_order_call(rondo_executor *executor,
                                                       const rondo_binding *feeds,
                                                       size_t feed_count,
                                                       const rondo_binding *fetches,
                                                       size_t fetch_count, const char *call);

#endif  // RONDO_EXECUTOR_FEEDS_H
