// Random numbers in conditional bodies: what does not run draws nothing, what runs again draws
// anew, and everything after it goes on from there.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/random/random_support.h"
#include "rondo/control.h"

typedef struct bodies {
    suite_context *context;
    rondo_stream *stream;
    rondo_stream *branch;
    rondo_event *fork;
    rondo_event *join;
    rondo_generator *generator;
    rondo_graph *graph;
    uint32_t *flags;  // predicates
    uint32_t *out;    // places of 64 words
} bodies;

enum { SEED = 21, PLACES = 8 };

static bodies start(void **state, rondo_feature feature) {
    suite_context *context = suite_get_context(state);
    suite_need(context, feature);
    bodies b = {.context = context,
                .stream = suite_create_stream(context),
                .branch = suite_create_stream(context),
                .fork = suite_create_event(context, 0),
                .join = suite_create_event(context, 0),
                .generator = suite_create_generator(context, SEED),
                .graph = suite_create_graph(context, false),
                .flags = suite_allocate(context, RONDO_MEMORY_DEVICE, 8),
                .out = suite_allocate(context, RONDO_MEMORY_DEVICE, PLACES * 64)};
    suite_set(context, b.flags, 0, 8);
    suite_set(context, b.out, 0, PLACES * 64);
    return b;
}

static void finish(bodies *b) {
    rondo_graph_destroy(b->graph);
    rondo_generator_release(b->generator);
    rondo_event_destroy(b->fork);
    rondo_event_destroy(b->join);
    rondo_stream_destroy(b->branch);
    rondo_stream_destroy(b->stream);
    suite_free(b->context, RONDO_MEMORY_DEVICE, b->flags);
    suite_free(b->context, RONDO_MEMORY_DEVICE, b->out);
}

static void draw(bodies *b, rondo_stream *stream, int place) {
    ASSERT_OK(suite_draw(b->generator, stream, b->out + 64 * place));
}

static rondo_scope begin_scope(bodies *b, rondo_stream *stream, rondo_scope_kind kind, int flag,
                               uint32_t branch_count) {
    rondo_scope scope;
    ASSERT_OK(rondo_scope_begin(stream, kind, b->flags + flag, branch_count, &scope));
    return scope;
}

static rondo_stream *enter(rondo_scope scope, uint32_t branch) {
    rondo_stream *body;
    ASSERT_OK(rondo_scope_enter(scope, branch, &body));
    return body;
}

static void set_flag(bodies *b, int flag, uint32_t value) {
    suite_set(b->context, b->flags + flag, value, 1);
}

// Puts `branch` beside `stream`, and back.
static void branch_off(bodies *b, rondo_stream *stream) {
    ASSERT_OK(rondo_event_record(b->fork, stream));
    ASSERT_OK(rondo_stream_wait_event(b->branch, b->fork));
}
static void branch_back(bodies *b, rondo_stream *stream) {
    ASSERT_OK(rondo_event_record(b->join, b->branch));
    ASSERT_OK(rondo_stream_wait_event(stream, b->join));
}

SUITE_CASE(test_conformance_random_bodies__if_not_taken_draws_nothing) {
    bodies b = start(state, RONDO_FEATURE_IF);
    ASSERT_OK(rondo_graph_capture_begin(b.graph, b.stream, RONDO_CAPTURE_THREAD_LOCAL));
    draw(&b, b.stream, 0);
    rondo_scope scope = begin_scope(&b, b.stream, RONDO_SCOPE_IF, 0, 0);
    rondo_stream *body = enter(scope, 0);
    draw(&b, body, 1);
    draw(&b, body, 2);
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
    draw(&b, b.stream, 3);
    ASSERT_OK(rondo_graph_capture_end(b.graph));
    uint64_t offset = 0;
    for (int i = 0; i < 6; ++i) {
        const bool is_taken = i % 3 != 1;
        set_flag(&b, 0, is_taken);
        if (i == 4) {
            draw(&b, b.stream, 4);  // an eager one in between
            ASSERT_DRAWN(b.context, b.out + 256, SEED, offset);
            offset += 16;
        }
        ASSERT_OK(rondo_graph_replay(b.graph, b.stream));
        ASSERT_DRAWN(b.context, b.out, SEED, offset);
        if (is_taken) {
            ASSERT_DRAWN(b.context, b.out + 64, SEED, offset + 16);
            ASSERT_DRAWN(b.context, b.out + 128, SEED, offset + 32);
        }
        offset += is_taken ? 48 : 16;
        ASSERT_DRAWN(b.context, b.out + 192, SEED, offset);
        offset += 16;
        ASSERT_STANDS(b.generator, SEED, offset);
    }
    finish(&b);
}

