// learn/solve.h — which words of a step depend on which arguments, and how.
//
// Nothing here records or allocates device memory: a solution follows from recordings alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/formula.h"
#include "learn/recording.h"

// A word that depends on arguments.
typedef struct rondo__learned_slot {
    size_t node;
    rondo__word word;
    rondo__formula formula;
} rondo__learned_slot;

typedef struct rondo__solution {
    rondo__learned_slot *slots;  // by node
    size_t count;
    size_t capacity;
    uint64_t word_count;       // looked at
    rondo__findings findings;  // of all words and nodes that have no explanation
} rondo__solution;

typedef enum rondo__verdict {
    RONDO__SOLVED,
    RONDO__REFUSED,      // the finding says why
    RONDO__WANTS_TRIAL,  // `wanted` holds values that tell two explanations apart
} rondo__verdict;

enum { RONDO__RECORDINGS_MAX = 96 };

// Explains the recordings, which match (rondo__recordings_match); at least 2.
//
// in_out_wanted  values for all arguments; those that matter are set anew.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__solve(const rondo__arguments *arguments,
                                         const rondo__recording *recordings, size_t count,
                                         rondo__draws *draws, rondo__solution *out_solution,
                                         rondo__values *in_out_wanted, rondo__verdict *out_verdict,
                                         rondo__finding *out_finding);
void rondo__solution_deinit(rondo__solution *solution);

// Warns of arguments that can vary and have no slot. To be asked when the solution is proved: of
// few recordings another argument may have explained its words.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__solution_list_unseen(const rondo__solution *solution,
                                                        const rondo__arguments *arguments,
                                                        rondo__findings *findings);

// Whether `other` holds, in every byte, what the solution foretells for its values from
// `reference`, which it matches. `images`, if not NULL, stand in the place of what is foretold, for
// nodes that have one.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__solution_check(const rondo__solution *solution,
                                                  const rondo__arguments *arguments,
                                                  const rondo__recording *reference,
                                                  const rondo__recording *other,
                                                  const rondo__node_image *const *images,
                                                  bool *out_is_right, rondo__finding *out_finding);
