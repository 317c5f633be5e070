// pool/arena_use.c — blocks inside a capture: which stream may take what was freed, and when; see
// arena.h.
// SPDX-License-Identifier: Apache-2.0
#include "pool/arena_use.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/stream_tag.h"
#include "pool/order.h"
#include "pool/pool_memory.h"

// ---- lists of blocks --------------------------------------------------------------------------

static void link_block(rondo__arena_use *use, rondo__block *block) {
    block->use = use;
    block->previous_in_use = NULL;
    block->next_in_use = use->blocks;
    if (block->next_in_use != NULL) {
        block->next_in_use->previous_in_use = block;
    }
    use->blocks = block;
}

static void unlink_block(rondo__block *block) {
    if (block->use == NULL) {
        return;
    }
    if (block->next_in_use != NULL) {
        block->next_in_use->previous_in_use = block->previous_in_use;
    }
    if (block->previous_in_use != NULL) {
        block->previous_in_use->next_in_use = block->next_in_use;
    } else {
        block->use->blocks = block->next_in_use;
    }
    block->next_in_use = NULL;
    block->previous_in_use = NULL;
}

void rondo__arena_use_forget_blocks(rondo__arena_use *use) {
    while (use->blocks != NULL) {
        rondo__block *block = use->blocks;
        unlink_block(block);
        block->use = NULL;
        block->output = NULL;
    }
}

// ---- section streams --------------------------------------------------------------------------

// By the tag: the stream may be destroyed by now, as a body's stream is after the body.
static rondo__section_stream *find_section_stream(const rondo__arena_use *use,
                                                  const rondo__stream_tag *tag, uint64_t section) {
    rondo__section_stream *s = use->section_streams;
    while (s != NULL && (s->tag != tag || s->section != section)) {
        s = s->next;
    }
    return s;
}

