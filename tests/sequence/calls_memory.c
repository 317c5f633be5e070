// Calls on pools, blocks and arenas.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "rondo/pool.h"
#include "sequence/sequence.h"

// ---- what a new block must not lie on ---------------------------------------------------------

static bool is_needed(const world *w, const block_model *b, const arena_model *arena) {
    (void)w;
    if (b->is_live || b->freed_in != NULL) {
        return true;
    }
    // Memory of a graph belongs to its arena until the reset.
    return b->graph != NULL && b->graph->has_memory && b->arena != arena;
}

static void check_place(world *w, const block_model *fresh) {
    for (int i = 0; i < w->block_count; ++i) {
        const block_model *b = &w->blocks[i];
        bool overlaps =
            fresh->address < b->address + b->bytes && b->address < fresh->address + fresh->bytes;
        if (overlaps && is_needed(w, b, fresh->arena)) {
            world_fail(w, "the pool gave out %zu bytes at %p, where block %d %s", fresh->bytes,
                       (void *)fresh->address, i,
                       b->is_live ? "is live" : "belongs to a graph's memory");
            return;
        }
    }
}

// Memory that nobody has now was waited for, or is used in stream order: that is the pool's care.
// Only sharers of an arena write there again and again.
static void forget_accesses(world *w, const block_model *fresh) {
    word *x = &w->words[fresh->word];
    for (int i = 0; i < w->block_count; ++i) {
        if (w->blocks[i].word == fresh->word && w->blocks[i].graph != NULL) {
            return;
        }
    }
    x->written = (ticks){{0}};
    x->read = (ticks){{0}};
    x->is_known = false;
}

// ---- taking and giving back -------------------------------------------------------------------

static void enter_block(world *w, stream_model *s, void *address, size_t bytes, int slot) {
    capture *c = capture_of(s);
    int index = w->block_count++;
    block_model *b = &w->blocks[index];
    *b = (block_model){.address = (uintptr_t)address,
                       .bytes = bytes,
                       .stream = (int)(s - w->streams),
                       .used_by = UINT64_C(1) << (s - w->streams)};
    if (c != NULL) {
        b->graph = c->graph;
        b->capture = c;
        b->frame = s->frame;
        b->before = s->closure;
        b->arena = c->graph->arena;
    }
    check_place(w, b);
    b->word = find_word(w, b->address);
    if (b->word < 0) {
        world_fail(w, "the model has too few words");
        b->word = 0;
    }
    forget_accesses(w, b);
    b->is_live = true;
    if (c != NULL) {
        c->graph->has_memory = true;
    }
    w->slots[slot] = index;
}

static bool meets_children(const capture *c) {
    for (int i = 0; i < c->child_count; ++i) {
        if (c->children[i].arena == c->graph->arena && !c->graph->arena->allows_any_order) {
            return true;
        }
    }
    return false;
}

bool call_allocate(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    capture *c = capture_of(s);
    int slot = k->b % SLOT_COUNT;
    if (w->slots[slot] >= 0 || w->block_count == BLOCK_MAX ||
        (c == NULL && find_global_ban(w) != BAN_NONE)) {
        return false;
    }
    static const size_t sizes[] = {256, 512, 1024, 4096, 20000, 1 << 20, 3 << 20};
    size_t bytes = sizes[k->c % (sizeof sizes / sizeof *sizes)];
    void *address = NULL;
    rondo_status status = rondo_pool_allocate(w->pool, s->real, bytes, &address);
    tell(w, status, "pool_allocate(%s, %zu) block %d at %p", name_stream(w, s), bytes,
         w->block_count, address);
    // A recorded graph of the same arena has its memory there already.
    bool is_refused = c != NULL && !c->is_broken && meets_children(c);
    if (expect_in(w, c, status, is_refused ? CAN_STATE : CAN_OK, "rondo_pool_allocate") &&
        (c == NULL || !c->is_broken)) {
        enter_block(w, s, address, bytes, slot);
    }
    return true;
}

