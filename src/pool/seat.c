// pool/seat.c — blocks inside a capture: who may take what was freed, and when; see arena.h.
#include "pool/seat.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

// ---- records ----------------------------------------------------------------------------------

void rondo__seat_drop_lease(rondo_pool *pool, rondo__lease *l) {
    l->part = NULL;
    l->seat = NULL;
    l->branch = NULL;
    l->output = NULL;
    l->seat_next = NULL;
    l->seat_previous = NULL;
    l->marks.count = 0;
    l->is_held = false;
    rondo__pool_drop_lease(pool, l);
}

static void link_lease(rondo__seat *seat, rondo__lease *l) {
    l->seat = seat;
    l->seat_previous = NULL;
    l->seat_next = seat->leases;
    if (l->seat_next != NULL) {
        l->seat_next->seat_previous = l;
    }
    seat->leases = l;
}

static void unlink_lease(rondo__lease *l) {
    if (l->seat == NULL) {
        return;
    }
    if (l->seat_next != NULL) {
        l->seat_next->seat_previous = l->seat_previous;
    }
    if (l->seat_previous != NULL) {
        l->seat_previous->seat_next = l->seat_next;
    } else {
        l->seat->leases = l->seat_next;
    }
    l->seat_next = NULL;
    l->seat_previous = NULL;
}

void rondo__seat_forget_leases(rondo__seat *seat) {
    while (seat->leases != NULL) {
        rondo__lease *l = seat->leases;
        unlink_lease(l);
        l->seat = NULL;
        l->output = NULL;
    }
}

// ---- branches ---------------------------------------------------------------------------------

// By the tag, because the stream may be gone, as a body's is behind the body.
static rondo__branch *find_branch(const rondo__seat *seat, const rondo__stream_tag *tag,
                                  uint64_t scope) {
    rondo__branch *branch = seat->branches;
    while (branch != NULL && (branch->tag != tag || branch->scope != scope)) {
        branch = branch->next;
    }
    return branch;
}

