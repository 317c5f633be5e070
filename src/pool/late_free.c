// pool/late_free.c — blocks from before a capture that are freed inside it.
//
// Such a free is no work, so it is not recorded; and a capture that fails must leave the block to
// the program, whose step will free it again when it runs eagerly. So the free waits: the block
// stays live, in nobody's hands, until the capture has ended. Then it is freed in earnest, or the
// program's again.
#include "backend/check.h"
#include "base/memory.h"
#include "pool/arena.h"
#include "pool/arena_use.h"

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
            rondo__pool_take_back(pool, block);
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

rondo_status rondo__pool_free_late(rondo_pool *pool, rondo__block *block, bool *out_is_late) {
    rondo_device *device = pool->device;
    *out_is_late = false;
    bool is_of_capture = block->use != NULL && block->use->capture != NULL;
    if (is_of_capture ||
        atomic_load_explicit(&device->open_capture_count, memory_order_acquire) == 0) {
        return RONDO_STATUS_OK;
    }
    uint64_t id = rondo__stream_tag_get_capture_id(get_tag(block));
    if (id == 0) {
        return RONDO_STATUS_OK;
    }
    // Under the list's lock the capture cannot go: who ends it takes it out of the list before its
    // participants hear of that.
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__capture *capture = rondo__capture_find_listed(device, id);
    if (capture != NULL) {
        status = enter(pool, block, capture);
        *out_is_late = status == RONDO_STATUS_OK;
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    if (*out_is_late) {
        rondo__arena_note_user(block, id);
    }
    return status;
}