static rondo_status get_section_stream(rondo__arena_use *use, rondo_stream *stream,
                                       uint64_t section,
                                       rondo__section_stream **out_section_stream) {
    rondo__section_stream *s = find_section_stream(use, stream->tag, section);
    if (s == NULL) {
        s = rondo__calloc(1, sizeof *s);
        if (s == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        s->stream = stream;
        s->tag = rondo__stream_tag_retain(stream);
        s->section = section;
        s->next = use->section_streams;
        use->section_streams = s;
    }
    *out_section_stream = s;
    return RONDO_STATUS_OK;
}

static void free_section_stream(rondo__section_stream *s) {
    rondo__stream_tag_release(s->tag);
    rondo__heap_deinit(&s->free);
    rondo__free(s->free_points);
    rondo__section_nodes_deinit(&s->nodes);
    rondo__ancestors_deinit(&s->ancestors);
    rondo__free(s);
}

// True when the stream stood at these nodes when it freed its last block.
static bool is_at_last_free_point(const rondo__section_stream *s, const rondo__section_node *nodes,
                                  size_t count) {
    if (s->free_point_count == 0) {
        return false;
    }
    const rondo__free_point *last = &s->free_points[s->free_point_count - 1];
    for (size_t i = 0; i < count && last->count == count; ++i) {
        const rondo__section_node *node = &s->nodes.entries[last->first + i];
        if (node->section != nodes[i].section || node->node != nodes[i].node) {
            return false;
        }
    }
    return last->count == count;
}

// The number of the point where the stream stands now, for a block that it frees. Without memory
// UINT64_MAX: then only the stream itself may take the block again.
static uint64_t note_free_point(rondo__section_stream *s, rondo__capture *capture,
                                const rondo__position *position) {
    size_t first = s->nodes.count;
    rondo_status status =
        RONDO__ARRAY_RESERVE(s->free_points, s->free_point_capacity, s->free_point_count + 1);
    if (status == RONDO_STATUS_OK) {
        status = rondo__section_nodes_add_position(&s->nodes, capture, s->stream, position);
    }
    size_t count = s->nodes.count - first;
    s->nodes.count = first;
    if (status != RONDO_STATUS_OK) {
        return UINT64_MAX;
    }
    if (is_at_last_free_point(s, s->nodes.entries + first, count)) {
        return s->last_number;
    }
    s->nodes.count += count;
    s->last_number += 1;
    s->free_points[s->free_point_count++] =
        (rondo__free_point){.number = s->last_number, .first = first, .count = count};
    return s->last_number;
}

static uint64_t note_free_point_now(rondo__section_stream *s, rondo__capture *capture) {
    rondo__position here;
    rondo__position_ask(s->tag, &here);
    return here.section == s->section ? note_free_point(s, capture, &here) : UINT64_MAX;
}

// The last point at which `other` freed and that comes before where `taker` stands now. Later
// points come after earlier ones, so a binary search finds it.
static uint64_t find_freed_at_max(const rondo__section_stream *taker, rondo__capture *capture,
                                  const rondo__section_stream *other) {
    size_t low = 0;
    size_t high = other->free_point_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const rondo__free_point *point = &other->free_points[middle];
        if (rondo__ancestors_hold(&taker->ancestors, capture, &other->nodes.entries[point->first],
                                  point->count)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? other->free_points[low - 1].number : 0;
}

// ---- taking -----------------------------------------------------------------------------------

// Gives `taker` the pending blocks whose work all comes before where it stands now.
static void take_over_pending(rondo__arena_use *use, rondo__section_stream *taker) {
    rondo__block **link = &use->pending;
    uint64_t freed_at = 0;
    while (*link != NULL) {
        rondo__block *block = *link;
        if (!block->is_held && rondo__ancestors_hold(&taker->ancestors, use->capture,
                                                     block->nodes.entries, block->nodes.count)) {
            *link = block->next;
            use->pool->stats.pending_bytes -= block->piece->bytes;
            freed_at = freed_at != 0 ? freed_at : note_free_point_now(taker, use->capture);
            block->piece->freed_at = freed_at;
            rondo__heap_give(&taker->free, block->piece);
            rondo__pool_drop_record(use->pool, block);
        } else {
            link = &block->next;
        }
    }
}

static rondo_status take_from_others(rondo__arena_use *use, rondo__section_stream *taker,
                                     uint64_t bytes, rondo__heap_piece **out_piece) {
    for (rondo__section_stream *other = use->section_streams; other != NULL && *out_piece == NULL;
         other = other->next) {
        if (other != taker && other->free.rows != 0) {
            uint64_t freed_at_max = find_freed_at_max(taker, use->capture, other);
            RETURN_IF_ERROR(rondo__heap_take_freed(&other->free, bytes, freed_at_max, out_piece));
        }
    }
    return RONDO_STATUS_OK;
}

static bool others_have_freed(const rondo__arena_use *use, const rondo__section_stream *taker) {
    for (const rondo__section_stream *other = use->section_streams; other != NULL;
         other = other->next) {
        if (other != taker && other->free.rows != 0) {
            return true;
        }
    }
    return use->pending != NULL;
}

// *out_is_fresh is false when the bytes were freed in this capture, so that the graph is known to
// write them.
static rondo_status take_piece(rondo__arena_use *use, rondo__section_stream *s, uint64_t bytes,
                               rondo__heap_piece **out_piece, bool *out_is_fresh) {
    rondo__heap *open = &use->arena_pool->heap;
    *out_is_fresh = false;
    RETURN_IF_ERROR(rondo__heap_take(&s->free, bytes, out_piece));
    if (*out_piece == NULL && others_have_freed(use, s)) {
        rondo_error saved;
        rondo__error_save(&saved);
        bool is_known = rondo__ancestors_extend(&s->ancestors, use->capture, s->stream,
                                                s->section) == RONDO_STATUS_OK;
        rondo__error_restore(&saved);
        if (is_known) {
            take_over_pending(use, s);
            RETURN_IF_ERROR(rondo__heap_take(&s->free, bytes, out_piece));
        }
        if (is_known && *out_piece == NULL) {
            RETURN_IF_ERROR(take_from_others(use, s, bytes, out_piece));
        }
    }
    if (*out_piece == NULL) {
        *out_is_fresh = true;
        RETURN_IF_ERROR(rondo__heap_take(open, bytes, out_piece));
    }
    if (*out_piece == NULL) {
        uint64_t added = 0;
        RETURN_IF_ERROR(rondo__pool_add_region(use->pool, open, bytes, true, &added));
        rondo__arena_count_region(use->arena_pool->arena, added);
        RETURN_IF_ERROR(rondo__heap_take(open, bytes, out_piece));
    }
    return *out_piece != NULL ? RONDO_STATUS_OK
                              : RONDO_FAIL(INTERNAL, "a fresh region has no room for %llu bytes",
                                           (unsigned long long)bytes);
}

static rondo_status reserve_range(rondo__arena_use *use) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(use->touched, use->touched_capacity, use->touched_count + 1);
    return status;
}

static rondo__output *get_output(rondo__arena_use *use) {
    rondo__output *output = use->spare_outputs;
    if (output == NULL) {
        return rondo__calloc(1, sizeof *output);
    }
    use->spare_outputs = output->next;
    memset(output, 0, sizeof *output);
    return output;
}

rondo_status rondo__arena_use_allocate(rondo__arena_use *use, rondo_stream *stream,
                                       uint64_t section, size_t bytes, void **out_address) {
    rondo_pool *pool = use->pool;
    rondo__section_stream *s = NULL;
    rondo__heap_piece *piece = NULL;
    rondo__output *output = NULL;
    bool is_fresh = true;
    pthread_mutex_lock(&pool->lock);
    rondo__block *block = rondo__pool_get_record(pool);
    rondo_status status =
        block != NULL ? rondo__live_table_reserve(&pool->live) : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = get_section_stream(use, stream, section, &s);
    }
    if (status == RONDO_STATUS_OK) {
        status = reserve_range(use);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__block_add_user(block, stream, section);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__order_reserve_output(use->arena_pool);
    }
    if (status == RONDO_STATUS_OK) {
        output = get_output(use);
        status =
            output != NULL ? take_piece(use, s, bytes, &piece, &is_fresh) : RONDO_STATUS_NO_MEMORY;
    }
    if (status != RONDO_STATUS_OK) {
        goto drop;
    }
    uintptr_t begin = (uintptr_t)rondo__pool_get_address(piece);
    output->range = (rondo__range){.begin = begin, .end = begin + piece->bytes};
    atomic_init(&output->is_held, true);
    output->use = use;
    if (is_fresh) {
        use->touched[use->touched_count++] = output->range;
    }
    use->promised_count += 1;
    use->arena_pool->promised_count += 1;
    block->piece = piece;
    block->owner = NULL;
    block->arena_pool = use->arena_pool;
    block->section_stream = s;
    block->output = output;
    link_block(use, block);
    rondo__pool_hand_out(pool, block);
    rondo__arena_count_live(use->arena_pool->arena, piece->bytes);
    *out_address = (void *)begin;
    goto unlock;

drop:
    if (output != NULL) {
        output->next = use->spare_outputs;
        use->spare_outputs = output;
    }
    if (block != NULL) {
        rondo__pool_drop_record(pool, block);
    }
unlock:
    pthread_mutex_unlock(&pool->lock);
    return status;
}

