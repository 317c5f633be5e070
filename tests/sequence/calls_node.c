// Calls on nodes by handle: taken, patched, switched off and on; graphs by hand; recaptures.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdio.h>

#include "sequence/sequence.h"

// ---- handles ----------------------------------------------------------------------------------

static bool is_in_body(const stream_model *s) {
    return s->frame != NULL && s->frame->parent != NULL;
}

static void keep_handle(handle_list *handles, rondo_node real, int index) {
    handles->has_any = true;
    if (handles->count < HANDLE_MAX) {
        handles->real[handles->count] = real;
        handles->nodes[handles->count] = index;
        handles->count += 1;
    }
}

void take_handle(world *w, stream_model *s, int index) {
    static const char call[] = "rondo_stream_get_last_node";
    capture *c = capture_of(s);
    rondo_node real;
    rondo_status status = rondo_stream_get_last_node(s->real, &real);
    tell(w, status, "stream_get_last_node(%s) node %d", name_stream(w, s), index);
    uint32_t mask = is_in_body(s) ? CAN_UNSUPPORTED : CAN_OK;
    if (expect_in(w, c, status, mask, call)) {
        keep_handle(&c->handles, real, index);
    }
}

static int count_bits(uint64_t bits) {
    int count = 0;
    for (; bits != 0; bits &= bits - 1) {
        ++count;
    }
    return count;
}

// The nodes that the next one would come right behind.
static uint64_t find_frontier(const content *nodes, uint64_t closure) {
    uint64_t frontier = closure;
    for (int i = 0; i < nodes->count; ++i) {
        if ((closure >> i & 1) != 0) {
            frontier &= ~nodes->nodes[i].ancestors;
        }
    }
    return frontier;
}

// At any time: what it may say, and that a failure breaks nothing.
bool call_ask_node(world *w, const any_call *k) {
    static const char call[] = "rondo_stream_get_last_node";
    stream_model *s = pick_stream(w, k->a);
    capture *c = capture_of(s);
    rondo_node real;
    rondo_status status = rondo_stream_get_last_node(s->real, &real);
    tell(w, status, "stream_get_last_node(%s)", name_stream(w, s));
    if (c == NULL || c->is_broken) {
        (void)expect(w, status, CAN_STATE, call);
        return true;
    }
    if (is_in_body(s)) {
        (void)expect_in(w, c, status, CAN_UNSUPPORTED, call);
        return true;
    }
    uint64_t frontier = find_frontier(s->frame->nodes, s->closure);
    int count = count_bits(frontier);
    int index = 0;
    while (count == 1 && (frontier >> index & 1) == 0) {
        ++index;
    }
    // The driver may come behind a node and behind one before that. Draws have nodes of their own.
    const node *n = count == 1 ? &s->frame->nodes->nodes[index] : NULL;
    uint32_t mask = count == 1 ? CAN_OK | CAN_STATE : CAN_STATE;
    for (int i = 0; i < GENERATOR_COUNT; ++i) {
        mask = c->draws[i] ? CAN_OK | CAN_STATE : mask;
    }
    if (expect_in(w, c, status, mask, call)) {
        c->handles.has_any = true;
        if (n != NULL && n->kind != NODE_DRAW && n->kind != NODE_CONDITIONAL) {
            keep_handle(&c->handles, real, index);
        }
    }
    return true;
}

// ---- work -------------------------------------------------------------------------------------

static void count_two(void *data) {
    atomic_fetch_add((_Atomic uint32_t *)*(uint32_t **)data, 2);
}

// A node's work as the library is told of it, which points into itself.
typedef struct told_work {
    rondo_work work;
    rondo_launch launch;
    suite_affine_arguments arguments;
} told_work;

static void tell_work(const world *w, const node *n, told_work *out) {
    *out = (told_work){.work = {.struct_size = sizeof out->work}};
    rondo_work *work = &out->work;
    work->destination = n->destination.count > 0 ? address_of(w, n->destination) : NULL;
    switch (n->kind) {
        case NODE_AFFINE:
            work->kind = RONDO_NODE_KERNEL;
            out->arguments = (suite_affine_arguments){work->destination, 1, n->factor, n->term};
            out->launch = suite_describe_affine(w->context, &out->arguments);
            work->launch = &out->launch;
            break;
        case NODE_COPY:
            work->kind = RONDO_NODE_COPY;
            work->copy_kind = RONDO_COPY_DEVICE_TO_DEVICE;
            work->source = address_of(w, n->source);
            work->byte_count = 4;
            break;
        case NODE_HOST:
            work->kind = RONDO_NODE_HOST;
            work->name = "count";
            work->function = n->term == 1 ? count_one : count_two;
            work->arguments = &w->counter;
            work->argument_bytes = sizeof w->counter;
            break;
        default:
            work->kind = RONDO_NODE_FILL;
            work->fill_value = n->term;
            work->element_bytes = n->element_bytes > 0 ? n->element_bytes : 4;
            work->element_count = 4 / work->element_bytes;
            break;
    }
}