SUITE_CASE(test_conformance_random_bodies__while_draws_anew_each_turn) {
    bodies b = start(state, RONDO_FEATURE_WHILE);
    ASSERT_OK(rondo_graph_capture_begin(b.graph, b.stream, RONDO_CAPTURE_THREAD_LOCAL));
    rondo_scope scope = begin_scope(&b, b.stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_stream *body = enter(scope, 0);
    draw(&b, body, 0);
    ASSERT_OK(suite_affine(b.context, body, b.flags, 1, 1, UINT32_MAX));  // minus one
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
    draw(&b, b.stream, 1);
    ASSERT_OK(rondo_graph_capture_end(b.graph));
    uint64_t offset = 0;
    for (uint32_t turns = 0; turns < 5; ++turns) {
        set_flag(&b, 0, turns);
        ASSERT_OK(rondo_graph_replay(b.graph, b.stream));
        offset += 16 * turns;
        if (turns > 0) {
            ASSERT_DRAWN(b.context, b.out, SEED, offset - 16);
        }
        ASSERT_DRAWN(b.context, b.out + 64, SEED, offset);
        offset += 16;
        ASSERT_STANDS(b.generator, SEED, offset);
    }
    finish(&b);
}

// while (flag 0 counts down) { draw; if (flag 1) { draw } else { draw twice } draw }
SUITE_CASE(test_conformance_random_bodies__nested) {
    bodies b = start(state, RONDO_FEATURE_WHILE);
    if (rondo_device_supports(b.context->device, RONDO_FEATURE_IF_ELSE) != RONDO_STATUS_OK) {
        finish(&b);
        skip();
    }
    ASSERT_OK(rondo_graph_capture_begin(b.graph, b.stream, RONDO_CAPTURE_THREAD_LOCAL));
    draw(&b, b.stream, 0);
    rondo_scope loop = begin_scope(&b, b.stream, RONDO_SCOPE_WHILE, 0, 0);
    rondo_stream *body = enter(loop, 0);
    draw(&b, body, 1);
    rondo_scope choice = begin_scope(&b, body, RONDO_SCOPE_IF_ELSE, 1, 0);
    rondo_stream *inner = enter(choice, 0);
    draw(&b, inner, 2);
    ASSERT_OK(rondo_scope_leave(choice));
    inner = enter(choice, 1);
    draw(&b, inner, 3);
    draw(&b, inner, 4);
    ASSERT_OK(rondo_scope_leave(choice));
    ASSERT_OK(rondo_scope_end(choice));
    draw(&b, body, 5);
    ASSERT_OK(suite_affine(b.context, body, b.flags, 1, 1, UINT32_MAX));
    ASSERT_OK(rondo_scope_leave(loop));
    ASSERT_OK(rondo_scope_end(loop));
    draw(&b, b.stream, 6);
    ASSERT_OK(rondo_graph_capture_end(b.graph));
    uint64_t offset = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t turns = i / 2;
        const bool is_then = i % 2 == 0;
        set_flag(&b, 0, turns);
        set_flag(&b, 1, is_then);
        ASSERT_OK(rondo_graph_replay(b.graph, b.stream));
        ASSERT_DRAWN(b.context, b.out, SEED, offset);
        const uint64_t turn = is_then ? 48 : 64;
        offset += 16 + turns * turn;
        if (turns > 0) {
            const uint64_t last = offset - turn;
            ASSERT_DRAWN(b.context, b.out + 64, SEED, last);
            ASSERT_DRAWN(b.context, b.out + (is_then ? 128 : 192), SEED, last + 16);
            if (!is_then) {
                ASSERT_DRAWN(b.context, b.out + 256, SEED, last + 32);
            }
            ASSERT_DRAWN(b.context, b.out + 320, SEED, offset - 16);
        }
        ASSERT_DRAWN(b.context, b.out + 384, SEED, offset);
        offset += 16;
    }
    ASSERT_STANDS(b.generator, SEED, offset);
    finish(&b);
}

