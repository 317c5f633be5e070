// Calls that put work on streams, order it by events, and wait for it.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdio.h>

#include "sequence/sequence.h"

stream_model *pick_stream(world *w, uint32_t number) {
    // Bodies are short of calls unless they are favoured.
    for (int i = 0; i < SCOPE_COUNT && number % 3 != 0; ++i) {
        stream_model *body =
            &w->streams[STREAM_COUNT + (int)((number / 3 + (uint32_t)i) % SCOPE_COUNT)];
        if (body->real != NULL) {
            return body;
        }
    }
    return &w->streams[number / 3 % STREAM_COUNT];
}

const char *name_stream(const world *w, const stream_model *s) {
    static const char *const names[] = {"s0", "s1", "s2", "s3", "body0", "body1", "body2"};
    return names[s - w->streams];
}

// ---- putting work -----------------------------------------------------------------------------

bool can_put(world *w, const stream_model *s, const node *n) {
    if (is_broken(s)) {
        return true;
    }
    if (s->frame != NULL) {
        return s->frame->nodes->count < NODE_MAX && !races_in_capture(w, s->frame, s->closure, n) &&
               !w->has_failed;
    }
    bool races = races_now(w, s, n->destination, true) || races_now(w, s, n->source, false);
    for (int i = 0; i < BRANCH_MAX && n->inner[i] != NULL; ++i) {
        races = races || content_races_now(w, &s->now, n->inner[i]);
    }
    return !races;
}

// A block that another graph left behind.
static bool is_taken_in(const world *w, const stream_model *s, operand o) {
    const block_model *b = o.block >= 0 ? &w->blocks[o.block] : NULL;
    return b != NULL && b->arena != NULL && b->capture != capture_of(s);
}

int append_node(const world *w, stream_model *s, const node *n) {
    content *nodes = s->frame->nodes;
    int index = nodes->count++;
    nodes->nodes[index] = *n;
    nodes->nodes[index].ancestors = s->closure;
    s->closure |= UINT64_C(1) << index;
    s->frame->owner->has_work = true;
    nodes->takes_in =
        nodes->takes_in || is_taken_in(w, s, n->destination) || is_taken_in(w, s, n->source);
    if (s->scope != NULL) {
        s->scope->is_misused = true;
    }
    return index;
}

bool put(world *w, stream_model *s, const node *n, rondo_status status, const char *call) {
    capture *c = capture_of(s);
    if (c == NULL) {
        if (expect(w, status, CAN_OK, call)) {
            int line = (int)(s - w->streams);
            s->now.at[line] += 1;
            run_node(w, n, line, NULL);
        }
    } else if (expect_in(w, c, status, CAN_OK, call) && !c->is_broken) {
        int index = append_node(w, s, n);
        if (n->kind <= NODE_HOST && w->at % 3 != 0) {
            take_handle(w, s, index);
        }
    }
    return true;
}

bool expect_in(world *w, capture *c, rondo_status status, uint32_t mask, const char *call) {
    if (c == NULL || (!c->is_broken && !c->may_be_broken)) {
        return expect(w, status, mask, call);
    }
    if (c->is_broken) {
        return expect(w, status, CAN_STATE, call);
    }
    // Refused for what it asked, or since another thread broke the capture: one cannot tell.
    bool is_telling = (mask & CAN_STATE) == 0;
    if (!expect(w, status, mask | CAN_STATE, call) && status == RONDO_STATUS_STATE && is_telling) {
        break_capture(w, c);
    }
    return status == RONDO_STATUS_OK;
}

// ---- operands ---------------------------------------------------------------------------------

static bool is_inside(const frame *f, const frame *outer) {
    while (f != NULL && f != outer) {
        f = f->parent;
    }
    return f != NULL;
}

// Whose memory it was before is done where the block's stream took it. A body comes behind what its
// node does.
static bool is_behind_taking(const stream_model *s, const block_model *b) {
    uint64_t closure = s->closure;
    for (const frame *f = s->frame; f != b->frame; f = f->parent) {
        closure = f->parent->nodes->nodes[f->node].ancestors;
    }
    return (b->before & ~closure) == 0;
}

