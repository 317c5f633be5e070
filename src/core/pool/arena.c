// pool/arena.c — arenas, and the regions that they hold of each pool; see arena.h.
// SPDX-License-Identifier: Apache-2.0
#include "pool/arena.h"

#include "backend/check.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/use_count.h"
#include "base/write_struct.h"
#include "device/stream_tag.h"

// ---- life -------------------------------------------------------------------------------------

rondo_status rondo_arena_create(rondo_device *device, const rondo_arena_options *options,
                                rondo_arena **out_arena) {
    RETURN_IF_ERROR(rondo__check_pointer(out_arena, __func__, "out_arena"));
    *out_arena = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_arena_options merged = {.struct_size = sizeof merged};
    RETURN_IF_ERROR(
        rondo__read_options(options, &merged, sizeof merged, __func__, "rondo_arena_options"));
    rondo_arena *arena = rondo__calloc(1, sizeof *arena);
    if (arena == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    pthread_mutex_init(&arena->lock, NULL);
    atomic_init(&arena->reference_count, 1);
    atomic_init(&arena->is_exposed, true);
    rondo_device_retain(device);
    arena->device = device;
    arena->options = merged;
    arena->round = 1;
    arena->version = 1;
    *out_arena = arena;
    return RONDO_STATUS_OK;
}

rondo_status rondo__arena_create_private(rondo_device *device, rondo_arena **out_arena) {
    RETURN_IF_ERROR(rondo_arena_create(device, NULL, out_arena));
    atomic_store(&(*out_arena)->is_exposed, false);
    return RONDO_STATUS_OK;
}

rondo_status rondo__arena_check_device(const rondo_arena *arena, const rondo_device *device) {
    return arena->device == device
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS("rondo_graph_create", INVALID,
                               "the arena belongs to device %s, the graph to %s",
                               arena->device->name, device->name);
}

void rondo__arena_expose(rondo_arena *arena) {
    atomic_store(&arena->is_exposed, true);
}

void rondo_arena_retain(rondo_arena *arena) {
    if (arena != NULL) {
        rondo__reference_take(&arena->reference_count);
    }
}

void rondo_arena_release(rondo_arena *arena) {
    if (arena == NULL || !rondo__reference_drop(&arena->reference_count)) {
        return;
    }
    rondo_event_destroy(arena->event);
    rondo__stream_tag_release(arena->last_stream);
    rondo__free(arena->pools);
    pthread_mutex_destroy(&arena->lock);
    rondo_device_release(arena->device);
    rondo__free(arena);
}

rondo_status rondo_arena_begin_round(rondo_arena *arena) {
    RETURN_IF_ERROR(rondo__check_pointer(arena, __func__, "arena"));
    RETURN_IF_ERROR(rondo__check_process(arena->device, __func__));
    pthread_mutex_lock(&arena->lock);
    arena->round += 1;
    pthread_mutex_unlock(&arena->lock);
    return RONDO_STATUS_OK;
}

rondo_status rondo_arena_get_stats(rondo_arena *arena, rondo_arena_stats *out_stats) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_stats, sizeof *out_stats, __func__, "rondo_arena_stats"));
    RETURN_IF_ERROR(rondo__check_pointer(arena, __func__, "arena"));
    const rondo_arena_stats stats = {
        .live_bytes = atomic_load_explicit(&arena->live_bytes, memory_order_relaxed),
        .live_count = atomic_load_explicit(&arena->live_count, memory_order_relaxed),
        .reserved_bytes = atomic_load_explicit(&arena->reserved_bytes, memory_order_relaxed),
        .live_peak_bytes = atomic_load_explicit(&arena->live_peak_bytes, memory_order_relaxed),
        .reserved_peak_bytes =
            atomic_load_explicit(&arena->reserved_peak_bytes, memory_order_relaxed),
        .graph_count = atomic_load_explicit(&arena->graph_count, memory_order_relaxed),
    };
    rondo__write_struct(out_stats, &stats);
    return RONDO_STATUS_OK;
}

static void raise(atomic_uint_fast64_t *peak, uint64_t value) {
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak(peak, &seen, value)) {
    }
}

void rondo__arena_count_live(rondo_arena *arena, uint64_t bytes) {
    raise(&arena->live_peak_bytes, atomic_fetch_add(&arena->live_bytes, bytes) + bytes);
    atomic_fetch_add(&arena->live_count, 1);
}

void rondo__arena_count_freed(rondo_arena *arena, uint64_t bytes) {
    atomic_fetch_sub(&arena->live_bytes, bytes);
    atomic_fetch_sub(&arena->live_count, 1);
}

void rondo__arena_count_region(rondo_arena *arena, uint64_t bytes) {
    raise(&arena->reserved_peak_bytes, atomic_fetch_add(&arena->reserved_bytes, bytes) + bytes);
}

// ---- arena pools: with the pool's lock held ---------------------------------------------------

