// Calls on conditional nodes and labels.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sequence/sequence.h"

// ---- scopes -----------------------------------------------------------------------------------

static scope_model *pick_scope(world *w, uint32_t number, bool is_open) {
    for (uint32_t i = 0; i < SCOPE_COUNT; ++i) {
        scope_model *scope = &w->scopes[(number + i) % SCOPE_COUNT];
        if (scope->is_open == is_open) {
            return scope;
        }
    }
    return NULL;
}

static bool is_in_while_of(const stream_model *s, int cell) {
    for (const frame *f = s->frame; f != NULL && f->parent != NULL; f = f->parent) {
        const node *n = &f->parent->nodes->nodes[f->node];
        if (n->scope_kind == RONDO_SCOPE_WHILE && n->source.first == cell) {
            return true;
        }
    }
    return false;
}

static node make_conditional(rondo_scope_kind kind, int cell, int branch_count) {
    return (node){.kind = NODE_CONDITIONAL,
                  .destination = {.block = -1},
                  .source = {.first = cell, .count = 1, .block = -1},
                  .scope_kind = kind,
                  .branch_count = branch_count};
}

bool call_open_scope(world *w, const any_call *k) {
    static const char name[] = "rondo_scope_begin";
    static const int branches[] = {1, 2, 3, 1};
    scope_model *scope = pick_scope(w, k->a, false);
    stream_model *s = pick_stream(w, k->b);
    rondo_scope_kind kind = (rondo_scope_kind)(k->c % 4);
    int cell = k->c / 4 % SMALL_CELL_COUNT;
    node n = make_conditional(kind, cell, branches[kind]);
    capture *c = capture_of(s);
    if (scope == NULL || is_in_while_of(s, cell) || (c != NULL && !can_put(w, s, &n))) {
        return false;
    }
    bool has_scope = s->scope != NULL;
    rondo_scope real;
    rondo_status status =
        rondo_scope_begin(s->real, kind, w->memory + cell,
                          kind == RONDO_SCOPE_SWITCH ? (uint32_t)branches[kind] : 0, &real);
    tell(w, status, "scope_begin(%s, kind %d, cell %d) scope %d", name_stream(w, s), (int)kind,
         cell, (int)(scope - w->scopes));
    if (c == NULL || (!c->is_broken && has_scope)) {
        (void)expect(w, status, CAN_STATE, name);
        if (c != NULL) {
            break_capture(w, c);
        }
        return true;
    }
    if (!expect_in(w, c, status, CAN_OK, name) || c->is_broken) {
        return true;
    }
    int index = append_node(w, s, &n);
    node *added = &s->frame->nodes->nodes[index];
    for (int i = 0; i < branches[kind]; ++i) {
        added->inner[i] = content_create();
    }
    *scope = (scope_model){.real = real,
                           .is_open = true,
                           .parent = (int)(s - w->streams),
                           .parent_frame = s->frame,
                           .node = index,
                           .kind = kind,
                           .branch_count = branches[kind]};
    s->scope = scope;
    return true;
}

// Work on the parent stream shows at the next call on the scope, and breaks the capture.
static bool check_parent(world *w, const scope_model *scope, rondo_status status,
                         const char *name) {
    capture *c = scope->parent_frame->owner;
    if (!c->is_broken && scope->is_misused) {
        (void)expect(w, status, CAN_STATE, name);
        break_capture(w, c);
        return false;
    }
    if (!c->is_broken && scope->may_be_misused && status == RONDO_STATUS_STATE) {
        break_capture(w, c);
        return false;
    }
    return expect_in(w, c, status, CAN_OK, name) && !c->is_broken;
}

