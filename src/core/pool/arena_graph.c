// pool/arena_graph.c — the graphs of an arena: their uses of pools, and their part in captures and
// replays; see arena.h.
// SPDX-License-Identifier: Apache-2.0
#include "pool/arena_graph.h"

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "capture/addresses.h"
#include "device/stream_tag.h"
#include "pool/ancestors.h"
#include "pool/arena_use.h"
#include "pool/order.h"
#include "pool/pool_memory.h"

// ---- graphs among the participants ------------------------------------------------------------

static rondo__arena_graph *find_graph(const rondo__participant *list) {
    while (list != NULL && list->type != &rondo__arena_graph_type) {
        list = list->next;
    }
    return (rondo__arena_graph *)(uintptr_t)list;
}

rondo_arena *rondo__arena_find(const rondo__participant *list) {
    const rondo__arena_graph *graph = find_graph(list);
    return graph != NULL ? graph->arena : NULL;
}

void rondo__arena_hold_back(const rondo__participant *list, rondo__stream_tag *stream) {
    rondo__arena_graph *graph = find_graph(list);
    if (graph != NULL && graph->in_flight == NULL) {
        graph->in_flight = rondo__stream_tag_retain_again(stream);
    }
}

// ---- arena graphs and uses: with the arena's lock held ----------------------------------------

