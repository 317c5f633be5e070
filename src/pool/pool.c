// pool/pool.c — pools: heaps bound to driver memory, streams and a lock.
//
//   pool ── owner (stream 1) ── heap ── regions ── pieces
//        └─ owner (stream 2) ── heap ── ...
//        └─ live table: address -> every block handed out
//        └─ pending: freed blocks that other streams may still use, with an event for each of them
//        └─ idle: whole regions that arenas gave back
//
// Blocks of captures come from arenas instead: see arena.c.
//
// A block never changes its owner while its region has a live or pending block, so that stream
// order alone makes reuse safe. A region whose stream is gone may serve any owner, once the
// stream's work is done: one that went while it recorded is waited for at the end of the capture.
// Driver memory is asked for in regions: 2 MiB for small requests, 32 MiB for medium ones, rounded
// to 2 MiB above.
//
// One lock guards everything; a hit holds it for a table look-up and a bit scan. Rejected: a lock
// for each owner (frees come from any thread and would need two), and lock-free lists (pieces split
// and merge).
#include <stdio.h>

#include "backend/check.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/write_struct.h"
#include "capture/forbid.h"
#include "capture/host_memory.h"
#include "device/device.h"
#include "device/stream_tag.h"
#include "pool/arena.h"

enum {
    SMALL_REGION_BYTES = 2 << 20,
    MEDIUM_REGION_BYTES = 32 << 20,
    SMALL_REQUEST_BYTES = 1 << 20,
    MEDIUM_REQUEST_BYTES = 16 << 20,
};

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

// ---- records of blocks ------------------------------------------------------------------------

rondo__block *rondo__pool_get_record(rondo_pool *pool) {
    rondo__block *block = pool->spare;
    if (block == NULL) {
        return rondo__calloc(1, sizeof *block);
    }
    pool->spare = block->next;
    block->next = NULL;
    return block;
}

static void drop_users(rondo__block *block) {
    for (size_t i = 0; i < block->user_count; ++i) {
        rondo__stream_tag_release(block->users[i].tag);
        rondo_event_destroy(block->users[i].event);
    }
    block->user_count = 0;
}

void rondo__pool_drop_record(rondo_pool *pool, rondo__block *block) {
    drop_users(block);
    block->piece = NULL;
    block->next = pool->spare;
    pool->spare = block;
}

void *rondo__pool_get_address(const rondo__heap_piece *piece) {
    return (char *)piece->region->base + piece->offset;
}

bool rondo__pool_is_captured(const rondo_pool *pool, const rondo__block *block) {
    return pool->options.kind == RONDO_MEMORY_PINNED &&
           rondo__host_memory_covers(pool->device, rondo__pool_get_address(block->piece),
                                     block->piece->bytes);
}

rondo_status rondo__block_add_user(rondo__block *block, rondo_stream *stream, uint64_t section) {
    void *users = block->users;
    rondo_status status = rondo__array_reserve(&users, &block->user_capacity, block->user_count + 1,
                                               sizeof *block->users);
    block->users = users;
    if (status == RONDO_STATUS_OK) {
        block->users[block->user_count++] = (rondo__block_user){
            .stream = stream, .tag = rondo__stream_tag_retain(stream), .section = section};
    }
    return status;
}

void rondo__pool_hand_out(rondo_pool *pool, rondo__block *block) {
    block->serial = ++pool->last_serial;
    rondo__live_table_put(&pool->live, rondo__pool_get_address(block->piece), block);
    pool->stats.live_bytes += block->piece->bytes;
    pool->stats.live_count += 1;
    pool->stats.allocation_count += 1;
    if (pool->stats.live_bytes > pool->stats.live_peak_bytes) {
        pool->stats.live_peak_bytes = pool->stats.live_bytes;
    }
}

// Puts a block's memory back into its heap: nobody uses it any more.
static void give_back(rondo_pool *pool, rondo__block *block) {
    if (block->arena_pool != NULL) {
        rondo__arena_return(pool, block);
        return;
    }
    rondo__heap_give(&block->owner->heap, block->piece);
    rondo__pool_drop_record(pool, block);
}

// ---- blocks that streams may still use --------------------------------------------------------

// Puts an event behind the user's work. A stream that records gets none, because the event would
// land in its capture: a later look tries again.
static void put_event(rondo_pool *pool, rondo__block_user *user) {
    if (rondo__stream_tag_is_finished(user->tag)) {
        user->has_passed = rondo__stream_tag_is_done(user->tag);  // else it went in a capture
        return;
    }
    rondo_event *event = NULL;
    bool was_recorded = false;
    rondo_status status = rondo_event_create(pool->device, 0, &event);
    if (status == RONDO_STATUS_OK) {
        // The stream is another thread's, who may destroy it at this moment.
        status = rondo__stream_tag_record(user->tag, event, &was_recorded);
    }
    if (was_recorded) {
        user->event = event;
        return;
    }
    rondo_event_destroy(event);
    if (status == RONDO_STATUS_OK) {
        user->has_passed = true;
    } else if (status != RONDO_STATUS_STATE) {
        // Without an event only waiting tells that the work is done.
        user->has_passed = rondo__stream_tag_wait(user->tag);
    }
}

void rondo__pool_let_pass(rondo_pool *pool, rondo__block *block) {
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t i = 0; i < block->user_count; ++i) {
        put_event(pool, &block->users[i]);
    }
    rondo__error_restore(&saved);
    pool->stats.pending_bytes += block->piece->bytes;
    block->next = pool->pending;
    pool->pending = block;
}

