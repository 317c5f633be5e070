// rondo/pool.h — device memory that is cheap to take and give back, in stream order.
//
// A pool keeps what was freed and hands it out again without asking the driver. A block belongs to
// the stream it was taken for: once freed it can be taken again for that stream at once, because
// work of one stream runs in order. A block that other streams use as well must be declared with
// rondo_pool_use; it is then reused only after their work.
//
// On a stream that records for a graph, rondo_pool_allocate takes from the graph's arena instead:
// see "memory of captures" below. The calls are the same, so that a step can be written once.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_POOL_H
#define RONDO_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_pool rondo_pool;

typedef struct rondo_pool_options {
    size_t struct_size;      // sizeof(rondo_pool_options)
    rondo_memory_kind kind;  // device memory, or pinned host memory under the same rules
    uint64_t limit_bytes;    // most bytes taken from the driver at a time; 0 means no limit
} rondo_pool_options;

// A snapshot; O(1).
typedef struct rondo_pool_stats {
    size_t struct_size;            // sizeof(rondo_pool_stats)
    uint64_t live_bytes;           // handed out now, rounded as the pool rounds
    uint64_t live_count;           // blocks handed out now
    uint64_t pending_bytes;        // freed, but other streams may use them, when last looked at
    uint64_t reserved_bytes;       // held from the driver now
    uint64_t live_peak_bytes;      // most of live_bytes since the pool was made
    uint64_t reserved_peak_bytes;  // most of reserved_bytes since the pool was made
    uint64_t allocation_count;     // successful rondo_pool_allocate calls
    uint64_t driver_call_count;    // allocations asked of the driver
} rondo_pool_stats;

// Makes an empty pool.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_create(rondo_device *device,
                                                        const rondo_pool_options *options,
                                                        rondo_pool **out_pool);

// Adds a reference.
RONDO_API void rondo_pool_retain(rondo_pool *pool);

// Gives up a reference. The last one waits for the work that may use the pool's
// memory and frees all of it; blocks still handed out keep the pool's memory until they are freed.
//
// Capture:   breaks no capture of any mode.
RONDO_API void rondo_pool_release(rondo_pool *pool);

// Takes a block for use on `stream`, aligned to 512 bytes.
//
// bytes      0 gives a NULL address and success.
//
// Errors:    INVALID (other device), NO_DEVICE_MEMORY (after the cache was freed and the driver
//            asked again; the message says what is live, reserved and free), STATE (the capture is
//            broken, or is not Rondo's; it recorded a graph of the same arena:
//            rondo_stream_add_graph).
// Ownership: give back once with rondo_pool_free.
// Capture:   legal, in every mode and on every stream that joined; the block then belongs to the
//            graph's arena, and running out of memory does not break the capture. For a stream that
//            does not record, growing breaks captures in global mode.
// Cost:      O(log n) under the pool's lock. A hit makes no driver call; one while a capture is
//            open on the device, or where the program has the native stream (rondo_stream_wrap,
//            rondo_stream_get_native).
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_allocate(rondo_pool *pool, rondo_stream *stream,
                                                          size_t bytes, void **out_address);

// Gives a block back; NULL is fine. Work already put on its stream may still use it.
//
// Errors:    INVALID (not a live block of this pool: a second free, or an address from elsewhere),
//            NO_MEMORY (inside a capture, of a block from before it: it is still the caller's),
//            LOST (in a process that was forked since the pool was made).
// Capture:   legal. A block from before the capture, whose stream records, goes back when the
//            capture has ended; when that fails it is the caller's again (rondo/report.h).
// Cost:      no driver call for a block of one stream; for a block of an open capture, one.
RONDO_API rondo_status rondo_pool_free(rondo_pool *pool, void *address);

// Declares that work on `stream`, too, uses the block, which is not that of the allocation. The
// program puts that work behind the allocation, by an event: the block may be memory that earlier
// work of the allocation's stream still uses.
//
// Errors:    INVALID (not a live block, other device), STATE (the capture is broken). The use is
//            then not known: wait for `stream` before you free the block.
// Capture:   legal. A failure breaks the capture, because the program cannot wait for `stream`
//            there.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_use(rondo_pool *pool, rondo_stream *stream,
                                                     void *address);

