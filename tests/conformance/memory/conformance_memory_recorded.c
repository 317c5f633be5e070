// Graphs with memory that are recorded into other graphs, and steps that take memory.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/memory/memory_support.h"

#include "rondo/node.h"
#include "rondo/report.h"

enum { COUNT = 1024 };

typedef struct scene {
    suite_context *context;
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_stream *stream;
    rondo_stream *side;
    uint32_t *results;
} scene;

static scene create_scene(suite_context *context, bool allows_any_order) {
    scene s = {.context = context,
               .pool = memory_create_pool(context, RONDO_MEMORY_DEVICE),
               .stream = suite_create_stream(context),
               .side = suite_create_stream(context),
               .results = suite_allocate(context, RONDO_MEMORY_DEVICE, 8)};
    rondo_arena_options options = {.struct_size = sizeof options};
    options.allows_any_order = allows_any_order;
    ASSERT_OK(rondo_arena_create(context->device, &options, &s.arena));
    return s;
}

static void destroy_scene(scene *s) {
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->results);
    rondo_stream_destroy(s->side);
    rondo_stream_destroy(s->stream);
    rondo_arena_release(s->arena);
    rondo_pool_release(s->pool);
}

static rondo_graph *create_graph(const scene *s, const char *label, rondo_arena *arena) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.label = label;
    options.arena = arena;
    options.keep = RONDO_KEEP_TEMPLATE;
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(s->context->device, &options, &graph));
    return graph;
}

// Writes `value` to a temporary and from there to a result.
static rondo_graph *record_temporary(const scene *s, const char *label, uint32_t value,
                                     uint32_t *result) {
    rondo_graph *graph = create_graph(s, label, s->arena);
    memory_begin(graph, s->stream);
    uint32_t *x = memory_take(s->pool, s->stream, COUNT);
    memory_fill(s->stream, x, value, COUNT);
    ASSERT_OK(rondo_stream_copy(s->stream, result, x, sizeof *x, RONDO_COPY_DEVICE_TO_DEVICE));
    memory_free(s->pool, x);
    memory_end(graph);
    return graph;
}

SUITE_CASE(test_conformance_memory_recorded__temporaries_in_a_row) {
    suite_need_children(context);
    scene s = create_scene(context, false);
    rondo_graph *a = record_temporary(&s, "a", 1, s.results);
    rondo_graph *b = record_temporary(&s, "b", 2, s.results + 1);
    rondo_graph *outer = create_graph(&s, "outer", NULL);
    memory_begin(outer, s.stream);
    ASSERT_OK(rondo_stream_add_graph(s.stream, a));
    ASSERT_OK(rondo_stream_add_graph(s.stream, b));
    ASSERT_OK(rondo_stream_add_graph(s.stream, a));
    memory_end(outer);
    for (int i = 0; i < 3; ++i) {
        memory_fill(s.stream, s.results, 0, 2);
        memory_replay(outer, s.stream);
        ASSERT_VALUE(s.context, s.results, 0, 1);
        ASSERT_VALUE(s.context, s.results, 1, 2);
        memory_replay(b, s.stream);
    }
    // Once more inside: what was recorded there enters the next capture with it.
    rondo_graph *outermost = create_graph(&s, "outermost", NULL);
    memory_begin(outermost, s.stream);
    memory_join(s.context, s.side, s.stream);
    ASSERT_OK(rondo_stream_add_graph(s.stream, outer));
    ASSERT_STATUS(rondo_stream_add_graph(s.side, b), STATE);
    ASSERT_MESSAGE_HAS("one behind the other, on one stream");
    ASSERT_STATUS(rondo_graph_capture_end(outermost), STATE);
    rondo_graph_destroy(outermost);
    rondo_graph_destroy(outer);
    rondo_graph_destroy(b);
    rondo_graph_destroy(a);
    destroy_scene(&s);
}

// On two branches they would run over each other's temporaries; so would one graph on both.
SUITE_CASE(test_conformance_memory_recorded__not_side_by_side) {
    suite_need_children(context);
    scene s = create_scene(context, false);
    rondo_graph *a = record_temporary(&s, "a", 1, s.results);
    rondo_graph *b = record_temporary(&s, "b", 2, s.results + 1);
    rondo_graph *outer = create_graph(&s, "outer", NULL);
    rondo_graph *second[2] = {a, b};
    for (int i = 0; i < 2; ++i) {
        memory_begin(outer, s.stream);
        memory_join(s.context, s.side, s.stream);
        ASSERT_OK(rondo_stream_add_graph(s.stream, a));
        ASSERT_STATUS(rondo_stream_add_graph(s.side, second[i]), STATE);
        ASSERT_STATUS(rondo_graph_capture_end(outer), STATE);
    }
    rondo_graph_destroy(outer);
    rondo_graph_destroy(b);
    rondo_graph_destroy(a);
    destroy_scene(&s);
}

