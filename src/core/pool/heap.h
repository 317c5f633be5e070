// pool/heap.h — which bytes of some regions are free: pure bookkeeping, no memory is touched.
//
//   region  |#### piece ####|   free   |## piece ##|      free      |
//             splits when taken, merges with free neighbours when given back
//
// Free pieces hang in lists by size: one row for each power of two, sixteen lists in a row. Two bit
// sets find the first list that surely fits, so that taking and giving cost the same however many
// pieces there are. Pieces of a region are linked in address order. Not thread-safe: the pool holds
// its lock.
//
// Several heaps may share regions that one of them holds: a piece is given to the heap whose free
// lists it shall be in, and merges only with neighbours there. So the streams of a capture can
// free into lists of their own, side by side in one region.
//
// Invariants, checked by rondo__heap_check: the pieces of a region cover it without gaps; no two
// neighbours are both free in the same heap; a piece is in the list of its size exactly when it is
// free.
//
// Source: Masmano, Ripoll, Crespo, Real, TLSF, ECRTS 2004.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

enum {
    RONDO__HEAP_UNIT = 512,  // bytes; sizes and addresses are multiples
    RONDO__HEAP_ROWS = 48,
    RONDO__HEAP_COLUMNS = 16,
};

typedef struct rondo__heap_region rondo__heap_region;

typedef struct rondo__heap_piece {
    rondo__heap_region *region;
    uint64_t offset;  // bytes from the region's start
    uint64_t bytes;
    bool is_free;
    struct rondo__heap *home;  // whose lists it is in; while free
    uint64_t freed_at;  // the caller's, see rondo__heap_take_freed; neighbours merge to the larger
    struct rondo__heap_piece *before;  // in address order; NULL at the region's ends
    struct rondo__heap_piece *after;
    struct rondo__heap_piece *next;  // in the free list
    struct rondo__heap_piece *previous;
} rondo__heap_piece;

struct rondo__heap_region {
    void *base;  // address of the memory; only carried along
    uint64_t bytes;
    uint64_t live_count;   // pieces handed out
    uint64_t touch_count;  // the caller's: graphs that write here (pool/order.c)
    rondo__heap_piece *first;
    rondo__heap_region *next;
    rondo__heap_region *previous;
};

typedef struct rondo__heap {
    rondo__heap_region *regions;
    rondo__heap_piece *spare;  // piece records to use again, by `next`
    uint64_t rows;             // bit r: some list of row r is not empty
    uint16_t columns[RONDO__HEAP_ROWS];
    rondo__heap_piece *free[RONDO__HEAP_ROWS][RONDO__HEAP_COLUMNS];
} rondo__heap;

// Zeroed is initialised. Frees records, not memory: the caller takes the regions out first or knows
// their bases.
void rondo__heap_deinit(rondo__heap *heap);

// Adds memory: one free piece of `bytes`, a multiple of RONDO__HEAP_UNIT.
//
// Errors:    NO_MEMORY.
// Threads:   one at a time.
RONDO_MUST_USE rondo_status rondo__heap_add(rondo__heap *heap, void *base, uint64_t bytes,
                                            rondo__heap_region **out_region);

// Takes a piece of at least `bytes`; *out_block is NULL when none fits, which is no error.
//
// Errors:    NO_MEMORY (for the record of the rest).
// Threads:   one at a time.
// Cost:      O(1).
RONDO_MUST_USE rondo_status rondo__heap_take(rondo__heap *heap, uint64_t bytes,
                                             rondo__heap_piece **out_piece);

// The same for a piece whose freed_at is at most `freed_at_max`. Cost: O(free pieces).
RONDO_MUST_USE rondo_status rondo__heap_take_freed(rondo__heap *heap, uint64_t bytes,
                                                   uint64_t freed_at_max,
                                                   rondo__heap_piece **out_piece);

// Gives a piece back and merges it with the heap's free neighbours. Cost: O(1).
void rondo__heap_give(rondo__heap *heap, rondo__heap_piece *piece);

// Moves all free pieces of `from`, which holds no regions, to `heap`; their freed_at becomes 0.
void rondo__heap_absorb(rondo__heap *heap, rondo__heap *from);

// True when the region is one free piece of this heap, which may then be removed or moved.
bool rondo__heap_is_whole(const rondo__heap *heap, const rondo__heap_region *region);

// Takes a whole region out of the heap; its record is freed, its memory is the
// caller's.
void rondo__heap_remove(rondo__heap *heap, rondo__heap_region *region);

// Moves a whole region to another heap.
void rondo__heap_move(rondo__heap *heap, rondo__heap_region *region, rondo__heap *to);

// True when all invariants hold. Cost: O(pieces).
bool rondo__heap_check(const rondo__heap *heap);

// The same for the lists of `shared`, whose pieces lie in regions of `heap`.
bool rondo__heap_check_shared(const rondo__heap *heap, const rondo__heap *shared);
