// Memory inside conditional bodies: what a body may take, and what others may take of it.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/memory/memory_support.h"
#include "rondo/control.h"

enum { COUNT = 1024 };

typedef struct bodies {
    suite_context *context;
    rondo_pool *pool;
    rondo_graph *graph;
    rondo_stream *stream;
    uint32_t *predicate;
    uint32_t *sum;
} bodies;

static bodies start(void **state) {
    bodies b = {.context = suite_get_context(state)};
    b.pool = memory_create_pool(b.context, RONDO_MEMORY_DEVICE);
    b.graph = memory_create_graph(b.context, "bodies", NULL);
    b.stream = suite_create_stream(b.context);
    b.predicate = suite_allocate(b.context, RONDO_MEMORY_DEVICE, COUNT);
    b.sum = suite_allocate(b.context, RONDO_MEMORY_DEVICE, COUNT);
    return b;
}

static void finish(bodies *b) {
    rondo_graph_destroy(b->graph);
    suite_free(b->context, RONDO_MEMORY_DEVICE, b->predicate);
    suite_free(b->context, RONDO_MEMORY_DEVICE, b->sum);
    rondo_stream_destroy(b->stream);
    rondo_pool_release(b->pool);
}

static rondo_scope begin(bodies *b, rondo_stream *stream, rondo_scope_kind kind) {
    rondo_scope scope;
    ASSERT_OK(rondo_scope_begin(stream, kind, b->predicate, 0, &scope));
    return scope;
}

static rondo_stream *enter(rondo_scope scope, uint32_t branch) {
    rondo_stream *body;
    ASSERT_OK(rondo_scope_enter(scope, branch, &body));
    return body;
}

// A block freed inside a body serves the body again at once, the stream outside only behind the
// node, and a branch beside the node not at all. One freed in a body but taken before it is not
// taken again inside: the next turn still needs it.
SUITE_CASE(test_conformance_memory_bodies__a_loop_takes_and_gives) {
    suite_need(context, RONDO_FEATURE_IF);
    bodies b = start(state);
    rondo_stream *beside = suite_create_stream(b.context);
    memory_begin(b.graph, b.stream);
    uint32_t *before = memory_take(b.pool, b.stream, COUNT);
    uint32_t *unused = memory_take(b.pool, b.stream, COUNT);
    memory_fill(b.stream, before, 10, COUNT);
    memory_fill(b.stream, unused, 1, COUNT);
    memory_free(b.pool, unused);  // comes before the body, so it may serve there
    memory_join(b.context, beside, b.stream);
    rondo_scope scope = begin(&b, b.stream, RONDO_SCOPE_WHILE);
    rondo_stream *body = enter(scope, 0);
    uint32_t *x = memory_take(b.pool, body, COUNT);
    assert_ptr_equal(x, unused);
    memory_add(b.context, body, x, before, 1, COUNT);
    memory_add(b.context, body, b.sum + 1, x, 0, 1);
    memory_free(b.pool, x);
    uint32_t *again = memory_take(b.pool, body, COUNT);
    assert_ptr_equal(again, x);
    memory_fill(body, again, 77, COUNT);
    memory_free(b.pool, again);
    ASSERT_OK(rondo_pool_use(b.pool, body, before));
    memory_free(b.pool, before);
    uint32_t *inside = memory_take(b.pool, body, COUNT);
    assert_ptr_equal(inside, x);
    uint32_t *more = memory_take(b.pool, body, COUNT);
    assert_ptr_not_equal(more, before);
    memory_fill(body, more, 44, COUNT);
    memory_fill(body, inside, 55, COUNT);
    uint32_t *aside = memory_take(b.pool, beside, COUNT);
    assert_ptr_not_equal(aside, before);
    assert_ptr_not_equal(aside, x);
    memory_fill(beside, aside, 33, COUNT);
    ASSERT_OK(suite_affine(b.context, body, b.predicate, 1, 1, 0xffffffffu));
    ASSERT_OK(suite_affine(b.context, body, b.sum, 1, 1, 1));
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
    memory_free(b.pool, inside);  // taken in the body, freed behind it
    memory_free(b.pool, more);
    uint32_t *after[3];
    for (int i = 0; i < 3; ++i) {
        after[i] = memory_take(b.pool, b.stream, COUNT);
        assert_true(after[i] == before || after[i] == x || after[i] == more);
        memory_fill(b.stream, after[i], 0, COUNT);
    }
    memory_join(b.context, b.stream, beside);
    memory_end(b.graph);
    for (int round = 0; round < 2; ++round) {
        suite_set(b.context, b.predicate, 5, 1);
        suite_set(b.context, b.sum, 0, 2);
        memory_replay(b.graph, b.stream);
        ASSERT_VALUE(b.context, b.sum, 0, 5);
        ASSERT_VALUE(b.context, b.sum, 1, 11);  // in the last turn, too
        ASSERT_VALUE(b.context, aside, 5, 33);
    }
    memory_free(b.pool, aside);
    for (int i = 0; i < 3; ++i) {
        memory_free(b.pool, after[i]);
    }
    rondo_stream_destroy(beside);
    finish(&b);
}

