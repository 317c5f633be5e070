// learn/watch.h — which runs of a learned step are compared with a recording before they replay.
//
//   compared     values that were not met, while fewer draws were made than are wanted; pointers
//                that lie in a way that was not drawn; values that the step refused in a trial;
//                each n-th run; values that the program named
//   trusted      all others: patched and replayed
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/learn.h"

// Part of a learned step.
typedef struct rondo__watch {
    uint64_t draws_wanted;
    uint64_t pointers;     // arguments, by bit
    uint32_t check_every;  // 0: none
    uint32_t since_check;  // runs with changed arguments
    bool is_needed;        // there is more to do than to look at pointers
    // Values that were met: their hashes, 0 where a place is free. NULL: none yet, or no more.
    uint64_t *met;
    size_t met_count;
    size_t met_capacity;
    // What the program named.
    rondo__values *tried;
    size_t tried_count;
    size_t tried_capacity;
    size_t tried_done;
} rondo__watch;

void rondo__watch_init(rondo__watch *watch, const rondo__arguments *arguments,
                       uint64_t draws_wanted, uint32_t check_every);
void rondo__watch_deinit(rondo__watch *watch);

// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__watch_add_tried(rondo__watch *watch,
                                                   const rondo__arguments *arguments,
                                                   const rondo__values *values);
// The step was proved, and recorded for these values.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__watch_begin(rondo_learned *learned, const rondo__values *first);

// Whether a run with learned->next, of which `changed` arguments are new, is to be compared.
bool rondo__watch_wants(rondo_learned *learned, uint64_t changed);

// Records the step for the values. *out_failed: the step failed, *out_recording is empty. The
// lesson has a finding where the recording does not match.
//
// Errors:    those of rondo__step_record.
RONDO_MUST_USE rondo_status rondo__watch_record(rondo_learned *learned, rondo_stream *stream,
                                                const rondo__values *values,
                                                rondo__recording *out_recording, bool *out_failed);
// Compares it with what is foretold; `images`: with what the executable holds, too. The lesson has
// a finding where they differ.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__watch_compare(rondo_learned *learned,
                                                 const rondo__recording *recording,
                                                 bool has_images);
// Records and compares what the program named since.
//
// Errors:    as rondo__watch_record.
RONDO_MUST_USE rondo_status rondo__watch_try_all(rondo_learned *learned, rondo_stream *stream);