// A cell, or a block whose order the graph's arena watches.
static operand pick_source(const world *w, const graph_model *g, uint32_t number) {
    int index = w->slots[number / 4 % SLOT_COUNT];
    const block_model *b = index >= 0 ? &w->blocks[index] : NULL;
    bool may_read = b != NULL && !w->is_threaded && b->is_live && b->capture == NULL &&
                    b->freed_in == NULL && (b->arena == g->arena || b->arena == NULL);
    return number % 4 == 0 && may_read ? (operand){.first = b->word, .count = 1, .block = index}
                                       : pick_cell(number / 4);
}

static bool is_small(operand o) {
    return o.block < 0 && o.first < SMALL_CELL_COUNT;
}

// What a node of the kind does from now on.
static void change_node(const world *w, const graph_model *g, node *n, uint32_t number) {
    bool moves = number % 3 == 0 && n->destination.count == 1 && !is_small(n->destination);
    n->destination = moves ? pick_cell(number / 3) : n->destination;
    switch (n->kind) {
        case NODE_FILL:
            n->term = is_small(n->destination) ? number % 4 : number;
            n->element_bytes = is_small(n->destination) ? 4 : 1u << number / 16 % 3;
            break;
        case NODE_AFFINE:
            n->factor = 3 + number % 5;
            n->term = number >> 16;
            break;
        case NODE_COPY:
            n->source = pick_source(w, g, number >> 8);
            break;
        default:
            n->term = 1 + number % 2;
            break;
    }
}

static bool is_patchable(const node *n) {
    return n->kind <= NODE_HOST;
}

// ---- patches ----------------------------------------------------------------------------------

enum { PATCH_MAX = 3 };

// A call of rondo_graph_patch, and what the graph would do behind it.
typedef struct patch_plan {
    rondo_patch patches[PATCH_MAX + 1];
    told_work works[PATCH_MAX + 1];
    int count;
    uint64_t nodes;  // a bit each
    content *after;
    uint32_t mask;
    bool takes_in;
} patch_plan;

static rondo_node pick_ended(const world *w, uint32_t number) {
    uint32_t count = w->ended_count < ENDED_MAX ? w->ended_count : ENDED_MAX;
    return count > 0 ? w->ended[number % count] : (rondo_node){0};
}

// A handle that is none of the graph's: of another graph, or of a former recording.
static rondo_node pick_foreign(const world *w, const graph_model *g, uint32_t number) {
    for (uint32_t i = 0; i < GRAPH_COUNT && number % 2 == 0; ++i) {
        const graph_model *other = &w->graphs[(number / 2 + i) % GRAPH_COUNT];
        if (other != g && other->handles.count > 0) {
            return other->handles.real[number / 2 % (uint32_t)other->handles.count];
        }
    }
    return pick_ended(w, number / 2);
}

// One node's patch; false: a program must not, as the work would race.
static bool plan_patch(const world *w, const graph_model *g, int handle, uint32_t number,
                       patch_plan *plan) {
    int at = plan->count++;
    int index = g->handles.nodes[handle];
    node *n = &plan->after->nodes[index];
    rondo_patch *patch = &plan->patches[at];
    *patch = (rondo_patch){.node = g->handles.real[handle]};
    if (n->kind == NODE_OP) {
        return false;  // what the kernel has put there is its own
    }
    bool is_second = (plan->nodes >> index & 1) != 0;
    plan->nodes |= UINT64_C(1) << index;
    if (is_second && is_patchable(n)) {
        plan->mask = plan->mask == CAN_OK ? CAN_INVALID : plan->mask;
        return true;
    }
    if (!is_patchable(n)) {
        tell_work(w, n, &plan->works[at]);
        patch->work = &plan->works[at].work;
        plan->mask = plan->mask == CAN_OK ? CAN_UNSUPPORTED : plan->mask;
        return true;
    }
    if (number % 4 != 0) {
        change_node(w, g, n, number >> 4);
        tell_work(w, n, &plan->works[at]);
        patch->work = &plan->works[at].work;
        plan->takes_in = plan->takes_in || n->source.block >= 0;
    }
    patch->toggle = n->kind == NODE_HOST ? RONDO_TOGGLE_KEEP : (rondo_toggle)(number / 4 % 3);
    n->is_off =
        patch->toggle == RONDO_TOGGLE_KEEP ? n->is_off : patch->toggle == RONDO_TOGGLE_DISABLE;
    return (n->kind != NODE_COPY || n->destination.first != n->source.first) &&
           !races_in_content(w, plan->after, index);
}