// By hand only edges tell which of them comes first, also by way of other nodes.
SUITE_CASE(test_conformance_memory_recorded__by_hand_one_behind_the_other) {
    suite_need_children(context);
    scene s = create_scene(context, false);
    rondo_graph *a = record_temporary(&s, "a", 1, s.results);
    rondo_graph *b = record_temporary(&s, "b", 2, s.results + 1);
    rondo_graph *outer = create_graph(&s, "outer", NULL);
    rondo_graph *second[2] = {a, b};
    const rondo_work between = {.struct_size = sizeof between,
                                .kind = RONDO_NODE_FILL,
                                .destination = s.results + 2,
                                .element_bytes = 4,
                                .element_count = 1};
    rondo_work work = {.struct_size = sizeof work, .kind = RONDO_NODE_CHILD, .graph = a};
    for (int i = 0; i < 6; ++i) {
        const bool is_behind = i / 2 > 0;
        const bool is_near = i / 2 == 1;
        rondo_node first;
        rondo_node middle;
        ASSERT_OK(rondo_graph_build_begin(outer));
        work.graph = a;
        ASSERT_OK(rondo_graph_add_node(outer, NULL, 0, &work, &first));
        ASSERT_OK(rondo_graph_add_node(outer, &first, is_behind, &between, &middle));
        work.graph = second[i % 2];
        const rondo_status status =
            rondo_graph_add_node(outer, is_near ? &first : &middle, 1, &work, NULL);
        suite_assert_status(status, is_behind ? RONDO_STATUS_OK : RONDO_STATUS_STATE,
                            "rondo_graph_add_node", __FILE__, __LINE__);
        if (!is_behind) {
            ASSERT_MESSAGE_HAS("each is added behind the one before it");
            ASSERT_STATUS(rondo_graph_capture_end(outer), STATE);
            continue;
        }
        memory_end(outer);
        memory_fill(s.stream, s.results, 0, 2);
        memory_replay(outer, s.stream);
        ASSERT_VALUE(s.context, s.results, 0, 1);
        ASSERT_VALUE(s.context, s.results, 1, i % 2 == 0 ? 0 : 2);
        ASSERT_OK(rondo_graph_reset(outer));
    }
    rondo_graph_destroy(outer);
    rondo_graph_destroy(b);
    rondo_graph_destroy(a);
    destroy_scene(&s);
}

// A sharer without memory stands for none of those with it.
SUITE_CASE(test_conformance_memory_recorded__by_hand_beside_a_graph_without_memory) {
    suite_need_children(context);
    scene s = create_scene(context, false);
    rondo_graph *a = record_temporary(&s, "a", 1, s.results);
    rondo_graph *plain = create_graph(&s, "plain", s.arena);
    memory_begin(plain, s.stream);
    memory_fill(s.stream, s.results + 2, 3, 1);
    memory_end(plain);
    rondo_graph *outer = create_graph(&s, "outer", NULL);
    rondo_work work = {.struct_size = sizeof work, .kind = RONDO_NODE_CHILD, .graph = a};
    rondo_node beside;
    ASSERT_OK(rondo_graph_build_begin(outer));
    ASSERT_OK(rondo_graph_add_node(outer, NULL, 0, &work, NULL));
    work.graph = plain;
    ASSERT_OK(rondo_graph_add_node(outer, NULL, 0, &work, &beside));
    work.graph = a;
    ASSERT_STATUS(rondo_graph_add_node(outer, &beside, 1, &work, NULL), STATE);
    ASSERT_MESSAGE_HAS("each is added behind the one before it");
    rondo_graph_capture_abort(outer);
    rondo_graph_destroy(outer);
    rondo_graph_destroy(plain);
    rondo_graph_destroy(a);
    destroy_scene(&s);
}

SUITE_CASE(test_conformance_memory_recorded__not_beside_own_blocks) {
    suite_need_children(context);
    scene s = create_scene(context, false);
    rondo_graph *a = record_temporary(&s, "a", 1, s.results);
    rondo_graph *outer = create_graph(&s, "outer", s.arena);
    memory_begin(outer, s.stream);
    uint32_t *x = memory_take(s.pool, s.stream, COUNT);
    ASSERT_STATUS(rondo_stream_add_graph(s.stream, a), STATE);
    ASSERT_MESSAGE_HAS("beside blocks of that graph itself");
    ASSERT_STATUS(rondo_graph_capture_end(outer), STATE);
    memory_free(s.pool, x);
    memory_begin(outer, s.stream);
    ASSERT_OK(rondo_stream_add_graph(s.stream, a));
    void *address = NULL;
    ASSERT_STATUS(rondo_pool_allocate(s.pool, s.stream, 4096, &address), STATE);
    memory_end(outer);
    memory_replay(outer, s.stream);
    ASSERT_VALUE(s.context, s.results, 0, 1);
    rondo_graph_destroy(outer);
    rondo_graph_destroy(a);
    destroy_scene(&s);
}