rondo_status rondo__arena_get_pool(rondo_arena *arena, rondo_pool *pool,
                                   rondo__arena_pool **out_arena_pool) {
    // An arena without memory, such as a new graph's own, has none: no need to search.
    rondo__arena_pool *arena_pool =
        atomic_load(&arena->arena_pool_count) > 0 ? pool->arena_pools : NULL;
    while (arena_pool != NULL && (arena_pool->arena != arena ||
                                  (arena_pool->in_flight != NULL && arena_pool->uses == NULL))) {
        arena_pool = arena_pool->next;
    }
    if (arena_pool == NULL) {
        arena_pool = rondo__calloc(1, sizeof *arena_pool);
        if (arena_pool == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        rondo_arena_retain(arena);
        arena_pool->arena = arena;
        arena_pool->pool = pool;
        atomic_fetch_add(&arena->arena_pool_count, 1);
        arena_pool->next = pool->arena_pools;
        if (arena_pool->next != NULL) {
            arena_pool->next->previous = arena_pool;
        }
        pool->arena_pools = arena_pool;
    }
    *out_arena_pool = arena_pool;
    return RONDO_STATUS_OK;
}

// Takes over the reference to the tag. NULL: no stream.
static void set_in_flight(rondo__arena_pool *arena_pool, rondo__stream_tag *stream) {
    arena_pool->pool->held_pool_count +=
        (size_t)(stream != NULL) - (size_t)(arena_pool->in_flight != NULL);
    rondo__stream_tag_release(arena_pool->in_flight);
    arena_pool->in_flight = stream;
}

static void free_arena_pool(rondo__arena_pool *arena_pool) {
    if (arena_pool->next != NULL) {
        arena_pool->next->previous = arena_pool->previous;
    }
    if (arena_pool->previous != NULL) {
        arena_pool->previous->next = arena_pool->next;
    } else {
        arena_pool->pool->arena_pools = arena_pool->next;
    }
    atomic_fetch_sub(&arena_pool->arena->arena_pool_count, 1);
    rondo__heap_deinit(&arena_pool->heap);
    rondo__free(arena_pool->outputs);
    set_in_flight(arena_pool, NULL);
    rondo_arena_release(arena_pool->arena);
    rondo__free(arena_pool);
}

void rondo__arena_pool_give_back(rondo__arena_pool *arena_pool, bool may_wait) {
    if (arena_pool->in_flight != NULL && !arena_pool->is_stuck &&
        (may_wait ? rondo__stream_tag_wait_at_any_price(arena_pool->in_flight)
                  : rondo__stream_tag_wait(arena_pool->in_flight))) {
        set_in_flight(arena_pool, NULL);
    }
    if (arena_pool->in_flight != NULL) {
        return;
    }
    for (rondo__heap_region *region = arena_pool->heap.regions; region != NULL;) {
        rondo__heap_region *next = region->next;
        if (rondo__heap_is_whole(&arena_pool->heap, region) && region->touch_count == 0) {
            atomic_fetch_sub(&arena_pool->arena->reserved_bytes, region->bytes);
            rondo__heap_move(&arena_pool->heap, region, &arena_pool->pool->idle);
        }
        region = next;
    }
    rondo_arena *arena = arena_pool->arena;
    if (atomic_load(&arena->graph_count) == 0 && atomic_load(&arena->reserved_bytes) == 0) {
        atomic_store(&arena->live_peak_bytes, 0);
        atomic_store(&arena->reserved_peak_bytes, 0);
    }
    if (arena_pool->uses == NULL && arena_pool->heap.regions == NULL) {
        free_arena_pool(arena_pool);
    }
}

void rondo__arena_give_held_back(rondo_pool *pool, bool may_wait) {
    for (rondo__arena_pool *arena_pool = pool->held_pool_count > 0 ? pool->arena_pools : NULL;
         arena_pool != NULL;) {
        rondo__arena_pool *next = arena_pool->next;
        if (arena_pool->in_flight != NULL && arena_pool->uses == NULL) {
            rondo__arena_pool_give_back(arena_pool, may_wait);
        }
        arena_pool = next;
    }
}

void rondo__arena_pool_hold_back(rondo__arena_pool *arena_pool, rondo__stream_tag *stream) {
    if (stream == NULL || stream == arena_pool->in_flight) {
        return;
    }
    if (arena_pool->in_flight != NULL && !rondo__stream_tag_wait(arena_pool->in_flight)) {
        arena_pool->is_stuck = true;
        return;
    }
    set_in_flight(arena_pool, rondo__stream_tag_retain_again(stream));
}

void rondo__arena_return(rondo_pool *pool, rondo__block *block) {
    rondo__arena_pool *arena_pool = block->arena_pool;
    block->piece->freed_at = 0;
    rondo__heap_give(&arena_pool->heap, block->piece);
    rondo__pool_drop_record(pool, block);
    if (arena_pool->uses == NULL) {
        rondo__arena_pool_give_back(arena_pool, false);
    }
}

void rondo__arena_forget_pool(rondo_pool *pool) {
    while (pool->arena_pools != NULL) {
        rondo__arena_pool *arena_pool = pool->arena_pools;
        for (rondo__heap_region *region = arena_pool->heap.regions; region != NULL;) {
            rondo__heap_region *next = region->next;
            if (rondo__heap_is_whole(&arena_pool->heap, region)) {
                rondo__heap_move(&arena_pool->heap, region, &pool->idle);
            }
            region = next;
        }
        free_arena_pool(arena_pool);
    }
}