typedef enum wrong_kind {
    WRONG_HANDLE,
    WRONG_WORK,
    WRONG_TWICE,
    WRONG_TOGGLE,
    WRONG_ARGUMENTS,
    WRONG_FLAGS,
    WRONG_COUNT,
} wrong_kind;

// The last patch of the call is wrong: then none may be made.
static void spoil(const world *w, const graph_model *g, wrong_kind wrong, uint32_t number,
                  patch_plan *plan) {
    rondo_patch *last = &plan->patches[plan->count];
    told_work *work = &plan->works[plan->count];
    uint32_t mask = CAN_INVALID;
    if (plan->count == 0 || wrong == WRONG_HANDLE) {
        *last = (rondo_patch){.node = pick_foreign(w, g, number), .toggle = RONDO_TOGGLE_DISABLE};
        mask = CAN_STATE;
        plan->count += 1;
    } else if (wrong == WRONG_TWICE) {
        *last = plan->patches[0];
        plan->count += 1;
    } else if (wrong == WRONG_TOGGLE) {
        plan->patches[plan->count - 1].toggle = 3;
    } else if (wrong >= WRONG_ARGUMENTS && last[-1].work != NULL &&
               last[-1].work->kind == RONDO_NODE_KERNEL) {
        rondo_launch *launch = &plan->works[plan->count - 1].launch;
        launch->arguments = wrong == WRONG_ARGUMENTS ? NULL : launch->arguments;
        launch->flags = wrong == WRONG_FLAGS ? 0x80 : launch->flags;
    } else {
        // An empty fill, for whatever node.
        last -= 1;
        *work = (told_work){.work = {.struct_size = sizeof work->work,
                                     .kind = RONDO_NODE_FILL,
                                     .destination = w->memory,
                                     .element_bytes = 4}};
        last->work = &work->work;
    }
    plan->mask = plan->mask == CAN_OK ? mask : plan->mask;
}

static const char *name_patch(const patch_plan *plan, char *text, size_t bytes) {
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < plan->count && length + 1 < bytes; ++i) {
        const rondo_work *work = plan->patches[i].work;
        int written = snprintf(text + length, bytes - length, ", %llu.%llu kind %d toggle %d",
                               (unsigned long long)plan->patches[i].node.recording,
                               (unsigned long long)plan->patches[i].node.number,
                               work != NULL ? (int)work->kind : -1, (int)plan->patches[i].toggle);
        length += written > 0 ? (size_t)written : 0;
    }
    return text;
}

static bool make_patch(world *w, graph_model *g, patch_plan *plan, uint32_t number) {
    static const char call[] = "rondo_graph_patch";
    bool may = g->state == GRAPH_READY || g->state == GRAPH_RECORDED;
    const rondo_patch *first = &plan->patches[0];
    bool is_one = plan->count == 1 && first->work != NULL && first->toggle == RONDO_TOGGLE_KEEP &&
                  number % 2 == 0;
    rondo_status status = is_one ? rondo_graph_patch_node(g->real, first->node, first->work)
                                 : rondo_graph_patch(g->real, first, (size_t)plan->count);
    char text[160];
    tell(w, status, "patch(g%d%s)", index_of(w, g), name_patch(plan, text, sizeof text));
    bool has_patched = expect(w, status, may ? plan->mask : CAN_STATE, call);
    if (may) {
        g->state = GRAPH_READY;
    }
    if (has_patched) {
        content_release(g->executed);
        g->executed = content_retain(plan->after);
        g->nodes->takes_in = g->nodes->takes_in || plan->takes_in;
    }
    return true;
}