static bool is_event_done(const rondo_pool *pool, rondo_event *event, bool may_wait) {
    const rondo__backend *backend = pool->device->backend;
    bool is_lost = atomic_load(&pool->device->is_lost);
    if (may_wait) {
        // A failed wait means a lost device: nothing runs there any more.
        if (!is_lost) {
            (void)!backend->synchronize_event(event);
        }
        return true;
    }
    bool is_done = false;
    return !is_lost && backend->query_event(event, &is_done) == RONDO_STATUS_OK && is_done;
}

static bool has_passed(rondo_pool *pool, rondo__block_user *user, bool may_wait) {
    if (!user->has_passed && user->event == NULL) {
        put_event(pool, user);
    }
    if (user->has_passed) {
        return true;
    }
    if (user->event == NULL) {
        user->has_passed = may_wait && rondo__stream_tag_wait_at_any_price(user->tag);
    } else if (is_event_done(pool, user->event, may_wait)) {
        user->has_passed = true;
        rondo_event_destroy(user->event);
        user->event = NULL;
    }
    return user->has_passed;
}

// Asks for all users, so that each gets its event as early as possible.
static bool have_all_passed(rondo_pool *pool, rondo__block *block, bool may_wait) {
    bool have_passed = true;
    for (size_t i = 0; i < block->user_count; ++i) {
        have_passed = has_passed(pool, &block->users[i], may_wait) && have_passed;
    }
    return have_passed;
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
        if (have_all_passed(pool, block, may_wait) && !is_captured) {
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

// Frees regions without live blocks while more than `keep_bytes` are reserved. Work that was put on
// the owner's stream before a block was freed may still run, so the stream is waited for first. One
// that records cannot be, and keeps its regions, unless it must (`may_wait`).
static uint64_t release_unused(rondo_pool *pool, uint64_t keep_bytes, bool may_wait) {
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
        (void)release_unused(pool, 0, true);
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

// Takes over regions of streams that are gone, with their work, and forgets owners that have
// nothing left.
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
    if (stream->device != pool->device) {
        return RONDO_FAIL(INVALID, "the stream belongs to device %s, the pool to %s",
                          stream->device->name, pool->device->name);
    }
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
    if (stream->device != pool->device) {
        return RONDO_FAIL_AS(call, INVALID, "the stream belongs to device %s, the pool to %s",
                             stream->device->name, pool->device->name);
    }
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
    // What was recorded would run on memory that others may be given meanwhile.
    return rondo__mark_missing(stream, "", note_use(pool, address, stream));
}

static void destroy_pool(rondo_pool *pool);

void rondo__pool_take_back(rondo_pool *pool, rondo__block *block) {
    (void)rondo__live_table_take(&pool->live, rondo__pool_get_address(block->piece));
    pool->stats.live_bytes -= block->piece->bytes;
    pool->stats.live_count -= 1;
    if (block->arena_pool != NULL) {
        rondo__arena_free(pool, block);
    } else if (block->user_count == 0 && !rondo__pool_is_captured(pool, block)) {
        give_back(pool, block);
    } else {
        rondo__pool_let_pass(pool, block);
    }
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
    bool is_late = false;
    rondo_status status = rondo__pool_free_late(pool, block, &is_late);
    if (status == RONDO_STATUS_OK && !is_late) {
        rondo__pool_take_back(pool, block);
    }
    bool is_last = pool->is_released && pool->stats.live_count == 0;
    pthread_mutex_unlock(&pool->lock);
    if (is_last) {
        destroy_pool(pool);
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
    uint64_t released = release_unused(pool, keep_bytes, false);
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

void rondo_pool_retain(rondo_pool *pool) {
    if (pool == NULL) {
        return;
    }
    atomic_fetch_add_explicit(&pool->reference_count, 1, memory_order_relaxed);
}

// What is pending even now lies in regions that graphs use; they are freed with the graphs.
static void leave_captured(rondo_pool *pool) {
    while (pool->pending != NULL) {
        rondo__block *block = pool->pending;
        rondo__heap_region *region = block->piece->region;
        pool->pending = block->next;
        drop_users(block);
        rondo__free(block->users);
        rondo__section_nodes_deinit(&block->nodes);
        if (region->base != NULL) {
            rondo__areas_set_holder(pool->device, region->base, NULL);
            rondo__host_memory_leave_behind(pool->device, region->base, region->bytes, block);
            region->base = NULL;  // once for all its blocks
        } else {
            rondo__free(block);
        }
    }
}

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

static void destroy_pool(rondo_pool *pool) {
    drain_streams(pool);
    rondo__pool_settle(pool, true);
    give_up_pending(pool);
    leave_captured(pool);
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
    while (pool->spare != NULL) {
        rondo__block *block = pool->spare;
        pool->spare = block->next;
        rondo__free(block->users);
        rondo__section_nodes_deinit(&block->nodes);
        rondo__free(block);
    }
    rondo__live_table_deinit(&pool->live);
    pthread_mutex_destroy(&pool->lock);
    rondo_device_release(pool->device);
    rondo__free(pool);
}

void rondo_pool_release(rondo_pool *pool) {
    if (pool == NULL || atomic_load(&pool->device->is_forked) ||
        atomic_fetch_sub_explicit(&pool->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->is_released = true;
    bool is_empty = pool->stats.live_count == 0;
    pthread_mutex_unlock(&pool->lock);
    if (is_empty) {
        destroy_pool(pool);
    }
}
