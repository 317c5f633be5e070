// pool/pool.c — pools: heaps bound to driver memory, streams and a lock.
//
//   pool ── owner (stream 1) ── heap ── regions ── pieces
//        └─ owner (stream 2) ── heap ── ...
//        └─ live table: address -> every block handed out
//        └─ pending: freed blocks that other streams may still use, with an event for each of them
//        └─ idle: whole regions that arenas gave back
//
// Blocks of captures come from arenas instead: see arena.h.
//
// A region keeps its owner while one of its blocks is live or pending, so stream order alone makes
// reuse safe. When a stream is gone and its work is done, another owner may adopt its empty
// regions. A stream that was destroyed while it recorded is waited for at the end of the capture.
// The driver is asked for regions: 2 MiB for small requests, 32 MiB for medium ones, and multiples
// of 2 MiB for the rest.
//
// One lock guards a pool. A call that the cache can serve holds it for a table look-up and a bit
// scan. Rejected: a lock for each owner (frees come from any thread and would need two), and
// lock-free lists (pieces split and merge).
//
// The files of this room; each calls only files above it:
//
//   heap, live_table, ancestors   bookkeeping
//   pool_blocks                   records of blocks, and when their streams are done with them
//   arena                         arenas, and the regions that they hold
//   pool_memory                   regions of the driver, pending blocks, the end of a pool
//   order, arena_use              the blocks of a graph: the order of replays, taking and freeing
//   arena_graph, guard, pool_free what takes part in captures
//   pool                          the calls of the program
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/write_struct.h"
#include "device/stream_tag.h"
#include "pool/arena_graph.h"
#include "pool/arena_use.h"
#include "pool/pool_free.h"
#include "pool/pool_memory.h"

// ---- making one -------------------------------------------------------------------------------