// The node was just patched to that work; what is wrong with the next is seen all the same.
static void patch_again_wrongly(world *w, const graph_model *g, patch_plan *plan, uint32_t number) {
    rondo_launch *launch = &plan->works[0].launch;
    const rondo_launch former = *launch;
    launch->arguments = number % 2 == 0 ? NULL : launch->arguments;
    launch->flags = number % 2 == 0 ? 0 : 0x80u << number / 2 % 8;
    const rondo_status status =
        rondo_graph_patch_node(g->real, plan->patches[0].node, plan->patches[0].work);
    tell(w, status, "  again, with %s", number % 2 == 0 ? "no arguments" : "unknown flags");
    *launch = former;
    (void)expect(w, status, CAN_INVALID, "rondo_graph_patch_node");
}

bool call_patch(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_READY);
    if (may_have_lost_addresses(w, g)) {
        return false;
    }
    patch_plan plan = {.mask = CAN_OK};
    const content *now = g->executed != NULL ? g->executed : g->nodes;
    plan.after = now != NULL ? content_copy(now) : content_create();
    int wanted = 1 + k->b / 8 % PATCH_MAX;
    bool is_right = true;
    for (int i = 0; i < wanted && i < g->handles.count && is_right; ++i) {
        uint32_t number = k->value * (2 * (uint32_t)i + 1) + (uint32_t)i;
        is_right = plan_patch(w, g, (k->c + i) % g->handles.count, number, &plan);
    }
    if (plan.count == 0 || k->b % 8 == 0) {
        spoil(w, g, (wrong_kind)(k->value % WRONG_COUNT), k->value / 8, &plan);
    }
    bool was_made = is_right && make_patch(w, g, &plan, k->value >> 3);
    if (was_made && g->executed == plan.after && plan.patches[0].work != NULL &&
        plan.patches[0].work->kind == RONDO_NODE_KERNEL) {
        patch_again_wrongly(w, g, &plan, k->value >> 5);
    }
    content_release(plan.after);
    return was_made;
}

// ---- graphs by hand ---------------------------------------------------------------------------

static node make_node(const world *w, const graph_model *g, uint32_t number) {
    node n = {.kind = (node_kind)(number % 4),
              .destination = pick_cell(number / 4),
              .source = no_operand};
    if (n.kind == NODE_HOST) {
        n.destination = no_operand;
    }
    n.source = n.kind == NODE_COPY ? pick_cell(number / 64) : no_operand;
    if (n.kind != NODE_COPY || n.destination.first == n.source.first) {
        n.kind = n.kind == NODE_COPY ? NODE_FILL : n.kind;
        n.source = no_operand;
        change_node(w, g, &n, number);
    }
    return n;
}

// A graph that is being built by hand.
typedef struct built {
    content *nodes;
    handle_list handles;
    struct {
        arena_model *arena;
        int node;
    } guests[CHILD_MAX];  // recorded graphs with memory, in the order in which they were added
    int guest_count;
    bool is_broken;
} built;

// Behind some of the nodes that there are. False: it would race.
static bool choose_order(const world *w, built *b, node *n, uint32_t number, rondo_node *after,
                         size_t *out_count) {
    const int index = b->nodes->count;
    *out_count = 0;
    for (int i = 0; i < index; ++i) {
        if ((number >> (i + 20) & 1) != 0) {
            n->ancestors |= (UINT64_C(1) << i) | b->nodes->nodes[i].ancestors;
            after[(*out_count)++] = b->handles.real[i];
        }
    }
    b->nodes->nodes[b->nodes->count++] = *n;
    const bool races = races_in_content(w, b->nodes, index);
    b->nodes->count -= races;
    return !races;
}

static void add_chosen(world *w, const graph_model *g, built *b, const rondo_work *work,
                       const rondo_node *after, size_t after_count, uint32_t mask) {
    const int index = b->nodes->count - 1;
    // The new handle may go where the one that it comes behind is.
    rondo_node real = after_count == 1 ? after[0] : (rondo_node){0};
    const rondo_status status = rondo_graph_add_node(g->real,
                                                     after_count == 0   ? NULL
                                                     : after_count == 1 ? &real
                                                                        : after,
                                                     after_count, work, &real);
    tell(w, status, "graph_add_node(g%d, kind %d, behind %zu) node %d", index_of(w, g),
         (int)work->kind, after_count, index);
    if (expect(w, status, mask, "rondo_graph_add_node")) {
        keep_handle(&b->handles, real, index);
    } else {
        b->nodes->count -= 1;
        b->is_broken = true;
    }
}

static void add_node(world *w, const graph_model *g, uint32_t number, built *b) {
    rondo_node after[HANDLE_MAX];
    size_t after_count = 0;
    node n = make_node(w, g, number);
    if (choose_order(w, b, &n, number, after, &after_count)) {
        told_work told;
        tell_work(w, &n, &told);
        add_chosen(w, g, b, &told.work, after, after_count, CAN_OK);
    }
}