bool call_enter_scope(world *w, const any_call *k) {
    static const char name[] = "rondo_scope_enter";
    scope_model *scope = pick_scope(w, k->a, true);
    if (scope == NULL) {
        return false;
    }
    capture *c = scope->parent_frame->owner;
    int branch = k->b % 4;
    rondo_stream *real = NULL;
    rondo_status status = rondo_scope_enter(scope->real, (uint32_t)branch, &real);
    tell(w, status, "scope_enter(scope %d, %d)", (int)(scope - w->scopes), branch);
    bool is_wrong =
        scope->body != NULL || branch >= scope->branch_count || (scope->entered >> branch & 1) != 0;
    if (is_wrong) {
        (void)expect(w, status, CAN_STATE | CAN_INVALID, name);
        break_capture(w, c);
        return true;
    }
    if (!check_parent(w, scope, status, name)) {
        return true;
    }
    stream_model *body = &w->streams[STREAM_COUNT + (scope - w->scopes)];
    frame *f = calloc(1, sizeof *f);
    if (f == NULL) {
        abort();
    }
    *f = (frame){.owner = c,
                 .parent = scope->parent_frame,
                 .node = scope->node,
                 .nodes = scope->parent_frame->nodes->nodes[scope->node].inner[branch],
                 .next = c->frames};
    c->frames = f;
    *body = (stream_model){.real = real, .frame = f};
    leave_blocks(w, (int)(body - w->streams));
    scope->body = f;
    scope->entered |= 1u << branch;
    if (scope->kind == RONDO_SCOPE_WHILE) {
        // The turns count down, so that the loop ends.
        node n = {.kind = NODE_AFFINE,
                  .destination = {.first = f->parent->nodes->nodes[f->node].source.first,
                                  .count = 1,
                                  .block = -1},
                  .source = {.block = -1},
                  .factor = 1,
                  .term = UINT32_MAX};
        status = suite_affine(w->context, real, w->memory + n.destination.first, 1, 1, UINT32_MAX);
        tell(w, status, "launch(%s, cell %d -= 1)", name_stream(w, body), n.destination.first);
        (void)put(w, body, &n, status, "rondo_stream_launch");
    }
    return true;
}

static bool has_unjoined(const world *w, const scope_model *scope) {
    const stream_model *body = &w->streams[STREAM_COUNT + (scope - w->scopes)];
    uint64_t all = (UINT64_C(1) << scope->body->nodes->count) - 1;
    return (body->closure & all) != all;
}

static bool has_fork(const world *w, const frame *f) {
    for (int i = 0; i < STREAM_COUNT; ++i) {
        if (w->streams[i].frame == f) {
            return true;
        }
    }
    return false;
}

// Ends the open body. False: the scope was not left.
static bool leave(world *w, scope_model *scope, bool insists) {
    static const char name[] = "rondo_scope_leave";
    capture *c = scope->parent_frame->owner;
    const stream_model *body = &w->streams[STREAM_COUNT + (scope - w->scopes)];
    bool has_body = scope->body != NULL;
    bool has_inner = has_body && body->scope != NULL;
    if (has_body && !has_inner && !insists && has_unjoined(w, scope)) {
        return false;
    }
    rondo_status status = rondo_scope_leave(scope->real);
    tell(w, status, "scope_leave(scope %d)", (int)(scope - w->scopes));
    if (!has_body || has_inner) {
        (void)expect(w, status, CAN_STATE, name);
        return false;
    }
    if (!c->is_broken && has_unjoined(w, scope)) {
        (void)expect(w, status, CAN_STATE, name);
        break_capture(w, c);
    } else if (!c->is_broken && has_fork(w, scope->body) && !w->context->is_host) {
        if (!expect(w, status, CAN_OK | CAN_STATE, name)) {
            break_capture(w, c);
        }
    } else {
        (void)check_parent(w, scope, status, name);
    }
    frame *f = scope->body;
    for (int i = 0; i < ALL_STREAMS; ++i) {
        stream_model *s = &w->streams[i];
        if (s->frame == f) {
            s->frame = NULL;
            s->closure = 0;
            s->real = i < STREAM_COUNT ? s->real : NULL;
        }
    }
    for (int i = 0; i < EVENT_COUNT; ++i) {
        if (w->events[i].state == EVENT_PLACE && w->events[i].frame == f) {
            w->events[i].state = EVENT_ENDED;
            w->events[i].frame = NULL;
        }
    }
    scope->body = NULL;
    return true;
}

bool call_leave_scope(world *w, const any_call *k) {
    scope_model *scope = pick_scope(w, k->a, true);
    if (scope == NULL) {
        return false;
    }
    (void)leave(w, scope, k->b % 8 == 0);
    return true;
}