static rondo_status get_branch(rondo__seat *seat, rondo_stream *stream, uint64_t scope,
                               rondo__branch **out_branch) {
    rondo__branch *branch = find_branch(seat, stream->tag, scope);
    if (branch == NULL) {
        branch = rondo__calloc(1, sizeof *branch);
        if (branch == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        branch->stream = stream;
        branch->tag = rondo__stream_tag_retain(stream);
        branch->scope = scope;
        branch->next = seat->branches;
        seat->branches = branch;
    }
    *out_branch = branch;
    return RONDO_STATUS_OK;
}

static void free_branch(rondo__branch *branch) {
    rondo__stream_tag_release(branch->tag);
    rondo__heap_deinit(&branch->free);
    rondo__free(branch->stamps);
    rondo__mark_list_deinit(&branch->marks);
    rondo__ancestors_deinit(&branch->ancestors);
    rondo__free(branch);
}

// True when the branch stood there already when it freed a block last.
static bool stands_at_last(const rondo__branch *branch, const rondo__mark *marks, size_t count) {
    if (branch->stamp_count == 0) {
        return false;
    }
    const rondo__stamp *last = &branch->stamps[branch->stamp_count - 1];
    for (size_t i = 0; i < count && last->count == count; ++i) {
        const rondo__mark *mark = &branch->marks.entries[last->first + i];
        if (mark->scope != marks[i].scope || mark->node != marks[i].node) {
            return false;
        }
    }
    return last->count == count;
}

// The mark of where the branch stands now, for a block that it frees. When that cannot be told,
// UINT64_MAX: only the branch itself takes the block again.
static uint64_t stamp(rondo__branch *branch, rondo__capture *capture,
                      const rondo__position *position) {
    size_t first = branch->marks.count;
    void *stamps = branch->stamps;
    rondo_status status = rondo__array_reserve(&stamps, &branch->stamp_capacity,
                                               branch->stamp_count + 1, sizeof *branch->stamps);
    branch->stamps = stamps;
    if (status == RONDO_STATUS_OK) {
        status = rondo__marks_add_position(&branch->marks, capture, branch->stream, position);
    }
    size_t count = branch->marks.count - first;
    branch->marks.count = first;
    if (status != RONDO_STATUS_OK) {
        return UINT64_MAX;
    }
    if (stands_at_last(branch, branch->marks.entries + first, count)) {
        return branch->last_mark;
    }
    branch->marks.count += count;
    branch->last_mark += 1;
    branch->stamps[branch->stamp_count++] =
        (rondo__stamp){.mark = branch->last_mark, .first = first, .count = count};
    return branch->last_mark;
}

static uint64_t stamp_now(rondo__branch *branch, rondo__capture *capture) {
    rondo__position here;
    rondo__position_ask(branch->tag, &here);
    return here.scope == branch->scope ? stamp(branch, capture, &here) : UINT64_MAX;
}

// The latest mark of `other` that comes before where `taker` stands; later stamps come after
// earlier ones, so that the answer is found by halving.
static uint64_t find_mark_max(const rondo__branch *taker, rondo__capture *capture,
                              const rondo__branch *other) {
    size_t low = 0;
    size_t high = other->stamp_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const rondo__stamp *s = &other->stamps[middle];
        if (rondo__ancestors_hold(&taker->ancestors, capture, &other->marks.entries[s->first],
                                  s->count)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? other->stamps[low - 1].mark : 0;
}

// ---- taking -----------------------------------------------------------------------------------

// Gives the branch the pending blocks whose every use comes before where it stands.
static void settle_seat(rondo__seat *seat, rondo__branch *taker) {
    rondo__lease **link = &seat->pending;
    uint64_t mark = 0;
    while (*link != NULL) {
        rondo__lease *l = *link;
        if (!l->is_held && rondo__ancestors_hold(&taker->ancestors, seat->capture, l->marks.entries,
                                                 l->marks.count)) {
            *link = l->next;
            seat->pool->stats.pending_bytes -= l->block->bytes;
            mark = mark != 0 ? mark : stamp_now(taker, seat->capture);
            l->block->mark = mark;
            rondo__heap_give(&taker->free, l->block);
            rondo__seat_drop_lease(seat->pool, l);
        } else {
            link = &l->next;
        }
    }
}

static rondo_status take_from_others(rondo__seat *seat, rondo__branch *taker, uint64_t bytes,
                                     rondo__heap_block **out_block) {
    for (rondo__branch *b = seat->branches; b != NULL && *out_block == NULL; b = b->next) {
        if (b != taker && b->free.rows != 0) {
            uint64_t mark_max = find_mark_max(taker, seat->capture, b);
            RETURN_IF_ERROR(rondo__heap_take_marked(&b->free, bytes, mark_max, out_block));
        }
    }
    return RONDO_STATUS_OK;
}

static bool others_have_freed(const rondo__seat *seat, const rondo__branch *taker) {
    for (const rondo__branch *b = seat->branches; b != NULL; b = b->next) {
        if (b != taker && b->free.rows != 0) {
            return true;
        }
    }
    return seat->pending != NULL;
}

// What a branch freed, the capture had before: *out_is_fresh is false.
static rondo_status take_block(rondo__seat *seat, rondo__branch *branch, uint64_t bytes,
                               rondo__heap_block **out_block, bool *out_is_fresh) {
    rondo__heap *open = &seat->part->heap;
    *out_is_fresh = false;
    RETURN_IF_ERROR(rondo__heap_take(&branch->free, bytes, out_block));
    if (*out_block == NULL && others_have_freed(seat, branch)) {
        rondo_error saved;
        rondo__error_save(&saved);
        bool is_known = rondo__ancestors_extend(&branch->ancestors, seat->capture, branch->stream,
                                                branch->scope) == RONDO_STATUS_OK;
        rondo__error_restore(&saved);
        if (is_known) {
            settle_seat(seat, branch);
            RETURN_IF_ERROR(rondo__heap_take(&branch->free, bytes, out_block));
        }
        if (is_known && *out_block == NULL) {
            RETURN_IF_ERROR(take_from_others(seat, branch, bytes, out_block));
        }
    }
    if (*out_block == NULL) {
        *out_is_fresh = true;
        RETURN_IF_ERROR(rondo__heap_take(open, bytes, out_block));
    }
    if (*out_block == NULL) {
        uint64_t added = 0;
        RETURN_IF_ERROR(rondo__pool_add_region(seat->pool, open, bytes, true, &added));
        rondo__arena_count_region(seat->part->arena, added);
        RETURN_IF_ERROR(rondo__heap_take(open, bytes, out_block));
    }
    return *out_block != NULL ? RONDO_STATUS_OK
                              : RONDO_FAIL(INTERNAL, "a fresh region has no room for %llu bytes",
                                           (unsigned long long)bytes);
}

static rondo_status reserve_range(rondo__seat *seat) {
    void *touched = seat->touched;
    rondo_status status = rondo__array_reserve(&touched, &seat->touched_capacity,
                                               seat->touched_count + 1, sizeof *seat->touched);
    seat->touched = touched;
    return status;
}

static rondo__output *get_output(rondo__seat *seat) {
    rondo__output *output = seat->spare_outputs;
    if (output == NULL) {
        return rondo__calloc(1, sizeof *output);
    }
    seat->spare_outputs = output->next;
    memset(output, 0, sizeof *output);
    return output;
}

rondo_status rondo__arena_allocate(rondo_pool *pool, rondo_stream *stream, rondo__capture *capture,
                                   uint64_t scope, size_t bytes, void **out_address) {
    rondo__branch *branch = NULL;
    rondo__heap_block *block = NULL;
    rondo__output *output = NULL;
    bool is_fresh = true;
    if (rondo__arena_has_guest(capture)) {
        return RONDO_FAIL_AS("rondo_pool_allocate", STATE,
                             "graph \"%s\" shares its arena with a graph that was recorded into "
                             "its capture, which would write over the block; give one of them an "
                             "arena of its own",
                             capture->label);
    }
    rondo__seat *seat = NULL;
    RETURN_IF_ERROR(rondo__arena_get_seat(pool, capture, &seat));
    pthread_mutex_lock(&pool->lock);
    rondo__lease *l = rondo__pool_get_lease(pool);
    rondo_status status =
        l != NULL ? rondo__live_table_reserve(&pool->live) : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = get_branch(seat, stream, scope, &branch);
    }
    if (status == RONDO_STATUS_OK) {
        status = reserve_range(seat);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__lease_add_use(l, stream, scope);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__order_reserve_output(seat->part);
    }
    if (status == RONDO_STATUS_OK) {
        output = get_output(seat);
        status = output != NULL ? take_block(seat, branch, bytes, &block, &is_fresh)
                                : RONDO_STATUS_NO_MEMORY;
    }
    if (status != RONDO_STATUS_OK) {
        goto drop;
    }
    uintptr_t begin = (uintptr_t)rondo__pool_get_address(block);
    output->range = (rondo__range){.begin = begin, .end = begin + block->bytes};
    atomic_init(&output->is_held, true);
    output->seat = seat;
    if (is_fresh) {
        seat->touched[seat->touched_count++] = output->range;
    }
    seat->promised_count += 1;
    seat->part->promised_count += 1;
    l->block = block;
    l->holder = NULL;
    l->part = seat->part;
    l->branch = branch;
    l->output = output;
    link_lease(seat, l);
    rondo__pool_hand_out(pool, l);
    rondo__arena_count_live(seat->part->arena, block->bytes);
    *out_address = (void *)begin;
    goto unlock;

drop:
    if (output != NULL) {
        output->next = seat->spare_outputs;
        seat->spare_outputs = output;
    }
    if (l != NULL) {
        rondo__pool_drop_lease(pool, l);
    }
unlock:
    pthread_mutex_unlock(&pool->lock);
    return status;
}

// ---- giving -----------------------------------------------------------------------------------

static bool is_in_capture(rondo__capture *capture, uint64_t id) {
    return id != 0 && (capture->id == id || rondo__capture_find_body(capture, id) != NULL);
}

// The open seat of the part whose capture holds `id`.
static rondo__seat *find_open_seat(const rondo__part *part, uint64_t id) {
    rondo__seat *seat = part->seats;
    while (seat != NULL && (seat->capture == NULL || !is_in_capture(seat->capture, id))) {
        seat = seat->next_in_part;
    }
    return seat;
}

// Notes what must have run before the block may serve another branch. What cannot be told, and
// work outside the capture, holds the block until the capture is closed. `here` is where the stream
// of the first use stands.
static void note_marks(rondo__seat *seat, rondo__lease *l, const rondo__position *here) {
    rondo__capture *capture = seat->capture;
    rondo__position there;
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t i = 0; i < l->use_count && !l->is_held; ++i) {
        const rondo__use *use = &l->uses[i];
        const rondo__position *position = here;
        if (i > 0) {
            rondo__position_ask(use->tag, &there);
            position = &there;
        }
        bool is_inside = is_in_capture(capture, position->scope);
        if (is_inside && rondo__marks_add_position(&l->marks, capture, use->stream, position) !=
                             RONDO_STATUS_OK) {
            l->is_held = true;
        } else if (use->scope == 0) {
            l->is_held = !is_inside;
        } else if (use->scope != position->scope) {
            // The stream has left a body since; the conditional node stands for all work in it.
            const rondo__capture_body *body = rondo__capture_find_body(capture, use->scope);
            l->is_held = body == NULL || rondo__marks_add_body(&l->marks, body) != RONDO_STATUS_OK;
        }
    }
    rondo__error_restore(&saved);
}