// The generator joins the capture inside the body; a branch beside the node draws after it, and one
// that drew before it is late.
SUITE_CASE(test_conformance_random_bodies__branches_beside_the_node) {
    bodies b = start(state, RONDO_FEATURE_IF);
    for (int draws_before = 0; draws_before < 2; ++draws_before) {
        ASSERT_OK(rondo_generator_set_seed(b.generator, SEED));
        ASSERT_OK(rondo_graph_capture_begin(b.graph, b.stream, RONDO_CAPTURE_THREAD_LOCAL));
        ASSERT_OK(suite_affine(b.context, b.stream, b.flags + 7, 1, 1, 1));
        branch_off(&b, b.stream);
        if (draws_before) {
            ASSERT_OK(suite_linger(b.context, b.branch, 3000));
            draw(&b, b.branch, 0);
        }
        rondo_scope scope = begin_scope(&b, b.stream, RONDO_SCOPE_IF, 0, 0);
        rondo_stream *body = enter(scope, 0);
        ASSERT_OK(suite_linger(b.context, body, 3000));
        draw(&b, body, 1);
        ASSERT_OK(rondo_scope_leave(scope));
        ASSERT_OK(rondo_scope_end(scope));
        draw(&b, b.branch, 2);
        branch_back(&b, b.stream);
        draw(&b, b.stream, 3);
        ASSERT_OK(rondo_graph_capture_end(b.graph));
        uint64_t offset = 0;
        for (int i = 0; i < 4; ++i) {
            set_flag(&b, 0, i % 2 == 0);
            ASSERT_OK(rondo_graph_replay(b.graph, b.stream));
            if (draws_before) {
                ASSERT_DRAWN(b.context, b.out, SEED, offset);
                offset += 16;
            }
            if (i % 2 == 0) {
                ASSERT_DRAWN(b.context, b.out + 64, SEED, offset);
                offset += 16;
            }
            ASSERT_DRAWN(b.context, b.out + 128, SEED, offset);
            ASSERT_DRAWN(b.context, b.out + 192, SEED, offset + 16);
            offset += 32;
        }
        ASSERT_OK(rondo_graph_reset(b.graph));
    }
    finish(&b);
}

// Two nodes in a row on different streams, both with draws, in a body with branches of its own.
SUITE_CASE(test_conformance_random_bodies__branches_inside_a_body) {
    bodies b = start(state, RONDO_FEATURE_IF);
    ASSERT_OK(rondo_graph_capture_begin(b.graph, b.stream, RONDO_CAPTURE_THREAD_LOCAL));
    draw(&b, b.stream, 0);
    rondo_scope scope = begin_scope(&b, b.stream, RONDO_SCOPE_IF, 0, 0);
    rondo_stream *body = enter(scope, 0);
    ASSERT_OK(suite_affine(b.context, body, b.flags + 7, 1, 1, 1));
    branch_off(&b, body);
    ASSERT_OK(suite_linger(b.context, b.branch, 2000));
    draw(&b, b.branch, 1);
    draw(&b, body, 2);
    branch_back(&b, body);
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
    rondo_scope second = begin_scope(&b, b.stream, RONDO_SCOPE_IF, 1, 0);
    body = enter(second, 0);
    draw(&b, body, 3);
    ASSERT_OK(rondo_scope_leave(second));
    ASSERT_OK(rondo_scope_end(second));
    ASSERT_OK(rondo_graph_capture_end(b.graph));
    uint64_t offset = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        set_flag(&b, 0, i & 1);
        set_flag(&b, 1, i & 2);
        ASSERT_OK(rondo_graph_replay(b.graph, b.stream));
        ASSERT_DRAWN(b.context, b.out, SEED, offset);
        offset += 16;
        if (i & 1) {
            ASSERT_DRAWN(b.context, b.out + 64, SEED, offset);
            ASSERT_DRAWN(b.context, b.out + 128, SEED, offset + 16);
            offset += 32;
        }
        if (i & 2) {
            ASSERT_DRAWN(b.context, b.out + 192, SEED, offset);
            offset += 16;
        }
        ASSERT_STANDS(b.generator, SEED, offset);
    }
    finish(&b);
}

