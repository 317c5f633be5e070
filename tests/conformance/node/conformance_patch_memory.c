// Memory that patched nodes name: in the order of arena sharers, under check_addresses, kept alive.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"
#include "rondo/update.h"

enum { COUNT = 256 };

// Graph "a" leaves a block behind, graph "c" overwrites it, graph "b" reads it into `result`.
typedef struct scene {
    suite_context *context;
    rondo_stream *stream;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_graph *a;
    rondo_graph *b;
    rondo_graph *c;
    rondo_node node;  // of b
    bool has_kernel;  // b's node is a kernel
    uint32_t *block;
    uint32_t *spare;  // b read this first
    uint32_t *result;
} scene;

static scene open_scene(void **state, bool has_kernel) {
    suite_context *context = suite_get_context(state);
    suite_need_execution(context);
    scene s = {.context = context,
               .stream = suite_create_stream(context),
               .pool = memory_create_pool(context, RONDO_MEMORY_DEVICE),
               .has_kernel = has_kernel,
               .spare = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT),
               .result = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT)};
    suite_set(context, s.spare, 5, COUNT);
    return s;
}

static void close_scene(scene *s) {
    memory_free(s->pool, s->block);
    rondo_graph_destroy(s->c);
    rondo_graph_destroy(s->b);
    rondo_graph_destroy(s->a);
    rondo_arena_release(s->arena);
    rondo_pool_release(s->pool);
    rondo_stream_destroy(s->stream);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->spare);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->result);
}

// Its temporary lies where the block of "a" will.
static void record_c(scene *s) {
    s->c = memory_create_graph(s->context, "c", s->arena);
    memory_begin(s->c, s->stream);
    uint32_t *temporary = memory_take(s->pool, s->stream, COUNT);
    memory_fill(s->stream, temporary, 666, COUNT);
    memory_free(s->pool, temporary);
    memory_end(s->c);
}

static void record_a(scene *s) {
    s->a = memory_create_graph(s->context, "a", s->arena);
    memory_begin(s->a, s->stream);
    s->block = memory_take(s->pool, s->stream, COUNT);
    memory_fill(s->stream, s->block, 7, COUNT);
    memory_end(s->a);
}

// Reads `source`, and leaves source * 10 + 1 in the result. A kernel works in place.
static void record_b(scene *s, uint32_t *source) {
    const rondo_work copy =
        node_copy_work(s->result, source, sizeof *source, RONDO_COPY_DEVICE_TO_DEVICE);
    s->b = s->b != NULL ? s->b : memory_create_graph(s->context, "b", s->arena);
    memory_begin(s->b, s->stream);
    s->node = s->has_kernel ? node_add_affine(s->context, s->stream, source, 1, 10, 1)
                            : node_add(s->stream, &copy);
    memory_end(s->b);
}

static rondo_status patch_b(scene *s, uint32_t *source) {
    const rondo_work copy =
        node_copy_work(s->result, source, sizeof *source, RONDO_COPY_DEVICE_TO_DEVICE);
    return s->has_kernel ? node_patch_affine(s->context, s->b, s->node, source, 1, 10, 1)
                         : rondo_graph_patch_node(s->b, s->node, &copy);
}

// "b" uses the block of "a": refused behind "c", by all three names, and right behind "a".
static void check_order(scene *s) {
    memory_replay(s->a, s->stream);
    ASSERT_OK(rondo_arena_begin_round(s->arena));
    memory_replay(s->c, s->stream);
    ASSERT_STATUS(rondo_graph_replay(s->b, s->stream), STATE);
    ASSERT_MESSAGE_HAS("graph \"b\" takes in a block");
    ASSERT_MESSAGE_HAS("that graph \"a\" produces");
    ASSERT_MESSAGE_HAS("graph \"c\"");
    memory_replay(s->a, s->stream);
    memory_replay(s->b, s->stream);
    ASSERT_VALUE(s->context, s->has_kernel ? s->block : s->result, 0, s->has_kernel ? 71 : 7);
}

SUITE_CASE(test_conformance_patch_memory__recorded_addresses_are_in_order) {
    for (int i = 0; i < 2; ++i) {
        scene s = open_scene(state, i == 1);
        ASSERT_OK(rondo_arena_create(s.context->device, NULL, &s.arena));
        record_c(&s);
        record_a(&s);
        record_b(&s, s.block);
        check_order(&s);
        close_scene(&s);
    }
}