bool may_use_block(const world *w, const stream_model *s, const block_model *b) {
    bool is_known = (b->used_by >> (s - w->streams) & 1) != 0;
    if (!b->is_live || !is_known) {
        return false;
    }
    return b->capture == NULL ||
           (b->capture == capture_of(s) && is_inside(s->frame, b->frame) && is_behind_taking(s, b));
}

operand pick_cell(uint32_t number) {
    return (operand){.first = SMALL_CELL_COUNT + (int)(number % (ALL_CELLS - SMALL_CELL_COUNT)),
                     .count = 1,
                     .block = -1};
}

// A cell, or a block that the stream may use.
static operand pick_operand(world *w, const stream_model *s, uint32_t number) {
    int slot = (int)(number / 2 % SLOT_COUNT);
    if (number % 2 == 0 || w->slots[slot] < 0 || !may_use_block(w, s, &w->blocks[w->slots[slot]])) {
        return pick_cell(number / 2);
    }
    int index = w->slots[slot];
    return (operand){.first = w->blocks[index].word, .count = 1, .block = index};
}

void *address_of(const world *w, operand o) {
    return (void *)w->words[o.first].address;
}

static const char *name_operand(operand o, char *text, size_t bytes) {
    if (o.block < 0) {
        snprintf(text, bytes, "cell %d", o.first);
    } else {
        snprintf(text, bytes, "block %d", o.block);
    }
    return text;
}

const operand no_operand = {.block = -1};

// ---- work -------------------------------------------------------------------------------------

// Small cells decide about bodies; a while's own must not be set in it, or it might never end.
static bool is_in_while(const world *w, const stream_model *s, int cell) {
    for (const frame *f = s->frame; f != NULL && f->parent != NULL; f = f->parent) {
        const node *n = &f->parent->nodes->nodes[f->node];
        if (n->scope_kind == RONDO_SCOPE_WHILE && (cell < 0 || n->source.first == cell)) {
            return true;
        }
    }
    (void)w;
    return false;
}

bool call_fill(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    node n = {.kind = NODE_FILL, .source = no_operand, .term = k->value};
    if (k->b % 4 == 0) {
        n.destination = (operand){.first = k->c % SMALL_CELL_COUNT, .count = 1, .block = -1};
        n.term = k->value % 4;
        if (is_in_while(w, s, -1)) {
            return false;
        }
    } else {
        n.destination = pick_operand(w, s, k->c);
        n.element_bytes = 1u << k->b / 4 % 3;
    }
    if (!can_put(w, s, &n)) {
        return false;
    }
    const uint32_t bytes = n.element_bytes > 0 ? n.element_bytes : 4;
    rondo_status status =
        rondo_stream_fill(s->real, address_of(w, n.destination), n.term, bytes, 4 / bytes);
    char name[32];
    tell(w, status, "fill(%s, %s, 0x%x of %u bytes)", name_stream(w, s),
         name_operand(n.destination, name, sizeof name), (unsigned)n.term, (unsigned)bytes);
    return put(w, s, &n, status, "rondo_stream_fill");
}

bool call_affine(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    node n = {.kind = NODE_AFFINE,
              .destination = pick_operand(w, s, k->b),
              .source = no_operand,
              .factor = 3 + k->value % 5,
              .term = k->value >> 16};
    if (!can_put(w, s, &n)) {
        return false;
    }
    rondo_status status =
        suite_affine(w->context, s->real, address_of(w, n.destination), 1, n.factor, n.term);
    char name[32];
    tell(w, status, "launch(%s, %s = %u * it + %u)", name_stream(w, s),
         name_operand(n.destination, name, sizeof name), (unsigned)n.factor, (unsigned)n.term);
    return put(w, s, &n, status, "rondo_stream_launch");
}