static void free_in_capture(rondo_pool *pool, rondo__lease *l, rondo__seat *seat,
                            const rondo__position *here) {
    rondo__branch *branch = find_branch(seat, l->uses[0].tag, here->scope);
    bool is_own = branch != NULL && branch == l->branch;
    if (is_own && l->use_count == 1 && !rondo__pool_is_captured(pool, l)) {
        l->block->mark = stamp(branch, seat->capture, here);
        rondo__heap_give(&branch->free, l->block);
        rondo__seat_drop_lease(pool, l);
        return;
    }
    l->is_held = l->is_held || rondo__pool_is_captured(pool, l);
    note_marks(seat, l, here);
    pool->stats.pending_bytes += l->block->bytes;
    l->next = seat->pending;
    seat->pending = l;
}

// Of a block that is freed in the capture that took it: it leaves nothing behind, except where
// another capture took it in meanwhile.
static void drop_output(rondo__seat *seat, rondo__output *output) {
    rondo__output **list = output->is_imported ? &seat->outputs : &seat->spare_outputs;
    atomic_store_explicit(&output->is_held, false, memory_order_relaxed);
    output->next = *list;
    *list = output;
}

void rondo__arena_free(rondo_pool *pool, rondo__lease *l) {
    rondo__seat *own = l->seat;
    bool is_inside = own != NULL && own->capture != NULL;
    rondo__position here = {0};
    if (is_inside) {
        rondo__position_ask(l->uses[0].tag, &here);
    }
    unlink_lease(l);
    rondo__arena_count_freed(l->part->arena, l->block->bytes);
    if (is_inside) {
        drop_output(own, l->output);
    } else if (l->output != NULL) {
        atomic_store(&l->output->is_held, false);
    }
    l->output = NULL;
    l->seat = NULL;
    if (is_inside) {
        free_in_capture(pool, l, own, &here);
    } else {
        rondo__pool_let_pass(pool, l);
    }
}

