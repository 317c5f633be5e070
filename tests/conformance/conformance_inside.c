// Graphs seen from inside and put into each other: node lists, dumps of child graphs, recording a
// graph into another capture, updating one graph by another, executables on demand.
#include "backend/capture.h"
#include "backend/cuda/cuda_api.h"
#include "base/text.h"
#include "conformance.h"
#include "rondo/pool.h"

static bool append_text(void *user_data, const char *bytes, size_t count) {
    rondo__text_append_bytes(user_data, bytes, count);
    return true;
}

static void assert_dump_has(rondo_graph *graph, rondo_dump_format format, const char *part) {
    rondo__text text = {0};
    ASSERT_OK(rondo_graph_dump(graph, format, append_text, &text));
    if (strstr(text.bytes, part) == NULL) {
        print_error("no \"%s\" in:\n%s\n", part, text.bytes);
        fail();
    }
    rondo__text_deinit(&text);
}

static void begin(rondo_graph *graph, rondo_stream *stream) {
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
}

static rondo_graph *create_deferred(suite_context *context) {
    rondo_graph_options options = rondo_graph_options_default();
    options.keep_template = true;
    options.defer_instantiation = true;
    options.label = "deferred";
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(context->device, &options, &graph));
    return graph;
}

// x = x * factor + 1 as a graph of one node.
static rondo_graph *capture_affine(suite_context *context, uint32_t *x, uint32_t factor) {
    rondo_graph *graph = create_deferred(context);
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, factor, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    return graph;
}

static void replay_and_wait(suite_context *context, rondo_graph *graph) {
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
}

// ---- node lists -------------------------------------------------------------------------------

static void test_conformance_inside__nodes_tell_every_field(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 300);
    uint32_t *pinned = suite_allocate(context, RONDO_MEMORY_PINNED, 300);
    rondo_event *event = suite_create_event(context, RONDO_EVENT_EXTERNAL);
    rondo_graph *graph = suite_create_graph(context, true);
    begin(graph, stream);
    ASSERT_OK(rondo_stream_fill(stream, x, 0x55, 2, 100));
    ASSERT_OK(rondo_event_record(event, stream));
    ASSERT_OK(suite_affine(context, stream, x, 300, 2, 1));
    ASSERT_OK(rondo_stream_wait_event(stream, event));
    ASSERT_OK(rondo_stream_copy(stream, pinned, x, 1200, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_graph_capture_end(graph));

    uint64_t count = 0;
    ASSERT_OK(rondo_graph_get_node_count(graph, &count));
    assert_int_equal(count, 5);
    int seen[RONDO_NODE_OTHER + 1] = {0};
    for (uint64_t i = 0; i < count; ++i) {
        rondo_graph_node node;
        ASSERT_OK(rondo_graph_get_node(graph, i, &node));
        ++seen[node.kind];
        assert_true((node.native == NULL) == context->is_host);
        if (node.kind == RONDO_NODE_KERNEL) {
            assert_string_equal(node.name, "affine");
            assert_int_equal(node.grid[0], 3);
            assert_int_equal(node.block[0], 128);
            assert_int_equal(node.shared_bytes, 0);
        } else if (node.kind == RONDO_NODE_FILL) {
            assert_ptr_equal(node.destination, x);
            assert_int_equal(node.fill_value, 0x55);
            assert_int_equal(node.element_bytes, 2);
            assert_int_equal(node.width, 100);
            assert_int_equal(node.height, 1);
            assert_int_equal(node.byte_count, 200);
        } else if (node.kind == RONDO_NODE_COPY) {
            assert_int_equal(node.copy_kind, RONDO_COPY_DEVICE_TO_HOST);
            assert_ptr_equal(node.source, x);
            assert_ptr_equal(node.destination, pinned);
            assert_int_equal(node.byte_count, 1200);
        } else {
            assert_non_null(node.event);
        }
    }
    assert_int_equal(seen[RONDO_NODE_KERNEL], 1);
    assert_int_equal(seen[RONDO_NODE_FILL], 1);
    assert_int_equal(seen[RONDO_NODE_COPY], 1);
    assert_int_equal(seen[RONDO_NODE_EVENT_RECORD], 1);
    assert_int_equal(seen[RONDO_NODE_EVENT_WAIT], 1);
    rondo_graph_edge edges[4];
    ASSERT_OK(rondo_graph_list_edges(graph, NULL, 0, &count));
    assert_int_equal(count, 4);
    ASSERT_OK(rondo_graph_list_edges(graph, edges, 4, &count));
    for (int i = 0; i < 4; ++i) {
        assert_true(edges[i].from < 5 && edges[i].to < 5 && edges[i].from != edges[i].to);
        assert_false(edges[i].is_programmatic);
    }
    assert_dump_has(graph, RONDO_DUMP_JSON, "\"kind\": \"event_record\", \"event\": \"0x");
    assert_dump_has(graph, RONDO_DUMP_JSON, "\"element_bytes\": 2, \"width\": 100, \"height\": 1");
    assert_dump_has(graph, RONDO_DUMP_JSON,
                    "\"stats\": {\"nodes\": 5, \"kernels\": 1, \"copies\": 2");
    assert_dump_has(graph, RONDO_DUMP_DOT, "event_wait\\n0x");
    rondo_graph_node node;
    ASSERT_STATUS(rondo_graph_get_node(graph, 5, &node), INVALID);
    ASSERT_STATUS(rondo_graph_list_edges(graph, NULL, 3, &count), INVALID);
    ASSERT_OK(rondo_graph_reset(graph));
    ASSERT_STATUS(rondo_graph_get_node_count(graph, &count), STATE);
    ASSERT_STATUS(rondo_graph_get_node(graph, 0, &node), STATE);
    rondo_graph_destroy(graph);
    rondo_event_destroy(event);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    suite_free(context, RONDO_MEMORY_PINNED, pinned);
}