SUITE_CASE(test_conformance_patch_memory__patched_addresses_are_in_order) {
    for (int i = 0; i < 2; ++i) {
        scene s = open_scene(state, i == 1);
        ASSERT_OK(rondo_arena_create(s.context->device, NULL, &s.arena));
        record_c(&s);
        record_a(&s);
        record_b(&s, s.spare);
        ASSERT_OK(patch_b(&s, s.block));
        check_order(&s);
        close_scene(&s);
    }
}

// When "b" was recorded the arena had no memory of any pool.
SUITE_CASE(test_conformance_patch_memory__blocks_of_later_pools_are_in_order) {
    for (int i = 0; i < 2; ++i) {
        scene s = open_scene(state, i == 1);
        ASSERT_OK(rondo_arena_create(s.context->device, NULL, &s.arena));
        record_b(&s, s.spare);
        record_c(&s);
        record_a(&s);
        ASSERT_OK(patch_b(&s, s.block));
        check_order(&s);
        close_scene(&s);
    }
}

// When "b" was recorded its arena was nobody else's.
SUITE_CASE(test_conformance_patch_memory__arenas_shared_later_are_in_order) {
    for (int i = 0; i < 2; ++i) {
        scene s = open_scene(state, i == 1);
        record_b(&s, s.spare);
        s.arena = memory_get_arena(s.b);
        rondo_arena_retain(s.arena);
        record_c(&s);
        record_a(&s);
        ASSERT_OK(patch_b(&s, s.block));
        check_order(&s);
        close_scene(&s);
    }
}

// "b" was recorded into another graph, which does what it did.
SUITE_CASE(test_conformance_patch_memory__recorded_graphs_are_in_order) {
    suite_need_children(context);
    for (int i = 0; i < 2; ++i) {
        scene s = open_scene(state, i == 1);
        ASSERT_OK(rondo_arena_create(s.context->device, NULL, &s.arena));
        record_c(&s);
        record_a(&s);
        record_b(&s, s.spare);
        rondo_graph *outer = memory_create_graph(s.context, "outer", NULL);
        memory_begin(outer, s.stream);
        ASSERT_OK(rondo_stream_add_graph(s.stream, s.b));
        memory_end(outer);
        ASSERT_OK(patch_b(&s, s.block));
        check_order(&s);
        suite_set(s.context, s.spare, 5, COUNT);
        memory_replay(outer, s.stream);
        ASSERT_VALUE(s.context, s.has_kernel ? s.spare : s.result, 0, s.has_kernel ? 51 : 5);
        rondo_graph_destroy(outer);
        close_scene(&s);
    }
}

// What "b" was given and freed, "a" took later: "b" would write over what it is to read.
SUITE_CASE(test_conformance_patch_memory__a_graph_cannot_read_where_it_writes) {
    scene s = open_scene(state, true);
    ASSERT_OK(rondo_arena_create(s.context->device, NULL, &s.arena));
    s.b = memory_create_graph(s.context, "b", s.arena);
    memory_begin(s.b, s.stream);
    uint32_t *temporary = memory_take(s.pool, s.stream, COUNT);
    memory_fill(s.stream, temporary, 666, COUNT);
    memory_free(s.pool, temporary);
    s.node = node_add_affine(s.context, s.stream, s.spare, 1, 10, 1);
    memory_end(s.b);
    record_a(&s);
    assert_ptr_equal(s.block, temporary);
    ASSERT_STATUS(patch_b(&s, s.block), STATE);
    ASSERT_MESSAGE_HAS("graph \"b\" itself writes over the block");
    ASSERT_MESSAGE_HAS("graph \"a\"");
    assert_string_equal(rondo_error_get_last()->op, "b");
    memory_replay(s.b, s.stream);
    ASSERT_VALUE(s.context, s.spare, 0, 51);
    close_scene(&s);
}

