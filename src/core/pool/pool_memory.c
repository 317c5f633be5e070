// pool/pool_memory.c — see pool_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "pool/pool_memory.h"

#include "backend/check.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/use_count.h"
#include "capture/forbid.h"
#include "device/device.h"
#include "device/stream_tag.h"
#include "pool/arena.h"

enum {
    SMALL_REGION_BYTES = 2 << 20,
    MEDIUM_REGION_BYTES = 32 << 20,
    SMALL_REQUEST_BYTES = 1 << 20,
    MEDIUM_REQUEST_BYTES = 16 << 20,
};

// ---- blocks that come back --------------------------------------------------------------------

static void give_back(rondo_pool *pool, rondo__block *block) {
    if (block->arena_pool != NULL) {
        rondo__arena_return(pool, block);
    } else {
        rondo__pool_return(pool, block);
    }
}

void rondo__pool_settle(rondo_pool *pool, bool may_wait) {
    rondo__arena_give_held_back(pool, may_wait);
    if (pool->pending == NULL) {
        return;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__block **link = &pool->pending;
    while (*link != NULL) {
        rondo__block *block = *link;
        bool is_captured = rondo__pool_is_captured(pool, block);
        if (rondo__block_has_passed(pool, block, may_wait) && !is_captured) {
            *link = block->next;
            pool->stats.pending_bytes -= block->piece->bytes;
            give_back(pool, block);
        } else {
            link = &block->next;
        }
    }
    rondo__error_restore(&saved);
}

// ---- driver memory ----------------------------------------------------------------------------

static void give_to_driver(rondo_pool *pool, void *base) {
    rondo__areas_set_holder(pool->device, base, NULL);
    rondo_memory_free(pool->device, base);
}

static void free_region(rondo_pool *pool, rondo__heap *heap, rondo__heap_region *region) {
    void *base = region->base;
    pool->stats.reserved_bytes -= region->bytes;
    rondo__heap_remove(heap, region);
    give_to_driver(pool, base);
}

static uint64_t release_idle(rondo_pool *pool, uint64_t keep_bytes) {
    uint64_t released = 0;
    while (pool->idle.regions != NULL && pool->stats.reserved_bytes > keep_bytes) {
        released += pool->idle.regions->bytes;
        free_region(pool, &pool->idle, pool->idle.regions);
    }
    return released;
}

// `has_waited`: the stream's work is known to be done.
static uint64_t release_owner(rondo_pool *pool, rondo__owner *o, uint64_t keep_bytes, bool may_wait,
                              bool has_waited) {
    uint64_t released = 0;
    for (rondo__heap_region *region = o->heap.regions; region != NULL;) {
        rondo__heap_region *next = region->next;
        if (region->live_count == 0 && pool->stats.reserved_bytes > keep_bytes) {
            has_waited = has_waited || (may_wait ? rondo__stream_tag_wait_at_any_price(o->tag)
                                                 : rondo__stream_tag_wait(o->tag));
            if (!has_waited) {
                break;
            }
            released += region->bytes;
            free_region(pool, &o->heap, region);
        }
        region = next;
    }
    return released;
}

uint64_t rondo__pool_release_unused(rondo_pool *pool, uint64_t keep_bytes, bool may_wait) {
    uint64_t released = release_idle(pool, keep_bytes);
    for (rondo__owner *o = pool->owners; o != NULL; o = o->next) {
        released += release_owner(pool, o, keep_bytes, may_wait, false);
    }
    return released;
}

// The smallest idle region that has room.
static rondo__heap_region *find_idle(const rondo_pool *pool, uint64_t bytes) {
    rondo__heap_region *best = NULL;
    for (rondo__heap_region *r = pool->idle.regions; r != NULL; r = r->next) {
        if (r->bytes >= bytes && (best == NULL || r->bytes < best->bytes)) {
            best = r;
        }
    }
    return best;
}

static rondo_status ask_driver(rondo_pool *pool, uint64_t bytes, void **out_base) {
    if (pool->options.limit_bytes > 0 &&
        (bytes > pool->options.limit_bytes ||
         pool->stats.reserved_bytes > pool->options.limit_bytes - bytes)) {
        return RONDO_FAIL_AS("rondo_pool_allocate", NO_DEVICE_MEMORY,
                             "the pool's limit of %llu bytes is reached",
                             (unsigned long long)pool->options.limit_bytes);
    }
    pool->stats.driver_call_count += 1;
    return rondo__memory_take(pool->device, pool->options.kind, (size_t)bytes, out_base);
}

// Says how the memory is used, in front of what the driver or the limit said.
static void report_exhaustion(const rondo_pool *pool, uint64_t bytes) {
    rondo_device_info info = {.struct_size = sizeof info};
    rondo_error saved;
    rondo__error_save(&saved);
    uint64_t free_bytes = 0;
    if (rondo_device_get_info(pool->device, &info) == RONDO_STATUS_OK) {
        free_bytes = info.free_bytes;
    }
    rondo__error_restore(&saved);
    rondo__error_prefix(
        "%llu bytes wanted; pool: %llu live in %llu blocks, %llu pending, %llu reserved; "
        "device: %llu free",
        (unsigned long long)bytes, (unsigned long long)pool->stats.live_bytes,
        (unsigned long long)pool->stats.live_count, (unsigned long long)pool->stats.pending_bytes,
        (unsigned long long)pool->stats.reserved_bytes, (unsigned long long)free_bytes);
}

static rondo_status get_memory(rondo_pool *pool, uint64_t bytes, uint64_t *out_region_bytes,
                               void **out_base) {
    uint64_t region_bytes = bytes <= SMALL_REQUEST_BYTES ? SMALL_REGION_BYTES
                            : bytes <= MEDIUM_REQUEST_BYTES
                                ? MEDIUM_REGION_BYTES
                                : rondo__align_up(bytes, SMALL_REGION_BYTES);
    rondo_status status = ask_driver(pool, region_bytes, out_base);
    if (status == RONDO_STATUS_NO_DEVICE_MEMORY) {
        // Free the cache, then ask for no more than is needed.
        rondo__pool_settle(pool, true);
        (void)rondo__pool_release_unused(pool, 0, true);
        region_bytes = rondo__align_up(bytes, RONDO__HEAP_UNIT);
        status = ask_driver(pool, region_bytes, out_base);
        if (status == RONDO_STATUS_NO_DEVICE_MEMORY) {
            report_exhaustion(pool, bytes);
        }
    }
    *out_region_bytes = region_bytes;
    return status;
}

rondo_status rondo__pool_add_region(rondo_pool *pool, rondo__heap *heap, uint64_t bytes,
                                    bool is_capture, uint64_t *out_bytes) {
    *out_bytes = 0;
    rondo__heap_region *region = find_idle(pool, bytes);
    if (region != NULL) {
        rondo__heap_move(&pool->idle, region, heap);
        *out_bytes = region->bytes;
        return RONDO_STATUS_OK;
    }
    if (!is_capture) {
        RETURN_IF_ERROR(
            rondo__forbid_unsafe(pool->device, "rondo_pool_allocate", RONDO_CAUSE_ALLOCATION));
    }
    uint64_t region_bytes = 0;
    void *base = NULL;
    rondo_status status = get_memory(pool, bytes, &region_bytes, &base);
    if (status == RONDO_STATUS_OK) {
        rondo__areas_set_holder(pool->device, base, pool);
        status = rondo__heap_add(heap, base, region_bytes, &region);
        if (status != RONDO_STATUS_OK) {
            give_to_driver(pool, base);
        }
    }
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    *out_bytes = region_bytes;
    pool->stats.reserved_bytes += region_bytes;
    if (pool->stats.reserved_bytes > pool->stats.reserved_peak_bytes) {
        pool->stats.reserved_peak_bytes = pool->stats.reserved_bytes;
    }
    return RONDO_STATUS_OK;
}

static const rondo__heap_piece *find_in_heap(const rondo__heap *heap, uintptr_t address) {
    for (const rondo__heap_region *r = heap->regions; r != NULL; r = r->next) {
        uintptr_t base = (uintptr_t)r->base;
        if (address < base || address - base >= r->bytes) {
            continue;
        }
        const rondo__heap_piece *piece = r->first;
        while (piece->offset + piece->bytes <= address - base) {
            piece = piece->after;
        }
        return piece;
    }
    return NULL;
}

const rondo__heap_piece *rondo__pool_find_piece(const rondo_pool *pool, const void *address,
                                                const rondo__arena_pool **out_arena_pool) {
    *out_arena_pool = NULL;
    for (const rondo__arena_pool *arena_pool = pool->arena_pools; arena_pool != NULL;
         arena_pool = arena_pool->next) {
        const rondo__heap_piece *piece = find_in_heap(&arena_pool->heap, (uintptr_t)address);
        if (piece != NULL) {
            *out_arena_pool = arena_pool;
            return piece;
        }
    }
    const rondo__heap_piece *piece = find_in_heap(&pool->idle, (uintptr_t)address);
    for (const rondo__owner *o = pool->owners; piece == NULL && o != NULL; o = o->next) {
        piece = find_in_heap(&o->heap, (uintptr_t)address);
    }
    return piece;
}

// ---- the end ----------------------------------------------------------------------------------

// Lets the work of streams finish that may use memory of the pool, also on streams that record by
// now.
static void drain_streams(rondo_pool *pool) {
    for (rondo__owner *o = pool->owners; o != NULL; o = o->next) {
        (void)rondo__stream_tag_wait_at_any_price(o->tag);
    }
    for (rondo__arena_pool *a = pool->arena_pools; a != NULL; a = a->next) {
        if (a->in_flight != NULL) {
            (void)rondo__stream_tag_wait_at_any_price(a->in_flight);
        }
    }
}

// The memory of blocks whose users could not be waited for goes to the driver all the same.
static void give_up_pending(rondo_pool *pool) {
    rondo__block **link = &pool->pending;
    while (*link != NULL) {
        rondo__block *block = *link;
        if (rondo__pool_is_captured(pool, block)) {
            link = &block->next;
        } else {
            *link = block->next;
            give_back(pool, block);
        }
    }
}

void rondo__pool_destroy(rondo_pool *pool) {
    drain_streams(pool);
    rondo__pool_settle(pool, true);
    give_up_pending(pool);
    rondo__pool_leave_captured(pool);
    rondo__arena_forget_pool(pool);
    (void)release_idle(pool, 0);
    rondo__heap_deinit(&pool->idle);
    while (pool->owners != NULL) {
        rondo__owner *o = pool->owners;
        pool->owners = o->next;
        (void)release_owner(pool, o, 0, true, true);
        rondo__stream_tag_release(o->tag);
        rondo__heap_deinit(&o->heap);
        rondo__free(o);
    }
    rondo__pool_free_records(pool);
    rondo__live_table_deinit(&pool->live);
    pthread_mutex_destroy(&pool->lock);
    rondo_device_release(pool->device);
    rondo__free(pool);
}

void rondo_pool_retain(rondo_pool *pool) {
    if (pool == NULL) {
        return;
    }
    rondo__reference_take(&pool->reference_count);
}

void rondo_pool_release(rondo_pool *pool) {
    if (pool == NULL || atomic_load(&pool->device->is_forked) ||
        !rondo__reference_drop(&pool->reference_count)) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->is_released = true;
    bool is_empty = pool->stats.live_count == 0;
    pthread_mutex_unlock(&pool->lock);
    if (is_empty) {
        rondo__pool_destroy(pool);
    }
}
