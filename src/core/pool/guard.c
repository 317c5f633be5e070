// pool/guard.c — see guard.h.
// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "capture/addresses.h"
#include "pool/arena.h"
#include "pool/guard.h"
#include "pool/pool_memory.h"

typedef enum origin { AREA, BLOCK, ELSEWHERE } origin;

static const char *const origin_names[] = {
    [AREA] = "rondo_memory_allocate area",
    [BLOCK] = "pool's block",
    [ELSEWHERE] = "allocation of the program's own",
};

// An allocation that the graph uses.
typedef struct reference {
    origin origin;
    const void *address;  // as it was seen
    uintptr_t begin;      // of the allocation
    size_t bytes;
    uint64_t serial;   // the allocation's number; 0: the pool's block was free already
    rondo_pool *pool;  // retained; BLOCK only
    char what[40];     // which work
    uint64_t gone_at;  // the call to patch that found it freed; 0: none did
    size_t kept_at;    // while all is noted anew: the place of its second entry, which stays
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
    // While all is noted anew, behind a patch.
    size_t former_count;  // references from before; 0: none, or nothing is noted anew
    size_t gone_count;    // of them, memory that was freed
    uint64_t call;        // to patch, that does it
    uint64_t named_at;    // the one that named what is being noted; 0: the recording
} guard;

// ---- noting -----------------------------------------------------------------------------------

static rondo_status add_reference(guard *g, const reference *found) {
    size_t index = (size_t)(uintptr_t)rondo__live_table_get(&g->table, (void *)found->begin);
    if (index > 0 && g->references[index - 1].serial == found->serial &&
        g->references[index - 1].pool == found->pool) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__live_table_reserve(&g->table));
    rondo_status status = RONDO__ARRAY_RESERVE(g->references, g->capacity, g->count + 1);
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
    const rondo__arena_pool *arena_pool = NULL;
    const rondo__heap_piece *piece = rondo__pool_find_piece(pool, found->address, &arena_pool);
    if (arena_pool != NULL && arena_pool->arena == g->arena) {
        is_foreign = false;
    } else if (piece != NULL) {
        const rondo__block *block =
            rondo__live_table_get(&pool->live, rondo__pool_get_address(piece));
        found->begin = (uintptr_t)rondo__pool_get_address(piece);
        found->bytes = (size_t)piece->bytes;
        found->serial = block != NULL ? block->serial : 0;
        found->pool = pool;
        found->origin = BLOCK;
    }
    pthread_mutex_unlock(&pool->lock);
    return is_foreign;
}

// Most words are numbers, of which asking the driver is slow (half a microsecond).
static bool may_be_address(const void *word) {
    uintptr_t value = (uintptr_t)word;
    return value >= 0x10000 && (uint64_t)value >> 57 == 0;
}

// Fills in what the driver knows of the address; the serial stays 0 when that is nothing.
static rondo_status find_elsewhere(const guard *g, reference *found) {
    const rondo__backend *backend = g->device->backend;
    rondo__allocation allocation = {.id = 0};
    if (backend->find_allocation != NULL && may_be_address(found->address)) {
        RETURN_IF_ERROR(backend->find_allocation(g->device, found->address, &allocation));
    }
    found->origin = ELSEWHERE;
    found->begin = allocation.begin;
    found->bytes = allocation.bytes;
    found->serial = allocation.id;
    return RONDO_STATUS_OK;
}

// Memory that was freed does not become right by a patch of something else: a former reference to
// the address stays, if the node named it before it was seen to be gone, or `is_nothing_there` now:
// then the node has named what was gone. Adds the reference to those that are noted anew.
static rondo_status keep_gone(guard *g, const void *address, bool is_nothing_there,
                              bool *out_is_kept) {
    const uintptr_t at = (uintptr_t)address;
    size_t i = 0;
    *out_is_kept = false;
    for (; g->gone_count > 0 && i < g->former_count && !*out_is_kept; ++i) {
        const reference *r = &g->references[i];
        *out_is_kept = r->gone_at > 0 && at >= r->begin && at - r->begin < r->bytes &&
                       (is_nothing_there || g->named_at < r->gone_at);
    }
    if (!*out_is_kept) {
        return RONDO_STATUS_OK;
    }
    i -= 1;
    if (g->references[i].kept_at == 0) {
        rondo_status status = RONDO__ARRAY_RESERVE(g->references, g->capacity, g->count + 1);
        RETURN_IF_ERROR(status);
        if (g->references[i].pool != NULL) {
            rondo_pool_retain(g->references[i].pool);
        }
        g->references[i].kept_at = g->count;
        g->references[g->count++] = g->references[i];
    }
    if (is_nothing_there) {
        g->references[g->references[i].kept_at].gone_at = g->call + 1;
    }
    return RONDO_STATUS_OK;
}

// Fills in what is at the address now. *out_is_own: memory of the graph's own arena.
static rondo_status find_now(const guard *g, reference *found, bool *out_is_own) {
    rondo__area area;
    *out_is_own = false;
    if (!rondo__areas_find(g->device, found->address, &area)) {
        return find_elsewhere(g, found);
    }
    found->begin = area.begin;
    found->bytes = area.bytes;
    found->serial = area.serial;
    // A pool that hands out parts of an area is there as long as the area is.
    *out_is_own =
        area.holder != NULL && !find_block(g, (rondo_pool *)(uintptr_t)area.holder, found);
    return RONDO_STATUS_OK;
}

