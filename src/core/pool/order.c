// pool/order.c — in which order the sharers of an arena may be replayed.
//
// A graph may write every byte that it was given while it was captured. The blocks that were live
// at the end of its capture are its outputs. An output is produced when its graph was replayed in
// this round, overwritten when another replay wrote there since, and held until the program frees
// it. A graph's conflicts are the outputs of other graphs in bytes that it writes; its imports are
// the outputs of other graphs that it takes in.
//
//   replay of A:  refused when an import is overwritten,
//                 or a conflict is produced, not overwritten, and held
//   afterwards:   A's conflicts are overwritten; A's own outputs are produced
//
// The conflicts are found again when graphs came or went, among the arena pool's outputs, which are
// sorted by address. A replay looks at its own graph's conflicts and imports only; a replay of a
// graph that shares nothing reads one flag. From this look to the launch the arena belongs to the
// replaying thread. If another thread replays a sharer in between, chance would decide which one
// comes first, so that replay is refused. (Holding the lock so long could deadlock, because a graph
// that was recorded into others takes part in several arenas.)
//
// What was rejected: demanding the order of captures (each step of an inference server replays one
// of several graphs, by batch size), and comparing contents.
// SPDX-License-Identifier: Apache-2.0
#include "pool/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/stream_tag.h"

// ---- what a graph writes ----------------------------------------------------------------------

static int compare_ranges(const void *a, const void *b) {
    uintptr_t left = ((const rondo__range *)a)->begin;
    uintptr_t right = ((const rondo__range *)b)->begin;
    return left < right ? -1 : left > right;
}

static void merge_touched(rondo__arena_use *use) {
    if (use->touched_count == 0) {
        return;
    }
    qsort(use->touched, use->touched_count, sizeof *use->touched, compare_ranges);
    size_t kept = 0;
    for (size_t i = 1; i < use->touched_count; ++i) {
        rondo__range *last = &use->touched[kept];
        const rondo__range *range = &use->touched[i];
        if (range->begin <= last->end) {
            last->end = range->end > last->end ? range->end : last->end;
        } else {
            use->touched[++kept] = *range;
        }
    }
    use->touched_count = kept + 1;
}

