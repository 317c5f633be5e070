// Calls on graphs: captures, replays, updates, graphs in graphs.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/pool.h"
#include "rondo/update.h"
#include "sequence/sequence.h"

graph_model *pick_graph(world *w, uint32_t number, graph_state wanted) {
    for (uint32_t i = 0; i < GRAPH_COUNT && number % 8 != 0; ++i) {
        graph_model *g = &w->graphs[(number / 8 + i) % GRAPH_COUNT];
        if (g->state == wanted || (wanted == GRAPH_READY && g->state == GRAPH_RECORDED)) {
            return g;
        }
    }
    return &w->graphs[number / 8 % GRAPH_COUNT];
}

int index_of(const world *w, const graph_model *g) {
    return (int)(g - w->graphs);
}

// ---- captures ---------------------------------------------------------------------------------

bool call_begin(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_EMPTY);
    int line = k->b % STREAM_COUNT;
    stream_model *s = &w->streams[line];
    rondo_capture_mode mode = k->c % 16 == 0                     ? (rondo_capture_mode)7
                              : k->c % 4 == 1                    ? RONDO_CAPTURE_RELAXED
                              : k->c % 4 == 2 && !w->is_threaded ? RONDO_CAPTURE_GLOBAL
                                                                 : RONDO_CAPTURE_THREAD_LOCAL;
    rondo_status status = rondo_graph_capture_begin(g->real, s->real, mode);
    tell(w, status, "capture_begin(g%d, s%d, mode %d)", index_of(w, g), line, (int)mode);
    if (mode > RONDO_CAPTURE_RELAXED) {
        (void)expect(w, status, CAN_INVALID, "rondo_graph_capture_begin");
        return true;
    }
    bool may = g->state == GRAPH_EMPTY && s->frame == NULL;
    if (!expect(w, status, may ? CAN_OK : CAN_STATE, "rondo_graph_capture_begin")) {
        return true;
    }
    capture *c = calloc(1, sizeof *c);
    frame *f = calloc(1, sizeof *f);
    if (c == NULL || f == NULL) {
        abort();
    }
    *c = (capture){.graph = g,
                   .origin = line,
                   .mode = mode,
                   .may_be_broken = w->is_threaded,
                   .frames = f,
                   .nodes = content_create(),
                   .label_depth = s->label_depth};
    *f = (frame){.owner = c, .nodes = c->nodes};
    g->capture = c;
    g->state = GRAPH_RECORDING;
    g->has_memory = false;
    g->replay_count = 0;
    g->has_count = true;
    s->frame = f;
    s->closure = 0;
    return true;
}

static bool is_of_kind(const node *n, int kind) {
    return (int)n->kind == kind;
}

static bool draws_from(const node *n, int generator) {
    return n->kind == NODE_DRAW && n->object == generator;
}

// What the ended capture says of itself.
static void check_nodes(world *w, graph_model *g) {
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    if (expect(w, rondo_graph_get_stats(g->real, &stats), CAN_OK, "rondo_graph_get_stats") &&
        g->options.keep != RONDO_KEEP_EXECUTABLE && w->context->is_host) {
        // Draws and conditional nodes bring nodes of their own for the generators' places.
        bool is_exact = !content_has(g->nodes, is_of_kind, NODE_DRAW) &&
                        !content_has(g->nodes, is_of_kind, NODE_OP);
        if (is_exact && stats.node_count != (uint64_t)g->nodes->count) {
            world_fail(w, "graph %d has %llu nodes, the model %d", index_of(w, g),
                       (unsigned long long)stats.node_count, g->nodes->count);
        }
    }
    rondo_capture_report report = {.struct_size = sizeof report};
    if (expect(w, rondo_graph_get_report(g->real, &report), CAN_OK, "rondo_graph_get_report") &&
        report.status != RONDO_STATUS_OK) {
        world_fail(w, "a capture that went well is reported as %s",
                   rondo_status_get_name(report.status));
    }
}

enum { EDGE_MAX = 512, PLACE_MAX = 256 };

// The nodes that `place` comes behind.
static void mark_before(const rondo_graph_edge *edges, size_t count, size_t place,
                        bool *is_before) {
    memset(is_before, 0, PLACE_MAX * sizeof *is_before);
    is_before[place] = true;
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (size_t e = count; e-- > 0;) {
            if (is_before[edges[e].to] && !is_before[edges[e].from]) {
                is_before[edges[e].from] = is_new = true;
            }
        }
    }
}