static rondo_status note(guard *g, const void *address, const char *what) {
    reference found = {.address = address};
    bool is_kept = false;
    bool is_own = false;
    RETURN_IF_ERROR(keep_gone(g, address, false, &is_kept));
    if (is_kept) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(find_now(g, &found, &is_own));
    if (is_own) {
        return RONDO_STATUS_OK;
    }
    if (found.origin == ELSEWHERE && found.serial == 0) {  // perhaps not any more
        return keep_gone(g, address, true, &is_kept);
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

static rondo_status look(const guard *g, const reference *r, bool *out_is_there) {
    if (r->origin == AREA) {
        rondo__area area;
        *out_is_there = rondo__areas_find(g->device, (const void *)r->begin, &area) &&
                        area.begin == r->begin && area.serial == r->serial;
    } else if (r->origin == BLOCK) {
        pthread_mutex_lock(&r->pool->lock);
        const rondo__block *block = rondo__live_table_get(&r->pool->live, (const void *)r->begin);
        *out_is_there = block != NULL && block->serial == r->serial;
        pthread_mutex_unlock(&r->pool->lock);
    } else {
        reference now = {.address = (const void *)r->begin};
        RETURN_IF_ERROR(find_elsewhere(g, &now));
        *out_is_there = now.serial == r->serial;
    }
    return RONDO_STATUS_OK;
}

static rondo_status look_at_all(const guard *g) {
    for (size_t i = 0; i < g->count; ++i) {
        const reference *r = &g->references[i];
        bool is_there = false;
        RETURN_IF_ERROR(look(g, r, &is_there));
        if (!is_there) {
            return RONDO_FAIL_AS(
                "rondo_graph_replay", STATE,
                "graph \"%s\" uses memory that is gone: \"%s\" was recorded with %p, in a %s of "
                "%zu "
                "bytes that was freed since; keep it for as long as the graph is replayed, or "
                "capture again",
                g->label, r->what, r->address, origin_names[r->origin], r->bytes);
        }
    }
    return RONDO_STATUS_OK;
}

// A graph that this one was recorded into may be replayed by one thread while another patches this
// one.
static rondo_status prepare_replay(rondo__participant *participant, rondo_stream *stream) {
    guard *g = (guard *)participant;
    (void)stream;
    pthread_mutex_lock(&g->lock);
    rondo_status status = look_at_all(g);
    pthread_mutex_unlock(&g->lock);
    return status;
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
    rondo__addresses_want(capture);
    return RONDO_STATUS_OK;
}

static guard *find_guard(rondo__participant *list) {
    while (list != NULL && list->type != &guard_type) {
        list = list->next;
    }
    return (guard *)list;
}

rondo_status rondo__guard_note_node(rondo__participant *list, const void *address,
                                    const char *what) {
    guard *g = find_guard(list);
    return g != NULL ? note(g, address, what) : RONDO_STATUS_OK;
}

rondo_status rondo__guard_refuse_gone(rondo__participant *list, const void *address,
                                      const char *call) {
    const guard *g = find_guard(list);
    for (size_t i = 0; g != NULL && i < g->count; ++i) {
        const reference *r = &g->references[i];
        reference now = {.address = address};
        const uintptr_t at = (uintptr_t)address;
        bool is_there = at < r->begin || at - r->begin >= r->bytes;
        if (!is_there) {
            RETURN_IF_ERROR(look(g, r, &is_there));
        }
        if (!is_there) {  // other memory may lie there by now
            RETURN_IF_ERROR(find_now(g, &now, &is_there));
            is_there = is_there || now.serial != 0;
        }
        if (!is_there) {
            return RONDO_FAIL_AS(call, STATE,
                                 "graph \"%s\" would use memory that is gone: %p lay in a %s of "
                                 "%zu bytes that was freed; name other memory",
                                 g->label, address, origin_names[r->origin], r->bytes);
        }
    }
    return RONDO_STATUS_OK;
}

// The table only spares double entries.
static void clear_table(guard *g) {
    rondo__live_table_deinit(&g->table);
    g->table = (rondo__live_table){0};
}

rondo_status rondo__guard_begin_anew(rondo__participant *list, uint64_t call) {
    guard *g = find_guard(list);
    if (g == NULL) {
        return RONDO_STATUS_OK;
    }
    g->gone_count = 0;
    for (size_t i = 0; i < g->count; ++i) {
        reference *r = &g->references[i];
        bool is_there = false;
        RETURN_IF_ERROR(look(g, r, &is_there));
        r->gone_at = is_there ? 0 : r->gone_at > 0 ? r->gone_at : call;
        r->kept_at = 0;
        g->gone_count += !is_there;
    }
    clear_table(g);
    g->former_count = g->count;
    g->call = call;
    return RONDO_STATUS_OK;
}

void rondo__guard_begin_node(rondo__participant *list, uint64_t named_at) {
    guard *g = find_guard(list);
    if (g != NULL) {
        g->named_at = named_at;
    }
}

void rondo__guard_end_anew(rondo__participant *list, bool has_all) {
    guard *g = find_guard(list);
    if (g == NULL) {
        return;
    }
    size_t first = has_all ? 0 : g->former_count;
    size_t end = has_all ? g->former_count : g->count;
    g->former_count = 0;
    g->named_at = 0;
    for (size_t i = first; i < end; ++i) {
        rondo_pool_release(g->references[i].pool);
    }
    memmove(&g->references[first], &g->references[end], (g->count - end) * sizeof *g->references);
    g->count -= end - first;
    clear_table(g);
}

rondo_status rondo__guard_note_arguments(rondo__participant *list, const void *bytes,
                                         size_t byte_count, const char *what) {
    for (size_t i = 0; i + sizeof(uintptr_t) <= byte_count; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (const char *)bytes + i, sizeof word);
        RETURN_IF_ERROR(rondo__guard_note_node(list, (const void *)word, what));
    }
    return RONDO_STATUS_OK;
}
