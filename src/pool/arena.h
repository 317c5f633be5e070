// pool/arena.h — the private memory of captures.
//
//   arena -- session (graph A) -- seat (pool 1) -- branch (stream 1): what it freed, stamps, ...
//         |                    |                 - branch (stream 2)
//         |                    |                 - leases, touched ranges
//         |                     - seat (pool 2)
//          - session (graph B) -- seat (pool 1)
//   part (arena, pool 1): regions, and the free blocks that are open to every branch
//
// A session is one graph's use of the arena, from its first block to its reset; it takes part in
// the capture. A seat is the session's use of one pool. While the capture is open a freed block
// lies in the list of the branch (a stream in a scope) that freed it. When the capture has
// closed all its branches were joined, and all free blocks are open to whoever comes next: later
// captures of sharers. When the last session leaves, the regions go to the pool's idle ones.
//
// What was rejected: one list of free blocks with a set of nodes at each (neighbours freed at
// different times could not merge, and one stream freeing in a row is the common case); taking
// cached memory of eager streams (their work may still run when a replay begins elsewhere).
//
// Locks: arena->lock before pool->lock. A part and everything under a seat is guarded by its pool's
// lock, sessions and what the order of replays is about by the arena's.
#ifndef RONDO_POOL_ARENA_H
#define RONDO_POOL_ARENA_H

#include "pool/pool_internal.h"

typedef struct rondo__session rondo__session;

struct rondo_arena {
    rondo_device *device;  // retained
    rondo_arena_options options;
    atomic_int reference_count;
    atomic_bool is_exposed;  // a handle was given out, so graphs may share it
    atomic_size_t part_count;
    pthread_mutex_t lock;  // guards the rest but the counters
    // The pools that sessions have seats in.
    struct rondo__arena_pool {
        rondo_pool *pool;  // kept by the sessions
        rondo__part *part;
        size_t seat_count;
    } * pools;
    size_t pool_count;
    size_t pool_capacity;
    uint64_t round;
    uint64_t version;                // of the sessions and outputs; see order.c
    int replay_depth;                // replays between the look and the launch
    pthread_t replay_thread;         // whose they are
    rondo__stream_tag *last_stream;  // of the last replay of a sharer; retained; NULL: none
    rondo_event *event;              // to come after it; made when first needed
    atomic_uint_fast64_t live_bytes;
    atomic_uint_fast64_t live_count;
    atomic_uint_fast64_t reserved_bytes;
    atomic_uint_fast64_t live_peak_bytes;
    atomic_uint_fast64_t reserved_peak_bytes;
    atomic_uint_fast64_t session_count;
};

struct rondo__part {
    rondo_arena *arena;  // retained
    rondo_pool *pool;    // whose list it is in
    rondo__heap heap;    // regions, and open free blocks
    rondo__seat *seats;
    rondo__output **outputs;  // what the graphs leave behind, by address
    size_t output_count;
    size_t output_capacity;        // room for the promised ones, too
    size_t promised_count;         // blocks of open captures, which may become outputs
    uint64_t output_bytes_max;     // of the longest there ever was
    rondo__stream_tag *in_flight;  // replays of a graph that is gone may run there; retained
    bool is_stuck;                 // on a second such stream, too: kept as long as the pool
    rondo__part *next;
    rondo__part *previous;
};

// Where a branch stood when it freed blocks; later ones come after earlier ones.
typedef struct rondo__stamp {
    uint64_t mark;
    size_t first;  // in the branch's list of marks
    size_t count;
} rondo__stamp;

struct rondo__branch {
    rondo_stream *stream;
    rondo__stream_tag *tag;  // retained
    uint64_t scope;
    rondo__heap free;  // what it freed; no regions
    rondo__stamp *stamps;
    size_t stamp_count;
    size_t stamp_capacity;
    rondo__mark_list marks;
    uint64_t last_mark;
    rondo__ancestors ancestors;
    rondo__branch *next;
};

enum { RONDO__SESSION_NAME_BYTES = 64 };

// Bytes that a graph's replay may write.
typedef struct rondo__range {
    uintptr_t begin;
    uintptr_t end;
} rondo__range;