// Whether the pool knows of, or the program has waited for, all work on the block.
static bool is_known_to_pool(const world *w, const block_model *b) {
    const word *x = &w->words[b->word];
    for (int line = 0; line < STREAM_COUNT; ++line) {
        uint32_t last =
            x->written.at[line] > x->read.at[line] ? x->written.at[line] : x->read.at[line];
        bool is_declared = (b->used_by >> line & 1) != 0;
        bool comes_before = b->stream >= 0 && last <= w->streams[b->stream].now.at[line];
        if (last > w->host.at[line] && !is_declared && !comes_before) {
            return false;
        }
    }
    return true;
}

// Whether a graph uses the block that its arena does not know of: the program's to order.
static bool is_used_elsewhere(const world *w, int index) {
    bool is_used = false;
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        const graph_model *g = &w->graphs[i];
        const content *patched = g->executed;
        is_used = is_used || (g->arena != w->blocks[index].arena &&
                              ((g->nodes != NULL && content_uses_block(g->nodes, index)) ||
                               (patched != NULL && content_uses_block(patched, index))));
    }
    return is_used;
}

bool call_release(world *w, const any_call *k) {
    int slot = k->b % SLOT_COUNT;
    int index = w->slots[slot];
    if (index < 0) {
        return false;
    }
    block_model *b = &w->blocks[index];
    capture *c = b->stream >= 0 ? capture_of(&w->streams[b->stream]) : NULL;
    // A free on another line than the uses is the program's to order.
    bool is_own = c != NULL && b->capture == c;
    bool is_in_capture = c != NULL;
    bool is_held = b->arena != NULL && !is_used_elsewhere(w, index);
    if ((b->capture != NULL && !is_own) || (!is_held && !is_known_to_pool(w, b))) {
        return false;
    }
    rondo_status status = rondo_pool_free(w->pool, (void *)b->address);
    tell(w, status, "pool_free(block %d)", index);
    if (!expect(w, status, CAN_OK, "rondo_pool_free")) {
        return true;
    }
    w->slots[slot] = -1;
    b->is_live = false;
    if (is_own) {
        b->is_temporary = true;
    } else if (is_in_capture) {
        b->freed_in = c;
        c->nodes->takes_in = c->nodes->takes_in || b->arena != NULL;
    } else {
        forget_block(w, index, b->arena != NULL ? b->graph : NULL);
    }
    return true;
}

bool call_use(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    int index = w->slots[k->b % SLOT_COUNT];
    capture *c = capture_of(s);
    if (index < 0) {
        return false;
    }
    block_model *b = &w->blocks[index];
    if (!b->is_live || (b->capture != NULL && b->capture != c)) {
        return false;
    }
    rondo_status status = rondo_pool_use(w->pool, s->real, (void *)b->address);
    tell(w, status, "pool_use(block %d, %s)", index, name_stream(w, s));
    if (expect_in(w, c, status, CAN_OK, "rondo_pool_use")) {
        b->used_by |= UINT64_C(1) << (s - w->streams);
        if (c != NULL) {
            c->nodes->takes_in = true;  // what another graph may have left behind
        }
    }
    return true;
}

bool call_trim(world *w, const any_call *k) {
    uint64_t released = 0;
    rondo_status status = rondo_pool_trim(w->pool, k->a % 2 == 0 ? 0 : 1 << 21, &released);
    tell(w, status, "pool_trim() %llu", (unsigned long long)released);
    (void)expect(w, status, CAN_OK, "rondo_pool_trim");
    return true;
}

bool call_take_memory(world *w, const any_call *k) {
    void *address = NULL;
    rondo_memory_kind kind = k->a % 2 == 0 ? RONDO_MEMORY_DEVICE : RONDO_MEMORY_PINNED;
    rondo_status status = rondo_memory_allocate(w->context->device, kind, 4096, &address);
    tell(w, status, "memory_allocate()");
    if (expect(w, status, mask_of_ban(find_global_ban(w)), "rondo_memory_allocate")) {
        rondo_memory_free(w->context->device, address);
    } else {
        break_global(w);
    }
    return true;
}

bool call_begin_round(world *w, const any_call *k) {
    int index = k->a % ARENA_COUNT;
    arena_model *arena = &w->arenas[index];
    rondo_status status = rondo_arena_begin_round(arena->real);
    tell(w, status, "arena_begin_round(%d)", index);
    if (expect(w, status, CAN_OK, "rondo_arena_begin_round")) {
        arena->round += 1;
    }
    return true;
}
