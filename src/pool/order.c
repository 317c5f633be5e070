// pool/order.c — in which order the sharers of an arena may be replayed.
//
// Each graph writes the bytes that it touched while it was captured, and leaves behind the blocks
// that lived at the end: its outputs. Of each output is known whether it was produced (its graph
// was replayed in this round), whether a replay has written over it since, and whether the program
// still holds it. A graph's conflicts are the outputs of others in bytes that it writes; its
// imports are the outputs of others that it takes in.
//
//   replay of A:  refused when an import was written over,
//                 or a conflict was produced, not written over, and is held
//   afterwards:   conflicts are written over by A; A's own outputs are produced
//
// Conflicts are found anew after graphs came or went, among the part's outputs, which are in order
// of their addresses; a replay looks at its own alone, and one of a graph that shares nothing reads
// one flag. From the look to the launch the arena belongs to the replaying thread: another thread's
// replay of a sharer, which would come before or after by chance, is refused. (Holding the lock so
// long could deadlock, because a graph that was recorded into others takes part in several arenas.)
//
// What was rejected: demanding the order of captures (breaks graphs of which each step replays one,
// as inference servers have for each batch size), and comparing contents.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "pool/arena.h"

// ---- what a graph writes ----------------------------------------------------------------------

static int compare_ranges(const void *a, const void *b) {
    uintptr_t left = ((const rondo__range *)a)->begin;
    uintptr_t right = ((const rondo__range *)b)->begin;
    return left < right ? -1 : left > right;
}

static void merge_touched(rondo__seat *seat) {
    if (seat->touched_count == 0) {
        return;
    }
    qsort(seat->touched, seat->touched_count, sizeof *seat->touched, compare_ranges);
    size_t kept = 0;
    for (size_t i = 1; i < seat->touched_count; ++i) {
        rondo__range *last = &seat->touched[kept];
        const rondo__range *range = &seat->touched[i];
        if (range->begin <= last->end) {
            last->end = range->end > last->end ? range->end : last->end;
        } else {
            seat->touched[++kept] = *range;
        }
    }
    seat->touched_count = kept + 1;
}