rondo_status rondo_pool_create(rondo_device *device, const rondo_pool_options *options,
                               rondo_pool **out_pool) {
    RETURN_IF_ERROR(rondo__check_pointer(out_pool, __func__, "out_pool"));
    *out_pool = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_pool_options merged = {.struct_size = sizeof merged};
    RETURN_IF_ERROR(
        rondo__read_options(options, &merged, sizeof merged, __func__, "rondo_pool_options"));
    if (merged.kind != RONDO_MEMORY_DEVICE && merged.kind != RONDO_MEMORY_PINNED) {
        return RONDO_FAIL(INVALID, "options.kind is %d, not a rondo_memory_kind", (int)merged.kind);
    }
    rondo_pool *pool = rondo__calloc(1, sizeof *pool);
    if (pool == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    pthread_mutex_init(&pool->lock, NULL);
    atomic_init(&pool->reference_count, 1);
    rondo_device_retain(device);
    pool->device = device;
    pool->options = merged;
    *out_pool = pool;
    return RONDO_STATUS_OK;
}

// ---- owners -----------------------------------------------------------------------------------

static rondo_status get_owner(rondo_pool *pool, rondo_stream *stream, rondo__owner **out_owner) {
    rondo__owner **link = &pool->owners;
    for (; *link != NULL; link = &(*link)->next) {
        rondo__owner *o = *link;
        if (o->stream_number == stream->number) {
            *link = o->next;  // to the front: the next call is most likely for the same stream
            o->next = pool->owners;
            pool->owners = o;
            *out_owner = o;
            return RONDO_STATUS_OK;
        }
    }
    rondo__owner *o = rondo__calloc(1, sizeof *o);
    if (o == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    o->stream_number = stream->number;
    // Watched: when memory runs out while it records, what it ran before can be waited for.
    o->tag = rondo__stream_tag_watch(stream);
    o->next = pool->owners;
    pool->owners = o;
    *out_owner = o;
    return RONDO_STATUS_OK;
}

// Gives `heir` the empty regions of streams that are gone and whose work is done, and frees owners
// that have nothing left.
static bool adopt_regions(rondo_pool *pool, rondo__owner *heir) {
    bool has_adopted = false;
    rondo__owner **link = &pool->owners;
    while (*link != NULL) {
        rondo__owner *o = *link;
        if (o == heir || !rondo__stream_tag_is_done(o->tag)) {
            link = &o->next;
            continue;
        }
        for (rondo__heap_region *region = o->heap.regions; region != NULL;) {
            rondo__heap_region *next = region->next;
            if (region->live_count == 0) {
                rondo__heap_move(&o->heap, region, &heir->heap);
                has_adopted = true;
            }
            region = next;
        }
        if (o->heap.regions == NULL) {
            *link = o->next;
            rondo__stream_tag_release(o->tag);
            rondo__heap_deinit(&o->heap);
            rondo__free(o);
        } else {
            link = &o->next;
        }
    }
    return has_adopted;
}

// ---- the public calls -------------------------------------------------------------------------

static rondo_status take_piece(rondo_pool *pool, rondo__owner *o, uint64_t bytes,
                               rondo__heap_piece **out_piece) {
    RETURN_IF_ERROR(rondo__heap_take(&o->heap, bytes, out_piece));
    if (*out_piece == NULL && (pool->pending != NULL || pool->arena_pools != NULL)) {
        rondo__pool_settle(pool, false);
        RETURN_IF_ERROR(rondo__heap_take(&o->heap, bytes, out_piece));
    }
    if (*out_piece == NULL && adopt_regions(pool, o)) {
        RETURN_IF_ERROR(rondo__heap_take(&o->heap, bytes, out_piece));
    }
    if (*out_piece == NULL) {
        uint64_t added = 0;
        RETURN_IF_ERROR(rondo__pool_add_region(pool, &o->heap, bytes, false, &added));
        RETURN_IF_ERROR(rondo__heap_take(&o->heap, bytes, out_piece));
    }
    return *out_piece != NULL ? RONDO_STATUS_OK
                              : RONDO_FAIL(INTERNAL, "a fresh region has no room for %llu bytes",
                                           (unsigned long long)bytes);
}

rondo_status rondo_pool_allocate(rondo_pool *pool, rondo_stream *stream, size_t bytes,
                                 void **out_address) {
    RETURN_IF_ERROR(rondo__check_pointer(out_address, __func__, "out_address"));
    *out_address = NULL;
    RETURN_IF_ERROR(rondo__check_pointer(pool, __func__, "pool"));
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    RETURN_IF_ERROR(rondo__check_same_device(pool->device, stream, __func__, "the pool", NULL));
    if (bytes == 0) {
        return RONDO_STATUS_OK;
    }
    if (bytes > SIZE_MAX / 4) {
        return RONDO_FAIL(NO_DEVICE_MEMORY, "%zu bytes are more than any device has", bytes);
    }
    rondo__capture *capture = NULL;
    uint64_t section = 0;
    RETURN_IF_ERROR(rondo__capture_find(stream, &capture, &section));
    if (__builtin_expect(capture != NULL, 0)) {
        return rondo__arena_allocate(pool, stream, capture, section, bytes, out_address);
    }
    RETURN_IF_ERROR(rondo__capture_refuse_foreign(stream, __func__, "pool"));
    rondo__owner *o = NULL;
    rondo__heap_piece *piece = NULL;
    pthread_mutex_lock(&pool->lock);
    rondo__block *block = rondo__pool_get_record(pool);
    rondo_status status =
        block != NULL ? rondo__live_table_reserve(&pool->live) : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = get_owner(pool, stream, &o);
    }
    if (status == RONDO_STATUS_OK) {
        status = take_piece(pool, o, bytes, &piece);
    }
    if (status == RONDO_STATUS_OK) {
        block->piece = piece;
        block->owner = o;
        rondo__pool_hand_out(pool, block);
        *out_address = rondo__pool_get_address(piece);
    } else if (block != NULL) {
        rondo__pool_drop_record(pool, block);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

static rondo_status note_use(rondo_pool *pool, void *address, rondo_stream *stream) {
    static const char call[] = "rondo_pool_use";
    RETURN_IF_ERROR(rondo__check_pointer(pool, call, "pool"));
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    RETURN_IF_ERROR(rondo__check_same_device(pool->device, stream, call, "the pool", NULL));
    rondo__capture *capture = NULL;
    uint64_t section = 0;
    RETURN_IF_ERROR(rondo__capture_find(stream, &capture, &section));
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&pool->lock);
    rondo__block *block = rondo__live_table_get(&pool->live, address);
    if (block == NULL || block->is_freed) {
        status = RONDO_FAIL_AS(call, INVALID, "%p is not a live block of this pool", address);
        goto unlock;
    }
    if (block->owner != NULL && block->owner->stream_number == stream->number) {
        goto unlock;
    }
    if (block->arena_pool != NULL) {
        rondo__arena_note_user(block, section);
    }
    for (size_t i = 0; i < block->user_count; ++i) {
        // By the tag: another stream may have the address of one that is gone.
        if (block->users[i].tag == stream->tag && block->users[i].section == section) {
            goto unlock;
        }
    }
    status = rondo__block_add_user(block, stream, section);

unlock:
    pthread_mutex_unlock(&pool->lock);
    return status;
}

rondo_status rondo_pool_use(rondo_pool *pool, rondo_stream *stream, void *address) {
    // When this fails, the capture may use memory that the pool gives to others.
    return rondo__mark_missing(stream, "", note_use(pool, address, stream));
}

rondo_status rondo_pool_free(rondo_pool *pool, void *address) {
    RETURN_IF_ERROR(rondo__check_pointer(pool, __func__, "pool"));
    if (address == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__check_process(pool->device, __func__));
    pthread_mutex_lock(&pool->lock);
    rondo__block *block = rondo__live_table_get(&pool->live, address);
    if (block == NULL || block->is_freed) {
        pthread_mutex_unlock(&pool->lock);
        return RONDO_FAIL(INVALID,
                          "%p is not a live block of this pool: it was freed before, or taken by a "
                          "step whose capture failed, or comes from elsewhere",
                          address);
    }
    rondo_status status = rondo__pool_free_block(pool, block);
    bool is_last = pool->is_released && pool->stats.live_count == 0;
    pthread_mutex_unlock(&pool->lock);
    if (is_last) {
        rondo__pool_destroy(pool);
    }
    return status;
}

rondo_status rondo_pool_trim(rondo_pool *pool, uint64_t keep_bytes, uint64_t *out_released) {
    if (out_released != NULL) {
        *out_released = 0;
    }
    RETURN_IF_ERROR(rondo__check_pointer(pool, __func__, "pool"));
    RETURN_IF_ERROR(rondo__check_device(pool->device, __func__));
    pthread_mutex_lock(&pool->lock);
    rondo__pool_settle(pool, false);
    uint64_t released = rondo__pool_release_unused(pool, keep_bytes, false);
    pthread_mutex_unlock(&pool->lock);
    if (out_released != NULL) {
        *out_released = released;
    }
    // Giving memory back may have shown that the device is lost.
    return rondo__check_device(pool->device, __func__);
}

rondo_status rondo_pool_get_stats(rondo_pool *pool, rondo_pool_stats *out_stats) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_stats, sizeof *out_stats, __func__, "rondo_pool_stats"));
    RETURN_IF_ERROR(rondo__check_pointer(pool, __func__, "pool"));
    RETURN_IF_ERROR(rondo__check_process(pool->device, __func__));
    pthread_mutex_lock(&pool->lock);
    rondo__write_struct(out_stats, &pool->stats);
    pthread_mutex_unlock(&pool->lock);
    return RONDO_STATUS_OK;
}
