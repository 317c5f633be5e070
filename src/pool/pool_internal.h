// pool/pool_internal.h — what the files of this room share: pools, leases, and their use by
// captures.
#ifndef RONDO_POOL_POOL_INTERNAL_H
#define RONDO_POOL_POOL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "backend/capture.h"
#include "pool/ancestors.h"
#include "pool/heap.h"
#include "pool/live_table.h"
#include "rondo/pool.h"

typedef struct rondo__part rondo__part;
typedef struct rondo__seat rondo__seat;
typedef struct rondo__branch rondo__branch;
typedef struct rondo__output rondo__output;

// What one stream owns. Found by the stream's number, which is never used twice.
typedef struct rondo__owner {
    uint32_t stream_number;
    rondo__stream_tag *tag;  // retained
    rondo__heap heap;
    struct rondo__owner *next;
} rondo__owner;

// A stream that uses a block: declared with rondo_pool_use, and for blocks of captures the stream
// of the allocation, too, in front.
typedef struct rondo__use {
    rondo_stream *stream;    // valid while the tag is not finished
    rondo__stream_tag *tag;  // retained
    uint64_t scope;          // the capture that it recorded when it was declared; 0: none
    rondo_event *event;      // stands for its work once the block is freed; NULL: none yet
    bool has_passed;         // its work is done
} rondo__use;

// A block handed out or pending.
typedef struct rondo__lease {
    rondo__heap_block *block;
    rondo__owner *holder;  // NULL for a block of an arena
    uint64_t serial;       // never used twice
    bool is_freed;         // inside a capture whose end decides; see late_free.c
    size_t use_count;
    size_t use_capacity;
    rondo__use *uses;
    struct rondo__lease *next;  // among the pending, or the spare
    // For a block of an arena.
    rondo__part *part;
    rondo__seat *seat;      // of the graph that allocated it; NULL once that is gone
    rondo__branch *branch;  // who took it; while the seat is open
    rondo__output *output;  // what the replay order knows of it; NULL once the seat is gone
    struct rondo__lease *seat_next;
    struct rondo__lease *seat_previous;
    rondo__mark_list marks;  // pending in a capture: the nodes that must have run
    bool is_held;            // pending in a capture: not to be used again before its end
} rondo__lease;

struct rondo_pool {
    rondo_device *device;  // retained
    rondo_pool_options options;
    atomic_int reference_count;
    pthread_mutex_t lock;  // guards everything below
    rondo__owner *owners;
    rondo__heap idle;  // whole regions that nobody uses
    rondo__live_table live;
    rondo__lease *pending;
    rondo__lease *spare;
    rondo__part *parts;
    size_t held_part_count;  // those with replays in flight; see arena.c
    uint64_t last_serial;
    rondo_pool_stats stats;
    bool is_released;  // no references; blocks handed out keep it
};

// ---- pool.c: with the pool's lock held --------------------------------------------------------

rondo__lease *rondo__pool_get_lease(rondo_pool *pool);  // NULL: NO_MEMORY
void rondo__pool_drop_lease(rondo_pool *pool, rondo__lease *lease);
void *rondo__pool_get_address(const rondo__heap_block *block);

// Pinned memory that a graph's recorded copy uses: not to be given out again while the graph lives,
// because the program would write to it while replays read it.
bool rondo__pool_is_captured(const rondo_pool *pool, const rondo__lease *lease);

// Adds a use at the end.
//
// Errors:    NO_MEMORY.
// Threads:   holds the pool's lock.
RONDO_MUST_USE rondo_status rondo__lease_add_use(rondo__lease *lease, rondo_stream *stream,
                                                 uint64_t scope);

// Enters a block into the table of live ones, which has room, and counts it.
void rondo__pool_hand_out(rondo_pool *pool, rondo__lease *lease);

// The block, free or not, in which the address lies; NULL when that is no memory of the pool.
// *out_part is its arena's part, or NULL. Cost: O(regions and blocks).
const rondo__heap_block *rondo__pool_find_block(const rondo_pool *pool, const void *address,
                                                const rondo__part **out_part);

// Puts a freed lease among the pending, until the work of its uses has passed.
void rondo__pool_let_pass(rondo_pool *pool, rondo__lease *lease);

// Frees a live block in earnest.
void rondo__pool_take_back(rondo_pool *pool, rondo__lease *lease);

// Where the block's stream records, and the block was taken before: the free waits for the end of
// the capture, and *out_is_late is true.
//
// Errors:    NO_MEMORY; the block is as live as before.
// Threads:   holds the pool's lock.
RONDO_MUST_USE rondo_status rondo__pool_free_late(rondo_pool *pool, rondo__lease *lease,
                                                  bool *out_is_late);

// How far to go for blocks that streams may still use.
typedef enum rondo__pool_patience {
    RONDO__POOL_LOOK,     // take back what has passed
    RONDO__POOL_WAIT,     // wait until they have passed, as far as that can be waited for
    RONDO__POOL_GIVE_UP,  // and take back the rest as well: the memory goes to the driver
} rondo__pool_patience;

// Looks after freed blocks whose streams may still use them.
void rondo__pool_settle(rondo_pool *pool, rondo__pool_patience patience);

// Makes `heap` hold a region with room for `bytes`: an idle one, or the driver's. With
// `is_capture`, memory calls break no capture.
//
// Errors:    NO_DEVICE_MEMORY, NO_MEMORY, DRIVER, LOST.
// Threads:   holds the pool's lock.
RONDO_MUST_USE rondo_status rondo__pool_add_region(rondo_pool *pool, rondo__heap *heap,
                                                   uint64_t bytes, bool is_capture,
                                                   uint64_t *out_bytes);

// ---- arena.c ----------------------------------------------------------------------------------

// rondo_pool_allocate on a stream that records `capture`, in `scope`.
//
// Errors:    NO_DEVICE_MEMORY, NO_MEMORY, DRIVER, LOST.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__arena_allocate(rondo_pool *pool, rondo_stream *stream,
                                                  rondo__capture *capture, uint64_t scope,
                                                  size_t bytes, void **out_address);

// A lease of an arena was freed and is out of the table of live blocks. With the pool's lock held.
void rondo__arena_free(rondo_pool *pool, rondo__lease *lease);

// A stream that records in `scope` (0: in none) uses the block. With the pool's lock held.
void rondo__arena_note_use(rondo__lease *lease, uint64_t scope);

// Its uses have passed: the block goes back to the arena. With the pool's lock held.
void rondo__arena_return(rondo_pool *pool, rondo__lease *lease);

// Gives the pool regions that were held back, when their streams can be waited for by now. With the
// pool's lock held.
void rondo__arena_give_held_back(rondo_pool *pool, rondo__pool_patience patience);

// Forgets the arenas of a pool that is destroyed: nothing is live in them.
void rondo__arena_forget_pool(rondo_pool *pool);

#endif  // RONDO_POOL_POOL_INTERNAL_H
