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
#ifndef RONDO_POOL_ARENA_H
#define RONDO_POOL_ARENA_H

#include "pool/pool_internal.h"

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

// Where a section stream stood when it freed blocks. Later points come after earlier ones.
typedef struct rondo__free_point {
    uint64_t number;
    size_t first;  // in the section stream's list of nodes
    size_t count;
} rondo__free_point;

// A stream while it records into one section of an open capture.
struct rondo__section_stream {
    rondo_stream *stream;
    rondo__stream_tag *tag;  // retained
    uint64_t section;
    rondo__heap free;  // what it freed; no regions
    rondo__free_point *free_points;
    size_t free_point_count;
    size_t free_point_capacity;
    rondo__section_node_list nodes;  // of the free points, one after the other
    uint64_t last_number;            // of a free point
    rondo__ancestors ancestors;
    rondo__section_stream *next;
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

extern const rondo__participant_type rondo__arena_graph_type;

// ---- for graphs -------------------------------------------------------------------------------

// An arena that no other graph knows of until it is exposed.
//
// Errors:    NO_MEMORY.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__arena_create_private(rondo_device *device,
                                                        rondo_arena **out_arena);

// INVALID when the arena is of another device.
RONDO_MUST_USE rondo_status rondo__arena_check_device(const rondo_arena *arena,
                                                      const rondo_device *device);

// The arena among a graph's participants, or NULL.
rondo_arena *rondo__arena_find(const rondo__participant *list);

// Replays that used the memory may be in flight on a stream that cannot be waited for: once the
// graph is gone, nobody gets the memory before the stream can.
void rondo__arena_hold_back(const rondo__participant *list, rondo__stream_tag *stream);

// Hands the arena out: from now on the order of its graphs' replays is checked.
void rondo__arena_expose(rondo_arena *arena);

// Takes back freed blocks whose work is done, before a capture of a graph of the arena begins.
void rondo__arena_settle(rondo_arena *arena);

// The capture has begun. A shared arena takes part from the start.
//
// Errors:    NO_MEMORY.
// Threads:   the one that records.
RONDO_MUST_USE rondo_status rondo__arena_join(rondo_arena *arena, rondo__capture *capture);

// ---- order.c: with the arena's lock held, but for the three of replays ------------------------

rondo_status rondo__order_prepare_replay(rondo__participant *participant, rondo_stream *stream);
void rondo__order_note_replay(rondo__participant *participant, rondo_stream *stream);
void rondo__order_cancel_replay(rondo__participant *participant);

// Whether one of two graphs takes in or writes over what the other one leaves behind, or needs.
bool rondo__order_are_tied(const rondo__arena_graph *a, const rondo__arena_graph *b);

// Makes room for one more output of the arena pool. With the pool's lock held, too.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__order_reserve_output(rondo__arena_pool *arena_pool);

// Sorts and merges the ranges that the graph writes, and enters its outputs.
void rondo__order_close_use(rondo__arena_use *use);

// Remembers that the graph imports the output. Without memory the capture will fail. With the
// pool's lock held.
void rondo__order_add_import(rondo__arena_use *use, rondo__output *output);

// Frees the outputs of a use, and removes them from the imports of other graphs.
void rondo__order_forget_outputs(rondo_arena *arena, rondo__arena_use *use);

#endif  // RONDO_POOL_ARENA_H
