// executor/state/arena_plan.c — see arena_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/arena_plan.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct ordered {
    rondo__block *block;
    bool is_whole;  // needed in all steps
} ordered;

static int compare_by_size(const void *a, const void *b) {
    const ordered *x = a;
    const ordered *y = b;
    if (x->is_whole != y->is_whole) {
        return x->is_whole ? -1 : 1;
    }
    if (x->block->bytes != y->block->bytes) {
        return x->block->bytes > y->block->bytes ? -1 : 1;
    }
    // The order of the list, so that plans are reproducible.
    return x->block < y->block ? -1 : x->block > y->block;
}

// Most values live for a few steps, so the search for the neighbours of a block looks at those
// steps only; values that live long are in one list.
enum { SHORT_STEPS = 32 };

typedef struct placed {
    size_t offset;
    size_t end;
    size_t first;
    size_t last;
    size_t first_level;
    size_t last_level;
    size_t next;  // in its list: index + 1; 0 ends it
} placed;

typedef struct arena {
    placed *placed;
    size_t placed_count;
    size_t long_head;     // index + 1 of the lowest of those that live long, by offset
    size_t *short_heads;  // by step: those that begin there and live for a short time
    size_t short_count;
    const placed **near;  // the short ones beside a block, by offset
    size_t near_count;
    size_t final;     // the last step of all
    bool has_levels;  // then all are in the one list
    size_t floor;     // below it lie blocks that live for all steps, and no gaps
} arena;

static int compare_by_offset(const void *a, const void *b) {
    const placed *x = *(const placed *const *)a;
    const placed *y = *(const placed *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void find_near(arena *a, const rondo__block *block) {
    a->near_count = 0;
    size_t step = block->first > SHORT_STEPS ? block->first - SHORT_STEPS : 0;
    for (; a->short_count > 0 && step <= block->last; ++step) {
        for (size_t at = a->short_heads[step]; at != 0; at = a->placed[at - 1].next) {
            if (a->placed[at - 1].last >= block->first) {
                a->near[a->near_count++] = &a->placed[at - 1];
            }
        }
    }
    qsort(a->near, a->near_count, sizeof(const placed *), compare_by_offset);
}

// Whether the two values are never needed at the same time. If two values share bytes, the op that
// comes first in the program runs first; where levels count, its level must not be the higher one,
// or independent branches would wait for each other.
static bool is_apart(const arena *a, const placed *rival, const rondo__block *block) {
    const bool is_before =
        rival->last < block->first && (!a->has_levels || rival->last_level < block->first_level);
    const bool is_behind =
        block->last < rival->first && (!a->has_levels || block->last_level < rival->first_level);
    return is_before || is_behind;
}

// Finds the lowest gap of `need` bytes among the blocks that live at the same time as `block`.
// *out_before is the last of the list that begins below it (index + 1; 0: none).
static size_t find_gap(arena *a, const rondo__block *block, size_t need, size_t *out_before) {
    size_t end = a->floor;  // of the rivals seen so far
    size_t near = 0;
    size_t at = a->long_head;
    *out_before = 0;
    find_near(a, block);
    while (at != 0 || near < a->near_count) {
        const placed *rival = at != 0 ? &a->placed[at - 1] : NULL;
        if (rival == NULL || (near < a->near_count && a->near[near]->offset < rival->offset)) {
            rival = a->near[near++];
        } else if (is_apart(a, rival, block)) {
            at = rival->next;
            continue;
        }
        if (rival->offset >= end && rival->offset - end >= need) {
            break;
        }
        end = rival->end > end ? rival->end : end;
        if (at != 0 && rival == &a->placed[at - 1]) {
            *out_before = at;
            at = rival->next;
        }
    }
    // Behind its last neighbour, but also behind what lives at other times and begins lower.
    size_t next = *out_before != 0 ? a->placed[*out_before - 1].next : a->long_head;
    for (; next != 0 && a->placed[next - 1].offset < end; next = a->placed[next - 1].next) {
        *out_before = next;
    }
    return end;
}

static void place(arena *a, const rondo__block *block, size_t block_end, size_t before) {
    if (block->first == 0 && block->last == a->final) {
        a->floor = block_end;
        return;
    }
    placed *now = &a->placed[a->placed_count++];
    *now = (placed){.offset = block->offset,
                    .end = block_end,
                    .first = block->first,
                    .last = block->last,
                    .first_level = block->first_level,
                    .last_level = block->last_level};
    size_t *link = before != 0 ? &a->placed[before - 1].next : &a->long_head;
    if (!a->has_levels && block->last - block->first <= SHORT_STEPS) {
        link = &a->short_heads[block->first];
        a->short_count += 1;
    }
    now->next = *link;
    *link = a->placed_count;
}

rondo_status rondo__arena_plan(rondo__block *blocks, size_t block_count, bool has_levels,
                               size_t *out_arena_bytes) {
    *out_arena_bytes = 0;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    arena a = {.has_levels = has_levels};
    for (size_t i = 0; i < block_count; ++i) {
        if (blocks[i].bytes > SIZE_MAX / 4) {
            return RONDO_FAIL(INVALID, "a value of %zu bytes does not fit into an arena",
                              blocks[i].bytes);
        }
        a.final = blocks[i].last > a.final ? blocks[i].last : a.final;
    }
    ordered *order = rondo__calloc(block_count + 1, sizeof *order);
    a.placed = rondo__calloc(block_count + 1, sizeof *a.placed);
    a.near = rondo__calloc(block_count + 1, sizeof *a.near);
    a.short_heads = rondo__calloc(a.final + 1, sizeof *a.short_heads);
    if (order == NULL || a.placed == NULL || a.near == NULL || a.short_heads == NULL) {
        goto free_lists;
    }
    for (size_t i = 0; i < block_count; ++i) {
        order[i].block = &blocks[i];
        order[i].is_whole = blocks[i].first == 0 && blocks[i].last == a.final;
    }
    qsort(order, block_count, sizeof *order, compare_by_size);
    size_t arena_bytes = 0;
    for (size_t i = 0; i < block_count; ++i) {
        rondo__block *block = order[i].block;
        const size_t need = rondo__align_up(block->bytes, RONDO__ARENA_ALIGNMENT);
        size_t before;
        size_t block_end;
        block->offset = find_gap(&a, block, need, &before);
        if (!rondo__add_size(block->offset, need, &block_end)) {
            status =
                RONDO_FAIL(INVALID, "the values alive at once do not fit into an address space");
            goto free_lists;
        }
        arena_bytes = block_end > arena_bytes ? block_end : arena_bytes;
        place(&a, block, block_end, before);
    }
    *out_arena_bytes = arena_bytes;
    status = RONDO_STATUS_OK;

free_lists:
    rondo__free(order);
    rondo__free(a.placed);
    rondo__free(a.near);
    rondo__free(a.short_heads);
    return status;
}
