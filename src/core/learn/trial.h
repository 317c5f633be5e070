// learn/trial.h — recordings of a step for values of the learner's own choosing.
//
// Pointers get addresses in sites: stretches of memory of a pointer's own, far from each other, so
// that recordings differ in high and in low bits. Pairs that are to lie side by side, to overlap or
// to be equal get theirs in a site with room for any two of their memory kind. On the host a site
// is address space that is never mapped and costs no memory; elsewhere it is device memory.
//
//   own site      [ slack | extent ]           an address: a multiple of the alignment, up to
//   shared site   [ slack | extent | extent ]  `slack` in; the other before, behind, in or at it
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_object.h"
#include "learn/draw.h"
#include "learn/recording.h"
#include "learn/relation.h"

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
    rondo_graph *probe;       // holds a recording while that is read
    rondo__site *sites;       // of each pointer argument, then the shared ones of each memory kind
    rondo__made_up *made_up;  // the same, for rondo__recording_read
    size_t site_count;
    size_t per_pointer;
    size_t per_kind;
    size_t first_shared[2];  // by memory kind
    rondo__draws draws;
} rondo__trials;

enum { RONDO__PAIRS_MAX = 32 };

// What is to be drawn.
typedef struct rondo__draw_request {
    rondo__draw_kind kind;  // of numbers and structs
    uint64_t pinned;        // arguments, by bit, that keep the values that are there
    rondo__pair pairs[RONDO__PAIRS_MAX];
    size_t pair_count;
    uint64_t pair_seed;  // of their addresses
} rondo__draw_request;

// Errors:    NO_MEMORY, NO_DEVICE_MEMORY.
RONDO_MUST_USE rondo_status rondo__trials_init(const rondo__step *step, uint64_t seed,
                                               rondo__trials *out_trials);
void rondo__trials_deinit(rondo__trials *trials);

// Values for all arguments that are not fixed (`pinned`). A pair whose alignments and extents do
// not allow what is asked for stays apart.
void rondo__trials_draw(rondo__trials *trials, const rondo__draw_request *request,
                        rondo__values *in_out_values);

// Calls the step for these values.
RONDO_MUST_USE rondo_status rondo__step_call(const rondo__step *step, rondo_stream *stream,
                                             const rondo__values *values);

// Whether a failure has nothing to do with the step: it would have come with any.
bool rondo__step_is_outer_failure(rondo_status status);

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