// ---- giving -----------------------------------------------------------------------------------

static bool is_in_capture(rondo__capture *capture, uint64_t id) {
    return id != 0 && (capture->id == id || rondo__capture_find_body(capture, id) != NULL);
}

// The use whose open capture, or a body of it, has this id.
static rondo__arena_use *find_open_use(const rondo__arena_pool *arena_pool, uint64_t id) {
    rondo__arena_use *use = arena_pool->uses;
    while (use != NULL && (use->capture == NULL || !is_in_capture(use->capture, id))) {
        use = use->next_in_pool;
    }
    return use;
}

// Notes the nodes that must have run before another stream may take the block. The block is held
// until the capture is closed when they cannot be found, or when work outside the capture uses it.
// `here` is where the stream of the first user stands.
static void note_work(rondo__arena_use *use, rondo__block *block, const rondo__position *here) {
    rondo__capture *capture = use->capture;
    rondo__position there;
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t i = 0; i < block->user_count && !block->is_held; ++i) {
        const rondo__block_user *user = &block->users[i];
        const rondo__position *position = here;
        if (i > 0) {
            rondo__position_ask(user->tag, &there);
            position = &there;
        }
        bool is_inside = is_in_capture(capture, position->section);
        if (is_inside && rondo__section_nodes_add_position(&block->nodes, capture, user->stream,
                                                           position) != RONDO_STATUS_OK) {
            block->is_held = true;
        } else if (user->section == 0) {
            block->is_held = !is_inside;
        } else if (user->section != position->section) {
            // The stream has left a body since; the conditional node stands for all work in it.
            const rondo__capture_body *body = rondo__capture_find_body(capture, user->section);
            block->is_held = body == NULL ||
                             rondo__section_nodes_add_body(&block->nodes, body) != RONDO_STATUS_OK;
        }
    }
    rondo__error_restore(&saved);
}