void check_orders(world *w, const graph_model *g) {
    rondo_graph_edge edges[EDGE_MAX];
    size_t places[HANDLE_MAX];
    bool is_before[PLACE_MAX];
    size_t edge_count = 0;
    const handle_list *handles = &g->handles;
    if (w->has_failed || !has_template(g) || handles->count == 0) {
        return;
    }
    (void)expect(w, rondo_graph_list_edges(g->real, edges, EDGE_MAX, &edge_count), CAN_OK,
                 "rondo_graph_list_edges");
    bool fits = edge_count <= EDGE_MAX;
    for (size_t e = 0; e < edge_count && fits; ++e) {
        fits = edges[e].from < PLACE_MAX && edges[e].to < PLACE_MAX;
    }
    for (int i = 0; i < handles->count && fits; ++i) {
        (void)expect(w, rondo_graph_get_node_index(g->real, handles->real[i], &places[i]), CAN_OK,
                     "rondo_graph_get_node_index");
        fits = places[i] < PLACE_MAX;
    }
    for (int i = 0; i < handles->count && fits && !w->has_failed; ++i) {
        mark_before(edges, edge_count, places[i], is_before);
        const uint64_t ancestors = g->nodes->nodes[handles->nodes[i]].ancestors;
        for (int k = 0; k < handles->count; ++k) {
            if ((ancestors >> handles->nodes[k] & 1) != 0 && !is_before[places[k]]) {
                world_fail(w, "graph %d: no edges lead from node %d to node %d, which comes behind",
                           index_of(w, g), handles->nodes[k], handles->nodes[i]);
            }
        }
    }
}

static bool is_whole(const world *w, const capture *c) {
    const stream_model *origin = &w->streams[c->origin];
    uint64_t all = c->nodes->count == 64 ? UINT64_MAX : (UINT64_C(1) << c->nodes->count) - 1;
    return (origin->closure & all) == all;
}

// The driver does not miss a branch whose end was put into the graph by hand, as conditional nodes
// and recorded graphs are; it is part of the graph all the same.
static bool is_all_else_joined(const world *w, const capture *c) {
    uint64_t joined = w->streams[c->origin].closure;
    for (int i = 0; i < c->nodes->count; ++i) {
        node_kind kind = c->nodes->nodes[i].kind;
        if (kind == NODE_CHILD || kind == NODE_CONDITIONAL) {
            joined |= (UINT64_C(1) << i) | c->nodes->nodes[i].ancestors;
        }
    }
    uint64_t all = c->nodes->count == 64 ? UINT64_MAX : (UINT64_C(1) << c->nodes->count) - 1;
    return (joined & all) == all;
}

// On CUDA a forked stream must be joined even if nothing was put on it.
static bool has_fork(const world *w, const capture *c) {
    for (int i = 0; i < STREAM_COUNT; ++i) {
        if (i != c->origin && capture_of(&w->streams[i]) == c) {
            return true;
        }
    }
    return false;
}

bool call_end(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_RECORDING);
    capture *c = g->capture;
    if (c != NULL && !c->is_broken && k->b % 4 != 0 &&
        (!is_whole(w, c) || scope_is_open_in(w, c))) {
        return false;  // most ends are to go well
    }
    rondo_status status = rondo_graph_capture_end(g->real);
    tell(w, status, "capture_end(g%d)", index_of(w, g));
    if (c == NULL) {
        (void)expect(w, status, CAN_STATE, "rondo_graph_capture_end");
        return true;
    }
    bool is_good = !c->is_broken && is_whole(w, c) && !scope_is_open_in(w, c);
    uint32_t mask = !is_good ? CAN_STATE : c->may_be_broken ? CAN_OK | CAN_STATE : CAN_OK;
    if (is_good && !w->context->is_host && has_fork(w, c)) {
        mask |= CAN_STATE;
    }
    if (!c->is_broken && !scope_is_open_in(w, c) && !w->context->is_host &&
        is_all_else_joined(w, c)) {
        mask |= CAN_OK;
    }
    // A conditional node comes behind all draws, also those of streams that were never joined.
    if (!c->is_broken && !scope_is_open_in(w, c) && content_has(c->nodes, is_of_kind, NODE_DRAW) &&
        content_has(c->nodes, is_of_kind, NODE_CONDITIONAL)) {
        mask |= CAN_OK;
    }
    bool has_ended = expect(w, status, mask, "rondo_graph_capture_end");
    close_capture(w, c, has_ended);
    if (has_ended) {
        check_nodes(w, g);
        check_orders(w, g);
    } else if (!w->has_failed) {
        rondo_capture_report report = {.struct_size = sizeof report};
        (void)expect(w, rondo_graph_get_report(g->real, &report), CAN_OK, "rondo_graph_get_report");
        if (report.status == RONDO_STATUS_OK || report.cause == RONDO_CAUSE_NONE) {
            world_fail(w, "a capture failed, and its report names no cause");
        }
    }
    return true;
}

