// What stands in device memory, and which accesses something orders.
//
// Time is a vector clock: each stream of the program is a line, and each call on it one tick. A
// stream that waits takes over what the event knew; the program itself (`host`) knows what it has
// waited for. Inside a capture the order is that of the nodes: each knows its ancestors.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "sequence/sequence.h"

// ---- contents ---------------------------------------------------------------------------------

content *content_create(void) {
    content *nodes = calloc(1, sizeof *nodes);
    if (nodes == NULL) {
        abort();
    }
    nodes->references = 1;
    return nodes;
}

content *content_retain(content *nodes) {
    ++nodes->references;
    return nodes;
}

void content_release(content *nodes) {
    if (nodes == NULL || --nodes->references > 0) {
        return;
    }
    for (int i = 0; i < nodes->count; ++i) {
        for (int branch = 0; branch < BRANCH_MAX; ++branch) {
            content_release(nodes->nodes[i].inner[branch]);
        }
    }
    free(nodes);
}

content *content_copy(const content *nodes) {
    content *copy = content_create();
    copy->count = nodes->count;
    memcpy(copy->nodes, nodes->nodes, sizeof copy->nodes);
    for (int i = 0; i < copy->count; ++i) {
        for (int branch = 0; branch < BRANCH_MAX && copy->nodes[i].inner[branch] != NULL;
             ++branch) {
            (void)content_retain(copy->nodes[i].inner[branch]);
        }
    }
    return copy;
}

int content_count(const content *nodes, bool (*matches)(const node *n, int number), int number) {
    int count = 0;
    for (int i = 0; i < nodes->count; ++i) {
        const node *n = &nodes->nodes[i];
        count += matches(n, number);
        for (int branch = 0; branch < BRANCH_MAX && n->inner[branch] != NULL; ++branch) {
            count += content_count(n->inner[branch], matches, number);
        }
    }
    return count;
}

bool content_has(const content *nodes, bool (*matches)(const node *n, int number), int number) {
    return content_count(nodes, matches, number) > 0;
}

bool content_takes_in(const content *nodes) {
    bool takes_in = nodes->takes_in;
    for (int i = 0; i < nodes->count; ++i) {
        const node *n = &nodes->nodes[i];
        for (int branch = 0; branch < BRANCH_MAX && n->inner[branch] != NULL; ++branch) {
            takes_in = takes_in || content_takes_in(n->inner[branch]);
        }
    }
    return takes_in;
}

static bool node_uses_block(const node *n, int block) {
    return n->destination.block == block || n->source.block == block;
}

bool content_uses_block(const content *nodes, int block) {
    return content_has(nodes, node_uses_block, block);
}

static bool works(const node *n, int index) {
    (void)index;
    return n->kind != NODE_CHILD && n->kind != NODE_STAMP && n->kind != NODE_WAIT;
}

bool content_works(const content *nodes) {
    return content_has(nodes, works, 0);
}

// ---- clocks -----------------------------------------------------------------------------------

void clock_join(ticks *into, const ticks *other) {
    for (int i = 0; i < LINE_COUNT; ++i) {
        into->at[i] = other->at[i] > into->at[i] ? other->at[i] : into->at[i];
    }
}

static bool knows(const ticks *a, const ticks *b, const ticks *past) {
    for (int i = 0; i < LINE_COUNT; ++i) {
        if (past->at[i] > a->at[i] && past->at[i] > b->at[i]) {
            return false;
        }
    }
    return true;
}

int find_word(world *w, uintptr_t address) {
    for (int i = ALL_CELLS; i < w->word_count; ++i) {
        if (w->words[i].address == address) {
            return i;
        }
    }
    if (w->word_count == WORD_MAX) {
        return -1;
    }
    w->words[w->word_count] = (word){.address = address, .block = -1};
    return w->word_count++;
}

// ---- races of what runs now -------------------------------------------------------------------

static bool operand_races(const world *w, const ticks *when, operand o, bool is_write) {
    for (int i = 0; i < o.count; ++i) {
        const word *x = &w->words[o.first + i];
        if (!knows(when, &w->host, &x->written) || (is_write && !knows(when, &w->host, &x->read))) {
            return true;
        }
    }
    return false;
}

bool races_now(const world *w, const stream_model *s, operand o, bool is_write) {
    return operand_races(w, &s->now, o, is_write);
}

bool content_races_now(const world *w, const ticks *when, const content *nodes) {
    for (int i = 0; i < nodes->count; ++i) {
        const node *n = &nodes->nodes[i];
        if (operand_races(w, when, n->destination, true) ||
            operand_races(w, when, n->source, false)) {
            return true;
        }
        for (int branch = 0; branch < BRANCH_MAX && n->inner[branch] != NULL; ++branch) {
            if (content_races_now(w, when, n->inner[branch])) {
                return true;
            }
        }
    }
    return false;
}

