// learn/fallback.h — how a run goes whose step was refused.
//
//   CHEAPEST    EAGER and RECAPTURE by turns, which are timed; then the one that took less
//   RECAPTURE   record, update the executable, replay
//   EAGER       put the step on the stream
//   CACHE       key: all values                        rondo_graph_cache
//   FIXED       key: all but pointers to device memory    |
//
//       x ── copy ──> fixed buffer ── the key's graph, or the step ── copy ──> x
//
// A cached graph does what the step did when it was captured. So a step that records something else
// for equal values, or hands arguments on through memory, is captured again for each run instead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/learn.h"
#include "rondo/graph_cache.h"

typedef struct rondo__fixed_buffer {
    void *memory;     // as allocated; NULL: the argument has none
    uintptr_t begin;  // the first multiple of the argument's alignment in it
} rondo__fixed_buffer;

// Part of a learned step.
typedef struct rondo__fallback {
    rondo_learned_fallback kind;  // what was chosen; RECAPTURE, where that would not do
    uint32_t turn_count;          // CHEAPEST: runs that were timed
    uint64_t turn_ns[2];          // the shortest of EAGER, of RECAPTURE
    uint64_t mean_ns;             // of the latest runs; 0: there was none
    bool is_told;                 // the log has it
    bool is_decided;              // it was found out whether it will do
    rondo_graph *spare;           // of recordings; NULL: not yet
    rondo_graph_cache *cache;     // CACHE, FIXED
    unsigned char *key;
    size_t key_bytes;
    const rondo__values *values;   // that the step is called with
    rondo__values fixed_values;    // FIXED: with the fixed buffers for pointers
    rondo__fixed_buffer *buffers;  // by argument; NULL: not yet
    rondo_event *end;              // of the latest run that used them; NULL: there was none
} rondo__fallback;

// Errors:    INVALID (options that do not go together), NO_MEMORY, those of the cache.
RONDO_MUST_USE rondo_status rondo__fallback_init(rondo_learned *learned,
                                                 const rondo_learned_options *options);
void rondo__fallback_deinit(rondo_learned *learned);

// The graph that is recorded into where nothing is replayed from it.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__fallback_make_spare(rondo_learned *learned);

// Runs the step for learned->next.
//
// Errors:    those of the step, of captures and replays; UNSUPPORTED (RONDO_LEARN_REFUSE).
RONDO_MUST_USE rondo_status rondo__fall_back(rondo_learned *learned, rondo_stream *stream);
// The same for one run of a learned step whose recording failed: the finding of the lesson says
// why, and is taken back. Puts the step on the stream.
//
// Errors:    those of the step; UNSUPPORTED (RONDO_LEARN_REFUSE).
RONDO_MUST_USE rondo_status rondo__fall_back_once(rondo_learned *learned, rondo_stream *stream);

// The same for a run that is eager because that was measured to be faster, or is to be measured.
//
// Errors:    those of the step; STATE (the stream records).
RONDO_MUST_USE rondo_status rondo__fall_back_measured(rondo_learned *learned, rondo_stream *stream);