static bool is_conditional(const node *n, int number) {
    (void)number;
    return n->kind == NODE_CONDITIONAL;
}

static bool may_be_guest(const world *w, const graph_model *g, const graph_model *inner,
                         const built *b) {
    return inner != g && has_template(inner) && !inner->is_stale &&
           !content_takes_in(inner->nodes) && !content_has(inner->nodes, is_conditional, 0) &&
           b->guest_count + inner->arena_count < CHILD_MAX &&
           (!w->is_threaded || inner->arena_count == 0);
}

// An empty graph in between stands for what it comes behind.
static bool comes_behind(const built *b, int former, uint64_t ancestors) {
    const node *n = &b->nodes->nodes[former];
    bool is_behind = n->inner[0] != NULL && n->inner[0]->count == 0;
    for (int i = 0; i < former && is_behind; ++i) {
        is_behind = (n->ancestors >> i & 1) == 0 || comes_behind(b, i, ancestors);
    }
    return is_behind || (ancestors >> former & 1) != 0;
}

// Graphs that share memory must come one behind the other, by edges; those that also share data may
// be refused even so.
static uint32_t expect_guest(const graph_model *inner, const built *b, uint64_t ancestors) {
    uint32_t mask = CAN_OK;
    for (int i = 0; i < inner->arena_count; ++i) {
        int latest = -1;
        for (int k = 0; k < b->guest_count; ++k) {
            latest = b->guests[k].arena == inner->arenas[i] ? b->guests[k].node : latest;
        }
        if (latest >= 0 && !inner->arenas[i]->allows_any_order) {
            mask = comes_behind(b, latest, ancestors) ? mask | CAN_STATE : CAN_STATE;
            if (mask == CAN_STATE) {
                return mask;
            }
        }
    }
    return mask;
}

static void add_guest(world *w, const graph_model *g, uint32_t number, built *b) {
    const graph_model *inner = pick_graph(w, number >> 3, GRAPH_READY);
    rondo_node after[HANDLE_MAX];
    size_t after_count = 0;
    if (!may_be_guest(w, g, inner, b)) {
        return;
    }
    node n = {.kind = NODE_CHILD, .destination = no_operand, .source = no_operand};
    n.inner[0] = inner->nodes;
    if (!choose_order(w, b, &n, number, after, &after_count)) {
        return;
    }
    const int index = b->nodes->count - 1;
    const rondo_work work = {
        .struct_size = sizeof work, .kind = RONDO_NODE_CHILD, .graph = inner->real};
    add_chosen(w, g, b, &work, after, after_count, expect_guest(inner, b, n.ancestors));
    if (b->is_broken) {
        return;
    }
    (void)content_retain(inner->nodes);
    for (int i = 0; i < inner->arena_count; ++i) {
        b->guests[b->guest_count].arena = inner->arenas[i];
        b->guests[b->guest_count++].node = index;
    }
}

// A wrong node makes no half graph.
static void add_wrongly(world *w, graph_model *g, uint32_t number) {
    const node n = {.kind = NODE_FILL, .destination = pick_cell(0), .source = no_operand};
    told_work told;
    tell_work(w, &n, &told);
    rondo_node after = pick_foreign(w, g, number);
    bool is_empty = number % 3 == 0;
    bool is_null = number % 3 == 1;
    told.work.element_count = is_empty ? 0 : 1;
    rondo_status status =
        rondo_graph_add_node(g->real, is_null ? NULL : &after, is_empty ? 0 : 1, &told.work, NULL);
    tell(w, status, "graph_add_node(g%d, %s)", index_of(w, g),
         is_empty  ? "nothing"
         : is_null ? "behind NULL"
                   : "behind another graph's");
    (void)expect(w, status, is_empty || is_null ? CAN_INVALID : CAN_STATE, "rondo_graph_add_node");
}

static void end_build(world *w, graph_model *g, built *b, bool gives_up) {
    rondo_status status = RONDO_STATUS_STATE;
    if (gives_up) {
        rondo_graph_capture_abort(g->real);
        tell(w, RONDO_STATUS_OK, "capture_abort(g%d)", index_of(w, g));
    } else {
        status = rondo_graph_capture_end(g->real);
        tell(w, status, "capture_end(g%d)", index_of(w, g));
        (void)expect(w, status, b->is_broken ? CAN_STATE : CAN_OK, "rondo_graph_capture_end");
    }
    if (status != RONDO_STATUS_OK) {
        end_handles(w, &b->handles);
        content_release(b->nodes);
        return;
    }
    hold_content(g, b->nodes);
    g->handles = b->handles;
    g->replay_count = 0;
    g->has_count = true;
    g->state = g->options.keep == RONDO_KEEP_TEMPLATE_ONLY ? GRAPH_RECORDED : GRAPH_READY;
    g->has_memory = false;
    g->arena_count = b->guest_count;
    for (int i = 0; i < b->guest_count; ++i) {
        g->arenas[i] = b->guests[i].arena;
    }
    check_orders(w, g);
}