static void test_conformance_inside__programmatic_edges(void **state) {
    suite_context *context = suite_get_context(state);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_graph *graph = create_deferred(context);
    struct {
        uint32_t *x;
        uint32_t count, factor, term;
    } arguments = {x, 1, 1, 0};
    rondo_launch launch = {.name = "affine",
                           .function = context->affine,
                           .grid = {1, 1, 1},
                           .block = {32, 1, 1},
                           .arguments = &arguments,
                           .argument_bytes = 20};
    begin(graph, context->stream);
    ASSERT_OK(rondo_stream_launch(context->stream, &launch));
    launch.flags = RONDO_LAUNCH_OVERLAP;
    ASSERT_OK(rondo_stream_launch(context->stream, &launch));
    ASSERT_OK(rondo_graph_capture_end(graph));
    rondo_graph_edge edge;
    uint64_t count = 0;
    ASSERT_OK(rondo_graph_list_edges(graph, &edge, 1, &count));
    assert_int_equal(count, 1);
    rondo_device_info info;
    ASSERT_OK(rondo_device_get_info(context->device, &info));
    assert_int_equal(edge.is_programmatic, !context->is_host && info.arch_major >= 9);
    if (edge.is_programmatic) {
        assert_dump_has(graph, RONDO_DUMP_JSON, "[0, 1, \"programmatic\"]");
        assert_dump_has(graph, RONDO_DUMP_DOT, "n0 -> n1 [style=dashed, label=\"programmatic\"]");
    }
    rondo_graph_destroy(graph);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

// ---- a graph inside another -------------------------------------------------------------------

typedef struct add_arguments {
    uint32_t *x;
    uint32_t term;
} add_arguments;

static void run_add(void *data) {
    const add_arguments *arguments = data;
    *arguments->x += arguments->term;
}

static void test_conformance_inside__a_graph_is_recorded_into_another(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    uint32_t *counter = suite_allocate(context, RONDO_MEMORY_PINNED, 1);
    *counter = 0;
    suite_set(context, x, 1, 1);
    // Inner: x = (x * 2 + 1) * 3 + 1, and the host counts by 5.
    rondo_graph *inner = create_deferred(context);
    add_arguments add = {.x = counter, .term = 5};
    begin(inner, stream);
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    ASSERT_OK(rondo_stream_call_host(stream, "add", run_add, &add, sizeof add));
    ASSERT_OK(suite_affine(context, stream, x, 1, 3, 1));
    ASSERT_OK(rondo_graph_capture_end(inner));
    add.term = 1000;  // the graph has a copy

    rondo_graph *outer = suite_create_graph(context, true);
    begin(outer, stream);
    ASSERT_OK(suite_affine(context, stream, x, 1, 1, 1));
    ASSERT_OK(rondo_graph_record(inner, stream));
    ASSERT_OK(suite_affine(context, stream, x, 1, 5, 0));
    ASSERT_OK(rondo_graph_record(inner, stream));
    ASSERT_OK(rondo_graph_capture_end(outer));
    assert_int_equal(suite_get(context, x, 0), 1);
    rondo_graph_destroy(inner);

    rondo_graph_stats stats;
    ASSERT_OK(rondo_graph_get_stats(outer, &stats));
    assert_int_equal(stats.node_count, 4);
    assert_int_equal(stats.kernel_count, context->is_host ? 8 : 6);
    uint64_t inner_count = 0;
    for (uint64_t i = 0; i < 4; ++i) {
        rondo_graph_node node;
        ASSERT_OK(rondo_graph_get_node(outer, i, &node));
        inner_count += node.kind == RONDO_NODE_CHILD ? node.inner_count : 0;
    }
    assert_int_equal(inner_count, 6);
    assert_dump_has(outer, RONDO_DUMP_JSON, "\"kind\": \"child\", \"graph\": {\"nodes\": [");
    assert_dump_has(outer, RONDO_DUMP_DOT, "subgraph cluster_n1 {");
    assert_dump_has(outer, RONDO_DUMP_DOT, "  n1_0 -> n1_1;");
    assert_dump_has(outer, RONDO_DUMP_DOT, "n1_1 [label=\"1 host\\nadd\"]");

    uint32_t expected = 1;
    for (int round = 1; round <= 3; ++round) {
        replay_and_wait(context, outer);
        expected += 1;
        expected = (expected * 2 + 1) * 3 + 1;
        expected *= 5;
        expected = (expected * 2 + 1) * 3 + 1;
        assert_int_equal(suite_get(context, x, 0), expected);
        assert_int_equal(*counter, 10 * round);
    }
    rondo_graph_destroy(outer);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    suite_free(context, RONDO_MEMORY_PINNED, counter);
}

// Branches outside and inside, graphs inside graphs inside graphs, empty ones among them.
static void test_conformance_inside__branches_and_depth(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_stream *stream = context->stream;
    rondo_stream *side = suite_create_stream(context);
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 64);
    uint32_t *y = x + 32;
    rondo_graph *empty = create_deferred(context);
    begin(empty, stream);
    ASSERT_OK(rondo_graph_capture_end(empty));

    rondo_graph *forked = create_deferred(context);  // x and y side by side
    begin(forked, stream);
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    ASSERT_OK(suite_affine(context, side, y, 1, 3, 1));
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_graph_capture_end(forked));

    rondo_graph *middle = create_deferred(context);
    begin(middle, stream);
    ASSERT_OK(rondo_graph_record(empty, stream));
    ASSERT_OK(rondo_graph_record(forked, stream));
    ASSERT_OK(rondo_graph_record(forked, stream));
    ASSERT_OK(rondo_graph_capture_end(middle));

    rondo_graph *outer = suite_create_graph(context, true);
    begin(outer, stream);
    ASSERT_OK(rondo_stream_fill(stream, x, 1, 4, 64));
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    ASSERT_OK(suite_affine(context, side, y + 1, 1, 7, 0));
    ASSERT_OK(rondo_graph_record(middle, stream));
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_graph_record(empty, stream));
    ASSERT_OK(suite_affine(context, stream, y, 1, 10, 0));
    ASSERT_OK(rondo_graph_capture_end(outer));
    for (int round = 0; round < 3; ++round) {
        replay_and_wait(context, outer);
        assert_int_equal(suite_get(context, x, 0), 7);
        assert_int_equal(suite_get(context, y, 0), 130);
        assert_int_equal(suite_get(context, y, 1), 7);
    }
    assert_dump_has(outer, RONDO_DUMP_JSON, "\"kind\": \"child\"");
    rondo_graph_destroy(outer);
    rondo_graph_destroy(middle);
    rondo_graph_destroy(forked);
    rondo_graph_destroy(empty);
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(side);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

