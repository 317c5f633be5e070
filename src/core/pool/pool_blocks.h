// pool/pool_blocks.h — a pool, and the records of the blocks that it hands out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "capture/host_memory.h"
#include "pool/ancestors.h"
#include "pool/heap.h"
#include "pool/live_table.h"
#include "rondo/pool.h"

typedef struct rondo__arena_pool rondo__arena_pool;
typedef struct rondo__arena_use rondo__arena_use;
typedef struct rondo__section_stream rondo__section_stream;
typedef struct rondo__output rondo__output;

// What one stream owns. Found by the stream's number, which is never used twice.
typedef struct rondo__owner {
    uint32_t stream_number;
    rondo__stream_tag *tag;  // retained
    rondo__heap heap;
    struct rondo__owner *next;
} rondo__owner;

// A stream that uses a block, as rondo_pool_use declared. The first user of an arena's block is the
// stream that took it.
typedef struct rondo__block_user {
    rondo_stream *stream;    // valid while the tag is not finished
    rondo__stream_tag *tag;  // retained
    uint64_t section;        // the capture that it recorded when it was declared; 0: none
    rondo_event *event;      // stands for its work once the block is freed; NULL: none yet
    bool has_passed;         // its work is done
} rondo__block_user;

// Memory that rondo_pool_allocate handed out: live, or freed and pending while streams may still
// use it.
typedef struct rondo__block {
    rondo__heap_piece *piece;
    rondo__owner *owner;  // NULL for a block of an arena
    uint64_t serial;      // never used twice
    bool is_freed;        // inside a capture whose end decides; see pool_free.c
    size_t user_count;
    size_t user_capacity;
    rondo__block_user *users;
    struct rondo__block *next;  // among the pending, or the spare
    // For a block of an arena.
    rondo__arena_pool *arena_pool;
    rondo__arena_use *use;  // of the graph that allocated it; NULL once that is gone
    rondo__section_stream *section_stream;  // that took it; while the capture is open
    rondo__output *output;                  // NULL once the use is gone
    struct rondo__block *next_in_use;
    struct rondo__block *previous_in_use;
    rondo__section_node_list nodes;  // pending in a capture: the nodes that must have run
    bool is_held;                    // pending in a capture: not to be used again before its end
} rondo__block;

struct rondo_pool {
    rondo_device *device;  // retained
    rondo_pool_options options;
    atomic_int reference_count;
    pthread_mutex_t lock;  // guards everything below
    rondo__owner *owners;
    rondo__heap idle;  // whole regions without a used block
    rondo__live_table live;
    rondo__block *pending;
    rondo__block *spare;
    rondo__arena_pool *arena_pools;
    size_t held_pool_count;  // those with replays in flight; see arena.h
    uint64_t last_serial;
    rondo_pool_stats stats;
    uint32_t number;   // in profiles; 0: none has met it yet
    bool is_released;  // no references; blocks handed out keep it
};

// ---- with the pool's lock held ----------------------------------------------------------------

rondo__block *rondo__pool_get_record(rondo_pool *pool);  // NULL: NO_MEMORY
// Keeps the record, whose bytes were given back, for the next block.
void rondo__pool_drop_record(rondo_pool *pool, rondo__block *block);
// Puts the memory of a block of no arena back into its owner's heap, and drops the record.
void rondo__pool_return(rondo_pool *pool, rondo__block *block);
// Frees the records that were kept.
void rondo__pool_free_records(rondo_pool *pool);

static inline void *rondo__pool_get_address(const rondo__heap_piece *piece) {
    return (char *)piece->region->base + piece->offset;
}

// Pinned memory that a graph's recorded copy uses: not to be given out again while the graph lives,
// because the program would write to it while replays read it.
static inline bool rondo__pool_is_captured(const rondo_pool *pool, const rondo__block *block) {
    return pool->options.kind == RONDO_MEMORY_PINNED &&
           rondo__host_memory_covers(pool->device, rondo__pool_get_address(block->piece),
                                     block->piece->bytes);
}

// Adds a user at the end.
//
// Errors:    NO_MEMORY.
// Threads:   holds the pool's lock.
RONDO_MUST_USE rondo_status rondo__block_add_user(rondo__block *block, rondo_stream *stream,
                                                  uint64_t section);

// Enters a block into the table of live ones, which has room, and counts it.
void rondo__pool_hand_out(rondo_pool *pool, rondo__block *block);
// Takes it out of the table and the counts. What becomes of its memory is left to the caller.
void rondo__pool_take_in(rondo_pool *pool, rondo__block *block);

// Makes a freed block pending until the work of its users is done.
void rondo__pool_let_pass(rondo_pool *pool, rondo__block *block);

// Whether that work is done. With `may_wait` it is waited for, as far as that is possible.
bool rondo__block_has_passed(rondo_pool *pool, rondo__block *block, bool may_wait);

// Leaves the blocks that are still pending, with their regions, to the graphs that use them.
void rondo__pool_leave_captured(rondo_pool *pool);
