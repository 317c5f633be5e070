// pool/arena.h — the private memory of captures.
//
// A graph takes memory from pools while it is captured. That memory belongs to the graph's arena,
// which several graphs may share. The records form a grid:
//
//                 pool 1                 pool 2
//   graph A       arena use (A, 1)       arena use (A, 2)
//   graph B       arena use (B, 1)
//                 arena pool 1           arena pool 2
//
//   arena graph   what the arena keeps of one graph, from its first block to its reset
//   arena use     the blocks that one graph took from one pool
//   arena pool    the regions that the arena holds of one pool, shared by all its graphs
//
// While a capture is open, a block that a stream frees goes to that stream's own free list (section
// stream). The stream may take it again at once. Another stream may take it when all work on the
// block comes before what that stream records next. When the capture has closed, all its streams
// are joined, so the free blocks go to the arena pool, and any later capture of the arena may take
// them. When the last graph is gone, the regions go back to the pool.
//
// What was rejected: one list of free blocks with a set of nodes at each (neighbours freed at
// different times could not merge, and one stream freeing in a row is the common case); taking
// cached memory of eager streams (their work may still run when a replay begins elsewhere).
//
// Locks: arena->lock before pool->lock. The pool's lock guards arena pools and arena uses. The
// arena's lock guards arena graphs and what the order of replays is checked by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"
#include "pool/pool_blocks.h"

typedef struct rondo__arena_graph rondo__arena_graph;

struct rondo_arena {
    rondo_device *device;  // retained
    rondo_arena_options options;
    atomic_int reference_count;
    atomic_bool is_exposed;  // a handle was given out, so graphs may share it
    atomic_size_t arena_pool_count;
    pthread_mutex_t lock;  // guards the rest but the counters
    // The pools that its graphs use.
    struct rondo__arena_pool_entry {
        rondo_pool *pool;  // kept by the arena graphs
        rondo__arena_pool *arena_pool;
        size_t use_count;
    } * pools;
    size_t pool_count;
    size_t pool_capacity;
    uint64_t round;
    uint64_t version;                // changes with the graphs and outputs; see order.c
    int replay_depth;                // replays between the look and the launch
    pthread_t replay_thread;         // whose they are
    rondo__stream_tag *last_stream;  // of the last replay of a sharer; retained; NULL: none
    rondo_event *event;              // to come after it; made when first needed
    atomic_uint_fast64_t live_bytes;
    atomic_uint_fast64_t live_count;
    atomic_uint_fast64_t reserved_bytes;
    atomic_uint_fast64_t live_peak_bytes;
    atomic_uint_fast64_t reserved_peak_bytes;
    atomic_uint_fast64_t graph_count;
};

// Whether replays of its graphs have to keep an order: several may use it.
static inline bool rondo__arena_watches_order(const rondo_arena *arena) {
    return atomic_load(&arena->is_exposed) && !arena->options.allows_any_order;
}

struct rondo__arena_pool {
    rondo_arena *arena;  // retained
    rondo_pool *pool;    // whose list it is in
    rondo__heap heap;    // regions, and the free blocks that any capture may take
    rondo__arena_use *uses;
    rondo__output **outputs;  // what the graphs leave behind, by address
    size_t output_count;
    size_t output_capacity;        // room for the promised ones, too
    size_t promised_count;         // blocks of open captures, which may become outputs
    uint64_t output_bytes_max;     // of the longest there ever was
    rondo__stream_tag *in_flight;  // replays of a graph that is gone may run there; retained
    bool is_stuck;                 // on a second such stream, too: kept as long as the pool
    rondo__arena_pool *next;
    rondo__arena_pool *previous;
};

enum { RONDO__ARENA_GRAPH_NAME_BYTES = 64 };

// Bytes that a graph's replay may write.
typedef struct rondo__range {
    uintptr_t begin;
    uintptr_t end;
} rondo__range;