// A block of a graph as the order of replays sees it: what the graph leaves behind. Guarded by the
// arena's lock once the capture is closed, but for is_held.
struct rondo__output {
    rondo__range range;
    atomic_bool is_held;  // not freed by the program
    bool is_imported;     // other graphs know it; guarded by the pool's lock
    bool is_overwritten;
    uint64_t round;                              // of the replay that produced it; 0: none
    char overwriter[RONDO__SESSION_NAME_BYTES];  // the graph that wrote over it
    rondo__seat *seat;                           // of the graph that produces it
    struct rondo__output *next;
};

typedef struct rondo__output_list {
    rondo__output **entries;
    size_t count;
    size_t capacity;
} rondo__output_list;

struct rondo__seat {
    rondo__session *session;
    rondo__part *part;
    rondo_pool *pool;         // retained
    rondo__capture *capture;  // NULL once it is closed
    rondo__branch *branches;
    rondo__lease *pending;  // freed, and other branches may still use them
    rondo__lease *leases;   // handed out
    rondo__range *touched;  // sorted and merged once closed
    size_t touched_count;
    size_t touched_capacity;
    rondo__output *outputs;        // once closed; before, freed ones that others took in
    rondo__output *spare_outputs;  // of blocks freed in the capture, for the next ones
    size_t promised_count;         // see rondo__part; while the capture is open
    rondo__output_list imports;    // blocks of other graphs that this one takes in
    bool has_lost_imports;         // no memory to note one: the capture fails
    rondo__seat *next_in_part;
    rondo__seat *previous_in_part;
    rondo__seat *next_in_session;
};

struct rondo__session {
    rondo__participant participant;
    rondo_arena *arena;                    // retained
    char *label;                           // of the graph that was captured; it may be gone by now
    char name[RONDO__SESSION_NAME_BYTES];  // its beginning
    rondo__seat *seats;
    rondo__output_list conflicts;  // of other graphs, in bytes that this one writes
    uint64_t conflicts_version;
    rondo__stream_tag *in_flight;  // see rondo__arena_hold_back; retained; NULL: none
};

extern const rondo__participant_type rondo__session_type;

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

// The arena whose memory a graph's participants use, or NULL.
rondo_arena *rondo__arena_find(const rondo__participant *list);

// Replays that used the memory may be in flight on a stream that cannot be waited for: once the
// graph is gone, nobody gets the memory before the stream can.
void rondo__arena_hold_back(const rondo__participant *list, rondo__stream_tag *stream);

// Hands the arena out: from now on replays of its graphs look at each other.
void rondo__arena_expose(rondo_arena *arena);

// Before a capture of a graph of the arena begins: looks after blocks that were freed since.
void rondo__arena_settle(rondo_arena *arena);

// The capture has begun; a shared arena takes part from the start.
//
// Errors:    NO_MEMORY.
// Threads:   the one that records.
RONDO_MUST_USE rondo_status rondo__arena_join(rondo_arena *arena, rondo__capture *capture);

// ---- order.c: with the arena's lock held, but for the three of replays ------------------------

rondo_status rondo__order_prepare_replay(rondo__participant *participant, rondo_stream *stream);
void rondo__order_note_replay(rondo__participant *participant, rondo_stream *stream);
void rondo__order_cancel_replay(rondo__participant *participant);

// Whether one of two graphs takes in or writes over what the other one leaves behind, or needs.
bool rondo__order_are_tied(const rondo__session *a, const rondo__session *b);

// Room for one more output of the part. With the pool's lock held, too.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__order_reserve_output(rondo__part *part);

// Sorts and merges what the seat's graph writes, and enters its outputs.
void rondo__order_close_seat(rondo__seat *seat);

// Remembers that the seat's graph takes in the output. Without memory the capture will fail. With
// the pool's lock held.
void rondo__order_add_import(rondo__seat *seat, rondo__output *output);

// Frees a seat's outputs, and forgets them where other sessions know them.
void rondo__order_forget_outputs(rondo_arena *arena, rondo__seat *seat);

#endif  // RONDO_POOL_ARENA_H