bool call_build(world *w, const any_call *k) {
    graph_model *g = pick_graph(w, k->a, GRAPH_EMPTY);
    rondo_status status = rondo_graph_build_begin(g->real);
    tell(w, status, "graph_build_begin(g%d)", index_of(w, g));
    bool may = g->state == GRAPH_EMPTY;
    if (!expect(w, status, may ? CAN_OK : CAN_STATE, "rondo_graph_build_begin") || !may) {
        return true;
    }
    built b = {.nodes = content_create()};
    for (uint32_t i = 0; i < 1 + k->b % 6u && !w->has_failed && !b.is_broken; ++i) {
        const uint32_t number = (k->value + i) * 2654435761u;
        if (number / 5 % 3 == 0) {
            add_guest(w, g, number, &b);
        } else {
            add_node(w, g, number, &b);
        }
    }
    if (k->c % 8 == 0 && !b.is_broken) {
        add_wrongly(w, g, k->value);
        b.is_broken = true;
    }
    end_build(w, g, &b, k->c % 16 == 1);
    return true;
}

// ---- a graph that is recorded again -----------------------------------------------------------

enum { STEP_NODES = 3 };

typedef struct step_data {
    world *world;
    const node *nodes;
    int count;
    bool asks;
} step_data;

static rondo_status run_step(rondo_stream *stream, void *user_data) {
    const step_data *d = user_data;
    rondo_status status = RONDO_STATUS_OK;
    for (int i = 0; i < d->count && status == RONDO_STATUS_OK; ++i) {
        told_work told;
        tell_work(d->world, &d->nodes[i], &told);
        status = rondo_stream_add_node(stream, &told.work, NULL);
    }
    bool is_idle;
    return status == RONDO_STATUS_OK && d->asks ? rondo_stream_query(stream, &is_idle) : status;
}

bool call_recapture(world *w, const any_call *k) {
    static const char call[] = "rondo_graph_recapture";
    graph_model *g = pick_graph(w, k->a, GRAPH_READY);
    int line = k->b % STREAM_COUNT;
    stream_model *s = &w->streams[line];
    bool may = g->state != GRAPH_RECORDING && s->frame == NULL;
    if (find_global_ban(w) != BAN_NONE || (may && g->has_memory)) {
        return false;
    }
    node steps[STEP_NODES];
    step_data d = {.world = w, .nodes = steps, .asks = k->c % 8 == 0};
    for (d.count = 0; d.count < 1 + k->c / 8 % STEP_NODES; ++d.count) {
        steps[d.count] = make_node(w, g, k->value * (2 * (uint32_t)d.count + 1));
        steps[d.count].ancestors = (UINT64_C(1) << d.count) - 1;
    }
    rondo_update_report report = {.struct_size = sizeof report};
    rondo_status status = rondo_graph_recapture(g->real, s->real, NULL, run_step, &d, &report);
    tell(w, status, "graph_recapture(g%d, s%d, %d nodes%s) result %d", index_of(w, g), line,
         d.count, d.asks ? ", and it asks" : "", (int)report.result);
    bool is_fine = may && !d.asks;
    uint32_t mask = is_fine ? (w->is_threaded ? CAN_OK | CAN_STATE : CAN_OK) : CAN_STATE;
    note_record(w);
    if (!expect(w, status, mask, call)) {
        return true;
    }
    if (report.result != RONDO_UPDATE_INSTANTIATED && g->state != GRAPH_READY) {
        world_fail(w, "a graph without an executable was patched by a recapture");
    }
    renew_graph(w, g);
    content *nodes = content_create();
    for (int i = 0; i < d.count; ++i) {
        nodes->nodes[nodes->count++] = steps[i];
    }
    hold_content(g, nodes);
    end_handles(w, &g->handles);
    g->handles.has_any = false;
    g->is_stale = false;
    g->arena_count = 0;
    g->has_count = false;
    g->state = GRAPH_READY;
    return true;
}
