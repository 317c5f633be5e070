// executor/run/fetch.h — hands the outputs of a run to the caller.
//
//   rondo__fetch_prepare_known   what was given fits; what was not given is allocated
//   ... the steps of the run ...
//   rondo__fetch_prepare_found   the same of outputs whose shapes the run has told
//   rondo__fetch_put        copies on the stream, behind the steps
//   ... the stream was waited for, or not ...
//   rondo__fetch_finish     copies that the processor makes; results are handed over
//
// A result in a device's memory, or of a run that is not waited for, is written by the stream
// alone. Otherwise outputs of a GPU lie in the plan's staging memory until the wait is over, so
// that results in host memory are written all or not at all. Results of a body that stays there
// (deferred_body.h) are handed over where they lie, as views.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

typedef struct rondo__carried rondo__carried;  // carried.h

// The outputs of one run.
typedef struct rondo__fetch {
    rondo__unit *unit;
    rondo__plan *plan;
    rondo_tensor *results;    // in output order; with `data` NULL: to be allocated
    const bool *wants;        // NULL: all
    bool waits;               // the run waits for the stream before the finish
    bool is_prepared;         // all shapes are known ahead, and all results are there and fit
    bool is_settled;          // the plan makes new values of states where they lie (put_states.h)
    rondo__carried *carried;  // the run is a replay of it; NULL: it is not
} rondo__fetch;

// Fails unless each result that was given can be written; allocates the others.
//
// Errors:    INVALID (names the fetch), INTERNAL, NO_MEMORY, NO_DEVICE_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__fetch_prepare_known(const rondo__fetch *fetch);
RONDO_MUST_USE rondo_status rondo__fetch_prepare_found(const rondo__fetch *fetch);

// The type, shape and address of output `i`: on the executor's device for a value of the arena,
// otherwise in host memory. Borrowed.
//
// Errors:    INTERNAL.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__fetch_view(const rondo__fetch *fetch, size_t i,
                                              rondo_tensor *out_view);

// Copies output `i` to another tensor of its dtype and shape in the device's memory.
//
// Errors:    those of rondo_stream_copy.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__fetch_put_output(const rondo__fetch *fetch, size_t i,
                                                    const rondo_tensor *to);

// Makes a copy of a run that waits by this thread: on the host, when nothing is on the stream and
// nobody listens to copies. To wake the stream's thread and to be woken takes 5 us each.
//
// Returns:   whether it was made; otherwise it belongs on the stream.
// Threads:   one thread per executor.
bool rondo__unit_copy_here(const rondo__unit *unit, void *to, const void *from, size_t bytes);

// Errors:    those of rondo_stream_copy.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__fetch_put(const rondo__fetch *fetch);

// Whether a result that is handed over where it lies is written by the processor, on the stream.
bool rondo__fetch_leaves_pinned(const rondo__fetch *fetch);

// Writes what is left, and hands over what was allocated. Nothing can fail here.
void rondo__fetch_finish(const rondo__fetch *fetch);
// Gives up what was allocated, when the run has failed.
void rondo__fetch_drop(const rondo__fetch *fetch);
