// Calls on generators. The model draws the same numbers from rondo_random_philox.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "sequence/sequence.h"

// Until its end, broken or not, a capture forbids what concerns its generators.
static ban find_draw_ban(const world *w, int generator) {
    ban found = BAN_NONE;
    for (int i = 0; i < GRAPH_COUNT; ++i) {
        const capture *c = w->graphs[i].capture;
        const ban its = c == NULL                ? BAN_NONE
                        : c->draws[generator]    ? BAN_SURE
                        : c->may_draw[generator] ? BAN_PERHAPS
                                                 : BAN_NONE;
        found = its > found ? its : found;
    }
    return found;
}

// While a scope is open, draws beside it would come in an order that is nobody's.
static bool is_beside_scope(const world *w, const stream_model *s) {
    const capture *c = capture_of(s);
    const frame *innermost = c != NULL ? c->frames : NULL;
    for (int i = 0; i < SCOPE_COUNT; ++i) {
        const scope_model *scope = &w->scopes[i];
        if (scope->is_open && scope->parent_frame->owner == c) {
            innermost = scope->body != NULL ? scope->body : NULL;
            if (innermost == NULL) {
                return true;
            }
        }
    }
    for (int i = 0; i < SCOPE_COUNT && c != NULL; ++i) {
        const scope_model *scope = &w->scopes[i];
        if (scope->is_open && scope->parent_frame->owner == c && scope->body != s->frame) {
            const frame *f = s->frame;
            while (f != NULL && f != scope->body) {
                f = f->parent;
            }
            if (f == NULL) {
                return true;
            }
        }
    }
    (void)innermost;
    return false;
}

bool call_draw(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    int number = k->b % GENERATOR_COUNT;
    int count = 1 + (int)(k->value % 6);
    int room = CELL_COUNT - SMALL_CELL_COUNT - count;
    node n = {
        .kind = NODE_DRAW,
        .destination = {.first = SMALL_CELL_COUNT + k->c % (room + 1), .count = count, .block = -1},
        .source = {.block = -1},
        .object = number};
    if (is_beside_scope(w, s) || !can_put(w, s, &n)) {
        return false;
    }
    rondo_status status = rondo_random_words(w->generators[number].real, s->real,
                                             w->memory + n.destination.first, (size_t)count);
    tell(w, status, "random_words(gen%d, %s, cells %d to %d)", number, name_stream(w, s),
         n.destination.first, n.destination.first + count - 1);
    if (s->frame != NULL && status == RONDO_STATUS_OK) {
        s->frame->owner->draws[number] = true;
    }
    return put(w, s, &n, status, "rondo_random_words");
}

bool call_set_seed(world *w, const any_call *k) {
    int number = k->a % GENERATOR_COUNT;
    generator_model *generator = &w->generators[number];
    rondo_status status = rondo_generator_set_seed(generator->real, k->value % 9);
    tell(w, status, "generator_set_seed(gen%d, %u)", number, (unsigned)(k->value % 9));
    if (expect(w, status, mask_of_ban(find_draw_ban(w, number)), "rondo_generator_set_seed")) {
        generator->seed = k->value % 9;
        generator->offset = 0;
    }
    return true;
}

bool call_get_state(world *w, const any_call *k) {
    int number = k->a % GENERATOR_COUNT;
    generator_model *generator = &w->generators[number];
    rondo_generator_state state;
    const ban its = find_draw_ban(w, number);
    bool has_unsafe = find_global_ban(w) != BAN_NONE;
    if (its == BAN_PERHAPS && has_unsafe) {
        return false;  // whether it breaks the capture in global mode cannot be told
    }
    rondo_status status = rondo_generator_get_state(generator->real, &state);
    tell(w, status, "generator_get_state(gen%d)", number);
    uint32_t mask = its == BAN_NONE && has_unsafe ? CAN_OK | CAN_STATE : mask_of_ban(its);
    if (!expect(w, status, mask, "rondo_generator_get_state")) {
        if (its == BAN_NONE) {
            break_global(w);
        }
        return true;
    }
    if (state.seed != generator->seed || state.offset != generator->offset) {
        world_fail(w, "generator %d stands at %llu of seed %llu, the model at %llu of %llu", number,
                   (unsigned long long)state.offset, (unsigned long long)state.seed,
                   (unsigned long long)generator->offset, (unsigned long long)generator->seed);
    }
    return true;
}

// Two draws with a return between them: the same numbers twice.
bool call_rewind(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    int number = k->b % GENERATOR_COUNT;
    generator_model *generator = &w->generators[number];
    node n = {.kind = NODE_DRAW,
              .destination = {.first = SMALL_CELL_COUNT, .count = 4, .block = -1},
              .source = {.block = -1},
              .object = number};
    if (s->frame != NULL || !can_put(w, s, &n)) {
        return false;
    }
    rondo_generator_mark mark;
    rondo_status status = rondo_generator_get_mark(generator->real, s->real, &mark);
    tell(w, status, "generator_get_mark(gen%d, %s)", number, name_stream(w, s));
    if (!expect(w, status, CAN_OK, "rondo_generator_get_mark")) {
        return true;
    }
    uint64_t offset = generator->offset;
    status = rondo_random_words(generator->real, s->real, w->memory + SMALL_CELL_COUNT, 4);
    tell(w, status, "random_words(gen%d, %s, cells %d to %d)", number, name_stream(w, s),
         SMALL_CELL_COUNT, SMALL_CELL_COUNT + 3);
    (void)put(w, s, &n, status, "rondo_random_words");
    status = rondo_generator_rewind(generator->real, s->real, &mark);
    tell(w, status, "generator_rewind(gen%d, %s)", number, name_stream(w, s));
    if (expect(w, status, CAN_OK, "rondo_generator_rewind")) {
        generator->offset = offset;
    }
    return true;
}