bool call_abort(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_RECORDING);
    rondo_graph_capture_abort(g->real);
    tell(w, RONDO_STATUS_OK, "capture_abort(g%d)", index_of(w, g));
    if (g->capture != NULL) {
        close_capture(w, g->capture, false);
    }
    return true;
}

// ---- replays ----------------------------------------------------------------------------------

// Sharers of an arena that is checked come one after the other, on whichever streams.
static void join_arenas(world *w, ticks *when, const content *nodes) {
    for (int i = 0; i < w->block_count; ++i) {
        const block_model *b = &w->blocks[i];
        if (b->arena != NULL && !b->arena->allows_any_order && content_uses_block(nodes, i)) {
            clock_join(when, &b->arena->last);
        }
    }
}

static bool overlaps(const block_model *a, const block_model *b) {
    return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

// Whether the order of sharers may be why a replay was refused: the graph writes over what another
// one holds, or takes in what was written over.
static bool may_lose_data(const world *w, const content *nodes) {
    for (int i = 0; i < w->block_count; ++i) {
        const block_model *mine = &w->blocks[i];
        if (mine->arena == NULL || !content_uses_block(nodes, i)) {
            continue;
        }
        if (w->words[mine->word].block != i) {
            return true;  // somebody else wrote there last
        }
        for (int other = 0; other < w->block_count; ++other) {
            if (other != i && w->blocks[other].arena == mine->arena &&
                overlaps(mine, &w->blocks[other])) {
                return true;
            }
        }
    }
    return false;
}

// What a replay does: what was recorded, with the patches since.
static const content *get_executed(const graph_model *g) {
    return g->executed != NULL ? g->executed : g->nodes;
}

static bool is_child(const node *n, int number) {
    (void)number;
    return n->kind == NODE_CHILD;
}

// Memory that a capture took and never used is written over all the same. Of graphs inside the
// model does not know that.
static bool has_unused_memory(const world *w, const graph_model *g) {
    if (g->arena_count > 0 && content_has(g->nodes, is_child, 0)) {
        return true;
    }
    for (int i = 0; i < w->block_count; ++i) {
        if (w->blocks[i].graph == g && !content_uses_block(get_executed(g), i)) {
            return true;
        }
    }
    return false;
}

static void run_replay(world *w, graph_model *g, int line) {
    stream_model *s = &w->streams[line];
    const content *nodes = get_executed(g);
    bool is_ordered = content_works(nodes);
    if (is_ordered) {
        clock_join(&s->now, &g->last);
    }
    join_arenas(w, &s->now, nodes);
    s->now.at[line] += 1;
    run_content(w, nodes, line, g);
    if (is_ordered) {
        g->last = s->now;
    }
    g->last_line = line;
    g->replay_count += 1;
    for (int i = 0; i < w->block_count; ++i) {
        if (w->blocks[i].arena != NULL && content_uses_block(nodes, i)) {
            clock_join(&w->blocks[i].arena->last, &s->now);
        }
    }
}

// Blocks that were freed in a capture are the pool's when that ends.
static bool uses_freed_block(const world *w, const content *nodes) {
    for (int i = 0; i < w->block_count; ++i) {
        if (w->blocks[i].freed_in != NULL && content_uses_block(nodes, i)) {
            return true;
        }
    }
    return false;
}

bool call_replay(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_READY);
    stream_model *s = pick_stream(w, (uint32_t)k->b * 3);
    bool may = (g->state == GRAPH_READY || g->state == GRAPH_RECORDED) && s->frame == NULL;
    const content *nodes = may ? get_executed(g) : NULL;
    if (may && (g->is_stale || uses_freed_block(w, nodes))) {
        return false;
    }
    if (may) {
        ticks when = s->now;
        if (content_works(nodes)) {
            clock_join(&when, &g->last);
        }
        join_arenas(w, &when, nodes);
        if (content_races_now(w, &when, nodes)) {
            return false;
        }
    }
    rondo_status status = rondo_graph_replay(g->real, s->real);
    tell(w, status, "replay(g%d, %s)", index_of(w, g), name_stream(w, s));
    if (!may) {
        (void)expect(w, status, CAN_STATE, "rondo_graph_replay");
        return true;
    }
    // The order counts what was recorded and what was patched.
    bool may_refuse = w->is_threaded || may_lose_data(w, nodes) || may_lose_data(w, g->nodes) ||
                      has_unused_memory(w, g);
    if (expect(w, status, may_refuse ? CAN_OK | CAN_STATE : CAN_OK, "rondo_graph_replay")) {
        g->state = GRAPH_READY;
        run_replay(w, g, (int)(s - w->streams));
    }
    return true;
}

