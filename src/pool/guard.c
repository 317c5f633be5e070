// pool/guard.c — see guard.h.
#include "pool/guard.h"

#include <stdio.h>
#include <string.h>

#include "backend/captured.h"
#include "base/error.h"
#include "base/memory.h"
#include "pool/arena.h"

// An allocation that the graph uses.
typedef struct reference {
    const void *address;  // as it was seen
    uintptr_t begin;      // of the allocation
    size_t bytes;
    uint64_t serial;   // of the area, or of the pool's block; 0: the block was free already
    rondo_pool *pool;  // retained; NULL: an area
    char what[40];     // which work
} reference;

typedef struct guard {
    rondo__participant participant;
    rondo_device *device;
    rondo_arena *arena;  // the graph's own; retained
    char *label;
    pthread_mutex_t lock;  // several threads may record
    reference *references;
    size_t count;
    size_t capacity;
    rondo__live_table table;  // begin -> latest reference there, as index plus one
} guard;

// ---- noting -----------------------------------------------------------------------------------

static rondo_status add_reference(guard *g, const reference *found) {
    size_t index = (size_t)(uintptr_t)rondo__live_table_get(&g->table, (void *)found->begin);
    if (index > 0 && g->references[index - 1].serial == found->serial &&
        g->references[index - 1].pool == found->pool) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__live_table_reserve(&g->table));
    void *references = g->references;
    rondo_status status =
        rondo__array_reserve(&references, &g->capacity, g->count + 1, sizeof *g->references);
    g->references = references;
    RETURN_IF_ERROR(status);
    if (found->pool != NULL) {
        rondo_pool_retain(found->pool);
    }
    g->references[g->count++] = *found;
    (void)rondo__live_table_take(&g->table, (void *)found->begin);
    rondo__live_table_put(&g->table, (void *)found->begin, (void *)(uintptr_t)g->count);
    return RONDO_STATUS_OK;
}

// Fills in the block of the pool; false when it lies in the graph's own arena.
static bool find_block(const guard *g, rondo_pool *pool, reference *found) {
    bool is_foreign = true;
    pthread_mutex_lock(&pool->lock);
    const rondo__part *part = NULL;
    const rondo__heap_block *block = rondo__pool_find_block(pool, found->address, &part);
    if (part != NULL && part->arena == g->arena) {
        is_foreign = false;
    } else if (block != NULL) {
        const rondo__lease *l = rondo__live_table_get(&pool->live, rondo__pool_get_address(block));
        found->begin = (uintptr_t)rondo__pool_get_address(block);
        found->bytes = (size_t)block->bytes;
        found->serial = l != NULL ? l->serial : 0;
        found->pool = pool;
    }
    pthread_mutex_unlock(&pool->lock);
    return is_foreign;
}

static rondo_status note(guard *g, const void *address, const char *what) {
    rondo__area area;
    if (!rondo__areas_find(g->device, address, &area)) {
        return RONDO_STATUS_OK;  // nobody told us of that memory
    }
    reference found = {
        .address = address, .begin = area.begin, .bytes = area.bytes, .serial = area.serial};
    // A pool that hands out parts of an area is there as long as the area is.
    if (area.holder != NULL && !find_block(g, (rondo_pool *)(uintptr_t)area.holder, &found)) {
        return RONDO_STATUS_OK;
    }
    snprintf(found.what, sizeof found.what, "%s", what);
    pthread_mutex_lock(&g->lock);
    rondo_status status = add_reference(g, &found);
    pthread_mutex_unlock(&g->lock);
    return status;
}

static rondo_status note_address(rondo__participant *participant, rondo_stream *stream,
                                 const void *address, const char *what) {
    (void)stream;
    return note((guard *)participant, address, what);
}

// ---- looking ----------------------------------------------------------------------------------

static bool is_there(const guard *g, const reference *r) {
    if (r->pool == NULL) {
        rondo__area area;
        return rondo__areas_find(g->device, (const void *)r->begin, &area) &&
               area.begin == r->begin && area.serial == r->serial;
    }
    pthread_mutex_lock(&r->pool->lock);
    const rondo__lease *l = rondo__live_table_get(&r->pool->live, (const void *)r->begin);
    bool is_live = l != NULL && l->serial == r->serial;
    pthread_mutex_unlock(&r->pool->lock);
    return is_live;
}

static rondo_status prepare_replay(rondo__participant *participant, rondo_stream *stream) {
    const guard *g = (const guard *)participant;
    (void)stream;
    for (size_t i = 0; i < g->count; ++i) {
        const reference *r = &g->references[i];
        if (!is_there(g, r)) {
            return rondo__error_set(
                RONDO_STATUS_STATE, 0, "", __FILE__, __LINE__, "rondo_graph_replay",
                "graph \"%s\" uses memory that is gone: \"%s\" was recorded with %p, in a %s of "
                "%zu "
                "bytes that was freed since; keep it for as long as the graph is replayed, or "
                "capture again",
                g->label, r->what, r->address,
                r->pool != NULL ? "pool's block" : "rondo_memory_allocate area", r->bytes);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- life -------------------------------------------------------------------------------------

static void destroy_guard(rondo__participant *participant) {
    guard *g = (guard *)participant;
    for (size_t i = 0; i < g->count; ++i) {
        rondo_pool_release(g->references[i].pool);
    }
    rondo__live_table_deinit(&g->table);
    rondo__free(g->references);
    rondo__free(g->label);
    pthread_mutex_destroy(&g->lock);
    rondo_arena_release(g->arena);
    rondo_device_release(g->device);
    rondo__free(g);
}

static const rondo__participant_type guard_type = {
    .name = "a guard against stale memory",
    .note_address = note_address,
    .prepare_replay = prepare_replay,
    .destroy = destroy_guard,
};

rondo_status rondo__guard_join(rondo__capture *capture) {
    guard *g = rondo__calloc(1, sizeof *g);
    if (g == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    g->label = rondo__strdup(capture->label);
    if (g->label == NULL) {
        rondo__free(g);
        return RONDO_STATUS_NO_MEMORY;
    }
    g->participant.type = &guard_type;
    pthread_mutex_init(&g->lock, NULL);
    rondo_device_retain(capture->device);
    g->device = capture->device;
    rondo_arena_retain(capture->arena);
    g->arena = capture->arena;
    rondo__capture_add_participant(capture, &g->participant);
    rondo__captured_watch(capture);
    return RONDO_STATUS_OK;
}

rondo_status rondo__guard_note_node(rondo__participant *list, const void *address,
                                    const char *what) {
    while (list != NULL && list->type != &guard_type) {
        list = list->next;
    }
    return list != NULL ? note((guard *)list, address, what) : RONDO_STATUS_OK;
}