bool call_copy(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    node n = {.kind = NODE_COPY,
              .destination = pick_operand(w, s, k->b),
              .source = pick_operand(w, s, k->c)};
    if (n.destination.first == n.source.first || !can_put(w, s, &n)) {
        return false;
    }
    rondo_status status =
        rondo_stream_copy(s->real, address_of(w, n.destination), address_of(w, n.source), 4,
                          RONDO_COPY_DEVICE_TO_DEVICE);
    char to[32];
    char from[32];
    tell(w, status, "copy(%s, %s, from %s)", name_stream(w, s),
         name_operand(n.destination, to, sizeof to), name_operand(n.source, from, sizeof from));
    return put(w, s, &n, status, "rondo_stream_copy");
}

void count_one(void *data) {
    atomic_fetch_add((_Atomic uint32_t *)*(uint32_t **)data, 1);
}

bool call_host(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    node n = {.kind = NODE_HOST, .destination = no_operand, .source = no_operand, .term = 1};
    if (!can_put(w, s, &n)) {
        return false;
    }
    bool is_in_body = s->frame != NULL && s->frame->parent != NULL && !is_broken(s);
    rondo_status status =
        rondo_stream_call_host(s->real, "count", count_one, &w->counter, sizeof w->counter);
    tell(w, status, "call_host(%s)", name_stream(w, s));
    if (is_in_body && !w->context->is_host) {
        // CUDA has no host functions in bodies; the step would lack it.
        (void)expect(w, status, CAN_UNSUPPORTED | CAN_STATE, "rondo_stream_call_host");
        break_capture(w, capture_of(s));
        return true;
    }
    return put(w, s, &n, status, "rondo_stream_call_host");
}

// Wrong arguments: harmless outside of captures; inside, the step would lack the work.
bool call_careless(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    rondo_launch launch = {
        .struct_size = sizeof launch, .name = "nothing", .function = w->context->affine};
    rondo_status status = RONDO_STATUS_OK;
    switch (k->b % 6) {
        case 0:
            status = rondo_stream_fill(s->real, w->memory, 0, 3, 1);
            break;
        case 1:
            status = rondo_stream_copy(s->real, NULL, w->memory, 4, RONDO_COPY_DEVICE_TO_DEVICE);
            break;
        case 2:
            status = rondo_stream_launch(s->real, &launch);
            break;
        case 3:
            status = rondo_stream_wait_event(s->real, NULL);
            break;
        case 4:
            status = rondo_stream_call_host(s->real, "nothing", NULL, NULL, 0);
            break;
        case 5:
            status = rondo_random_uniform(w->generators[1].real, s->real, RONDO_DTYPE_F32,
                                          w->memory, 1, 2.0, 1.0);
            break;
    }
    tell(w, status, "careless(%s, %d)", name_stream(w, s), k->b % 6);
    capture *c = capture_of(s);
    (void)expect(
        w, status,
        c != NULL && (c->is_broken || c->may_be_broken) ? CAN_INVALID | CAN_STATE : CAN_INVALID,
        "a careless call");
    if (c != NULL) {
        break_capture(w, c);
    }
    return true;
}

// ---- events -----------------------------------------------------------------------------------

static bool is_external(const event_model *e) {
    return (e->flags & RONDO_EVENT_EXTERNAL) != 0;
}

// Recording an external event, or waiting for it: a node in a capture, but not in bodies.
static bool use_external(world *w, stream_model *s, event_model *e, bool records) {
    node n = {.kind = records ? NODE_STAMP : NODE_WAIT,
              .destination = no_operand,
              .source = no_operand,
              .object = (int)(e - w->events)};
    if (!can_put(w, s, &n)) {
        return false;
    }
    const char *call = records ? "rondo_event_record" : "rondo_stream_wait_event";
    bool is_in_body = s->frame != NULL && s->frame->parent != NULL && !is_broken(s);
    rondo_status status =
        records ? rondo_event_record(e->real, s->real) : rondo_stream_wait_event(s->real, e->real);
    tell(w, status, "%s(e%d, %s)", records ? "event_record" : "wait_event", n.object,
         name_stream(w, s));
    if (is_in_body) {
        (void)expect(w, status, CAN_UNSUPPORTED | CAN_STATE, call);
        break_capture(w, capture_of(s));
        return true;
    }
    if (s->frame == NULL && expect(w, status, CAN_OK, call)) {
        if (records) {
            e->state = EVENT_EAGER;
            e->when = s->now;
        } else if (e->state == EVENT_EAGER) {
            clock_join(&s->now, &e->when);
        }
    }
    return put(w, s, &n, status, call);
}

