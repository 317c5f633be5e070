// pool/pool_memory.h — the memory of a pool: regions of the driver, and blocks that come back into
// them. With the pool's lock held, but for rondo__pool_destroy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pool/pool_blocks.h"

// Takes back pending blocks whose users are done. With `may_wait` it waits for the others as far as
// that is possible.
void rondo__pool_settle(rondo_pool *pool, bool may_wait);

// Makes `heap` hold a region with room for `bytes`: an idle one, or the driver's. With
// `is_capture`, memory calls break no capture.
//
// Errors:    NO_DEVICE_MEMORY, NO_MEMORY, DRIVER, LOST.
// Threads:   holds the pool's lock.
RONDO_MUST_USE rondo_status rondo__pool_add_region(rondo_pool *pool, rondo__heap *heap,
                                                   uint64_t bytes, bool is_capture,
                                                   uint64_t *out_bytes);

// Frees regions without live blocks while more than `keep_bytes` are reserved. Work that was put on
// the owner's stream before a block was freed may still run, so the stream is waited for first. One
// that records cannot be, and keeps its regions, unless it must (`may_wait`).
uint64_t rondo__pool_release_unused(rondo_pool *pool, uint64_t keep_bytes, bool may_wait);

// The piece, free or not, in which the address lies; NULL: it is no memory of the pool.
// *out_arena_pool holds the piece, or is NULL. Cost: O(regions and pieces).
const rondo__heap_piece *rondo__pool_find_piece(const rondo_pool *pool, const void *address,
                                                const rondo__arena_pool **out_arena_pool);

// The end of a pool without references and live blocks. Waits for the streams that used it.
void rondo__pool_destroy(rondo_pool *pool);