static void free_in_capture(rondo_pool *pool, rondo__block *block, rondo__arena_use *use,
                            const rondo__position *here) {
    rondo__section_stream *s = find_section_stream(use, block->users[0].tag, here->section);
    bool is_own = s != NULL && s == block->section_stream;
    if (is_own && block->user_count == 1 && !rondo__pool_is_captured(pool, block)) {
        block->piece->freed_at = note_free_point(s, use->capture, here);
        rondo__heap_give(&s->free, block->piece);
        rondo__pool_drop_record(pool, block);
        return;
    }
    block->is_held = block->is_held || rondo__pool_is_captured(pool, block);
    note_work(use, block, here);
    pool->stats.pending_bytes += block->piece->bytes;
    block->next = use->pending;
    use->pending = block;
}

// A block that is freed in the capture that took it is no output, unless another capture has
// imported it meanwhile.
static void drop_output(rondo__arena_use *use, rondo__output *output) {
    rondo__output **list = output->is_imported ? &use->outputs : &use->spare_outputs;
    atomic_store_explicit(&output->is_held, false, memory_order_relaxed);
    output->next = *list;
    *list = output;
}

void rondo__arena_free(rondo_pool *pool, rondo__block *block) {
    rondo__arena_use *own = block->use;
    bool is_inside = own != NULL && own->capture != NULL;
    rondo__position here = {0};
    if (is_inside) {
        rondo__position_ask(block->users[0].tag, &here);
    }
    unlink_block(block);
    rondo__arena_count_freed(block->arena_pool->arena, block->piece->bytes);
    if (is_inside) {
        drop_output(own, block->output);
    } else if (block->output != NULL) {
        atomic_store(&block->output->is_held, false);
    }
    block->output = NULL;
    block->use = NULL;
    if (is_inside) {
        free_in_capture(pool, block, own, &here);
    } else {
        rondo__pool_let_pass(pool, block);
    }
}

void rondo__arena_use_note_import(rondo__arena_use *use, const rondo__block *block) {
    if (use != block->use && block->output != NULL) {
        rondo__order_add_import(use, block->output);
    }
}

void rondo__arena_note_user(rondo__block *block, uint64_t section) {
    rondo__arena_use *use =
        block->arena_pool != NULL ? find_open_use(block->arena_pool, section) : NULL;
    if (use != NULL) {
        rondo__arena_use_note_import(use, block);
    }
}

// ---- the end of the capture -------------------------------------------------------------------

static void close_pending(rondo__arena_use *use) {
    while (use->pending != NULL) {
        rondo__block *block = use->pending;
        use->pending = block->next;
        use->pool->stats.pending_bytes -= block->piece->bytes;
        if (block->is_held) {
            block->is_held = false;
            block->nodes.count = 0;
            rondo__pool_let_pass(use->pool, block);
        } else {
            block->piece->freed_at = 0;
            rondo__heap_give(&use->arena_pool->heap, block->piece);
            rondo__pool_drop_record(use->pool, block);
        }
    }
}

// A step whose capture failed runs again and takes new blocks; those that it held are freed here.
static void take_back_all(rondo__arena_use *use) {
    rondo_pool *pool = use->pool;
    while (use->blocks != NULL) {
        rondo__block *block = use->blocks;
        unlink_block(block);
        rondo__pool_take_in(pool, block);
        rondo__arena_count_freed(use->arena_pool->arena, block->piece->bytes);
        drop_output(use, block->output);
        block->piece->freed_at = 0;
        rondo__heap_give(&use->arena_pool->heap, block->piece);
        rondo__pool_drop_record(pool, block);
    }
}

void rondo__arena_use_close(rondo__arena_use *use, bool is_undone) {
    while (use->section_streams != NULL) {
        rondo__section_stream *s = use->section_streams;
        use->section_streams = s->next;
        rondo__heap_absorb(&use->arena_pool->heap, &s->free);
        free_section_stream(s);
    }
    use->capture = NULL;
    close_pending(use);
    if (is_undone) {
        take_back_all(use);
    }
    while (use->spare_outputs != NULL) {
        rondo__output *output = use->spare_outputs;
        use->spare_outputs = output->next;
        rondo__free(output);
    }
    for (rondo__block *block = use->blocks; block != NULL; block = block->next_in_use) {
        block->section_stream = NULL;
        for (size_t i = 0; i < block->user_count; ++i) {
            block->users[i].section = 0;
        }
        block->output->next = use->outputs;
        use->outputs = block->output;
    }
    rondo__order_close_use(use);
}