// ---- races inside a capture -------------------------------------------------------------------

typedef struct meeting {
    const world *world;
    bool is_race;
    bool is_fault;  // of the library: two blocks at one address
    int blocks[2];
} meeting;

// Of memory whose order the program looks after, two blocks may lie at one address.
static bool is_watched(const world *w, int block) {
    return block >= 0 &&
           (w->blocks[block].arena == NULL || !w->blocks[block].arena->allows_any_order);
}

static void meet_operands(meeting *m, operand a, operand b) {
    bool overlaps =
        a.count > 0 && b.count > 0 && a.first < b.first + b.count && b.first < a.first + a.count;
    if (overlaps && !m->is_fault) {
        m->is_race = true;
        m->is_fault =
            a.block != b.block && is_watched(m->world, a.block) && is_watched(m->world, b.block);
        m->blocks[0] = a.block;
        m->blocks[1] = b.block;
    }
}

// The operands of `a` itself against all of `b`.
static void meet_shallow(meeting *m, const node *a, const node *b) {
    meet_operands(m, a->destination, b->destination);
    meet_operands(m, a->destination, b->source);
    meet_operands(m, a->source, b->destination);
    for (int i = 0; i < BRANCH_MAX && b->inner[i] != NULL; ++i) {
        for (int k = 0; k < b->inner[i]->count; ++k) {
            meet_shallow(m, a, &b->inner[i]->nodes[k]);
        }
    }
}

static void meet_nodes(meeting *m, const node *a, const node *b) {
    meet_shallow(m, a, b);
    for (int i = 0; i < BRANCH_MAX && a->inner[i] != NULL; ++i) {
        for (int k = 0; k < a->inner[i]->count; ++k) {
            meet_nodes(m, &a->inner[i]->nodes[k], b);
        }
    }
}

bool races_in_capture(world *w, const frame *f, uint64_t closure, const node *n) {
    meeting m = {.world = w};
    for (int i = 0; i < f->nodes->count; ++i) {
        if ((closure >> i & 1) == 0) {
            meet_nodes(&m, &f->nodes->nodes[i], n);
        }
    }
    // Around a body: what runs beside the conditional node.
    for (; f->parent != NULL; f = f->parent) {
        const content *outer = f->parent->nodes;
        uint64_t before = outer->nodes[f->node].ancestors;
        for (int i = 0; i < outer->count; ++i) {
            bool is_ordered = i == f->node || (before >> i & 1) != 0 ||
                              (outer->nodes[i].ancestors >> f->node & 1) != 0;
            if (!is_ordered) {
                meet_nodes(&m, &outer->nodes[i], n);
            }
        }
    }
    if (m.is_fault) {
        world_fail(w,
                   "blocks %d and %d lie at one address, but nothing orders their work in the "
                   "capture",
                   m.blocks[0], m.blocks[1]);
    }
    return m.is_race;
}

bool races_in_content(const world *w, const content *nodes, int index) {
    meeting m = {.world = w};
    const node *n = &nodes->nodes[index];
    for (int i = 0; i < nodes->count; ++i) {
        bool is_ordered =
            (n->ancestors >> i & 1) != 0 || (nodes->nodes[i].ancestors >> index & 1) != 0;
        if (i != index && !is_ordered) {
            meet_nodes(&m, &nodes->nodes[i], n);
        }
    }
    return m.is_race;
}

void leave_blocks(world *w, int line) {
    for (int i = 0; i < w->block_count; ++i) {
        block_model *b = &w->blocks[i];
        if (line < STREAM_COUNT || b->capture == NULL) {
            b->used_by &= ~(UINT64_C(1) << line);
            b->stream = b->stream == line ? -1 : b->stream;
        }
    }
}

// ---- running ----------------------------------------------------------------------------------

static void note_access(world *w, operand o, int line, bool is_write) {
    for (int i = 0; i < o.count; ++i) {
        word *x = &w->words[o.first + i];
        uint32_t now = w->streams[line].now.at[line];
        if (is_write) {
            x->written.at[line] = now;
        } else {
            x->read.at[line] = now;
        }
    }
}

static const char *name_graph(const world *w, const graph_model *graph, char *text, size_t bytes) {
    if (graph == NULL) {
        snprintf(text, bytes, "eager work");
    } else {
        snprintf(text, bytes, "graph %d", (int)(graph - w->graphs));
    }
    return text;
}

// Whether the arena promises that no sharer writes over what the block holds.
static bool is_protected(const world *w, const block_model *b) {
    return b->is_live && b->has_data && !w->is_threaded && b->arena != NULL &&
           !b->arena->allows_any_order && b->round == b->arena->round;
}

