// pool/arena.c — arenas, their graphs and pools; see arena.h. arena_use.c takes and frees blocks
// inside a capture, order.c checks the order of replays.

#include <stdio.h>

#include "backend/check.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "base/write_struct.h"
#include "capture/addresses.h"
#include "device/stream_tag.h"
#include "pool/arena.h"
#include "pool/arena_use.h"

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

rondo_arena *rondo__arena_find(const rondo__participant *list) {
    while (list != NULL && list->type != &rondo__arena_graph_type) {
        list = list->next;
    }
    return list != NULL ? ((const rondo__arena_graph *)list)->arena : NULL;
}

void rondo_arena_retain(rondo_arena *arena) {
    if (arena != NULL) {
        atomic_fetch_add_explicit(&arena->reference_count, 1, memory_order_relaxed);
    }
}

void rondo_arena_release(rondo_arena *arena) {
    if (arena == NULL ||
        atomic_fetch_sub_explicit(&arena->reference_count, 1, memory_order_acq_rel) != 1) {
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

static rondo_status get_arena_pool(rondo_pool *pool, rondo_arena *arena,
                                   rondo__arena_pool **out_arena_pool) {
    // An arena that holds no memory yet, such as a new graph's own, has none: no need to search.
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

// Takes the tag, or NULL.
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

// Gives the pool the regions that no graph needs any more. Frees the arena pool when it is empty.
static void give_back(rondo__arena_pool *arena_pool, bool may_wait) {
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
            give_back(arena_pool, may_wait);
        }
        arena_pool = next;
    }
}

// What a graph leaves is held back when its replays may still run on a stream that records.
static void hold_back(rondo__arena_pool *arena_pool, rondo__stream_tag *stream) {
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
    rondo__arena_drop_record(pool, block);
    if (arena_pool->uses == NULL) {
        give_back(arena_pool, false);
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

// ---- arena graphs and uses: with the arena's lock held ----------------------------------------

static rondo_status get_graph(rondo_arena *arena, rondo__capture *capture,
                              rondo__arena_graph **out_graph) {
    rondo__arena_graph *graph = (rondo__arena_graph *)rondo__capture_find_participant(
        capture, &rondo__arena_graph_type, NULL);
    if (graph == NULL) {
        graph = rondo__calloc(1, sizeof *graph);
        if (graph == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        graph->label = rondo__strdup(capture->label);
        if (graph->label == NULL) {
            rondo__free(graph);
            return RONDO_STATUS_NO_MEMORY;
        }
        graph->participant.type = &rondo__arena_graph_type;
        snprintf(graph->name, sizeof graph->name, "%s", graph->label);
        rondo_arena_retain(arena);
        graph->arena = arena;
        arena->version += 1;
        atomic_fetch_add(&arena->graph_count, 1);
        rondo__capture_add_participant(capture, &graph->participant);
    }
    *out_graph = graph;
    return RONDO_STATUS_OK;
}

static struct rondo__arena_pool_entry *find_pool(const rondo_arena *arena, const rondo_pool *pool) {
    for (size_t i = 0; i < arena->pool_count; ++i) {
        if (arena->pools[i].pool == pool) {
            return &arena->pools[i];
        }
    }
    return NULL;
}

static rondo_status enter_pool(rondo_arena *arena, rondo_pool *pool,
                               struct rondo__arena_pool_entry **out_entry) {
    *out_entry = find_pool(arena, pool);
    if (*out_entry == NULL) {
        void *pools = arena->pools;
        rondo_status status = rondo__array_reserve(&pools, &arena->pool_capacity,
                                                   arena->pool_count + 1, sizeof *arena->pools);
        arena->pools = pools;
        RETURN_IF_ERROR(status);
        *out_entry = &arena->pools[arena->pool_count++];
        **out_entry = (struct rondo__arena_pool_entry){.pool = pool};
    }
    return RONDO_STATUS_OK;
}

// A use was removed; with the last one the entry goes.
static void leave_pool(rondo_arena *arena, const rondo_pool *pool) {
    struct rondo__arena_pool_entry *entry = find_pool(arena, pool);
    entry->use_count -= entry->use_count > 0;
    if (entry->use_count == 0) {
        *entry = arena->pools[--arena->pool_count];
    }
}

static rondo_status add_use(rondo__arena_graph *graph, rondo_pool *pool, rondo__capture *capture,
                            rondo__arena_use **out_use) {
    rondo__arena_use *use = graph->uses;
    while (use != NULL && use->pool != pool) {
        use = use->next_in_graph;
    }
    *out_use = use;
    if (use != NULL) {
        return RONDO_STATUS_OK;
    }
    rondo_arena *arena = graph->arena;
    struct rondo__arena_pool_entry *entry = NULL;
    RETURN_IF_ERROR(enter_pool(arena, pool, &entry));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    use = rondo__calloc(1, sizeof *use);
    if (use != NULL) {
        pthread_mutex_lock(&pool->lock);
        // All uses of the arena share one arena pool.
        use->arena_pool = entry->use_count > 0 ? entry->arena_pool : NULL;
        status = use->arena_pool != NULL ? RONDO_STATUS_OK
                                         : get_arena_pool(pool, arena, &use->arena_pool);
        if (status == RONDO_STATUS_OK) {
            use->next_in_pool = use->arena_pool->uses;
            if (use->next_in_pool != NULL) {
                use->next_in_pool->previous_in_pool = use;
            }
            use->arena_pool->uses = use;
            use->capture = capture;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(use);
        if (entry->use_count == 0) {
            leave_pool(arena, pool);
        }
        return status;
    }
    entry->arena_pool = use->arena_pool;
    entry->use_count += 1;
    rondo_pool_retain(pool);
    use->pool = pool;
    use->graph = graph;
    use->next_in_graph = graph->uses;
    graph->uses = use;
    *out_use = use;
    return RONDO_STATUS_OK;
}

rondo_status rondo__arena_get_use(rondo_pool *pool, rondo__capture *capture,
                                  rondo__arena_use **out_use) {
    rondo_arena *arena = capture->arena;
    pthread_mutex_lock(&arena->lock);
    rondo__arena_graph *graph = NULL;
    rondo_status status = get_graph(arena, capture, &graph);
    if (status == RONDO_STATUS_OK) {
        status = add_use(graph, pool, capture, out_use);
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

rondo_status rondo__arena_join(rondo_arena *arena, rondo__capture *capture) {
    if (!atomic_load(&arena->is_exposed)) {
        return RONDO_STATUS_OK;
    }
    if (!arena->options.allows_any_order) {
        rondo__addresses_want(capture);
    }
    // The graph uses every pool of the arena, so that blocks of other graphs can be freed in it.
    pthread_mutex_lock(&arena->lock);
    rondo__arena_graph *graph = NULL;
    rondo_status status = get_graph(arena, capture, &graph);
    for (size_t i = 0; i < arena->pool_count && status == RONDO_STATUS_OK; ++i) {
        rondo__arena_use *own = NULL;
        status = add_use(graph, arena->pools[i].pool, capture, &own);
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

void rondo__arena_settle(rondo_arena *arena) {
    if (atomic_load_explicit(&arena->graph_count, memory_order_acquire) == 0) {
        return;
    }
    pthread_mutex_lock(&arena->lock);
    for (size_t i = 0; i < arena->pool_count; ++i) {
        rondo_pool *pool = arena->pools[i].pool;
        pthread_mutex_lock(&pool->lock);
        rondo__pool_settle(pool, false);
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&arena->lock);
}

void rondo__arena_hold_back(const rondo__participant *list, rondo__stream_tag *stream) {
    while (list != NULL && list->type != &rondo__arena_graph_type) {
        list = list->next;
    }
    rondo__arena_graph *graph = (rondo__arena_graph *)(uintptr_t)list;
    if (graph != NULL && graph->in_flight == NULL) {
        graph->in_flight = rondo__stream_tag_retain_again(stream);
    }
}

// ---- the participant --------------------------------------------------------------------------

static rondo_status finish_graph(rondo__participant *participant, rondo__capture *capture) {
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    (void)capture;
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&graph->arena->lock);
    for (rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        if (use->has_lost_imports) {
            status = RONDO_FAIL_AS("rondo_graph_capture_end", NO_MEMORY,
                                   "no memory to note which blocks of other graphs graph "
                                   "\"%s\" takes in",
                                   graph->label);
        }
    }
    pthread_mutex_unlock(&graph->arena->lock);
    return status;
}

static void close_graph(rondo__participant *participant, rondo__capture *capture,
                        bool has_succeeded) {
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    pthread_mutex_lock(&graph->arena->lock);
    for (rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        pthread_mutex_lock(&use->pool->lock);
        rondo__arena_use_close(use, capture->is_step && !has_succeeded);
        pthread_mutex_unlock(&use->pool->lock);
    }
    graph->arena->version += 1;
    pthread_mutex_unlock(&graph->arena->lock);
}

static void remove_use(rondo__arena_use *use) {
    rondo__arena_pool *arena_pool = use->arena_pool;
    rondo__pool_settle(use->pool, false);  // what was freed lately goes back with the rest
    if (use->next_in_pool != NULL) {
        use->next_in_pool->previous_in_pool = use->previous_in_pool;
    }
    if (use->previous_in_pool != NULL) {
        use->previous_in_pool->next_in_pool = use->next_in_pool;
    } else {
        arena_pool->uses = use->next_in_pool;
    }
    hold_back(arena_pool, use->graph->in_flight);
    rondo__arena_use_forget_blocks(use);
    rondo__order_forget_outputs(arena_pool->arena, use);
    give_back(arena_pool, false);
}

static void destroy_graph(rondo__participant *participant) {
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    rondo_arena *arena = graph->arena;
    pthread_mutex_lock(&arena->lock);
    arena->version += 1;
    atomic_fetch_sub(&arena->graph_count, 1);
    for (rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        pthread_mutex_lock(&use->pool->lock);
        remove_use(use);
        pthread_mutex_unlock(&use->pool->lock);
        leave_pool(arena, use->pool);
    }
    pthread_mutex_unlock(&arena->lock);
    while (graph->uses != NULL) {
        rondo__arena_use *use = graph->uses;
        graph->uses = use->next_in_graph;
        rondo_pool_release(use->pool);
        rondo__free(use->touched);
        rondo__free(use->imports.entries);
        rondo__free(use);
    }
    rondo__free(graph->conflicts.entries);
    rondo__free(graph->label);
    rondo__stream_tag_release(graph->in_flight);
    rondo__free(graph);
    rondo_arena_release(arena);
}

// ---- graphs recorded into other captures ------------------------------------------------------

// The graphs of an arena, its key, that were recorded into a capture.
typedef struct children {
    rondo__participant head;
    uint32_t stream_number;  // they are recorded on one stream,
    uint64_t place_id;       // at one place
    const rondo__arena_graph **graphs;
    size_t count;
    size_t capacity;
} children;

static void destroy_children(rondo__participant *participant) {
    rondo__free(((children *)participant)->graphs);
    rondo__free(participant);
}

static const rondo__participant_type children_type = {.name = "memory of recorded graphs",
                                                      .destroy = destroy_children};

static children *find_children(rondo__capture *capture, const rondo_arena *arena) {
    return (children *)rondo__capture_find_participant(capture, &children_type, arena);
}

bool rondo__arena_has_child(rondo__capture *capture) {
    return find_children(capture, capture->arena) != NULL;
}

static bool has_blocks(const rondo__arena_graph *graph, bool or_takes_in) {
    for (const rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        if (use->touched_count > 0 || use->blocks != NULL ||
            (or_takes_in && use->imports.count > 0)) {
            return true;
        }
    }
    return false;
}

static bool capture_has_blocks(rondo__capture *capture, const rondo_arena *arena) {
    const rondo__arena_graph *own = (const rondo__arena_graph *)rondo__capture_find_participant(
        capture, &rondo__arena_graph_type, NULL);
    return own != NULL && own->arena == arena && has_blocks(own, false);
}

static rondo_status fail_child(const rondo__arena_graph *graph, const char *other,
                               const char *what) {
    return RONDO_FAIL_AS("rondo_stream_add_graph", STATE,
                         "graph \"%s\" shares the memory of graph \"%s\", and in one capture %s; "
                         "give them arenas of their own, or see "
                         "rondo_arena_options.allows_any_order",
                         graph->label, other, what);
}

// Sharers write over each other's blocks, and a replay of the capture's graph is one of all of
// them. So they come one behind the other, and none may need what another one makes or overwrites.
static rondo_status check_child(const rondo__arena_graph *graph, rondo__capture *capture,
                                const children *all, uint32_t stream_number, uint64_t place_id) {
    if (capture_has_blocks(capture, graph->arena)) {
        return fail_child(graph, capture->label, "it stands beside blocks of that graph itself");
    }
    if (all != NULL && (all->stream_number != stream_number || all->place_id != place_id)) {
        return fail_child(graph, all->graphs[0]->label,
                          "they are recorded one behind the other, on one stream");
    }
    rondo_arena *arena = graph->arena;
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&arena->lock);
    for (size_t i = 0; all != NULL && i < all->count && status == RONDO_STATUS_OK; ++i) {
        if (rondo__order_are_tied(graph, all->graphs[i])) {
            status = fail_child(graph, all->graphs[i]->label,
                                "none may read or write over what another one leaves behind");
        }
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

static rondo_status add_child(rondo__arena_graph *graph, rondo__capture *capture, children *all,
                              uint32_t stream_number, uint64_t place_id) {
    if (all == NULL) {
        all = rondo__calloc(1, sizeof *all);
        if (all == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        all->head = (rondo__participant){.type = &children_type, .key = graph->arena};
        all->stream_number = stream_number;
        all->place_id = place_id;
        rondo__capture_add_participant(capture, &all->head);
    }
    void *graphs = (void *)all->graphs;
    rondo_status status =
        rondo__array_reserve(&graphs, &all->capacity, all->count + 1, sizeof *all->graphs);
    all->graphs = graphs;
    if (status == RONDO_STATUS_OK) {
        all->graphs[all->count++] = graph;
    }
    return status;
}

static rondo_status enter_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    if (graph->arena->options.allows_any_order || !has_blocks(graph, true)) {
        return RONDO_STATUS_OK;
    }
    rondo__place place;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &place));
    children *all = find_children(capture, graph->arena);
    RETURN_IF_ERROR(check_child(graph, capture, all, stream->number, place.id));
    return add_child(graph, capture, all, stream->number, place.id);
}

// Work of the graph uses an address. If it is another graph's output, this graph imports it.
static rondo_status note_address(rondo__participant *participant, rondo_stream *stream,
                                 const void *address, const char *what) {
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    rondo_arena *arena = graph->arena;
    rondo__area area;
    (void)stream;
    (void)what;
    if (!rondo__areas_find(arena->device, address, &area) || area.holder == NULL) {
        return RONDO_STATUS_OK;
    }
    pthread_mutex_lock(&arena->lock);
    for (rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        if (use->pool != area.holder) {
            continue;
        }
        pthread_mutex_lock(&use->pool->lock);
        const rondo__arena_pool *arena_pool = NULL;
        const rondo__heap_piece *piece = rondo__pool_find_piece(use->pool, address, &arena_pool);
        rondo__block *block =
            arena_pool == use->arena_pool && piece != NULL && !piece->is_free
                ? rondo__live_table_get(&use->pool->live, rondo__pool_get_address(piece))
                : NULL;
        if (block != NULL && use->capture != NULL) {
            rondo__arena_use_note_import(use, block);
        }
        pthread_mutex_unlock(&use->pool->lock);
    }
    pthread_mutex_unlock(&arena->lock);
    return RONDO_STATUS_OK;
}

const rondo__participant_type rondo__arena_graph_type = {
    .name = "private memory",
    .note_address = note_address,
    .enter_child = enter_child,
    .finish = finish_graph,
    .close = close_graph,
    .prepare_replay = rondo__order_prepare_replay,
    .note_replay = rondo__order_note_replay,
    .cancel_replay = rondo__order_cancel_replay,
    .destroy = destroy_graph,
};