bool call_record_event(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    event_model *e = &w->events[k->b % EVENT_COUNT];
    if (is_external(e)) {
        return use_external(w, s, e, true);
    }
    capture *c = capture_of(s);
    rondo_status status = rondo_event_record(e->real, s->real);
    tell(w, status, "event_record(e%d, %s)", k->b % EVENT_COUNT, name_stream(w, s));
    if (c == NULL) {
        if (expect(w, status, CAN_OK, "rondo_event_record")) {
            e->state = EVENT_EAGER;
            e->when = s->now;
        }
    } else if (expect_in(w, c, status, CAN_OK, "rondo_event_record") && !c->is_broken) {
        e->state = EVENT_PLACE;
        e->frame = s->frame;
        e->closure = s->closure;
    }
    return true;
}

// Whether the event's place can be joined by a stream of the frame.
bool call_wait_event(world *w, const any_call *k) {
    static const char call_name[] = "rondo_stream_wait_event";
    stream_model *s = pick_stream(w, k->a);
    event_model *e = &w->events[k->b % EVENT_COUNT];
    if (is_external(e)) {
        return use_external(w, s, e, false);
    }
    capture *own = capture_of(s);
    capture *other = e->state == EVENT_PLACE ? e->frame->owner : NULL;
    rondo_status status = rondo_stream_wait_event(s->real, e->real);
    tell(w, status, "wait_event(%s, e%d)", name_stream(w, s), k->b % EVENT_COUNT);
    if (own != NULL && own->is_broken) {
        (void)expect(w, status, CAN_STATE, call_name);
    } else if (e->state == EVENT_NEVER) {
        (void)expect_in(w, own, status, CAN_OK, call_name);
    } else if (e->state == EVENT_EAGER && own == NULL) {
        if (expect(w, status, CAN_OK, call_name)) {
            clock_join(&s->now, &e->when);
        }
    } else if (e->state == EVENT_EAGER || e->state == EVENT_ENDED) {
        (void)expect(w, status, CAN_STATE, call_name);
        if (own != NULL) {
            break_capture(w, own);
        }
    } else if (other->is_broken) {
        (void)expect(w, status, CAN_STATE, call_name);
        if (own != NULL) {
            break_capture(w, own);
        }
    } else if (own != NULL && (own != other || s->frame != e->frame)) {
        (void)expect(w, status, CAN_STATE, call_name);
        break_capture(w, own);
        break_capture(w, other);
    } else if (expect_in(w, other, status, CAN_OK, call_name) && !other->is_broken) {
        s->frame = e->frame;
        if (s->scope != NULL) {
            // A wait for what comes before the node anyhow may go unnoticed.
            s->scope->is_misused = s->scope->is_misused || (e->closure & ~s->closure) != 0;
            s->scope->may_be_misused = true;
        }
        s->closure |= e->closure;
    }
    return true;
}

// ---- waiting and asking -----------------------------------------------------------------------

// A call that waits or asks, and touches no capture: global mode forbids it.
static bool expect_unsafe(world *w, rondo_status status, const char *call) {
    if (!expect(w, status, mask_of_ban(find_global_ban(w)), call)) {
        break_global(w);
    }
    return status == RONDO_STATUS_OK;
}

bool call_wait_stream(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    capture *c = capture_of(s);
    rondo_status status = rondo_stream_synchronize(s->real);
    tell(w, status, "stream_synchronize(%s)", name_stream(w, s));
    if (c != NULL) {
        (void)expect(w, status, CAN_STATE, "rondo_stream_synchronize");
        break_capture(w, c);
    } else if (expect_unsafe(w, status, "rondo_stream_synchronize")) {
        clock_join(&w->host, &s->now);
    }
    return true;
}