// Who takes part in the inner graph is asked by the outer graph's replays and outlives the inner.
typedef struct witness {
    rondo__participant head;
    int *prepared;
    int *noted;
    int *destroyed;
} witness;

static rondo_status prepare_witness(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    ++*((witness *)participant)->prepared;
    return RONDO_STATUS_OK;
}

static void note_witness(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    ++*((witness *)participant)->noted;
}

static void destroy_witness(rondo__participant *participant) {
    ++*((witness *)participant)->destroyed;
    free(participant);
}

static const rondo__participant_type witness_type = {.name = "a witness",
                                                     .prepare_replay = prepare_witness,
                                                     .note_replay = note_witness,
                                                     .destroy = destroy_witness};

static rondo_graph *capture_with_witness(suite_context *context, uint32_t *x, int counts[3]) {
    rondo_graph *graph = create_deferred(context);
    begin(graph, context->stream);
    rondo__capture *capture;
    ASSERT_OK(rondo__capture_find(context->stream, &capture, NULL));
    assert_non_null(capture);
    witness *w = malloc(sizeof *w);
    assert_non_null(w);
    *w = (witness){.head = {.type = &witness_type},
                   .prepared = &counts[0],
                   .noted = &counts[1],
                   .destroyed = &counts[2]};
    rondo__capture_add_participant(capture, &w->head);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    return graph;
}