bool call_upload(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_READY);
    stream_model *s = pick_stream(w, k->b);
    bool may = (g->state == GRAPH_READY || g->state == GRAPH_RECORDED) && s->frame == NULL;
    if (may_have_lost_addresses(w, g)) {
        return false;
    }
    rondo_status status = rondo_graph_upload(g->real, s->real);
    tell(w, status, "upload(g%d, %s)", index_of(w, g), name_stream(w, s));
    if (expect(w, status, may ? CAN_OK : CAN_STATE, "rondo_graph_upload")) {
        g->state = GRAPH_READY;
    }
    return true;
}

bool call_instantiate(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_READY);
    if (may_have_lost_addresses(w, g)) {
        return false;
    }
    rondo_status status = rondo_graph_instantiate(g->real);
    tell(w, status, "instantiate(g%d)", index_of(w, g));
    if (expect(w, status, has_template(g) ? CAN_OK : CAN_STATE, "rondo_graph_instantiate")) {
        g->state = GRAPH_READY;
        renew_graph(w, g);
        content_release(g->executed);
        g->executed = NULL;
        end_handles(w, &g->handles);
    }
    return true;
}

// ---- updates ----------------------------------------------------------------------------------

bool call_update(world *w, const any_call *k) {
    graph_model *g = &w->graphs[k->a % GRAPH_COUNT];
    graph_model *source = pick_graph(w, k->b, GRAPH_READY);
    if (may_have_lost_addresses(w, source)) {
        return false;
    }
    if (g != source && (g->has_memory || source->has_memory)) {
        return false;  // arenas would be swapped: another room's tests
    }
    rondo_status status = rondo_graph_update(g->real, source->real, NULL);
    tell(w, status, "update(g%d, g%d)", index_of(w, g), index_of(w, source));
    if (g == source) {
        (void)expect(w, status, CAN_INVALID | CAN_STATE, "rondo_graph_update");
        return true;
    }
    bool may = has_template(source) && g->state != GRAPH_RECORDING;
    if (expect(w, status, may ? CAN_OK : CAN_STATE, "rondo_graph_update")) {
        renew_graph(w, g);
        hold_content(g, content_retain(source->nodes));
        hold_content(source, NULL);
        end_handles(w, &g->handles);
        end_handles(w, &source->handles);
        g->handles.has_any = false;
        source->handles.has_any = false;
        g->is_stale = source->is_stale;
        g->state = GRAPH_READY;
        g->arena_count = source->arena_count;
        memcpy(g->arenas, source->arenas, sizeof g->arenas);
        source->arena_count = 0;
        source->state = GRAPH_EMPTY;
        source->is_stale = false;
        g->has_count = false;
        source->replay_count = 0;
        arena_model *arena = g->arena;
        g->arena = source->arena;
        source->arena = arena;
        const rondo_arena *option = g->options.arena;
        g->options.arena = source->options.arena;
        source->options.arena = (rondo_arena *)(uintptr_t)option;
    }
    return true;
}

// ---- graphs in graphs -------------------------------------------------------------------------