static void note_write(world *w, operand o, uint32_t value, bool is_known, int at,
                       const graph_model *graph) {
    word *x = &w->words[o.first + at];
    block_model *former = x->block >= 0 && x->block != o.block ? &w->blocks[x->block] : NULL;
    char name[32];
    // A graph writes over its own, again and again.
    if (former != NULL && (graph == NULL || former->graph != graph) && is_protected(w, former)) {
        world_fail(w, "%s wrote over block %d, which is held and was produced in this round",
                   name_graph(w, graph, name, sizeof name), x->block);
    }
    if (former != NULL) {
        former->was_overwritten = former->was_overwritten || former->has_data;
        former->has_data = false;
    }
    x->value = value;
    x->is_known = is_known;
    x->block = o.block;
    if (o.block >= 0) {
        block_model *b = &w->blocks[o.block];
        b->has_data = true;
        b->was_overwritten = false;
        b->round = b->arena != NULL ? b->arena->round : 0;
    }
}

static uint32_t read_word(world *w, operand o, bool *out_is_known, const graph_model *graph) {
    word *x = &w->words[o.first];
    *out_is_known = x->is_known && x->block == o.block;
    const block_model *b = o.block >= 0 && x->block != o.block ? &w->blocks[o.block] : NULL;
    char name[32];
    if (b != NULL && b->was_overwritten && !b->is_temporary && is_watched(w, o.block) &&
        !w->is_threaded) {
        world_fail(w, "%s read block %d, which was written over since it was produced",
                   name_graph(w, graph, name, sizeof name), o.block);
    }
    return x->value;
}

static void run_draw(world *w, const node *n, const graph_model *graph) {
    generator_model *generator = &w->generators[n->object];
    for (int i = 0; i < n->destination.count; ++i) {
        uint32_t words[4];
        rondo_random_philox(generator->seed, 0, generator->offset + (uint64_t)i / 4, words);
        note_write(w, n->destination, words[i % 4], true, i, graph);
    }
    generator->offset += ((uint64_t)n->destination.count + 3) / 4;
}

// The turns of a conditional node. Predicates are cells with small values that are always known.
static void run_conditional(world *w, const node *n, int line, const graph_model *graph) {
    const word *predicate = &w->words[n->source.first];
    uint32_t value = predicate->value;
    switch (n->scope_kind) {
        case RONDO_SCOPE_IF:
        case RONDO_SCOPE_IF_ELSE: {
            const content *body = n->inner[value != 0 ? 0 : 1];
            if (value != 0 || n->scope_kind == RONDO_SCOPE_IF_ELSE) {
                run_content(w, body, line, graph);
            }
            break;
        }
        case RONDO_SCOPE_SWITCH:
            if (value < (uint32_t)n->branch_count) {
                run_content(w, n->inner[value], line, graph);
            }
            break;
        case RONDO_SCOPE_WHILE:
            for (int turn = 0; predicate->value != 0; ++turn) {
                if (turn == 1000) {
                    world_fail(w, "the model's own while does not end");
                    return;
                }
                run_content(w, n->inner[0], line, graph);
            }
            break;
    }
}

uint32_t fill_word(const node *n) {
    return n->element_bytes == 1   ? (n->term & 0xffu) * 0x01010101u
           : n->element_bytes == 2 ? (n->term & 0xffffu) * 0x00010001u
                                   : n->term;
}

void run_node(world *w, const node *n, int line, const graph_model *graph) {
    bool is_known = true;
    uint32_t value;
    if (n->is_off) {
        return;
    }
    note_access(w, n->source, line, false);
    note_access(w, n->destination, line, true);
    switch (n->kind) {
        case NODE_FILL:
            for (int i = 0; i < n->destination.count; ++i) {
                note_write(w, n->destination, fill_word(n), true, i, graph);
            }
            break;
        case NODE_AFFINE:
            value = read_word(w, n->destination, &is_known, graph);
            note_write(w, n->destination, value * n->factor + n->term, is_known, 0, graph);
            break;
        case NODE_COPY:
        case NODE_OP:
            value = read_word(w, n->source, &is_known, graph);
            note_write(w, n->destination, value, is_known, 0, graph);
            break;
        case NODE_HOST:
            w->host_count += n->term;
            break;
        case NODE_DRAW:
            run_draw(w, n, graph);
            break;
        case NODE_CHILD:
            run_content(w, n->inner[0], line, graph);
            break;
        case NODE_CONDITIONAL:
            run_conditional(w, n, line, graph);
            break;
        case NODE_STAMP:
            if (graph != NULL) {
                // What the record stands behind is part of a replay: nothing is known of that.
                w->events[n->object].when = (ticks){{0}};
            }
            break;
        case NODE_WAIT:
            break;
    }
}

void run_content(world *w, const content *nodes, int line, const graph_model *graph) {
    for (int i = 0; i < nodes->count && !w->has_failed; ++i) {
        run_node(w, &nodes->nodes[i], line, graph);
    }
}