static void test_conformance_inside__participants_travel_along(void **state) {
    suite_context *context = suite_get_context(state);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    int counts[3] = {0, 0, 0};
    rondo_graph *other_outer;
    rondo_graph *inner = capture_with_witness(context, x, counts);
    replay_and_wait(context, inner);
    assert_int_equal(counts[0], 1);
    rondo_graph *outers[2];
    for (int i = 0; i < 2; ++i) {
        outers[i] = suite_create_graph(context, false);
        begin(outers[i], context->stream);
        ASSERT_OK(rondo_graph_record(inner, context->stream));
        ASSERT_OK(rondo_graph_record(inner, context->stream));
        ASSERT_OK(rondo_graph_capture_end(outers[i]));
    }
    // A capture that is given up gives up its share.
    rondo_graph *aborted = suite_create_graph(context, false);
    begin(aborted, context->stream);
    ASSERT_OK(rondo_graph_record(inner, context->stream));
    rondo_graph_capture_abort(aborted);
    rondo_graph_destroy(aborted);

    replay_and_wait(context, inner);
    assert_int_equal(counts[0], 2);
    replay_and_wait(context, outers[0]);
    assert_int_equal(counts[0], 3);  // once, though it is in there twice
    assert_int_equal(counts[1], 3);
    rondo_graph_destroy(inner);
    assert_int_equal(counts[2], 0);
    replay_and_wait(context, outers[1]);
    assert_int_equal(counts[0], 4);
    // One level more: both stay what they are.
    int others[3] = {0, 0, 0};
    rondo_graph *other = capture_with_witness(context, x, others);
    begin(other_outer = create_deferred(context), context->stream);
    ASSERT_OK(rondo_graph_record(other, context->stream));
    ASSERT_OK(rondo_graph_capture_end(other_outer));
    rondo_graph *top = suite_create_graph(context, false);
    begin(top, context->stream);
    ASSERT_OK(rondo_graph_record(other_outer, context->stream));
    ASSERT_OK(rondo_graph_capture_end(top));
    rondo_graph_destroy(other);
    replay_and_wait(context, other_outer);
    rondo_graph_destroy(other_outer);
    replay_and_wait(context, top);
    assert_int_equal(others[0], 2);
    assert_int_equal(others[2], 0);
    rondo_graph_destroy(top);
    assert_int_equal(others[2], 1);

    ASSERT_OK(rondo_graph_reset(outers[0]));
    assert_int_equal(counts[2], 0);
    rondo_graph_destroy(outers[1]);
    assert_int_equal(counts[2], 1);
    assert_int_equal(suite_get(context, x, 0), 511);  // eight times
    rondo_graph_destroy(outers[0]);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

// Memory that the inner graph took from a pool lives as long as the outer graph.
static void test_conformance_inside__memory_travels_along(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_pool *pool;
    ASSERT_OK(rondo_pool_create(context->device, NULL, &pool));
    rondo_graph *inner = create_deferred(context);
    void *block = NULL;
    begin(inner, stream);
    ASSERT_OK(rondo_pool_allocate(pool, stream, 64, &block));
    ASSERT_OK(rondo_stream_fill(stream, block, 5, 4, 1));
    ASSERT_OK(suite_affine(context, stream, block, 1, 2, 1));
    ASSERT_OK(rondo_stream_copy(stream, x, block, 4, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(rondo_pool_free(pool, block));
    ASSERT_OK(rondo_graph_capture_end(inner));
    rondo_graph *outer = suite_create_graph(context, false);
    begin(outer, stream);
    ASSERT_OK(rondo_graph_record(inner, stream));
    ASSERT_OK(suite_affine(context, stream, x, 1, 3, 0));
    ASSERT_OK(rondo_graph_capture_end(outer));
    rondo_graph_destroy(inner);
    ASSERT_OK(rondo_pool_trim(pool, 0, NULL));
    // Others may take memory now, but not that.
    void *others[4];
    for (int i = 0; i < 4; ++i) {
        ASSERT_OK(rondo_pool_allocate(pool, stream, 64, &others[i]));
        assert_ptr_not_equal(others[i], block);
    }
    replay_and_wait(context, outer);
    assert_int_equal(suite_get(context, x, 0), 33);
    for (int i = 0; i < 4; ++i) {
        ASSERT_OK(rondo_pool_free(pool, others[i]));
    }
    // An update hands it over as well.
    rondo_graph *updated = suite_create_graph(context, false);
    rondo_graph *source = create_deferred(context);
    for (uint32_t round = 0; round < 3; ++round) {
        begin(source, stream);
        ASSERT_OK(rondo_pool_allocate(pool, stream, 64, &block));
        ASSERT_OK(rondo_stream_fill(stream, block, round, 4, 1));
        ASSERT_OK(suite_affine(context, stream, block, 1, 2, 1));
        ASSERT_OK(rondo_stream_copy(stream, x, block, 4, RONDO_COPY_DEVICE_TO_DEVICE));
        ASSERT_OK(rondo_pool_free(pool, block));
        ASSERT_OK(rondo_graph_capture_end(source));
        ASSERT_OK(rondo_graph_update(updated, source, NULL));
        replay_and_wait(context, updated);
        assert_int_equal(suite_get(context, x, 0), 2 * round + 1);
    }
    rondo_graph_stats stats;
    ASSERT_OK(rondo_graph_get_stats(updated, &stats));
    assert_true(stats.arena_reserved_bytes > 0);
    rondo_graph_destroy(source);
    replay_and_wait(context, updated);
    rondo_graph_destroy(updated);
    rondo_graph_destroy(outer);
    rondo_pool_stats pool_stats;
    ASSERT_OK(rondo_pool_trim(pool, 0, NULL));
    ASSERT_OK(rondo_pool_get_stats(pool, &pool_stats));
    assert_int_equal(pool_stats.live_count, 0);
    assert_int_equal(pool_stats.reserved_bytes, 0);
    rondo_pool_release(pool);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

static void test_conformance_inside__recording_refused(void **state) {
    suite_context *context = suite_get_context(state);
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *kept = capture_affine(context, x, 2);
    rondo_graph *bare = suite_create_graph(context, false);
    begin(bare, stream);
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(bare));

    ASSERT_STATUS(rondo_graph_record(kept, stream), STATE);
    ASSERT_MESSAGE_HAS("rondo_graph_replay");
    rondo_graph *outer = suite_create_graph(context, false);
    begin(outer, stream);
    ASSERT_STATUS(rondo_graph_record(bare, stream), STATE);
    ASSERT_MESSAGE_HAS("keep_template");
    ASSERT_STATUS(rondo_graph_record(outer, stream), STATE);
    ASSERT_STATUS(rondo_graph_record(NULL, stream), INVALID);
    ASSERT_STATUS(rondo_graph_record(kept, NULL), INVALID);
    ASSERT_STATUS(rondo_graph_replay(kept, stream), STATE);
    ASSERT_MESSAGE_HAS("rondo_graph_record");
    // None of it broke the capture.
    ASSERT_OK(rondo_graph_record(kept, stream));
    ASSERT_OK(rondo_graph_capture_end(outer));
    replay_and_wait(context, outer);
    assert_int_equal(suite_get(context, x, 0), 3);
    rondo_graph_destroy(outer);
    rondo_graph_destroy(bare);
    rondo_graph_destroy(kept);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

// ---- captures that Rondo did not begin --------------------------------------------------------

static void test_conformance_inside__foreign_captures(void **state) {
    suite_context *context = suite_get_context(state);
    if (context->is_host) {
        print_message("skipped: the host has no captures but Rondo's\n");
        skip();
    }
    const rondo__cuda_api *api;
    ASSERT_OK(rondo__cuda_get_api(&api));
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 4);
    uint32_t *pinned = suite_allocate(context, RONDO_MEMORY_PINNED, 4);
    suite_set(context, x, 1, 4);
    pinned[0] = 0;
    rondo_graph *inner = capture_affine(context, x, 2);
    int counts[3] = {0, 0, 0};
    rondo_graph *asking = capture_with_witness(context, x, counts);
    // The program's own stream: wrapped, not taken over.
    rondo_stream *owner = suite_create_stream(context);
    rondo_stream *side = suite_create_stream(context);
    rondo__cu_stream native = rondo_stream_get_native(owner);
    rondo_stream *stream;
    ASSERT_OK(rondo_stream_wrap(context->device, native, &stream));
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    add_arguments add = {.x = pinned + 1, .term = 4};
    pinned[1] = 0;

    rondo_pool *pool;
    ASSERT_OK(rondo_pool_create(context->device, NULL, &pool));
    // As in a program of the runtime API: the primary context is current.
    rondo__cu_context pushed = NULL;
    assert_int_equal(api->cuDevicePrimaryCtxRetain(&pushed, 0), 0);
    assert_int_equal(api->cuCtxPushCurrent(pushed), 0);
    assert_int_equal(api->cuStreamBeginCapture(native, RONDO__CU_CAPTURE_MODE_THREAD_LOCAL), 0);
    bool is_capturing = false;
    ASSERT_OK(rondo_stream_is_capturing(stream, &is_capturing));
    assert_true(is_capturing);
    ASSERT_OK(rondo_stream_fill(stream, x, 5, 4, 4));
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    ASSERT_OK(suite_affine(context, side, x + 1, 1, 3, 0));
    ASSERT_STATUS(rondo_graph_replay(inner, stream), STATE);
    ASSERT_MESSAGE_HAS("rondo_graph_record");
    ASSERT_OK(rondo_graph_record(inner, stream));
    ASSERT_STATUS(rondo_graph_record(asking, stream), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("a witness");
    ASSERT_STATUS(rondo_graph_replay(inner, side), STATE);  // it joined
    void *block = NULL;
    ASSERT_STATUS(rondo_pool_allocate(pool, stream, 64, &block), STATE);
    ASSERT_MESSAGE_HAS("did not begin");
    ASSERT_STATUS(rondo_pool_allocate(pool, side, 64, &block), STATE);
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_stream_call_host(stream, "add", run_add, &add, sizeof add));
    ASSERT_OK(rondo_stream_copy(stream, pinned, x, 4, RONDO_COPY_DEVICE_TO_HOST));
    rondo__cu_graph graph = NULL;
    assert_int_equal(api->cuStreamEndCapture(native, &graph), 0);
    assert_int_equal(pinned[0], 0);
    assert_int_equal(suite_get(context, x, 0), 1);

    rondo__cu_graph_exec exec = NULL;
    assert_int_equal(api->cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    assert_int_equal(api->cuGraphLaunch(exec, native), 0);
    ASSERT_OK(rondo_stream_synchronize(stream));
    assert_int_equal(pinned[0], 11);
    assert_int_equal(pinned[1], 4);
    assert_int_equal(suite_get(context, x, 1), 15);
    assert_int_equal(api->cuGraphExecDestroy(exec), 0);
    assert_int_equal(api->cuGraphDestroy(graph), 0);
    assert_int_equal(api->cuCtxPopCurrent(&pushed), 0);
    assert_int_equal(api->cuDevicePrimaryCtxRelease(0), 0);
    // The stream is an ordinary one again.
    void *taken = NULL;
    ASSERT_OK(rondo_pool_allocate(pool, stream, 64, &taken));
    ASSERT_OK(rondo_pool_free(pool, taken));
    rondo_pool_release(pool);
    ASSERT_OK(rondo_graph_replay(inner, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    assert_int_equal(suite_get(context, x, 0), 23);
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(stream);
    rondo_stream_destroy(side);
    rondo_stream_destroy(owner);
    rondo_graph_destroy(asking);
    rondo_graph_destroy(inner);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
    suite_free(context, RONDO_MEMORY_PINNED, pinned);
}

// ---- executables on demand --------------------------------------------------------------------

static void test_conformance_inside__instantiation_on_demand(void **state) {
    suite_context *context = suite_get_context(state);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *graph = capture_affine(context, x, 2);
    rondo_graph_stats stats;
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.instantiate_ns, 0);
    assert_int_equal(stats.node_count, 1);
    uint64_t flags = 7;
    ASSERT_STATUS(rondo_graph_get_flags(graph, &flags), STATE);
    ASSERT_MESSAGE_HAS("rondo_graph_instantiate");
    ASSERT_STATUS(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL),
                  STATE);
    replay_and_wait(context, graph);
    assert_int_equal(suite_get(context, x, 0), 3);
    ASSERT_OK(rondo_graph_get_flags(graph, &flags));
    assert_int_equal(flags, 0);
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_true(stats.instantiate_ns > 0);
    ASSERT_OK(rondo_graph_instantiate(graph));
    replay_and_wait(context, graph);
    assert_int_equal(suite_get(context, x, 0), 7);
    ASSERT_OK(rondo_graph_reset(graph));
    ASSERT_STATUS(rondo_graph_get_flags(graph, &flags), STATE);
    // An upload makes one, too; so does asking for it.
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_upload(graph, context->stream));
    ASSERT_OK(rondo_graph_get_flags(graph, &flags));
    replay_and_wait(context, graph);
    assert_int_equal(suite_get(context, x, 0), 15);
    rondo_graph_destroy(graph);
    rondo_graph_options options = rondo_graph_options_default();
    options.defer_instantiation = true;
    ASSERT_STATUS(rondo_graph_create(context->device, &options, &graph), INVALID);
    ASSERT_MESSAGE_HAS("keep_template");
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

// ---- one graph updated by another -------------------------------------------------------------

static void test_conformance_inside__update_patches_or_instantiates(void **state) {
    suite_context *context = suite_get_context(state);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    uint32_t *y = x + 1;
    suite_set(context, x, 1, 2);
    rondo_graph *graph = suite_create_graph(context, false);
    rondo_update_result result = RONDO_UPDATE_PATCHED;
    // Empty: the first instantiation.
    rondo_graph *source = capture_affine(context, x, 2);
    ASSERT_OK(rondo_graph_update(graph, source, &result));
    assert_int_equal(result, RONDO_UPDATE_INSTANTIATED);
    ASSERT_STATUS(rondo_graph_replay(source, context->stream), STATE);
    replay_and_wait(context, graph);
    assert_int_equal(suite_get(context, x, 0), 3);
    // The same nodes with other arguments, while a replay is in flight.
    for (uint32_t round = 0; round < 3; ++round) {
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        begin(source, context->stream);
        ASSERT_OK(suite_affine(context, context->stream, y, 1, 3 + round, 0));
        ASSERT_OK(rondo_graph_capture_end(source));
        ASSERT_OK(rondo_graph_update(graph, source, &result));
        assert_int_equal(result, RONDO_UPDATE_PATCHED);
    }
    replay_and_wait(context, graph);
    assert_int_equal(suite_get(context, x, 0), 7);
    assert_int_equal(suite_get(context, y, 0), 60);
    rondo_graph_stats stats;
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.replay_count, 5);
    assert_int_equal(stats.node_count, 1);
    // One node more.
    begin(source, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, y, 1, 1, 1));
    ASSERT_OK(suite_affine(context, context->stream, y, 1, 2, 0));
    ASSERT_OK(rondo_graph_capture_end(source));
    ASSERT_OK(rondo_graph_update(graph, source, NULL));
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 2);
    replay_and_wait(context, graph);
    assert_int_equal(suite_get(context, y, 0), 122);
    rondo_graph_destroy(source);
    rondo_graph_destroy(graph);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

static void test_conformance_inside__update_takes_what_belongs_to_it(void **state) {
    suite_context *context = suite_get_context(state);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    int first[3] = {0, 0, 0};
    int second[3] = {0, 0, 0};
    rondo_graph *graph = capture_with_witness(context, x, first);
    replay_and_wait(context, graph);
    rondo_graph *source = capture_with_witness(context, x, second);
    rondo_update_result result = RONDO_UPDATE_INSTANTIATED;
    ASSERT_OK(rondo_graph_update(graph, source, &result));
    assert_int_equal(result, RONDO_UPDATE_PATCHED);
    assert_int_equal(first[2], 1);
    rondo_graph_destroy(source);
    assert_int_equal(second[2], 0);
    replay_and_wait(context, graph);
    assert_int_equal(second[0], 1);
    assert_int_equal(suite_get(context, x, 0), 7);
    // It keeps its template, so it can be looked at, recorded, and be a source itself.
    uint64_t count = 0;
    ASSERT_OK(rondo_graph_get_node_count(graph, &count));
    assert_int_equal(count, 1);
    rondo_graph *last = suite_create_graph(context, true);
    ASSERT_OK(rondo_graph_update(last, graph, &result));
    assert_int_equal(result, RONDO_UPDATE_INSTANTIATED);
    replay_and_wait(context, last);
    assert_int_equal(suite_get(context, x, 0), 15);
    ASSERT_STATUS(rondo_graph_update(last, last, &result), INVALID);
    ASSERT_STATUS(rondo_graph_update(last, graph, &result), STATE);  // it is empty now
    ASSERT_STATUS(rondo_graph_update(NULL, last, &result), INVALID);
    ASSERT_STATUS(rondo_graph_update(last, NULL, &result), INVALID);
    begin(graph, context->stream);
    ASSERT_STATUS(rondo_graph_update(graph, last, &result), STATE);
    ASSERT_STATUS(rondo_graph_update(last, graph, &result), STATE);
    rondo_graph_capture_abort(graph);
    replay_and_wait(context, last);
    assert_int_equal(suite_get(context, x, 0), 31);
    rondo_graph_destroy(last);
    assert_int_equal(second[2], 1);
    rondo_graph_destroy(graph);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

static const suite_entry inside_cases[] = {
    SUITE_CASE(test_conformance_inside__nodes_tell_every_field),
    SUITE_CASE(test_conformance_inside__programmatic_edges),
    SUITE_CASE(test_conformance_inside__a_graph_is_recorded_into_another),
    SUITE_CASE(test_conformance_inside__branches_and_depth),
    SUITE_CASE(test_conformance_inside__participants_travel_along),
    SUITE_CASE(test_conformance_inside__memory_travels_along),
    SUITE_CASE(test_conformance_inside__recording_refused),
    SUITE_CASE(test_conformance_inside__foreign_captures),
    SUITE_CASE(test_conformance_inside__instantiation_on_demand),
    SUITE_CASE(test_conformance_inside__update_patches_or_instantiates),
    SUITE_CASE(test_conformance_inside__update_takes_what_belongs_to_it),
    {NULL, NULL, false},
};
SUITE_LIST(inside);
