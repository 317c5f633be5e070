// learn/learn.h — a step is recorded, explained and proved.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/exclusion.h"
#include "learn/solve.h"
#include "learn/trial.h"

// How far the proof went.
typedef struct rondo__odds {
    uint64_t draw_count;     // values drawn evenly, or brought by runs, that were foretold
    uint64_t special_count;  // other recordings that were foretold
    uint64_t overlap_count;  // of both: two pointers overlapped
    rondo__relations relations;
} rondo__odds;

// The result of learning.
typedef struct rondo__lesson {
    rondo__solution solution;
    rondo__recording reference;  // of a trial; what other recordings are foretold from
    bool is_proved;
    rondo__finding finding;    // otherwise
    rondo__findings findings;  // all refusals, then warnings
    rondo_status step_status;  // STEP_FAILED
    rondo__exclusions exclusions;
    rondo__odds odds;
    uint64_t recording_count;
    uint64_t recording_ns;  // wall time of them
} rondo__lesson;

// How it is to be done.
typedef struct rondo__lesson_plan {
    uint64_t seed;
    uint64_t draws_wanted;  // draws of the odds after which it is enough
    uint64_t spare_ns;      // that draws which are not always made may take
    const rondo__values *tried;
    size_t tried_count;
} rondo__lesson_plan;

// Test hook: false leaves the proof out, so that what is explained is believed.
extern bool rondo__learn_proves;

// first      values of a run, which are tried, too.
//
// Errors:    those of rondo__trials_init and rondo__step_record.
RONDO_MUST_USE rondo_status rondo__learn(const rondo__step *step, const rondo__lesson_plan *plan,
                                         rondo_stream *stream, const rondo__values *first,
                                         rondo__lesson *out_lesson);
void rondo__lesson_deinit(rondo__lesson *lesson);