// Branches of one node do not come one after the other; nested bodies count as work of the outer.
SUITE_CASE(test_conformance_memory_bodies__branches_and_nests) {
    suite_need(context, RONDO_FEATURE_IF);
    bodies b = start(state);
    memory_begin(b.graph, b.stream);
    uint32_t *held = memory_take(b.pool, b.stream, COUNT);
    memory_fill(b.stream, held, 1, COUNT);
    rondo_scope outer = begin(&b, b.stream, RONDO_SCOPE_IF_ELSE);
    rondo_stream *body = enter(outer, 0);
    uint32_t *then_block = memory_take(b.pool, body, COUNT);
    memory_fill(body, then_block, 2, COUNT);
    rondo_scope inner = begin(&b, body, RONDO_SCOPE_IF);
    rondo_stream *nested = enter(inner, 0);
    uint32_t *deep = memory_take(b.pool, nested, COUNT);
    memory_fill(nested, deep, 3, COUNT);
    memory_free(b.pool, deep);
    ASSERT_OK(rondo_scope_leave(inner));
    ASSERT_OK(rondo_scope_end(inner));
    uint32_t *behind = memory_take(b.pool, body, COUNT);
    assert_ptr_equal(behind, deep);
    memory_fill(body, behind, 4, COUNT);
    memory_free(b.pool, behind);
    memory_free(b.pool, then_block);
    ASSERT_OK(rondo_scope_leave(outer));
    body = enter(outer, 1);
    uint32_t *else_block = memory_take(b.pool, body, COUNT);
    assert_ptr_not_equal(else_block, then_block);
    assert_ptr_not_equal(else_block, deep);
    memory_fill(body, else_block, 5, COUNT);
    ASSERT_OK(rondo_scope_leave(outer));
    ASSERT_OK(rondo_scope_end(outer));
    memory_free(b.pool, else_block);  // its stream is gone by now
    bool found[3] = {false};
    uint32_t *late[3];
    for (int i = 0; i < 3; ++i) {
        late[i] = memory_take(b.pool, b.stream, COUNT);
        found[0] = found[0] || late[i] == then_block;
        found[1] = found[1] || late[i] == deep;
        found[2] = found[2] || late[i] == else_block;
        memory_fill(b.stream, late[i], 6, COUNT);
    }
    assert_true(found[0] && found[1] && found[2]);
    memory_end(b.graph);
    for (uint32_t value = 0; value < 2; ++value) {
        suite_set(b.context, b.predicate, value, 1);
        memory_replay(b.graph, b.stream);
        ASSERT_VALUE(b.context, held, 0, 1);
        ASSERT_VALUE(b.context, late[0], 0, 6);
    }
    memory_free(b.pool, held);
    for (int i = 0; i < 3; ++i) {
        memory_free(b.pool, late[i]);
    }
    finish(&b);
}