// Graph a leaves x behind, b reads it and frees it, c takes its place.
static void record_chain(const scene *s, const uint32_t *input, rondo_graph *graphs[3]) {
    const char *labels[3] = {"a", "b", "c"};
    for (int i = 0; i < 3; ++i) {
        graphs[i] = create_graph(s, labels[i], s->arena);
    }
    memory_begin(graphs[0], s->stream);
    uint32_t *x = memory_take(s->pool, s->stream, COUNT);
    ASSERT_OK(rondo_stream_copy(s->stream, x, input, sizeof *x, RONDO_COPY_DEVICE_TO_DEVICE));
    memory_end(graphs[0]);
    memory_begin(graphs[1], s->stream);
    ASSERT_OK(rondo_stream_copy(s->stream, s->results, x, sizeof *x, RONDO_COPY_DEVICE_TO_DEVICE));
    memory_free(s->pool, x);
    memory_end(graphs[1]);
    memory_begin(graphs[2], s->stream);
    uint32_t *y = memory_take(s->pool, s->stream, COUNT);
    assert_ptr_equal(x, y);
    memory_fill(s->stream, y, 666, COUNT);
    memory_free(s->pool, y);
    memory_end(graphs[2]);
}

SUITE_CASE(test_conformance_memory_recorded__none_needs_another_ones) {
    suite_need_children(context);
    scene s = create_scene(context, false);
    rondo_graph *graphs[3];
    record_chain(&s, s.results + 4, graphs);
    rondo_graph *outer = create_graph(&s, "outer", NULL);
    static const char *const orders[] = {"ab", "ba", "ac", "ca", "bc", "cb"};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; ++i) {
        memory_begin(outer, s.stream);
        ASSERT_OK(rondo_stream_add_graph(s.stream, graphs[orders[i][0] - 'a']));
        ASSERT_STATUS(rondo_stream_add_graph(s.stream, graphs[orders[i][1] - 'a']), STATE);
        ASSERT_MESSAGE_HAS("read or write over what another one leaves behind");
        ASSERT_STATUS(rondo_graph_capture_end(outer), STATE);
    }
    rondo_graph_destroy(outer);
    for (int i = 0; i < 3; ++i) {
        rondo_graph_destroy(graphs[i]);
    }
    destroy_scene(&s);
}

// The program keeps them in order by itself.
SUITE_CASE(test_conformance_memory_recorded__any_order_is_the_programs) {
    suite_need_children(context);
    scene s = create_scene(context, true);
    rondo_graph *graphs[3];
    record_chain(&s, s.results + 4, graphs);
    rondo_graph *outer = create_graph(&s, "outer", NULL);
    memory_begin(outer, s.stream);
    for (int i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_stream_add_graph(s.stream, graphs[i]));
    }
    memory_end(outer);
    for (uint32_t i = 1; i < 4; ++i) {
        memory_fill(s.stream, s.results + 4, i, 1);
        memory_replay(outer, s.stream);
        ASSERT_VALUE(s.context, s.results, 0, i);
    }
    rondo_graph_destroy(outer);
    for (int i = 0; i < 3; ++i) {
        rondo_graph_destroy(graphs[i]);
    }
    destroy_scene(&s);
}

// ---- steps ------------------------------------------------------------------------------------

typedef struct step_data {
    const scene *s;
    uint32_t *previous;
    uint32_t *output;
} step_data;

// Gives back what the last step left and leaves a new block; it cannot be recorded.
static rondo_status take_and_wait(rondo_stream *stream, void *user_data) {
    step_data *d = user_data;
    void *address = NULL;
    rondo_status status = rondo_pool_free(d->s->pool, d->previous);
    if (status == RONDO_STATUS_OK) {
        status = rondo_pool_allocate(d->s->pool, stream, COUNT * sizeof(uint32_t), &address);
        d->output = address;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, d->output, 5, sizeof(uint32_t), COUNT);
    }
    return status == RONDO_STATUS_OK ? rondo_stream_synchronize(stream) : status;
}

SUITE_CASE(test_conformance_memory_recorded__a_step_that_runs_again) {
    scene s = create_scene(context, false);
    rondo_graph *graph = create_graph(&s, "step", NULL);
    step_data d = {.s = &s, .previous = memory_take(s.pool, s.stream, COUNT)};
    for (int i = 0; i < 3; ++i) {
        rondo_step_outcome outcome;
        ASSERT_OK(rondo_graph_capture_step(graph, s.stream, NULL, take_and_wait, &d, &outcome));
        assert_int_equal(outcome, RONDO_STEP_RAN_EAGERLY);
        assert_int_equal(memory_get_pool_stats(s.pool).live_count, 1);
        ASSERT_VALUE(s.context, d.output, COUNT - 1, 5);
        d.previous = d.output;
    }
    memory_free(s.pool, d.output);
    rondo_graph_destroy(graph);
    destroy_scene(&s);
}