// Returns unused memory to the driver until at most `keep_bytes` are reserved, or none is unused.
//
// out_released  bytes returned; may be NULL.
//
// Capture:   breaks no capture of any mode. Memory that a recording stream has used stays.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_trim(rondo_pool *pool, uint64_t keep_bytes,
                                                      uint64_t *out_released);

// Fills *out_stats.
//
// Errors:    LOST (as rondo_pool_free).
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_get_stats(rondo_pool *pool,
                                                           rondo_pool_stats *out_stats);

// ---- memory of captures -----------------------------------------------------------------------
//
// A graph has an arena: the memory that its capture took from pools. The bytes stay the graph's
// until it is reset or destroyed, so that its addresses hold for every replay; eager work never
// gets them. A block that is still held stays valid until it is freed, even after the graph is
// destroyed. A block taken before the capture is not the graph's: hold it for as long as the graph
// is replayed. Inside a capture a freed block serves the same stream again at once, and another
// stream once all work on the block comes before what that stream records next.
//
// Graphs may share an arena: then a capture also reuses what earlier captures freed. Sharers write
// over each other's freed blocks, so the order of replays matters, and a replay that would lose
// data is refused (STATE, naming both graphs): one that writes over a block that another graph has
// produced in this round and that is still held, and one that takes in a block which was written
// over since it was produced. A graph takes in what it freed while it was captured, and what its
// work was seen to use: in copies and fills, as predicates, and as eight-byte words in the
// arguments of rondo_stream_launch and rondo_stream_call_host. Declare blocks that the program's
// own driver calls use with rondo_pool_use on a stream of the capture. Reads and writes of eager
// work are not seen. docs/captures.md has pictures.

typedef struct rondo_arena_options {
    size_t struct_size;     // sizeof(rondo_arena_options)
    bool allows_any_order;  // replays of sharers are neither checked nor put in a row
} rondo_arena_options;

// A snapshot; O(1). All graphs of the arena together.
typedef struct rondo_arena_stats {
    size_t struct_size;            // sizeof(rondo_arena_stats)
    uint64_t live_bytes;           // blocks handed out now
    uint64_t live_count;           // how many
    uint64_t reserved_bytes;       // taken from pools now
    uint64_t live_peak_bytes;      // most of live_bytes since the arena was empty
    uint64_t reserved_peak_bytes;  // most of reserved_bytes since the arena was empty
    uint64_t graph_count;          // graphs that hold memory in it
} rondo_arena_stats;

// Makes an empty arena for several graphs; pass it in rondo_graph_options. A graph without one
// makes its own, which rondo_graph_get_arena hands out.
RONDO_API RONDO_MUST_USE rondo_status rondo_arena_create(rondo_device *device,
                                                         const rondo_arena_options *options,
                                                         rondo_arena **out_arena);

// The graph's arena, to make other graphs share its memory.
//
// From now on replays of the graph are checked against those of sharers.
//
// Ownership: borrowed; a graph made with it keeps a reference of its own.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_arena(rondo_graph *graph,
                                                            rondo_arena **out_arena);

// Adds a reference.
RONDO_API void rondo_arena_retain(rondo_arena *arena);

// Gives up a reference.
RONDO_API void rondo_arena_release(rondo_arena *arena);

// Begins a new round: says that the program no longer needs the outputs of the sharers' replays,
// held or not, so that replays may overwrite each other's outputs again.
//
// Errors:    LOST (as rondo_pool_free).
// Cost:      O(1), no driver call.
RONDO_API RONDO_MUST_USE rondo_status rondo_arena_begin_round(rondo_arena *arena);

// Fills *out_stats.
RONDO_API RONDO_MUST_USE rondo_status rondo_arena_get_stats(rondo_arena *arena,
                                                            rondo_arena_stats *out_stats);

RONDO_EXTERN_C_END

#endif  // RONDO_POOL_H
