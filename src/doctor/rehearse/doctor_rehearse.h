// doctor/rehearse/doctor_rehearse.h — rehearses a step as a graph: kernels that wait as long as the
// program's kernels worked, with as many arguments, and copies of as many bytes, in the step's
// order. The doctor predicts by the time that its replays take on this machine.
//
// The program has ended by then; the rehearsal reads only its recorded calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_path.h"

typedef struct rondo__doctor_rehearsal {
    uint64_t median_ns;  // of a replay, from before its launch until its stream is idle
    uint64_t low_ns;     // the tenth percentile
    uint64_t high_ns;    // the ninetieth
} rondo__doctor_rehearsal;

// dlsym of the driver's library.
typedef void *(*rondo__doctor_resolve)(void *user_data, const char *symbol);

// On the GPU of this UUID; of zeros: the first one. Returns NULL, or what could not be done.
const char *rondo__doctor_rehearse(const rondo__doctor_part *parts, size_t count,
                                   const uint64_t *uuid, rondo__doctor_resolve resolve,
                                   void *user_data, rondo__doctor_rehearsal *out);
