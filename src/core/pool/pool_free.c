// pool/pool_free.c — freeing blocks, now or at the end of a capture.
//
// A block from before a capture may be freed inside it. That is no work, so it is not recorded. If
// the capture fails, the block must still be the program's, whose step frees it again when it runs
// eagerly. So the free waits: until the capture has ended, the block stays live, but no work may
// use it. Then it is freed, or is the program's again.
// SPDX-License-Identifier: Apache-2.0
#include "pool/pool_free.h"

#include "base/memory.h"
#include "capture/capture.h"
#include "device/stream_tag.h"
#include "pool/arena_use.h"

static void free_now(rondo_pool *pool, rondo__block *block) {
    rondo__pool_take_in(pool, block);
    if (block->arena_pool != NULL) {
        rondo__arena_free(pool, block);
    } else if (block->user_count == 0 && !rondo__pool_is_captured(pool, block)) {
        rondo__pool_return(pool, block);
    } else {
        rondo__pool_let_pass(pool, block);
    }
}

// What one capture freed of one pool.
typedef struct late_frees {
    rondo__participant head;  // its key is the pool
    rondo_pool *pool;         // retained until the capture has ended
    rondo__block *blocks;     // by `next`; guarded by the pool's lock
} late_frees;

static void close_frees(rondo__participant *participant, rondo__capture *capture,
                        bool has_succeeded) {
    late_frees *self = (late_frees *)participant;
    rondo_pool *pool = self->pool;
    (void)capture;
    pthread_mutex_lock(&pool->lock);
    while (self->blocks != NULL) {
        rondo__block *block = self->blocks;
        self->blocks = block->next;
        block->next = NULL;
        block->is_freed = false;
        if (has_succeeded) {
            free_now(pool, block);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    self->pool = NULL;
    rondo_pool_release(pool);
}

static void destroy_frees(rondo__participant *participant) {
    rondo__free(participant);
}

static const rondo__participant_type late_frees_type = {
    .name = "blocks freed in it",
    .close = close_frees,
    .destroy = destroy_frees,
};

static rondo_status enter(rondo_pool *pool, rondo__block *block, rondo__capture *capture) {
    late_frees *self =
        (late_frees *)rondo__capture_find_participant(capture, &late_frees_type, pool);
    if (self == NULL) {
        self = rondo__calloc(1, sizeof *self);
        if (self == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        self->head = (rondo__participant){.type = &late_frees_type, .key = pool};
        rondo_pool_retain(pool);
        self->pool = pool;
        rondo__capture_add_participant(capture, &self->head);
    }
    block->is_freed = true;
    block->next = self->blocks;
    self->blocks = block;
    return RONDO_STATUS_OK;
}

static rondo__stream_tag *get_tag(const rondo__block *block) {
    return block->arena_pool != NULL ? block->users[0].tag : block->owner->tag;
}

// True when the stream of the block may record a capture that did not take the block.
static bool may_be_late(const rondo_pool *pool, const rondo__block *block) {
    return atomic_load_explicit(&pool->device->open_capture_count, memory_order_acquire) > 0 &&
           (block->use == NULL || block->use->capture == NULL);
}

// The capture that the stream records, as the backend says; where the backend cannot say (a lost
// device), the one that began there. The caller holds device->capture_list_lock.
static rondo__capture *find_capture(rondo_device *device, uint64_t id,
                                    const rondo__stream_tag *tag) {
    rondo__capture *capture = rondo__capture_find_listed(device, id);
    if (capture == NULL && id == 0) {
        capture = device->capture_list;
        while (capture != NULL && (capture->origin == NULL || capture->origin->tag != tag)) {
            capture = capture->next;
        }
    }
    return capture;
}

// The free waits for the end of the capture; *out_is_late is false where there is none, or no more.
static rondo_status free_late(rondo_pool *pool, rondo__block *block, bool *out_is_late) {
    rondo_device *device = pool->device;
    rondo__stream_tag *tag = get_tag(block);
    rondo_status status = RONDO_STATUS_OK;
    uint64_t id = rondo__stream_tag_get_capture_id(tag);
    // Under the list's lock the capture stays: its end takes it out of the list before it calls the
    // participants.
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__capture *capture = find_capture(device, id, tag);
    if (capture != NULL) {
        status = enter(pool, block, capture);
        id = id != 0 ? id : capture->id;
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    *out_is_late = capture != NULL;
    if (capture != NULL && status == RONDO_STATUS_OK) {
        rondo__arena_note_user(block, id);
    }
    return status;
}

rondo_status rondo__pool_free_block(rondo_pool *pool, rondo__block *block) {
    bool is_late = false;
    rondo_status status =
        may_be_late(pool, block) ? free_late(pool, block, &is_late) : RONDO_STATUS_OK;
    if (!is_late) {
        free_now(pool, block);
    }
    return status;
}
