// pool/pool_blocks.c — records of blocks, and when the work of their streams is done.
// SPDX-License-Identifier: Apache-2.0
#include "pool/pool_blocks.h"

#include <stdio.h>

#include "base/error.h"
#include "base/log/hook.h"
#include "base/memory.h"
#include "capture/host_memory.h"
#include "device/stream_tag.h"

// ---- records ----------------------------------------------------------------------------------

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
    if (block->arena_pool != NULL) {
        block->arena_pool = NULL;
        block->use = NULL;
        block->section_stream = NULL;
        block->output = NULL;
        block->next_in_use = NULL;
        block->previous_in_use = NULL;
        block->nodes.count = 0;
        block->is_held = false;
    }
    drop_users(block);
    block->piece = NULL;
    block->next = pool->spare;
    pool->spare = block;
}

void rondo__pool_return(rondo_pool *pool, rondo__block *block) {
    rondo__heap_give(&block->owner->heap, block->piece);
    rondo__pool_drop_record(pool, block);
}

static void free_lists(rondo__block *block) {
    drop_users(block);
    rondo__free(block->users);
    rondo__section_nodes_deinit(&block->nodes);
}

void rondo__pool_free_records(rondo_pool *pool) {
    while (pool->spare != NULL) {
        rondo__block *block = pool->spare;
        pool->spare = block->next;
        free_lists(block);
        rondo__free(block);
    }
}

rondo_status rondo__block_add_user(rondo__block *block, rondo_stream *stream, uint64_t section) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(block->users, block->user_capacity, block->user_count + 1);
    if (status == RONDO_STATUS_OK) {
        block->users[block->user_count++] = (rondo__block_user){
            .stream = stream, .tag = rondo__stream_tag_retain(stream), .section = section};
    }
    return status;
}

// Tells a profile how much is handed out.
static void tell_amount(rondo_pool *pool) {
    static atomic_uint last_number;
    char name[64];
    if (!rondo__hook_is_on(RONDO__HOOK_COUNTERS)) {
        return;
    }
    if (pool->number == 0) {
        pool->number = atomic_fetch_add(&last_number, 1) + 1;
    }
    (void)snprintf(name, sizeof name, "%s pool %u in use", pool->device->name,
                   (unsigned)pool->number);
    rondo__hook_post_counter(name, pool->stats.live_bytes);
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
    tell_amount(pool);
}

void rondo__pool_take_in(rondo_pool *pool, rondo__block *block) {
    (void)rondo__live_table_take(&pool->live, rondo__pool_get_address(block->piece));
    pool->stats.live_bytes -= block->piece->bytes;
    pool->stats.live_count -= 1;
    tell_amount(pool);
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

static bool has_user_passed(rondo_pool *pool, rondo__block_user *user, bool may_wait) {
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
bool rondo__block_has_passed(rondo_pool *pool, rondo__block *block, bool may_wait) {
    bool have_passed = true;
    for (size_t i = 0; i < block->user_count; ++i) {
        have_passed = has_user_passed(pool, &block->users[i], may_wait) && have_passed;
    }
    return have_passed;
}

void rondo__pool_leave_captured(rondo_pool *pool) {
    while (pool->pending != NULL) {
        rondo__block *block = pool->pending;
        rondo__heap_region *region = block->piece->region;
        pool->pending = block->next;
        free_lists(block);
        if (region->base != NULL) {
            rondo__areas_set_holder(pool->device, region->base, NULL);
            rondo__host_memory_leave_behind(pool->device, region->base, region->bytes, block);
            region->base = NULL;  // once for all its blocks
        } else {
            rondo__free(block);
        }
    }
}