bool call_end_scope(world *w, const any_call *k) {
    static const char name[] = "rondo_scope_end";
    scope_model *scope = pick_scope(w, k->a, true);
    if (scope == NULL) {
        return false;
    }
    bool insists = k->b % 8 == 0;
    if (scope->body != NULL && !insists && !leave(w, scope, false)) {
        return true;
    }
    rondo_status status = rondo_scope_end(scope->real);
    tell(w, status, "scope_end(scope %d)", (int)(scope - w->scopes));
    if (scope->body != NULL || (scope->kind == RONDO_SCOPE_WHILE && scope->entered == 0)) {
        (void)expect(w, status, CAN_STATE, name);
        return true;
    }
    (void)check_parent(w, scope, status, name);
    w->streams[scope->parent].scope = NULL;
    scope->is_open = false;
    return true;
}

// ---- functions, in captures and outside -------------------------------------------------------

typedef struct body_data {
    world *world;
    int cell;
} body_data;

static rondo_status count_down(rondo_stream *stream, void *user_data) {
    const body_data *d = user_data;
    return suite_affine(d->world->context, stream, d->world->memory + d->cell, 1, 1, UINT32_MAX);
}

static rondo_status set_cell(rondo_stream *stream, void *user_data) {
    const body_data *d = user_data;
    return rondo_stream_fill(stream, d->world->memory + SMALL_CELL_COUNT, 77, 4, 1);
}

bool call_control(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    capture *c = capture_of(s);
    bool is_while = k->b % 2 == 0;
    int cell = k->c % SMALL_CELL_COUNT;
    body_data d = {.world = w, .cell = cell};
    content *body = content_create();
    node inner = {
        .kind = is_while ? NODE_AFFINE : NODE_FILL,
        .destination = {.first = is_while ? cell : SMALL_CELL_COUNT, .count = 1, .block = -1},
        .source = {.block = -1},
        .factor = 1,
        .term = is_while ? UINT32_MAX : 77};
    body->nodes[body->count++] = inner;
    node n = make_conditional(is_while ? RONDO_SCOPE_WHILE : RONDO_SCOPE_IF, cell, 1);
    n.inner[0] = body;
    bool waits = c == NULL && find_global_ban(w) != BAN_NONE;
    if (waits || s->scope != NULL || is_in_while_of(s, cell) || !can_put(w, s, &n)) {
        content_release(body);
        return false;
    }
    rondo_status status = is_while
                              ? rondo_control_while(s->real, w->memory + cell, count_down, &d)
                              : rondo_control_if(s->real, w->memory + cell, set_cell, NULL, &d);
    tell(w, status, "control_%s(%s, cell %d)", is_while ? "while" : "if", name_stream(w, s), cell);
    if (c == NULL && status == RONDO_STATUS_OK) {
        clock_join(&w->host, &s->now);  // it has read the predicate
    }
    bool is_recorded = c != NULL && !c->is_broken && status == RONDO_STATUS_OK;
    (void)put(w, s, &n, status, is_while ? "rondo_control_while" : "rondo_control_if");
    if (!is_recorded) {
        content_release(body);
    }
    return true;
}

// ---- labels -----------------------------------------------------------------------------------

bool call_push(world *w, const any_call *k) {
    int line = k->a % STREAM_COUNT;
    stream_model *s = &w->streams[line];
    rondo_status status = rondo_label_push(s->real, "it");
    tell(w, status, "label_push(s%d)", line);
    if (expect(w, status, s->label_depth > 12 ? CAN_OK | CAN_INVALID : CAN_OK,
               "rondo_label_push")) {
        s->label_depth += 1;
    }
    return true;
}

bool call_pop(world *w, const any_call *k) {
    int line = k->a % STREAM_COUNT;
    stream_model *s = &w->streams[line];
    rondo_status status = rondo_label_pop(s->real);
    tell(w, status, "label_pop(s%d)", line);
    if (expect(w, status, s->label_depth > 0 ? CAN_OK : CAN_STATE, "rondo_label_pop")) {
        s->label_depth -= 1;
    }
    return true;
}
