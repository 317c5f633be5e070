// learn/learn.h — a step is recorded, explained and proved.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_LEARN_LEARN_H
#define RONDO_LEARN_LEARN_H

#include "learn/solve.h"
#include "learn/trial.h"

// What came of it.
typedef struct rondo__lesson {
    rondo__solution solution;
    rondo__recording reference;  // of a trial; what other recordings are foretold from
    bool is_proved;
    rondo__finding finding;    // otherwise
    rondo_status step_status;  // STEP_FAILED
    uint64_t recording_count;
} rondo__lesson;

// Test hook: false leaves the proof out, so that what is explained is believed.
extern bool rondo__learn_proves;

// first      values of a run, which are tried, too.
//
// Errors:    those of rondo__trials_init and rondo__step_record.
RONDO_MUST_USE rondo_status rondo__learn(const rondo__step *step, uint64_t seed,
                                         rondo_stream *stream, const rondo__values *first,
                                         rondo__lesson *out_lesson);
void rondo__lesson_deinit(rondo__lesson *lesson);

#endif  // RONDO_LEARN_LEARN_H
