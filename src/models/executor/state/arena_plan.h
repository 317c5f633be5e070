// executor/state/arena_plan.h — where values with known lifetimes lie in one arena. Pure offsets,
// no memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/status.h"

enum { RONDO__ARENA_ALIGNMENT = 256 };

// One block: `bytes` needed from step `first` to step `last`, both included; where steps may also
// run by levels, several at a time, from `first_level` to `last_level`, too.
typedef struct rondo__block {
    size_t bytes;
    size_t first;
    size_t last;
    size_t first_level;
    size_t last_level;
    size_t offset;  // result; a multiple of RONDO__ARENA_ALIGNMENT
} rondo__block;

// Sets the offsets so that no two blocks overlap in both time and place.
//
// Blocks that live for all steps come first: the inputs of a model, among others, so that the ones
// of a larger shape lie where smaller ones have been, in memory that is in use already. Then the
// largest first, each at the lowest gap that fits among the blocks that live at the same time.
//
// has_levels  whether blocks keep apart whose levels overlap, although their steps do not
//
// Errors:    NO_MEMORY; INVALID when the sizes overflow.
// Cost:      O(n * n) in the worst case for n blocks, where all live at the same time; some 0.3 s
//            for 20 000 such. O(n log n) for blocks that live for all steps.
// Source:    Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference,
//            arXiv:2001.03288 (greedy by size).
RONDO_MUST_USE rondo_status rondo__arena_plan(rondo__block *blocks, size_t block_count,
                                              bool has_levels, size_t *out_arena_bytes);