// What a node uses already is no news: "b" goes on writing where it was recorded to, which "a" took
// later.
SUITE_CASE(test_conformance_patch_memory__a_node_keeps_its_own_place) {
    scene s = open_scene(state, true);
    ASSERT_OK(rondo_arena_create(s.context->device, NULL, &s.arena));
    s.b = memory_create_graph(s.context, "b", s.arena);
    memory_begin(s.b, s.stream);
    uint32_t *temporary = memory_take(s.pool, s.stream, COUNT);
    const rondo_work seven = node_fill_work(temporary, 7, COUNT);
    const rondo_work nine = node_fill_work(temporary, 9, COUNT);
    const rondo_node fill = node_add(s.stream, &seven);
    ASSERT_OK(rondo_stream_copy(s.stream, s.spare, temporary, sizeof *temporary,
                                RONDO_COPY_DEVICE_TO_DEVICE));
    const rondo_node kernel = node_add_affine(s.context, s.stream, temporary, COUNT, 2, 1);
    memory_free(s.pool, temporary);
    memory_end(s.b);
    record_a(&s);
    assert_ptr_equal(s.block, temporary);
    ASSERT_OK(rondo_graph_patch_node(s.b, fill, &nine));
    ASSERT_OK(node_patch_affine(s.context, s.b, kernel, temporary, COUNT, 3, 1));
    memory_replay(s.b, s.stream);
    ASSERT_VALUE(s.context, s.spare, 0, 9);
    close_scene(&s);
}

// ---- memory that is gone ----------------------------------------------------------------------

SUITE_CASE(test_conformance_patch_memory__recorded_graphs_watch_what_patches_use) {
    suite_need_children(context);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = memory_create_checked_graph(context);
    rondo_graph_options options = {.struct_size = sizeof options, .check_addresses = true};
    rondo_graph *outer;
    ASSERT_OK(rondo_graph_create(context->device, &options, &outer));
    uint32_t *before = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    uint32_t *after = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    memory_begin(graph, stream);
    const rondo_node node = node_add_affine(context, stream, before, COUNT, 1, 1);
    memory_end(graph);
    memory_begin(outer, stream);
    ASSERT_OK(rondo_stream_add_graph(stream, graph));
    memory_end(outer);
    ASSERT_OK(node_patch_affine(context, graph, node, after, COUNT, 1, 1));
    memory_replay(graph, stream);
    memory_replay(outer, stream);
    suite_free(context, RONDO_MEMORY_DEVICE, after);
    ASSERT_STATUS(rondo_graph_replay(graph, stream), STATE);
    ASSERT_MESSAGE_HAS("uses memory that is gone");
    suite_free(context, RONDO_MEMORY_DEVICE, before);
    ASSERT_STATUS(rondo_graph_replay(outer, stream), STATE);
    ASSERT_MESSAGE_HAS("uses memory that is gone");
    rondo_graph_destroy(outer);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// ---- arenas and recaptures --------------------------------------------------------------------

typedef struct step_data {
    rondo_pool *pool;
    uint32_t *block;
} step_data;

static rondo_status take_block(rondo_stream *stream, void *user_data) {
    step_data *d = user_data;
    void *address = NULL;
    rondo_status status = rondo_pool_allocate(d->pool, stream, COUNT * sizeof *d->block, &address);
    d->block = address;
    return status == RONDO_STATUS_OK ? rondo_stream_fill(stream, address, 3, 4, COUNT) : status;
}

// An arena comes with an update, and the next recapture takes its memory there.
SUITE_CASE(test_conformance_patch_memory__recaptures_stay_in_the_arena) {
    rondo_stream *stream = suite_create_stream(context);
    step_data d = {.pool = memory_create_pool(context, RONDO_MEMORY_DEVICE)};
    rondo_arena *arena;
    ASSERT_OK(rondo_arena_create(context->device, NULL, &arena));
    rondo_graph *graph = memory_create_graph(context, "graph", NULL);
    rondo_graph_options options = {
        .struct_size = sizeof options, .keep = RONDO_KEEP_TEMPLATE, .arena = arena};
    rondo_graph *source;
    ASSERT_OK(rondo_graph_create(context->device, &options, &source));
    memory_begin(source, stream);
    ASSERT_OK(take_block(stream, &d));
    memory_end(source);
    ASSERT_OK(rondo_graph_update(graph, source, NULL));
    memory_free(d.pool, d.block);
    assert_int_equal(memory_get_arena_stats(arena).live_count, 0);
    ASSERT_OK(rondo_graph_recapture(graph, stream, NULL, take_block, &d, NULL));
    assert_int_equal(memory_get_arena_stats(arena).live_count, 1);
    assert_ptr_equal(memory_get_arena(graph), arena);
    memory_free(d.pool, d.block);
    rondo_graph_destroy(source);
    rondo_graph_destroy(graph);
    rondo_arena_release(arena);
    rondo_pool_release(d.pool);
    rondo_stream_destroy(stream);
}