void rondo__seat_note_use(rondo__seat *seat, const rondo__lease *l) {
    if (seat != l->seat && l->output != NULL) {
        rondo__order_add_import(seat, l->output);
    }
}

void rondo__arena_note_use(rondo__lease *l, uint64_t scope) {
    rondo__seat *seat = l->part != NULL ? find_open_seat(l->part, scope) : NULL;
    if (seat != NULL) {
        rondo__seat_note_use(seat, l);
    }
}

// ---- the end of the capture -------------------------------------------------------------------

static void close_pending(rondo__seat *seat) {
    while (seat->pending != NULL) {
        rondo__lease *l = seat->pending;
        seat->pending = l->next;
        seat->pool->stats.pending_bytes -= l->block->bytes;
        if (l->is_held) {
            l->is_held = false;
            l->marks.count = 0;
            rondo__pool_let_pass(seat->pool, l);
        } else {
            l->block->mark = 0;
            rondo__heap_give(&seat->part->heap, l->block);
            rondo__seat_drop_lease(seat->pool, l);
        }
    }
}

// A step whose capture failed runs again and takes its blocks anew: those it held are nobody's.
static void take_back_all(rondo__seat *seat) {
    rondo_pool *pool = seat->pool;
    while (seat->leases != NULL) {
        rondo__lease *l = seat->leases;
        unlink_lease(l);
        (void)rondo__live_table_take(&pool->live, rondo__pool_get_address(l->block));
        pool->stats.live_bytes -= l->block->bytes;
        pool->stats.live_count -= 1;
        rondo__arena_count_freed(seat->part->arena, l->block->bytes);
        drop_output(seat, l->output);
        l->block->mark = 0;
        rondo__heap_give(&seat->part->heap, l->block);
        rondo__seat_drop_lease(pool, l);
    }
}

void rondo__seat_close(rondo__seat *seat, bool is_undone) {
    while (seat->branches != NULL) {
        rondo__branch *branch = seat->branches;
        seat->branches = branch->next;
        rondo__heap_absorb(&seat->part->heap, &branch->free);
        free_branch(branch);
    }
    seat->capture = NULL;
    close_pending(seat);
    if (is_undone) {
        take_back_all(seat);
    }
    while (seat->spare_outputs != NULL) {
        rondo__output *output = seat->spare_outputs;
        seat->spare_outputs = output->next;
        rondo__free(output);
    }
    for (rondo__lease *l = seat->leases; l != NULL; l = l->seat_next) {
        l->branch = NULL;
        for (size_t i = 0; i < l->use_count; ++i) {
            l->uses[i].scope = 0;
        }
        l->output->next = seat->outputs;
        seat->outputs = l->output;
    }
    rondo__order_close_seat(seat);
}