static bool uses_checked_arena(const world *w, const content *nodes, const arena_model *arena) {
    for (int i = 0; i < w->block_count; ++i) {
        const block_model *b = &w->blocks[i];
        if (b->arena != NULL && !b->arena->allows_any_order &&
            (arena == NULL || b->arena == arena) && content_uses_block(nodes, i)) {
            return true;
        }
    }
    return false;
}

// Of an arena whose order is checked, graphs may be recorded one behind the other on one stream, if
// none needs what another one makes, and the capture must not take memory of that arena itself.
static unsigned expect_guest(const capture *c, const graph_model *g, const stream_model *s) {
    unsigned can = CAN_OK;
    for (int i = 0; i < g->arena_count; ++i) {
        const arena_model *arena = g->arenas[i];
        if (arena->allows_any_order) {
            continue;
        }
        if (c->graph->has_memory && c->graph->arena == arena) {
            return CAN_STATE;
        }
        for (int k = 0; k < c->child_count; ++k) {
            if (c->children[k].arena == arena &&
                (c->children[k].stream != s || c->children[k].frame != s->frame)) {
                return CAN_STATE;
            }
            can = c->children[k].arena == arena ? CAN_OK | CAN_STATE : can;
        }
    }
    return can;
}

// CUDA has neither host functions nor external events in bodies.
static bool is_unfit_for_bodies(const content *nodes) {
    return content_has(nodes, is_of_kind, NODE_HOST) ||
           content_has(nodes, is_of_kind, NODE_STAMP) || content_has(nodes, is_of_kind, NODE_WAIT);
}

bool call_add_graph(world *w, const any_call *k) {
    static const char name[] = "rondo_stream_add_graph";
    graph_model *g = pick_graph(w, k->a, GRAPH_READY);
    stream_model *s = pick_stream(w, k->b);
    capture *c = capture_of(s);
    bool may = has_template(g) && c != NULL;
    unsigned can = CAN_OK;
    bool is_active = c != NULL && !c->is_broken;
    node n = {.kind = NODE_CHILD, .destination = {.block = -1}, .source = {.block = -1}};
    if (may && is_active) {
        n.inner[0] = g->nodes;
        can = expect_guest(c, g, s);
        if (g->is_stale || content_takes_in(g->nodes) ||
            c->child_count + g->arena_count >= CHILD_MAX || !can_put(w, s, &n) ||
            (can != CAN_STATE && w->is_threaded && uses_checked_arena(w, g->nodes, NULL))) {
            return false;
        }
    }
    rondo_status status = rondo_stream_add_graph(s->real, g->real);
    tell(w, status, "graph_record(g%d, %s)", index_of(w, g), name_stream(w, s));
    if (!may || !is_active) {
        (void)expect(w, status, CAN_STATE, name);
    } else if (content_has(g->nodes, is_of_kind, NODE_CONDITIONAL)) {
        (void)expect(w, status, CAN_UNSUPPORTED, name);
    } else if (!w->context->is_host && s->frame->parent != NULL && is_unfit_for_bodies(g->nodes)) {
        (void)expect(w, status, CAN_UNSUPPORTED | (can & CAN_STATE), name);
    } else if (can == CAN_STATE) {
        (void)expect(w, status, CAN_STATE, name);
    } else if (expect_in(w, c, status, can, name)) {
        n.inner[0] = content_retain(g->nodes);
        (void)append_node(w, s, &n);
        for (int i = 0; i < g->arena_count; ++i) {
            c->children[c->child_count++] =
                (guest_model){.arena = g->arenas[i], .stream = s, .frame = s->frame};
        }
        for (int i = 0; i < GENERATOR_COUNT; ++i) {
            c->draws[i] = c->draws[i] || content_has(g->nodes, draws_from, i);
        }
        return true;
    }
    for (int i = 0; i < GENERATOR_COUNT && may && is_active; ++i) {
        c->may_draw[i] = c->may_draw[i] || content_has(g->nodes, draws_from, i);
    }
    if (c != NULL) {
        break_capture(w, c);
    }
    return true;
}

bool call_reset(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_READY);
    rondo_status status = rondo_graph_reset(g->real);
    tell(w, status, "reset(g%d)", index_of(w, g));
    if (expect(w, status, g->state == GRAPH_RECORDING ? CAN_STATE : CAN_OK, "rondo_graph_reset")) {
        reset_graph(w, g);
    }
    return true;
}

// ---- a step that is recorded or run -----------------------------------------------------------

