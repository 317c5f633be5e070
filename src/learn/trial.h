// learn/trial.h — recordings of a step for values of the learner's own choosing.
//
// Pointers get addresses in sites: stretches of memory, several for each pointer, far from each
// other, so that recordings differ in high and in low bits, and nothing lies beside anything by
// chance as it may in the program. On the host a site is address space that nobody can touch and
// that costs no memory; elsewhere it is device memory of the pointer's extent.
//
//   site 0   [ slack | extent ]         an address: a multiple of the alignment, up to `slack` in
//   site 1   [ slack | extent ]
//
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_LEARN_TRIAL_H
#define RONDO_LEARN_TRIAL_H

#include "graph/graph_object.h"
#include "learn/recording.h"

// A step, as the program described it.
typedef struct rondo__step {
    rondo_device *device;  // retained by who made it
    const rondo__arguments *arguments;
    rondo_learned_function function;
    void *user_data;
    rondo_capture_mode mode;
} rondo__step;

typedef struct rondo__site {
    void *memory;
    size_t bytes;
    bool is_mapped;  // address space only
} rondo__site;

typedef struct rondo__trials {
    const rondo__step *step;
    rondo_graph *probe;  // holds a recording while that is read
    rondo__site *sites;
    rondo__made_up *made_up;  // the same, for rondo__recording_read
    size_t site_count;
    size_t per_pointer;
    rondo__draws draws;
    uint64_t recording_count;
} rondo__trials;

// Errors:    NO_MEMORY, NO_DEVICE_MEMORY.
RONDO_MUST_USE rondo_status rondo__trials_init(const rondo__step *step, uint64_t seed,
                                               rondo__trials *out_trials);
void rondo__trials_deinit(rondo__trials *trials);

// Fresh addresses for all pointers, and values for all others.
void rondo__trials_draw(rondo__trials *trials, rondo__draw_kind kind, rondo__values *values);
void rondo__trials_draw_addresses(rondo__trials *trials, rondo__values *values);

// Calls the step for these values.
RONDO_MUST_USE rondo_status rondo__step_call(const rondo__step *step, rondo_stream *stream,
                                             const rondo__values *values);

// Records the step for out_recording->values, which are set, on the stream, and throws the capture
// away. Where the step itself fails, or breaks its capture, *out_finding says so, and the
// recording is empty.
//
// trial      as rondo__recording_read has it.
//
// Errors:    what has nothing to do with the step: NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST;
//            STATE (the stream records already).
RONDO_MUST_USE rondo_status rondo__step_record(const rondo__step *step, rondo_graph *probe,
                                               rondo_stream *stream,
                                               const rondo__trial_memory *trial,
                                               rondo__recording *in_out_recording,
                                               rondo_status *out_step_status,
                                               rondo__finding *out_finding);

#endif  // RONDO_LEARN_TRIAL_H