// A block that was live when its graph's capture ended: later graphs may read it. Guarded by the
// arena's lock once the capture is closed, but for is_held.
struct rondo__output {
    rondo__range range;
    atomic_bool is_held;  // not freed by the program
    bool is_imported;     // other graphs know it; guarded by the pool's lock
    bool is_overwritten;
    uint64_t round;                                  // of the replay that produced it; 0: none
    char overwriter[RONDO__ARENA_GRAPH_NAME_BYTES];  // the graph that wrote over it
    rondo__arena_use *use;                           // of the graph that produces it
    struct rondo__output *next;
};

typedef struct rondo__output_list {
    rondo__output **entries;
    size_t count;
    size_t capacity;
} rondo__output_list;

struct rondo__arena_use {
    rondo__arena_graph *graph;
    rondo__arena_pool *arena_pool;
    rondo_pool *pool;         // retained
    rondo__capture *capture;  // NULL once it is closed
    rondo__section_stream *section_streams;
    rondo__block *pending;  // freed, and other streams may still use them
    rondo__block *blocks;   // handed out
    rondo__range *touched;  // sorted and merged once closed
    size_t touched_count;
    size_t touched_capacity;
    rondo__output *outputs;        // once closed; before, freed ones that others took in
    rondo__output *spare_outputs;  // of blocks freed in the capture, for the next ones
    size_t promised_count;         // see rondo__arena_pool; while the capture is open
    rondo__output_list imports;    // outputs of other graphs that this one reads or has freed
    bool has_lost_imports;         // no memory to note one: the capture fails
    rondo__arena_use *next_in_pool;
    rondo__arena_use *previous_in_pool;
    rondo__arena_use *next_in_graph;
};

struct rondo__arena_graph {
    rondo__participant participant;
    rondo_arena *arena;  // retained
    char *label;         // of the graph that was captured; it may be gone by now
    char name[RONDO__ARENA_GRAPH_NAME_BYTES];  // its beginning
    rondo__arena_use *uses;
    rondo__output_list conflicts;  // of other graphs, in bytes that this one writes
    uint64_t conflicts_version;
    rondo__stream_tag *in_flight;  // see rondo__arena_hold_back; retained; NULL: none
};

// An arena that no other graph knows of until it is exposed.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__arena_create_private(rondo_device *device,
                                                        rondo_arena **out_arena);

// INVALID when the arena is of another device.
RONDO_MUST_USE rondo_status rondo__arena_check_device(const rondo_arena *arena,
                                                      const rondo_device *device);

// Hands the arena out: from now on the order of its graphs' replays is checked.
void rondo__arena_expose(rondo_arena *arena);

// Counters.  Threads: safe.
void rondo__arena_count_live(rondo_arena *arena, uint64_t bytes);
void rondo__arena_count_freed(rondo_arena *arena, uint64_t bytes);
void rondo__arena_count_region(rondo_arena *arena, uint64_t bytes);

// ---- arena pools: with the pool's lock held ---------------------------------------------------

// The arena pool for a new use of the pool, made when there is none.
//
// Errors:    NO_MEMORY.
// Threads:   holds the arena's lock, too.
RONDO_MUST_USE rondo_status rondo__arena_get_pool(rondo_arena *arena, rondo_pool *pool,
                                                  rondo__arena_pool **out_arena_pool);

// Gives the pool the regions that no graph needs any more. Frees the arena pool when it is empty.
void rondo__arena_pool_give_back(rondo__arena_pool *arena_pool, bool may_wait);

// The pool gets no region back while replays of a graph that is gone may still run on `stream`,
// which records by now. NULL: there are no such replays.
void rondo__arena_pool_hold_back(rondo__arena_pool *arena_pool, rondo__stream_tag *stream);

// The users are done: the block goes back to the arena.
void rondo__arena_return(rondo_pool *pool, rondo__block *block);

// Gives the pool the regions that were held back for replays, where those are done by now.
void rondo__arena_give_held_back(rondo_pool *pool, bool may_wait);

// Frees the arena pools of a pool that is destroyed: nothing is live in them.
void rondo__arena_forget_pool(rondo_pool *pool);