static rondo_status create_graph(rondo_arena *arena, const char *label,
                                 rondo__arena_graph **out_graph) {
    rondo__arena_graph *graph = rondo__calloc(1, sizeof *graph);
    if (graph == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    graph->label = rondo__strdup(label);
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
    *out_graph = graph;
    return RONDO_STATUS_OK;
}

static rondo_status get_graph(rondo_arena *arena, rondo__capture *capture,
                              rondo__arena_graph **out_graph) {
    *out_graph = (rondo__arena_graph *)rondo__capture_find_participant(
        capture, &rondo__arena_graph_type, NULL);
    if (*out_graph == NULL) {
        RETURN_IF_ERROR(create_graph(arena, capture->label, out_graph));
        rondo__capture_add_participant(capture, &(*out_graph)->participant);
    }
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
        rondo_status status =
            RONDO__ARRAY_RESERVE(arena->pools, arena->pool_capacity, arena->pool_count + 1);
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
                                         : rondo__arena_get_pool(arena, pool, &use->arena_pool);
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

static rondo_status get_use(rondo_pool *pool, rondo__capture *capture, rondo__arena_use **out_use) {
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

static rondo_status use_all_pools(rondo__arena_graph *graph, rondo__capture *capture) {
    const rondo_arena *arena = graph->arena;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < arena->pool_count && status == RONDO_STATUS_OK; ++i) {
        rondo__arena_use *own = NULL;
        status = add_use(graph, arena->pools[i].pool, capture, &own);
    }
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
    if (status == RONDO_STATUS_OK) {
        status = use_all_pools(graph, capture);
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

rondo_status rondo__arena_join_late(rondo_arena *arena, const char *label,
                                    rondo__participant **in_out_graph) {
    if (!rondo__arena_watches_order(arena)) {
        return RONDO_STATUS_OK;
    }
    rondo__arena_graph *graph = (rondo__arena_graph *)*in_out_graph;
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&arena->lock);
    if (graph == NULL) {
        status = create_graph(arena, label, &graph);
        *in_out_graph = graph != NULL ? &graph->participant : NULL;
    }
    if (status == RONDO_STATUS_OK) {
        status = use_all_pools(graph, NULL);
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
    const bool has_memory = use->touched_count > 0 || use->blocks != NULL || use->imports.count > 0;
    rondo__arena_pool_hold_back(arena_pool, has_memory ? use->graph->in_flight : NULL);
    rondo__arena_use_forget_blocks(use);
    rondo__order_forget_outputs(arena_pool->arena, use);
    rondo__arena_pool_give_back(arena_pool, false);
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

// The graphs of an arena that were recorded into a capture.
typedef struct children {
    rondo__participant head;        // its key is the arena
    uint32_t stream_number;         // all were recorded on this stream
    uint64_t place_id;              // and into this capture or body
    rondo__section_node_list last;  // the node of the latest one
    const rondo__arena_graph **graphs;
    size_t count;
    size_t capacity;
} children;

static void destroy_children(rondo__participant *participant) {
    rondo__section_nodes_deinit(&((children *)participant)->last);
    rondo__free(((children *)participant)->graphs);
    rondo__free(participant);
}

static const rondo__participant_type children_type = {.name = "memory of recorded graphs",
                                                      .destroy = destroy_children};

static children *find_children(rondo__capture *capture, const rondo_arena *arena) {
    return (children *)rondo__capture_find_participant(capture, &children_type, arena);
}

static bool has_blocks(const rondo__arena_graph *graph, bool or_takes_in) {
    bool has_some = false;
    pthread_mutex_lock(&graph->arena->lock);  // imports go with the graphs that they come from
    for (const rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        has_some = has_some || use->touched_count > 0 || use->blocks != NULL ||
                   (or_takes_in && use->imports.count > 0);
    }
    pthread_mutex_unlock(&graph->arena->lock);
    return has_some;
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

// Sharers write over each other's blocks, and one replay of the capture's graph replays all of
// them. So they must be recorded one behind the other, and none may need what another one produces
// or overwrites.
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
    rondo_status status = RONDO__ARRAY_RESERVE(all->graphs, all->capacity, all->count + 1);
    if (status == RONDO_STATUS_OK) {
        all->graphs[all->count++] = graph;
    }
    return status;
}

// A stream orders what is recorded on it; of nodes by hand, which share one stream, only the edges
// tell.
static rondo_status check_behind(const rondo__arena_graph *graph, rondo__capture *capture,
                                 const children *all, rondo_stream *stream, uint64_t place_id) {
    rondo__ancestors ancestors = {0};
    rondo_status status = rondo__ancestors_extend(&ancestors, capture, stream, place_id);
    if (status == RONDO_STATUS_OK &&
        !rondo__ancestors_hold(&ancestors, capture, all->last.entries, all->last.count)) {
        status = fail_child(graph, all->graphs[all->count - 1]->label,
                            "each is added behind the one before it (`after`)");
    }
    rondo__ancestors_deinit(&ancestors);
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
    if (all != NULL && capture->is_by_hand) {
        RETURN_IF_ERROR(check_behind(graph, capture, all, stream, place.id));
    }
    return add_child(graph, capture, all, stream->number, place.id);
}

static rondo_status leave_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    const rondo__arena_graph *graph = (const rondo__arena_graph *)participant;
    children *all = find_children(capture, graph->arena);
    rondo__position position;
    if (all == NULL || !capture->is_by_hand || !has_blocks(graph, true)) {
        return RONDO_STATUS_OK;
    }
    rondo__position_ask(stream->tag, &position);
    all->last.count = 0;
    return rondo__section_nodes_add_position(&all->last, capture, stream, &position);
}

rondo_status rondo__arena_allocate(rondo_pool *pool, rondo_stream *stream, rondo__capture *capture,
                                   uint64_t section, size_t bytes, void **out_address) {
    if (find_children(capture, capture->arena) != NULL) {
        return RONDO_FAIL_AS("rondo_pool_allocate", STATE,
                             "graph \"%s\" shares its arena with a graph that was recorded into "
                             "its capture, which would write over the block; give one of them an "
                             "arena of its own",
                             capture->label);
    }
    rondo__arena_use *use = NULL;
    RETURN_IF_ERROR(get_use(pool, capture, &use));
    RETURN_IF_ERROR(rondo__arena_use_allocate(use, stream, section, bytes, out_address));
    rondo__capture_note_block(capture, *out_address, bytes);
    return RONDO_STATUS_OK;
}

static rondo_status fail_own_place(const rondo__arena_graph *graph, const rondo__output *o) {
    return RONDO_FAIL_AS("rondo_graph_patch", STATE,
                         "graph \"%s\" itself writes over the block of %zu bytes at %p that graph "
                         "\"%s\" produces: the block was taken behind its capture, in memory that "
                         "it had freed; record it again to use the block",
                         graph->label, (size_t)(o->range.end - o->range.begin),
                         (void *)o->range.begin, o->use->graph->label);
}

// A patch, behind the capture, lets the graph use the block.
static rondo_status note_late(rondo__arena_use *use, const rondo__block *block) {
    const rondo__output *output = block->output;
    if (output != NULL && block->use != use && rondo__order_writes(use->graph, output)) {
        return fail_own_place(use->graph, output);
    }
    rondo__arena_use_note_import(use, block);
    bool was_lost = use->has_lost_imports;
    use->has_lost_imports = false;
    return was_lost ? RONDO_FAIL_AS("rondo_graph_patch", NO_MEMORY,
                                    "no memory to note which blocks of other graphs graph \"%s\" "
                                    "takes in",
                                    use->graph->label)
                    : RONDO_STATUS_OK;
}

// Work of the graph uses an address. If it is another graph's output, this graph imports it.
static rondo_status note_address(rondo__participant *participant, rondo_stream *stream,
                                 const void *address, const char *what) {
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    rondo_arena *arena = graph->arena;
    rondo__area area;
    (void)what;
    if (!rondo__areas_find(arena->device, address, &area) || area.holder == NULL) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO_STATUS_OK;
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
        // Without a stream it is a patch.
        if (block != NULL && stream == NULL) {
            status = note_late(use, block);
        } else if (block != NULL && use->capture != NULL) {
            rondo__arena_use_note_import(use, block);
        }
        pthread_mutex_unlock(&use->pool->lock);
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

const rondo__participant_type rondo__arena_graph_type = {
    .name = "private memory",
    .note_address = note_address,
    .enter_child = enter_child,
    .leave_child = leave_child,
    .finish = finish_graph,
    .close = close_graph,
    .prepare_replay = rondo__order_prepare_replay,
    .note_replay = rondo__order_note_replay,
    .cancel_replay = rondo__order_cancel_replay,
    .destroy = destroy_graph,
};