bool call_ask_stream(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    capture *c = capture_of(s);
    bool is_idle = false;
    rondo_status status = rondo_stream_query(s->real, &is_idle);
    tell(w, status, "stream_query(%s) %d", name_stream(w, s), is_idle);
    if (c != NULL) {
        (void)expect(w, status, CAN_STATE, "rondo_stream_query");
        break_capture(w, c);
    } else if (expect_unsafe(w, status, "rondo_stream_query") && is_idle) {
        clock_join(&w->host, &s->now);
    }
    return true;
}

// Events of captures never happen. Asking breaks the capture, if that is still open.
static bool ask_place(world *w, event_model *e, rondo_status status, const char *call) {
    (void)expect(w, status, CAN_STATE, call);
    if (e->state == EVENT_PLACE) {
        break_capture(w, e->frame->owner);
    }
    return true;
}

static bool is_place(const event_model *e) {
    return e->state == EVENT_PLACE || e->state == EVENT_ENDED;
}

bool call_wait_for_event(world *w, const any_call *k) {
    event_model *e = &w->events[k->b % EVENT_COUNT];
    rondo_status status = rondo_event_synchronize(e->real);
    tell(w, status, "event_synchronize(e%d)", k->b % EVENT_COUNT);
    if (is_place(e)) {
        return ask_place(w, e, status, "rondo_event_synchronize");
    }
    if (expect_unsafe(w, status, "rondo_event_synchronize") && e->state == EVENT_EAGER) {
        clock_join(&w->host, &e->when);
    }
    return true;
}

bool call_ask_event(world *w, const any_call *k) {
    event_model *e = &w->events[k->b % EVENT_COUNT];
    bool is_complete = false;
    rondo_status status = rondo_event_query(e->real, &is_complete);
    tell(w, status, "event_query(e%d) %d", k->b % EVENT_COUNT, is_complete);
    if (is_place(e)) {
        return ask_place(w, e, status, "rondo_event_query");
    }
    if (expect_unsafe(w, status, "rondo_event_query") && is_complete && e->state == EVENT_EAGER) {
        clock_join(&w->host, &e->when);
    }
    return true;
}

bool call_ask_time(world *w, const any_call *k) {
    const event_model *a = &w->events[k->a % EVENT_COUNT];
    const event_model *b = &w->events[k->b % EVENT_COUNT];
    int64_t elapsed_ns = 0;
    rondo_status status = rondo_event_get_elapsed_ns(a->real, b->real, &elapsed_ns);
    tell(w, status, "event_get_elapsed_ns(e%d, e%d)", k->a % EVENT_COUNT, k->b % EVENT_COUNT);
    bool may_work = (a->flags & b->flags & RONDO_EVENT_TIMED) != 0 && !is_place(a) && !is_place(b);
    (void)expect(w, status, may_work ? CAN_OK | CAN_STATE : CAN_STATE,
                 "rondo_event_get_elapsed_ns");
    return true;
}

bool call_wait_device(world *w, const any_call *k) {
    (void)k;
    uint32_t mask = has_capture(w) ? CAN_STATE : w->is_threaded ? CAN_OK | CAN_STATE : CAN_OK;
    rondo_status status = rondo_device_synchronize(w->context->device);
    tell(w, status, "device_synchronize()");
    (void)expect(w, status, mask, "rondo_device_synchronize");
    for (int i = 0; i < GRAPH_COUNT && status == RONDO_STATUS_STATE; ++i) {
        capture *c = w->graphs[i].capture;
        if (c != NULL && c->mode != RONDO_CAPTURE_RELAXED) {
            break_capture(w, c);
        }
    }
    for (int i = 0; i < STREAM_COUNT && status == RONDO_STATUS_OK; ++i) {
        clock_join(&w->host, &w->streams[i].now);
    }
    return true;
}