// True when the graph writes some of the bytes.
static bool writes(const rondo__seat *seat, const rondo__range *range) {
    size_t low = 0;
    size_t high = seat->touched_count;
    while (low < high) {  // the first range that ends behind the beginning
        size_t middle = low + (high - low) / 2;
        if (seat->touched[middle].end <= range->begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < seat->touched_count && seat->touched[low].begin < range->end;
}

// Says of the regions that the seat's graph writes there, or no longer does.
static void count_touches(const rondo__seat *seat, int step) {
    for (rondo__heap_region *r = seat->part->heap.regions; r != NULL; r = r->next) {
        uintptr_t begin = (uintptr_t)r->base;
        const rondo__range whole = {.begin = begin, .end = begin + r->bytes};
        if (writes(seat, &whole)) {
            r->touch_count += (uint64_t)step;
        }
    }
}

static bool session_writes(const rondo__session *session, const rondo__output *output) {
    for (const rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        if (seat->part == output->seat->part && writes(seat, &output->range)) {
            return true;
        }
    }
    return false;
}

// Whether `b` needs what `a` makes or writes over, or leaves behind what `a` writes over.
static bool depends(const rondo__session *a, const rondo__session *b) {
    for (const rondo__seat *seat = b->seats; seat != NULL; seat = seat->next_in_session) {
        for (size_t i = 0; i < seat->imports.count; ++i) {
            const rondo__output *o = seat->imports.entries[i];
            if (o->seat->session == a || session_writes(a, o)) {
                return true;
            }
        }
        for (const rondo__output *o = seat->outputs; o != NULL && a != b; o = o->next) {
            if (session_writes(a, o)) {
                return true;
            }
        }
    }
    return false;
}

bool rondo__order_are_tied(const rondo__session *a, const rondo__session *b) {
    return depends(a, b) || depends(b, a);
}

rondo_status rondo__order_reserve_output(rondo__part *part) {
    void *outputs = part->outputs;
    rondo_status status =
        rondo__array_reserve(&outputs, &part->output_capacity,
                             part->output_count + part->promised_count + 1, sizeof *part->outputs);
    part->outputs = outputs;
    return status;
}

// The first of the part's outputs that begins at the address or behind it.
static size_t find_output(const rondo__part *part, uintptr_t address) {
    size_t low = 0;
    size_t high = part->output_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (part->outputs[middle]->range.begin < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void leave_outputs(rondo__part *part, const rondo__output *output) {
    size_t at = find_output(part, output->range.begin);
    while (at < part->output_count && part->outputs[at] != output) {
        ++at;
    }
    if (at < part->output_count) {
        part->output_count -= 1;
        memmove(part->outputs + at, part->outputs + at + 1,
                (part->output_count - at) * sizeof *part->outputs);
    }
}

static void enter_outputs(rondo__seat *seat) {
    rondo__part *part = seat->part;
    for (rondo__output *o = seat->outputs; o != NULL; o = o->next) {
        uint64_t bytes = o->range.end - o->range.begin;
        part->output_bytes_max = bytes > part->output_bytes_max ? bytes : part->output_bytes_max;
        size_t at = find_output(part, o->range.begin);
        memmove(part->outputs + at + 1, part->outputs + at,
                (part->output_count - at) * sizeof *part->outputs);
        part->outputs[at] = o;
        part->output_count += 1;
    }
}

void rondo__order_close_seat(rondo__seat *seat) {
    merge_touched(seat);
    count_touches(seat, 1);
    enter_outputs(seat);
    seat->part->promised_count -= seat->promised_count;
    seat->promised_count = 0;
}

// ---- lists of outputs -------------------------------------------------------------------------

static rondo_status append_output(rondo__output_list *list, rondo__output *output) {
    if (list->count > 0 && list->entries[list->count - 1] == output) {
        return RONDO_STATUS_OK;
    }
    void *entries = list->entries;
    rondo_status status =
        rondo__array_reserve(&entries, &list->capacity, list->count + 1, sizeof *list->entries);
    list->entries = entries;
    if (status == RONDO_STATUS_OK) {
        list->entries[list->count++] = output;
    }
    return status;
}

void rondo__order_add_import(rondo__seat *seat, rondo__output *output) {
    rondo_error saved;
    rondo__error_save(&saved);
    output->is_imported = true;
    for (size_t i = 0; i < seat->imports.count; ++i) {
        if (seat->imports.entries[i] == output) {
            rondo__error_restore(&saved);
            return;
        }
    }
    if (append_output(&seat->imports, output) != RONDO_STATUS_OK) {
        seat->has_lost_imports = true;
    }
    rondo__error_restore(&saved);
}

static void remove_outputs_of(rondo__output_list *list, const rondo__seat *seat) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; ++i) {
        if (list->entries[i]->seat != seat) {
            list->entries[kept++] = list->entries[i];
        }
    }
    list->count = kept;
}

void rondo__order_forget_outputs(rondo_arena *arena, rondo__seat *seat) {
    rondo__part *part = seat->part;
    bool is_imported = false;
    for (const rondo__output *o = seat->outputs; o != NULL; o = o->next) {
        is_imported = is_imported || o->is_imported;
    }
    // Blocks of one seat are only ever taken in by seats of the same part.
    for (rondo__seat *other = is_imported ? part->seats : NULL; other != NULL;
         other = other->next_in_part) {
        remove_outputs_of(&other->imports, seat);
    }
    arena->version += 1;
    count_touches(seat, -1);
    while (seat->outputs != NULL) {
        rondo__output *output = seat->outputs;
        seat->outputs = output->next;
        leave_outputs(part, output);
        rondo__free(output);
    }
}

// Adds the outputs of others that lie in the range, which the seat's graph writes. Ranges come in
// order, so that one which lies in two of them was added last.
static rondo_status add_conflicts(rondo__output_list *list, const rondo__seat *seat,
                                  const rondo__range *range) {
    const rondo__part *part = seat->part;
    uintptr_t first = range->begin > part->output_bytes_max
                          ? range->begin - (uintptr_t)part->output_bytes_max
                          : 0;
    for (size_t at = find_output(part, first);
         at < part->output_count && part->outputs[at]->range.begin < range->end; ++at) {
        rondo__output *o = part->outputs[at];
        if (o->range.end > range->begin && o->seat != seat) {
            RETURN_IF_ERROR(append_output(list, o));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status find_conflicts(rondo__session *session) {
    rondo__output_list *list = &session->conflicts;
    if (session->conflicts_version == session->arena->version) {
        return RONDO_STATUS_OK;
    }
    list->count = 0;
    for (const rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        pthread_mutex_lock(&seat->pool->lock);
        rondo_status status = RONDO_STATUS_OK;
        for (size_t i = 0; i < seat->touched_count && status == RONDO_STATUS_OK; ++i) {
            status = add_conflicts(list, seat, &seat->touched[i]);
        }
        pthread_mutex_unlock(&seat->pool->lock);
        RETURN_IF_ERROR(status);
    }
    session->conflicts_version = session->arena->version;
    return RONDO_STATUS_OK;
}

// ---- replays ----------------------------------------------------------------------------------

// Does not change during a replay: handing an arena out is a call on its graph.
static inline bool is_watched(const rondo_arena *arena) {
    return __builtin_expect(atomic_load_explicit(&arena->is_exposed, memory_order_acquire), 0) &&
           !arena->options.allows_any_order;
}

static rondo_status check_imports(const rondo__session *session) {
    for (const rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        for (size_t i = 0; i < seat->imports.count; ++i) {
            const rondo__output *o = seat->imports.entries[i];
            if (o->is_overwritten) {
                const char *producer = o->seat->session->label;
                return RONDO_FAIL_AS(
                    "rondo_graph_replay", STATE,
                    "graph \"%s\" takes in a block of %zu bytes at %p that graph \"%s\" produces, "
                    "but graph \"%s\", which shares the memory, has written over it since; replay "
                    "\"%s\" first, or see rondo_arena_options.allows_any_order",
                    session->label, (size_t)(o->range.end - o->range.begin), (void *)o->range.begin,
                    producer, o->overwriter, producer);
            }
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_conflicts(const rondo__session *session) {
    for (size_t i = 0; i < session->conflicts.count; ++i) {
        const rondo__output *o = session->conflicts.entries[i];
        if (o->round == session->arena->round && !o->is_overwritten && atomic_load(&o->is_held)) {
            return RONDO_FAIL_AS(
                "rondo_graph_replay", STATE,
                "graph \"%s\" would write over a block of %zu bytes at %p that graph \"%s\", which "
                "shares the memory, has produced and that is still held; free the block, call "
                "rondo_arena_begin_round once its data is not needed any more, or see "
                "rondo_arena_options.allows_any_order",
                session->label, (size_t)(o->range.end - o->range.begin), (void *)o->range.begin,
                o->seat->session->label);
        }
    }
    return RONDO_STATUS_OK;
}

// Refuses a replay while another thread is about to launch a sharer's.
static rondo_status enter_replay(rondo__session *session) {
    rondo_arena *arena = session->arena;
    if (arena->replay_depth > 0 && !pthread_equal(arena->replay_thread, pthread_self())) {
        return RONDO_FAIL_AS(
            "rondo_graph_replay", STATE,
            "another thread replays a graph that shares the memory of graph \"%s\" at this moment, "
            "so which comes first is left to chance; let one thread wait for the other",
            session->label);
    }
    arena->replay_thread = pthread_self();
    arena->replay_depth += 1;
    return RONDO_STATUS_OK;
}

static void leave_replay(rondo__session *session) {
    session->arena->replay_depth -= 1;
}

// Puts the replay behind the last one of a sharer, if that was on another stream.
static rondo_status follow_last(rondo_arena *arena, rondo_stream *stream) {
    if (arena->last_stream == NULL || arena->last_stream == stream->tag) {
        return RONDO_STATUS_OK;
    }
    if (arena->event == NULL) {
        RETURN_IF_ERROR(rondo_event_create(arena->device, 0, &arena->event));
    }
    return rondo__stream_tag_follow(stream, arena->last_stream, arena->event);
}

rondo_status rondo__order_prepare_replay(rondo__participant *participant, rondo_stream *stream) {
    rondo__session *session = (rondo__session *)participant;
    rondo_arena *arena = session->arena;
    if (!is_watched(arena)) {
        return RONDO_STATUS_OK;
    }
    pthread_mutex_lock(&arena->lock);
    rondo_status status = find_conflicts(session);
    if (status == RONDO_STATUS_OK) {
        status = check_imports(session);
    }
    if (status == RONDO_STATUS_OK) {
        status = check_conflicts(session);
    }
    if (status == RONDO_STATUS_OK) {
        status = enter_replay(session);
    }
    if (status == RONDO_STATUS_OK) {
        status = follow_last(arena, stream);
        if (status != RONDO_STATUS_OK) {
            leave_replay(session);
        }
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

void rondo__order_note_replay(rondo__participant *participant, rondo_stream *stream) {
    rondo__session *session = (rondo__session *)participant;
    rondo_arena *arena = session->arena;
    if (!is_watched(arena)) {
        return;
    }
    pthread_mutex_lock(&arena->lock);
    for (size_t i = 0; i < session->conflicts.count; ++i) {
        rondo__output *o = session->conflicts.entries[i];
        o->is_overwritten = true;
        memcpy(o->overwriter, session->name, sizeof o->overwriter);
    }
    for (const rondo__seat *seat = session->seats; seat != NULL; seat = seat->next_in_session) {
        for (rondo__output *o = seat->outputs; o != NULL; o = o->next) {
            o->round = arena->round;
            o->is_overwritten = false;
        }
    }
    if (arena->last_stream != stream->tag) {
        rondo__stream_tag_release(arena->last_stream);
        arena->last_stream = rondo__stream_tag_watch(stream);
    }
    leave_replay(session);
    pthread_mutex_unlock(&arena->lock);
}

void rondo__order_cancel_replay(rondo__participant *participant) {
    rondo__session *session = (rondo__session *)participant;
    if (is_watched(session->arena)) {
        pthread_mutex_lock(&session->arena->lock);
        leave_replay(session);
        pthread_mutex_unlock(&session->arena->lock);
    }
}