// ---- functions --------------------------------------------------------------------------------

static rondo_status draw_and_count_down(rondo_stream *stream, void *user_data) {
    bodies *b = user_data;
    rondo_status status = suite_draw(b->generator, stream, b->out);
    return status != RONDO_STATUS_OK ? status
                                     : suite_affine(b->context, stream, b->flags, 1, 1, UINT32_MAX);
}

SUITE_CASE(test_conformance_random_bodies__loops_draw_as_if_eager) {
    bodies b = start(state, RONDO_FEATURE_WHILE);
    rondo_generator_mark mark;
    ASSERT_OK(rondo_graph_capture_begin(b.graph, b.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(rondo_generator_get_mark(b.generator, b.stream, &mark));
    ASSERT_OK(rondo_control_while(b.stream, b.flags, draw_and_count_down, &b));
    ASSERT_STATUS(rondo_generator_rewind(b.generator, b.stream, &mark), STATE);
    // What follows would draw other numbers than was asked for.
    ASSERT_STATUS(rondo_graph_capture_end(b.graph), STATE);
    ASSERT_MESSAGE_HAS("a conditional node came between");
    ASSERT_OK(rondo_graph_capture_begin(b.graph, b.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(rondo_control_while(b.stream, b.flags, draw_and_count_down, &b));
    ASSERT_OK(rondo_graph_capture_end(b.graph));
    uint64_t offset = 0;
    for (uint32_t turns = 1; turns < 6; ++turns) {
        set_flag(&b, 0, turns);
        ASSERT_OK(turns % 2 ? rondo_control_while(b.stream, b.flags, draw_and_count_down, &b)
                            : rondo_graph_replay(b.graph, b.stream));
        offset += 16 * turns;
        ASSERT_DRAWN(b.context, b.out, SEED, offset - 16);
    }
    ASSERT_STANDS(b.generator, SEED, offset);
    finish(&b);
}

SUITE_CASE(test_conformance_random_bodies__a_failure_inside_takes_nothing) {
    bodies b = start(state, RONDO_FEATURE_IF);
    draw(&b, b.stream, 0);
    for (int i = 0; i < 2; ++i) {
        ASSERT_OK(rondo_graph_capture_begin(b.graph, b.stream, RONDO_CAPTURE_THREAD_LOCAL));
        draw(&b, b.stream, 1);
        rondo_scope scope = begin_scope(&b, b.stream, RONDO_SCOPE_IF, 0, 0);
        rondo_stream *body = enter(scope, 0);
        draw(&b, body, 2);
        ASSERT_STATUS(rondo_generator_set_seed(b.generator, 1), STATE);
        if (i == 0) {
            rondo_graph_capture_abort(b.graph);
        } else {
            ASSERT_STATUS(rondo_graph_capture_end(b.graph), STATE);  // the body is open
        }
        ASSERT_STANDS(b.generator, SEED, 16);
        draw(&b, b.stream, 3);
        ASSERT_DRAWN(b.context, b.out + 192, SEED, 16);
        ASSERT_OK(rondo_generator_set_seed(b.generator, SEED));
        draw(&b, b.stream, 0);
    }
    finish(&b);
}