// True when the graph writes some of the bytes.
static bool writes(const rondo__arena_use *use, const rondo__range *range) {
    size_t low = 0;
    size_t high = use->touched_count;
    while (low < high) {  // the first range that ends after range->begin
        size_t middle = low + (high - low) / 2;
        if (use->touched[middle].end <= range->begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < use->touched_count && use->touched[low].begin < range->end;
}

// Counts in each region that the graph writes there, or with -1 that it no longer does.
static void count_touches(const rondo__arena_use *use, int step) {
    for (rondo__heap_region *r = use->arena_pool->heap.regions; r != NULL; r = r->next) {
        uintptr_t begin = (uintptr_t)r->base;
        const rondo__range whole = {.begin = begin, .end = begin + r->bytes};
        if (writes(use, &whole)) {
            r->touch_count += (uint64_t)step;
        }
    }
}

bool rondo__order_writes(const rondo__arena_graph *graph, const rondo__output *output) {
    for (const rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        if (use->arena_pool == output->use->arena_pool && writes(use, &output->range)) {
            return true;
        }
    }
    return false;
}

// Whether `b` needs what `a` makes or writes over, or leaves behind what `a` writes over.
static bool depends(const rondo__arena_graph *a, const rondo__arena_graph *b) {
    for (const rondo__arena_use *use = b->uses; use != NULL; use = use->next_in_graph) {
        for (size_t i = 0; i < use->imports.count; ++i) {
            const rondo__output *o = use->imports.entries[i];
            if (o->use->graph == a || rondo__order_writes(a, o)) {
                return true;
            }
        }
        for (const rondo__output *o = use->outputs; o != NULL && a != b; o = o->next) {
            if (rondo__order_writes(a, o)) {
                return true;
            }
        }
    }
    return false;
}

bool rondo__order_are_tied(const rondo__arena_graph *a, const rondo__arena_graph *b) {
    return depends(a, b) || depends(b, a);
}

rondo_status rondo__order_reserve_output(rondo__arena_pool *arena_pool) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(arena_pool->outputs, arena_pool->output_capacity,
                             arena_pool->output_count + arena_pool->promised_count + 1);
    return status;
}

// The first output of the arena pool that begins at or behind the address.
static size_t find_output(const rondo__arena_pool *arena_pool, uintptr_t address) {
    size_t low = 0;
    size_t high = arena_pool->output_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (arena_pool->outputs[middle]->range.begin < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void leave_outputs(rondo__arena_pool *arena_pool, const rondo__output *output) {
    size_t at = find_output(arena_pool, output->range.begin);
    while (at < arena_pool->output_count && arena_pool->outputs[at] != output) {
        ++at;
    }
    if (at < arena_pool->output_count) {
        arena_pool->output_count -= 1;
        memmove(arena_pool->outputs + at, arena_pool->outputs + at + 1,
                (arena_pool->output_count - at) * sizeof *arena_pool->outputs);
    }
}

static void enter_outputs(rondo__arena_use *use) {
    rondo__arena_pool *arena_pool = use->arena_pool;
    for (rondo__output *o = use->outputs; o != NULL; o = o->next) {
        uint64_t bytes = o->range.end - o->range.begin;
        arena_pool->output_bytes_max =
            bytes > arena_pool->output_bytes_max ? bytes : arena_pool->output_bytes_max;
        size_t at = find_output(arena_pool, o->range.begin);
        memmove(arena_pool->outputs + at + 1, arena_pool->outputs + at,
                (arena_pool->output_count - at) * sizeof *arena_pool->outputs);
        arena_pool->outputs[at] = o;
        arena_pool->output_count += 1;
    }
}

void rondo__order_close_use(rondo__arena_use *use) {
    merge_touched(use);
    count_touches(use, 1);
    enter_outputs(use);
    use->arena_pool->promised_count -= use->promised_count;
    use->promised_count = 0;
}

// ---- lists of outputs -------------------------------------------------------------------------

static rondo_status append_output(rondo__output_list *list, rondo__output *output) {
    if (list->count > 0 && list->entries[list->count - 1] == output) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO__ARRAY_RESERVE(list->entries, list->capacity, list->count + 1);
    if (status == RONDO_STATUS_OK) {
        list->entries[list->count++] = output;
    }
    return status;
}

void rondo__order_add_import(rondo__arena_use *use, rondo__output *output) {
    rondo_error saved;
    rondo__error_save(&saved);
    output->is_imported = true;
    for (size_t i = 0; i < use->imports.count; ++i) {
        if (use->imports.entries[i] == output) {
            rondo__error_restore(&saved);
            return;
        }
    }
    if (append_output(&use->imports, output) != RONDO_STATUS_OK) {
        use->has_lost_imports = true;
    }
    rondo__error_restore(&saved);
}

static void remove_outputs_of(rondo__output_list *list, const rondo__arena_use *use) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; ++i) {
        if (list->entries[i]->use != use) {
            list->entries[kept++] = list->entries[i];
        }
    }
    list->count = kept;
}

void rondo__order_forget_outputs(rondo_arena *arena, rondo__arena_use *use) {
    rondo__arena_pool *arena_pool = use->arena_pool;
    bool is_imported = false;
    for (const rondo__output *o = use->outputs; o != NULL; o = o->next) {
        is_imported = is_imported || o->is_imported;
    }
    // Only graphs that use the same arena pool know the outputs: as imports, and, while another
    // thread is between its look and the end of its replay, as conflicts.
    const bool is_known = is_imported || arena->replay_depth > 0;
    for (rondo__arena_use *other = is_known ? arena_pool->uses : NULL; other != NULL;
         other = other->next_in_pool) {
        remove_outputs_of(&other->imports, use);
        remove_outputs_of(&other->graph->conflicts, use);
    }
    arena->version += 1;
    count_touches(use, -1);
    while (use->outputs != NULL) {
        rondo__output *output = use->outputs;
        use->outputs = output->next;
        leave_outputs(arena_pool, output);
        rondo__free(output);
    }
}

// Adds the outputs of other graphs in the range, which this graph writes. Ranges come in order, so
// an output that lies in two of them was the last one added.
static rondo_status add_conflicts(rondo__output_list *list, const rondo__arena_use *use,
                                  const rondo__range *range) {
    const rondo__arena_pool *arena_pool = use->arena_pool;
    uintptr_t first = range->begin > arena_pool->output_bytes_max
                          ? range->begin - (uintptr_t)arena_pool->output_bytes_max
                          : 0;
    for (size_t at = find_output(arena_pool, first);
         at < arena_pool->output_count && arena_pool->outputs[at]->range.begin < range->end; ++at) {
        rondo__output *o = arena_pool->outputs[at];
        if (o->range.end > range->begin && o->use != use) {
            RETURN_IF_ERROR(append_output(list, o));
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status find_conflicts(rondo__arena_graph *graph) {
    rondo__output_list *list = &graph->conflicts;
    if (graph->conflicts_version == graph->arena->version) {
        return RONDO_STATUS_OK;
    }
    list->count = 0;
    for (const rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        pthread_mutex_lock(&use->pool->lock);
        rondo_status status = RONDO_STATUS_OK;
        for (size_t i = 0; i < use->touched_count && status == RONDO_STATUS_OK; ++i) {
            status = add_conflicts(list, use, &use->touched[i]);
        }
        pthread_mutex_unlock(&use->pool->lock);
        RETURN_IF_ERROR(status);
    }
    graph->conflicts_version = graph->arena->version;
    return RONDO_STATUS_OK;
}

// ---- replays ----------------------------------------------------------------------------------

// Does not change during a replay: handing an arena out is a call on its graph.
static inline bool is_watched(const rondo_arena *arena) {
    return __builtin_expect(atomic_load_explicit(&arena->is_exposed, memory_order_acquire), 0) &&
           !arena->options.allows_any_order;
}

static rondo_status check_imports(const rondo__arena_graph *graph) {
    for (const rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        for (size_t i = 0; i < use->imports.count; ++i) {
            const rondo__output *o = use->imports.entries[i];
            if (o->is_overwritten) {
                const char *producer = o->use->graph->label;
                return RONDO_FAIL_AS(
                    "rondo_graph_replay", STATE,
                    "graph \"%s\" takes in a block of %zu bytes at %p that graph \"%s\" produces, "
                    "but graph \"%s\", which shares the memory, has written over it since; replay "
                    "\"%s\" first, or see rondo_arena_options.allows_any_order",
                    graph->label, (size_t)(o->range.end - o->range.begin), (void *)o->range.begin,
                    producer, o->overwriter, producer);
            }
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_conflicts(const rondo__arena_graph *graph) {
    for (size_t i = 0; i < graph->conflicts.count; ++i) {
        const rondo__output *o = graph->conflicts.entries[i];
        if (o->round == graph->arena->round && !o->is_overwritten && atomic_load(&o->is_held)) {
            return RONDO_FAIL_AS(
                "rondo_graph_replay", STATE,
                "graph \"%s\" would write over a block of %zu bytes at %p that graph \"%s\", which "
                "shares the memory, has produced and that is still held; free the block, call "
                "rondo_arena_begin_round once its data is not needed any more, or see "
                "rondo_arena_options.allows_any_order",
                graph->label, (size_t)(o->range.end - o->range.begin), (void *)o->range.begin,
                o->use->graph->label);
        }
    }
    return RONDO_STATUS_OK;
}

// Refuses a replay while another thread is about to launch a sharer's.
static rondo_status enter_replay(rondo__arena_graph *graph) {
    rondo_arena *arena = graph->arena;
    if (arena->replay_depth > 0 && !pthread_equal(arena->replay_thread, pthread_self())) {
        return RONDO_FAIL_AS(
            "rondo_graph_replay", STATE,
            "another thread replays a graph that shares the memory of graph \"%s\" at this moment, "
            "so which comes first is left to chance; let one thread wait for the other",
            graph->label);
    }
    arena->replay_thread = pthread_self();
    arena->replay_depth += 1;
    return RONDO_STATUS_OK;
}

static void leave_replay(rondo__arena_graph *graph) {
    graph->arena->replay_depth -= 1;
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
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    rondo_arena *arena = graph->arena;
    if (!is_watched(arena)) {
        return RONDO_STATUS_OK;
    }
    pthread_mutex_lock(&arena->lock);
    rondo_status status = find_conflicts(graph);
    if (status == RONDO_STATUS_OK) {
        status = check_imports(graph);
    }
    if (status == RONDO_STATUS_OK) {
        status = check_conflicts(graph);
    }
    if (status == RONDO_STATUS_OK) {
        status = enter_replay(graph);
    }
    if (status == RONDO_STATUS_OK) {
        status = follow_last(arena, stream);
        if (status != RONDO_STATUS_OK) {
            leave_replay(graph);
        }
    }
    pthread_mutex_unlock(&arena->lock);
    return status;
}

void rondo__order_note_replay(rondo__participant *participant, rondo_stream *stream) {
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    rondo_arena *arena = graph->arena;
    if (!is_watched(arena)) {
        return;
    }
    pthread_mutex_lock(&arena->lock);
    for (size_t i = 0; i < graph->conflicts.count; ++i) {
        rondo__output *o = graph->conflicts.entries[i];
        o->is_overwritten = true;
        memcpy(o->overwriter, graph->name, sizeof o->overwriter);
    }
    for (const rondo__arena_use *use = graph->uses; use != NULL; use = use->next_in_graph) {
        for (rondo__output *o = use->outputs; o != NULL; o = o->next) {
            o->round = arena->round;
            o->is_overwritten = false;
        }
    }
    if (arena->last_stream != stream->tag) {
        rondo__stream_tag_release(arena->last_stream);
        arena->last_stream = rondo__stream_tag_watch(stream);
    }
    leave_replay(graph);
    pthread_mutex_unlock(&arena->lock);
}

void rondo__order_cancel_replay(rondo__participant *participant) {
    rondo__arena_graph *graph = (rondo__arena_graph *)participant;
    if (is_watched(graph->arena)) {
        pthread_mutex_lock(&graph->arena->lock);
        leave_replay(graph);
        pthread_mutex_unlock(&graph->arena->lock);
    }
}