typedef enum step_kind { STEP_ASKS, STEP_RECORDS_INSIDE, STEP_IS_FINE } step_kind;

typedef struct step_data {
    world *world;
    stream_model *stream;
    step_kind kind;
    rondo_event *external;
    void *block;
} step_data;

static rondo_status record_external(rondo_stream *stream, void *user_data) {
    const step_data *d = user_data;
    return rondo_event_record(d->external, stream);
}

static rondo_status run_step(rondo_stream *stream, void *user_data) {
    step_data *d = user_data;
    rondo_status status = rondo_stream_fill(stream, d->world->memory + CELL_COUNT - 1, 5, 4, 1);
    bool is_idle;
    if (status == RONDO_STATUS_OK && d->kind != STEP_IS_FINE) {
        status = rondo_pool_allocate(d->world->pool, stream, 3000, &d->block);
    }
    if (status == RONDO_STATUS_OK && d->kind == STEP_ASKS) {
        status = rondo_stream_query(stream, &is_idle);
    } else if (status == RONDO_STATUS_OK && d->kind == STEP_RECORDS_INSIDE) {
        // The predicate is the cell that was filled.
        status = rondo_control_if(stream, d->world->memory + CELL_COUNT - 1, record_external, NULL,
                                  user_data);
    }
    return status;
}

bool call_step(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_EMPTY);
    int line = k->b % STREAM_COUNT;
    stream_model *s = &w->streams[line];
    node n = {.kind = NODE_FILL,
              .destination = {.first = CELL_COUNT - 1, .count = 1, .block = -1},
              .source = {.block = -1},
              .term = 5};
    static const step_kind kinds[] = {STEP_ASKS, STEP_IS_FINE, STEP_RECORDS_INSIDE, STEP_IS_FINE};
    static const char *const names[] = {"asks", "records an external event in a body", "is fine"};
    step_data d = {.world = w, .stream = s, .kind = kinds[k->c % 4]};
    if (find_global_ban(w) != BAN_NONE ||
        (s->frame == NULL && races_now(w, s, n.destination, true))) {
        return false;
    }
    rondo_pool_stats before = {.struct_size = sizeof before};
    rondo_pool_stats after = {.struct_size = sizeof after};
    (void)!rondo_pool_get_stats(w->pool, &before);
    (void)expect(w, rondo_event_create(w->context->device, RONDO_EVENT_EXTERNAL, &d.external),
                 CAN_OK, "rondo_event_create");
    rondo_step_outcome outcome = RONDO_STEP_NOTHING;
    rondo_status status = rondo_graph_capture_step(g->real, s->real, NULL, run_step, &d, &outcome);
    tell(w, status, "graph_capture(g%d, s%d, a step that %s) outcome %d", index_of(w, g), line,
         names[d.kind], (int)outcome);
    rondo_event_destroy(d.external);
    if (g->state != GRAPH_EMPTY || s->frame != NULL) {
        (void)expect(w, status, CAN_STATE, "rondo_graph_capture_step");
        return true;
    }
    note_record(w);  // the step's own
    if (!expect(w, status, CAN_OK, "rondo_graph_capture_step")) {
        return true;
    }
    bool has_run = d.kind != STEP_IS_FINE || (w->is_threaded && outcome == RONDO_STEP_RAN_EAGERLY);
    if (outcome != (has_run ? RONDO_STEP_RAN_EAGERLY : RONDO_STEP_CAPTURED)) {
        world_fail(w, "rondo_graph_capture_step had the outcome %d", (int)outcome);
    } else if (has_run) {
        s->now.at[line] += 1;
        run_node(w, &n, line, NULL);
        if (rondo_pool_free(w->pool, d.block) != RONDO_STATUS_OK && !w->is_threaded) {
            world_fail(w, "the block that the step took eagerly is not live");
        }
        (void)!rondo_pool_get_stats(w->pool, &after);
        if (after.live_count != before.live_count && !w->is_threaded) {
            world_fail(w, "a step that was recorded in vain left a block behind");
        }
    } else {
        hold_content(g, content_create());
        g->nodes->nodes[g->nodes->count++] = n;
        g->replay_count = 0;
        g->has_count = true;
        g->state = g->options.keep == RONDO_KEEP_TEMPLATE_ONLY ? GRAPH_RECORDED : GRAPH_READY;
        g->has_memory = false;
    }
    return true;
}
