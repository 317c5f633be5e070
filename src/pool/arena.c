// pool/arena.c — arenas, and who sits in them; see arena.h. Taking and giving blocks inside a
// capture is in seat.c, the order of replays in order.c.
#include "pool/arena.h"

#include <stdio.h>

#include "backend/captured.h"
#include "backend/check.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "pool/seat.h"

// ---- life -------------------------------------------------------------------------------------

rondo_arena_options rondo_arena_options_default(void) {
    return (rondo_arena_options){.struct_size = sizeof(rondo_arena_options)};
}

rondo_status rondo_arena_create(rondo_device *device, const rondo_arena_options *options,
                                rondo_arena **out_arena) {
    RETURN_IF_ERROR(rondo__check_pointer(out_arena, __func__, "out_arena"));
    *out_arena = NULL;
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    rondo_arena_options merged = rondo_arena_options_default();
    RETURN_IF_ERROR(rondo__read_options(options, &merged, sizeof merged, __func__,
                                        "rondo_arena_options_default"));
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
    while (list != NULL && list->type != &rondo__session_type) {
        list = list->next;
    }
    return list != NULL ? ((const rondo__session *)list)->arena : NULL;
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
    RETURN_IF_ERROR(rondo__check_pointer(out_stats, __func__, "out_stats"));
    *out_stats = (rondo_arena_stats){0};
    RETURN_IF_ERROR(rondo__check_pointer(arena, __func__, "arena"));
    *out_stats = (rondo_arena_stats){
        .live_bytes = atomic_load_explicit(&arena->live_bytes, memory_order_relaxed),
        .live_count = atomic_load_explicit(&arena->live_count, memory_order_relaxed),
        .reserved_bytes = atomic_load_explicit(&arena->reserved_bytes, memory_order_relaxed),
        .live_peak_bytes = atomic_load_explicit(&arena->live_peak_bytes, memory_order_relaxed),
        .reserved_peak_bytes =
            atomic_load_explicit(&arena->reserved_peak_bytes, memory_order_relaxed),
        .graph_count = atomic_load_explicit(&arena->session_count, memory_order_relaxed),
    };
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

// ---- parts: with the pool's lock held ---------------------------------------------------------

static rondo_status get_part(rondo_pool *pool, rondo_arena *arena, rondo__part **out_part) {
    // Of an arena without parts, such as a new graph's own, none is to be found.
    rondo__part *part = atomic_load(&arena->part_count) > 0 ? pool->parts : NULL;
    while (part != NULL &&
           (part->arena != arena || (part->in_flight != NULL && part->seats == NULL))) {
        part = part->next;
    }
    if (part == NULL) {
        part = rondo__calloc(1, sizeof *part);
        if (part == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        rondo_arena_retain(arena);
        part->arena = arena;
        part->pool = pool;
        atomic_fetch_add(&arena->part_count, 1);
        part->next = pool->parts;
        if (part->next != NULL) {
            part->next->previous = part;
        }
        pool->parts = part;
    }
    *out_part = part;
    return RONDO_STATUS_OK;
}

// Takes the tag, or NULL.
static void set_in_flight(rondo__part *part, rondo__stream_tag *stream) {
    part->pool->held_part_count += (size_t)(stream != NULL) - (size_t)(part->in_flight != NULL);
    rondo__stream_tag_release(part->in_flight);
    part->in_flight = stream;
}

static void free_part(rondo__part *part) {
    if (part->next != NULL) {
        part->next->previous = part->previous;
    }
    if (part->previous != NULL) {
        part->previous->next = part->next;
    } else {
        part->pool->parts = part->next;
    }
    atomic_fetch_sub(&part->arena->part_count, 1);
    rondo__heap_deinit(&part->heap);
    rondo__free(part->outputs);
    set_in_flight(part, NULL);
    rondo_arena_release(part->arena);
    rondo__free(part);
}

// Gives the pool what no graph needs any more, and the part itself when nothing is left.
static void give_back(rondo__part *part, rondo__pool_patience patience) {
    if (part->in_flight != NULL && !part->is_stuck &&
        (patience == RONDO__POOL_WAIT ? rondo__stream_tag_wait_at_any_price(part->in_flight)
                                      : rondo__stream_tag_wait(part->in_flight))) {
        set_in_flight(part, NULL);
    }
    if (part->in_flight != NULL) {
        return;
    }
    for (rondo__heap_region *region = part->heap.regions; region != NULL;) {
        rondo__heap_region *next = region->next;
        if (rondo__heap_is_whole(&part->heap, region) && region->touch_count == 0) {
            atomic_fetch_sub(&part->arena->reserved_bytes, region->bytes);
            rondo__heap_move(&part->heap, region, &part->pool->idle);
        }
        region = next;
    }
    rondo_arena *arena = part->arena;
    if (atomic_load(&arena->session_count) == 0 && atomic_load(&arena->reserved_bytes) == 0) {
        atomic_store(&arena->live_peak_bytes, 0);
        atomic_store(&arena->reserved_peak_bytes, 0);
    }
    if (part->seats == NULL && part->heap.regions == NULL) {
        free_part(part);
    }
}

void rondo__arena_give_held_back(rondo_pool *pool, rondo__pool_patience patience) {
    for (rondo__part *part = pool->held_part_count > 0 ? pool->parts : NULL; part != NULL;) {
        rondo__part *next = part->next;
        if (part->in_flight != NULL && part->seats == NULL) {
            give_back(part, patience);
        }
        part = next;
    }
}

// What a graph leaves is held back when its replays may still run on a stream that records.
static void hold_back(rondo__part *part, rondo__stream_tag *stream) {
    if (stream == NULL || stream == part->in_flight) {
        return;
    }
    if (part->in_flight != NULL && !rondo__stream_tag_wait(part->in_flight)) {
        part->is_stuck = true;
        return;
    }
    set_in_flight(part, rondo__stream_tag_retain_again(stream));
}

void rondo__arena_return(rondo_pool *pool, rondo__lease *l) {
    rondo__part *part = l->part;
    l->block->mark = 0;
    rondo__heap_give(&part->heap, l->block);
    rondo__seat_drop_lease(pool, l);
    if (part->seats == NULL) {
        give_back(part, RONDO__POOL_LOOK);
    }
}

void rondo__arena_forget_pool(rondo_pool *pool) {
    while (pool->parts != NULL) {
        rondo__part *part = pool->parts;
        for (rondo__heap_region *region = part->heap.regions; region != NULL;) {
            rondo__heap_region *next = region->next;
            if (rondo__heap_is_whole(&part->heap, region)) {
                rondo__heap_move(&part->heap, region, &pool->idle);
            }
            region = next;
        }
        free_part(part);
    }
}

// ---- sessions and seats: with the arena's lock held -------------------------------------------

static rondo_status get_session(rondo_arena *arena, rondo__capture *capture,
                                rondo__session **out_session) {
    rondo__session *session =
        (rondo__session *)rondo__capture_find_participant(capture, &rondo__session_type, NULL);
    if (session == NULL) {
        session = rondo__calloc(1, sizeof *session);
        if (session == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        session->label = rondo__strdup(capture->label);
        if (session->label == NULL) {
            rondo__free(session);
            return RONDO_STATUS_NO_MEMORY;
        }
        session->participant.type = &rondo__session_type;
        snprintf(session->name, sizeof session->name, "%s", session->label);
        rondo_arena_retain(arena);
        session->arena = arena;
        arena->version += 1;
        atomic_fetch_add(&arena->session_count, 1);
        rondo__capture_add_participant(capture, &session->participant);
    }
    *out_session = session;
    return RONDO_STATUS_OK;
}

static struct rondo__arena_pool *find_pool(const rondo_arena *arena, const rondo_pool *pool) {
    for (size_t i = 0; i < arena->pool_count; ++i) {
        if (arena->pools[i].pool == pool) {
            return &arena->pools[i];
        }
    }
    return NULL;
}

static rondo_status enter_pool(rondo_arena *arena, rondo_pool *pool,
                               struct rondo__arena_pool **out_entry) {
    *out_entry = find_pool(arena, pool);
    if (*out_entry == NULL) {
        void *pools = arena->pools;
        rondo_status status = rondo__array_reserve(&pools, &arena->pool_capacity,
                                                   arena->pool_count + 1, sizeof *arena->pools);
        arena->pools = pools;
        RETURN_IF_ERROR(status);
        *out_entry = &arena->pools[arena->pool_count++];
        **out_entry = (struct rondo__arena_pool){.pool = pool};
    }
    return RONDO_STATUS_OK;
}

// One seat less; the last one takes the entry along.
static void leave_pool(rondo_arena *arena, const rondo_pool *pool) {
    struct rondo__arena_pool *entry = find_pool(arena, pool);
    entry->seat_count -= entry->seat_count > 0;
    if (entry->seat_count == 0) {
        *entry = arena->pools[--arena->pool_count];
    }
}

static rondo_status add_seat(rondo__session *session, rondo_pool *pool, rondo__capture *capture,
                             rondo__seat **out_seat) {
    rondo__seat *seat = session->seats;
    while (seat != NULL && seat->pool != pool) {
        seat = seat->next_in_session;
    }
    *out_seat = seat;
    if (seat != NULL) {
        return RONDO_STATUS_OK;
    }
    rondo_arena *arena = session->arena;
    struct rondo__arena_pool *entry = NULL;
    RETURN_IF_ERROR(enter_pool(arena, pool, &entry));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    seat = rondo__calloc(1, sizeof *seat);
    if (seat != NULL) {
        pthread_mutex_lock(&pool->lock);
        // Where there is a seat, its part is the one.
        seat->part = entry->seat_count > 0 ? entry->part : NULL;
        status = seat->part != NULL ? RONDO_STATUS_OK : get_part(pool, arena, &seat->part);
        if (status == RONDO_STATUS_OK) {
            seat->next_in_part = seat->part->seats;
            if (seat->next_in_part != NULL) {
                seat->next_in_part->previous_in_part = seat;
            }
            seat->part->seats = seat;
            seat->capture = capture;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(seat);
        if (entry->seat_count == 0) {
            leave_pool(arena, pool);
        }
        return status;
    }
    entry->part = seat->part;
    entry->seat_count += 1;
    rondo_pool_retain(pool);
    seat->pool = pool;
    seat->session = session;
    seat->next_in_session = session->seats;
    session->seats = seat;
    *out_seat = seat;
    return RONDO_STATUS_OK;
}

rondo_status rondo__arena_get_seat(rondo_pool *pool, rondo__capture *capture,
                                   rondo__seat **out_seat) {
    rondo_arena *arena = capture->arena;
    pthread_mutex_lock(&arena->lock);
    rondo__session *session = NULL;
    rondo_status status = get_session(arena, capture, &session);
    if (status == RONDO_STATUS_OK) {
        status = add_seat(session, pool, capture, out_seat);
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

rondo_status rondo__arena_join(rondo_arena *arena, rondo__capture *capture) {
    if (!atomic_load(&arena->is_exposed)) {
        return RONDO_STATUS_OK;
    }
    if (!arena->options.allows_any_order) {
        rondo__captured_watch(capture);
    }
    // Takes a seat beside every other session, so that their blocks can be freed into this capture.
    pthread_mutex_lock(&arena->lock);
    rondo__session *session = NULL;
    rondo_status status = get_session(arena, capture, &session);
    for (size_t i = 0; i < arena->pool_count && status == RONDO_STATUS_OK; ++i) {
        rondo__seat *own = NULL;
        status = add_seat(session, arena->pools[i].pool, capture, &own);
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

void rondo__arena_settle(rondo_arena *arena) {
    if (atomic_load_explicit(&arena->session_count, memory_order_acquire) == 0) {
        return;
    }
    pthread_mutex_lock(&arena->lock);
    for (size_t i = 0; i < arena->pool_count; ++i) {
        rondo_pool *pool = arena->pools[i].pool;
        pthread_mutex_lock(&pool->lock);
        rondo__pool_settle(pool, RONDO__POOL_LOOK);
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&arena->lock);
}

void rondo__arena_hold_back(const rondo__participant *list, rondo__stream_tag *stream) {
    while (list != NULL && list->type != &rondo__session_type) {
        list = list->next;
    }
    rondo__session *session = (rondo__session *)(uintptr_t)list;
    if (session != NULL && session->in_flight == NULL) {
        session->in_flight = rondo__stream_tag_retain_again(stream);
    }
}

// ---- the participant --------------------------------------------------------------------------

static rondo_status finish_session(rondo__participant *participant, rondo__capture *capture) {
    rondo__session *session = (rondo__session *)participant;
    (void)capture;
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&session->arena->lock);
    for (rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        if (seat->has_lost_imports) {
            status = RONDO_FAIL_AS("rondo_graph_capture_end", NO_MEMORY,
                                   "no memory to note which blocks of other graphs graph "
                                   "\"%s\" takes in",
                                   session->label);
        }
    }
    pthread_mutex_unlock(&session->arena->lock);
    return status;
}

static void close_session(rondo__participant *participant, rondo__capture *capture,
                          bool has_succeeded) {
    rondo__session *session = (rondo__session *)participant;
    pthread_mutex_lock(&session->arena->lock);
    for (rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        pthread_mutex_lock(&seat->pool->lock);
        rondo__seat_close(seat, capture->is_step && !has_succeeded);
        pthread_mutex_unlock(&seat->pool->lock);
    }
    session->arena->version += 1;
    pthread_mutex_unlock(&session->arena->lock);
}

static void remove_seat(rondo__seat *seat) {
    rondo__part *part = seat->part;
    rondo__pool_settle(seat->pool,
                       RONDO__POOL_LOOK);  // what was freed lately goes back with the rest
    if (seat->next_in_part != NULL) {
        seat->next_in_part->previous_in_part = seat->previous_in_part;
    }
    if (seat->previous_in_part != NULL) {
        seat->previous_in_part->next_in_part = seat->next_in_part;
    } else {
        part->seats = seat->next_in_part;
    }
    hold_back(part, seat->session->in_flight);
    rondo__seat_forget_leases(seat);
    rondo__order_forget_outputs(part->arena, seat);
    give_back(part, RONDO__POOL_LOOK);
}

static void destroy_session(rondo__participant *participant) {
    rondo__session *session = (rondo__session *)participant;
    rondo_arena *arena = session->arena;
    pthread_mutex_lock(&arena->lock);
    arena->version += 1;
    atomic_fetch_sub(&arena->session_count, 1);
    for (rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        pthread_mutex_lock(&seat->pool->lock);
        remove_seat(seat);
        pthread_mutex_unlock(&seat->pool->lock);
        leave_pool(arena, seat->pool);
    }
    pthread_mutex_unlock(&arena->lock);
    while (session->seats != NULL) {
        rondo__seat *seat = session->seats;
        session->seats = seat->next_in_session;
        rondo_pool_release(seat->pool);
        rondo__free(seat->touched);
        rondo__free(seat->imports.entries);
        rondo__free(seat);
    }
    rondo__free(session->conflicts.entries);
    rondo__free(session->label);
    rondo__stream_tag_release(session->in_flight);
    rondo__free(session);
    rondo_arena_release(arena);
}

// ---- graphs recorded into other captures ------------------------------------------------------

// The graphs of an arena, its key, that were recorded into a capture.
typedef struct guests {
    rondo__participant head;
    uint32_t stream_number;  // they are recorded on one stream,
    uint64_t place_id;       // at one place
    const rondo__session **sessions;
    size_t count;
    size_t capacity;
} guests;

static void destroy_guests(rondo__participant *participant) {
    rondo__free(((guests *)participant)->sessions);
    rondo__free(participant);
}

static const rondo__participant_type guests_type = {.name = "memory of recorded graphs",
                                                    .destroy = destroy_guests};

static guests *find_guests(rondo__capture *capture, const rondo_arena *arena) {
    return (guests *)rondo__capture_find_participant(capture, &guests_type, arena);
}

bool rondo__arena_has_guest(rondo__capture *capture) {
    return find_guests(capture, capture->arena) != NULL;
}

static bool has_blocks(const rondo__session *session, bool or_takes_in) {
    for (const rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        if (seat->touched_count > 0 || seat->leases != NULL ||
            (or_takes_in && seat->imports.count > 0)) {
            return true;
        }
    }
    return false;
}

static bool capture_has_blocks(rondo__capture *capture, const rondo_arena *arena) {
    const rondo__session *own = (const rondo__session *)rondo__capture_find_participant(
        capture, &rondo__session_type, NULL);
    return own != NULL && own->arena == arena && has_blocks(own, false);
}

static rondo_status fail_guest(const rondo__session *session, const char *other, const char *what) {
    return RONDO_FAIL_AS("rondo_graph_record", STATE,
                         "graph \"%s\" shares the memory of graph \"%s\", and in one capture %s; "
                         "give them arenas of their own, or see "
                         "rondo_arena_options.allows_any_order",
                         session->label, other, what);
}

// Sharers write over each other's blocks, and a replay of the capture's graph is one of all of
// them. So they come one behind the other, and none may need what another one makes or overwrites.
static rondo_status check_guest(const rondo__session *session, rondo__capture *capture,
                                const guests *all, uint32_t stream_number, uint64_t place_id) {
    if (capture_has_blocks(capture, session->arena)) {
        return fail_guest(session, capture->label, "it stands beside blocks of that graph itself");
    }
    if (all != NULL && (all->stream_number != stream_number || all->place_id != place_id)) {
        return fail_guest(session, all->sessions[0]->label,
                          "they are recorded one behind the other, on one stream");
    }
    rondo_arena *arena = session->arena;
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&arena->lock);
    for (size_t i = 0; all != NULL && i < all->count && status == RONDO_STATUS_OK; ++i) {
        if (rondo__order_are_tied(session, all->sessions[i])) {
            status = fail_guest(session, all->sessions[i]->label,
                                "none may read or write over what another one leaves behind");
        }
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

static rondo_status enter_guest(rondo__session *session, rondo__capture *capture, guests *all,
                                uint32_t stream_number, uint64_t place_id) {
    if (all == NULL) {
        all = rondo__calloc(1, sizeof *all);
        if (all == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        all->head = (rondo__participant){.type = &guests_type, .key = session->arena};
        all->stream_number = stream_number;
        all->place_id = place_id;
        rondo__capture_add_participant(capture, &all->head);
    }
    void *sessions = (void *)all->sessions;
    rondo_status status =
        rondo__array_reserve(&sessions, &all->capacity, all->count + 1, sizeof *all->sessions);
    all->sessions = sessions;
    if (status == RONDO_STATUS_OK) {
        all->sessions[all->count++] = session;
    }
    return status;
}

static rondo_status enter_child(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream) {
    rondo__session *session = (rondo__session *)participant;
    if (session->arena->options.allows_any_order || !has_blocks(session, true)) {
        return RONDO_STATUS_OK;
    }
    rondo__place place;
    RETURN_IF_ERROR(rondo__capture_locate(stream, &place));
    guests *all = find_guests(capture, session->arena);
    RETURN_IF_ERROR(check_guest(session, capture, all, stream->number, place.id));
    return enter_guest(session, capture, all, stream->number, place.id);
}

// Work of the graph uses a block: if another sharer produces it, this graph takes it in.
static rondo_status note_address(rondo__participant *participant, rondo_stream *stream,
                                 const void *address, const char *what) {
    rondo__session *session = (rondo__session *)participant;
    rondo_arena *arena = session->arena;
    rondo__area area;
    (void)stream;
    (void)what;
    if (!rondo__areas_find(arena->device, address, &area) || area.holder == NULL) {
        return RONDO_STATUS_OK;
    }
    pthread_mutex_lock(&arena->lock);
    for (rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        if (seat->pool != area.holder) {
            continue;
        }
        pthread_mutex_lock(&seat->pool->lock);
        const rondo__part *part = NULL;
        const rondo__heap_block *block = rondo__pool_find_block(seat->pool, address, &part);
        rondo__lease *l =
            part == seat->part && block != NULL && !block->is_free
                ? rondo__live_table_get(&seat->pool->live, rondo__pool_get_address(block))
                : NULL;
        if (l != NULL && seat->capture != NULL) {
            rondo__seat_note_use(seat, l);
        }
        pthread_mutex_unlock(&seat->pool->lock);
    }
    pthread_mutex_unlock(&arena->lock);
    return RONDO_STATUS_OK;
}

const rondo__participant_type rondo__session_type = {
    .name = "private memory",
    .note_address = note_address,
    .enter_child = enter_child,
    .finish = finish_session,
    .close = close_session,
    .prepare_replay = rondo__order_prepare_replay,
    .note_replay = rondo__order_note_replay,
    .cancel_replay = rondo__order_cancel_replay,
    .destroy = destroy_session,
};
