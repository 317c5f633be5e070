// executor/run/late_values.h — copies of late values (values of a GPU whose shapes are known only
// in the run) for the processor.
//
// plan->run.dynamic[v] of such a value is a view of device memory (split_counted.h,
// deferred_body.h). An op between segments that reads it gets a copy of its used part, once in a
// run. An output that goes to host memory is copied through pinned memory that grows with the
// largest fetch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/run_state.h"

// Whether the tensor lies in the memory of the executor's GPU.
bool rondo__late_values_is_on_gpu(const rondo_executor *executor, const rondo_tensor *tensor);

// The value in host memory: where it is, or a copy that is put on the stream, for `node`, and is
// there when that was waited for. Borrowed until the next run.
//
// Errors:    NO_MEMORY, and those of rondo_stream_copy.
// Threads:   one thread per executor; as below.
RONDO_MUST_USE rondo_status rondo__late_values_bring(rondo__unit *unit, rondo__plan *plan,
                                                     int32_t value, const rondo__node *node,
                                                     const rondo_tensor **out_tensor);

// Lets plan->run.late_staging have so many bytes.
//
// Errors:    NO_MEMORY, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__late_values_reserve(rondo__unit *unit, rondo__plan *plan,
                                                       size_t bytes);
