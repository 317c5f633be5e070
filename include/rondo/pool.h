// rondo/pool.h — device memory that is cheap to take and give back, in stream order.
//
// A pool keeps what was freed and hands it out again without asking the driver. A block belongs to
// the stream it was taken for: once freed it can be taken again for that stream at once, because
// work of one stream runs in order. A block that other streams use as well must be declared with
// rondo_pool_use; it is then reused only after their work.
#ifndef RONDO_POOL_H
#define RONDO_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
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
    uint64_t live_bytes;           // handed out now, rounded as the pool rounds
    uint64_t live_count;           // blocks handed out now
    uint64_t pending_bytes;        // freed, but other streams may still use them
    uint64_t reserved_bytes;       // held from the driver now
    uint64_t live_peak_bytes;      // most of live_bytes since the pool was made
    uint64_t reserved_peak_bytes;  // most of reserved_bytes since the pool was made
    uint64_t allocation_count;     // successful rondo_pool_allocate calls
    uint64_t driver_call_count;    // allocations asked of the driver
} rondo_pool_stats;

RONDO_API rondo_pool_options rondo_pool_options_default(void);

// Makes an empty pool.
//
// options    NULL means the defaults.
//
// Errors:    INVALID, NO_MEMORY.
// Ownership: one reference; give it back with rondo_pool_release. The device is retained.
// Threads:   safe.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_create(rondo_device *device,
                                                        const rondo_pool_options *options,
                                                        rondo_pool **out_pool);

// Adds a reference.  Threads: safe.
RONDO_API void rondo_pool_retain(rondo_pool *pool);

// Gives up a reference. NULL is fine. The last one waits for pending blocks and frees everything
// the pool holds; blocks still handed out keep the pool's memory until they are freed.
//
// Threads:   safe.
RONDO_API void rondo_pool_release(rondo_pool *pool);

// Takes a block for use on `stream`, aligned to 512 bytes.
//
// bytes      0 gives a NULL address and success.
//
// Errors:    INVALID (other device), NO_DEVICE_MEMORY (after the cache was freed and the driver
//            asked again; the message says what is live, reserved and free), NO_MEMORY, DRIVER,
//            LOST.
// Ownership: give back once with rondo_pool_free.
// Threads:   safe; takes the pool's lock for O(log n) work.
// Capture:   legal; see rondo/graph.h for where the memory then comes from.
// Cost:      a hit makes no driver call.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_allocate(rondo_pool *pool, rondo_stream *stream,
                                                          size_t bytes, void **out_address);

// Gives a block back. NULL is fine. Work already put on its stream may still use it.
//
// Errors:    INVALID (not a live block of this pool: a second free, or an address from elsewhere).
// Threads:   safe.
// Capture:   legal.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_free(rondo_pool *pool, void *address);

// Declares that work on `stream`, too, uses the block, which is not that of the allocation.
//
// Errors:    INVALID (not a live block, other device), NO_MEMORY.
// Threads:   safe.
// Capture:   legal.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_use(rondo_pool *pool, void *address,
                                                     rondo_stream *stream);

// Returns unused memory to the driver until at most `keep_bytes` are reserved, or none is unused.
//
// out_released  bytes returned; may be NULL.
//
// Errors:    INVALID, DRIVER, LOST.
// Threads:   safe.
// Capture:   legal in thread-local and relaxed captures of other threads.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_trim(rondo_pool *pool, uint64_t keep_bytes,
                                                      uint64_t *out_released);

// Errors:    INVALID.
// Threads:   safe.
RONDO_API RONDO_MUST_USE rondo_status rondo_pool_get_stats(rondo_pool *pool,
                                                           rondo_pool_stats *out_stats);

RONDO_EXTERN_C_END

#endif  // RONDO_POOL_H
