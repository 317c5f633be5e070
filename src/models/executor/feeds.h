// executor/feeds.h — named feeds and fetches: each kind of mistake in them has a message of its
// own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// The index of an input, or of an optional input behind the others.
//
// Errors:    INVALID.
// Threads:   one thread per executor; as all below.
RONDO_MUST_USE rondo_status rondo__executor_find_input(const rondo_executor *executor,
                                                       const char *name, size_t *out_index);

// Checks what an input, by its index, is fed.
//
// Errors:    INVALID.
RONDO_MUST_USE rondo_status rondo__executor_check_feed(const rondo_executor *executor, size_t index,
                                                       const rondo_tensor *tensor);

// The same of its type, shape and place alone.
RONDO_MUST_USE rondo_status rondo__executor_check_shape(const rondo_executor *executor,
                                                        size_t index, const rondo_tensor *tensor);

// Puts states where an input is not fed (dtype NONE), and checks what feeds must have in common:
// none may be missing, and a symbol stands for one number.
//
// Errors:    INVALID.
RONDO_MUST_USE rondo_status rondo__executor_complete_feeds(rondo_executor *executor,
                                                           rondo_tensor *tensors);

// Checks named feeds and puts them into input order (borrowed); all inputs must be there.
//
// Errors:    INVALID.
RONDO_MUST_USE rondo_status rondo__executor_order_feeds(rondo_executor *executor,
                                                        const rondo_binding *feeds,
                                                        size_t feed_count,
                                                        rondo_tensor *out_tensors);

// Where an output stands that is not taken yet: a model may list one more than once.
//
// taken      one for each output; NULL: none is.
//
// Errors:    INVALID.
RONDO_MUST_USE rondo_status rondo__executor_find_output(const rondo_executor *executor,
                                                        const char *name, const bool *taken,
                                                        size_t *out_index);

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
