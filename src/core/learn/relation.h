// learn/relation.h — how the extents of two pointers lie to each other.
//
//   BEFORE      [ first ]   [ other ]        BEHIND       [ other ]   [ first ]
//   TOUCHES     [ first ][ other ]           TOUCHED      [ other ][ first ]
//   OVERLAPS    [ first [  ] other ]         OVERLAPPED   [ other [  ] first ]
//   EQUAL       both begin at one address
//
// Trials draw pairs of each kind; a run with a kind that was never drawn is compared with a
// recording before it is believed, and so is one with more pointers at one address than before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "learn/domain.h"

typedef enum rondo__relation {
    RONDO__RELATION_BEFORE,
    RONDO__RELATION_BEHIND,
    RONDO__RELATION_TOUCHES,
    RONDO__RELATION_TOUCHED,
    RONDO__RELATION_OVERLAPS,
    RONDO__RELATION_OVERLAPPED,
    RONDO__RELATION_EQUAL,
    RONDO__RELATION_COUNT,
} rondo__relation;

// Two pointer arguments, first < other.
typedef struct rondo__pair {
    uint16_t first;
    uint16_t other;
    rondo__relation relation;
} rondo__pair;

rondo__relation rondo__relation_find(const rondo__arguments *arguments, const rondo__values *values,
                                     size_t first, size_t other);
// Whether the two have a byte in common.
static inline bool rondo__relation_shares(rondo__relation relation) {
    return relation >= RONDO__RELATION_OVERLAPS;
}
static inline bool rondo__relation_overlaps(rondo__relation relation) {
    return relation == RONDO__RELATION_OVERLAPS || relation == RONDO__RELATION_OVERLAPPED;
}
// "equal", "overlap, x first"
void rondo__pair_format(const rondo__arguments *arguments, const rondo__pair *pair, char *text,
                        size_t capacity);

// Which kinds were drawn, by pair.
typedef struct rondo__relations {
    // By first * count + other: a bit for each kind; by first * count + first: how many pointers
    // were at its address at once.
    uint8_t *drawn;
    size_t count;  // of arguments
} rondo__relations;

// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__relations_init(const rondo__arguments *arguments,
                                                  rondo__relations *out_relations);
void rondo__relations_deinit(rondo__relations *relations);
void rondo__relations_clear(rondo__relations *relations);
// Notes how all pointers of the values lie. Returns whether some overlap.
bool rondo__relations_note(rondo__relations *relations, const rondo__arguments *arguments,
                           const rondo__values *values);
bool rondo__relations_has(const rondo__relations *relations, const rondo__pair *pair);
// Whether as many pointers as now were at the address of this one before.
bool rondo__relations_has_group(const rondo__relations *relations,
                                const rondo__arguments *arguments, const rondo__values *values,
                                size_t pointer);
