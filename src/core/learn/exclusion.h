// learn/exclusion.h — values for which the step failed in a trial, though it was learned. Runs with
// such are recorded before they replay, and put on the stream where the step fails again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/recording.h"
#include "learn/relation.h"

typedef struct rondo__exclusion {
    rondo__values values;  // of a trial
    uint64_t pinned;       // arguments, by bit, that have to be as there
    bool has_pair;
    rondo__pair pair;  // and these have to lie so
    char message[RONDO__MESSAGE_BYTES];
} rondo__exclusion;

typedef struct rondo__exclusions {
    rondo__exclusion *list;
    size_t count;
    size_t capacity;
} rondo__exclusions;

enum { RONDO__EXCLUSIONS_MAX = 64 };

// pair       NULL: none. `message`: of the step.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__exclusions_add(rondo__exclusions *exclusions,
                                                  const rondo__arguments *arguments,
                                                  const rondo__values *values, uint64_t pinned,
                                                  const rondo__pair *pair, const char *message);
void rondo__exclusions_deinit(rondo__exclusions *exclusions);
// The first that holds for the values; NULL: none.
const rondo__exclusion *rondo__exclusions_find(const rondo__exclusions *exclusions,
                                               const rondo__arguments *arguments,
                                               const rondo__values *values);
