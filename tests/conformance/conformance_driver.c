// What only the driver calls of the program's own record: fills and copies of several rows, memory
// in the order of a stream.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"
#include "support/driver_calls.h"

enum { WIDTH = 3, PITCH = 8, ROWS = 4, BYTES = PITCH * ROWS };

typedef struct scene {
    suite_context *context;
    rondo_stream *stream;
    rondo_graph *graph;
    unsigned char *memory;  // device; twice BYTES
    unsigned char *seen;    // pinned; the same
} scene;

static void need_driver(suite_context *context) {
    suite_need_execution(context);
    if (!context->is_cuda) {
        suite_skip("the device has no driver");
    }
}

static scene open_scene(void **state) {
    suite_context *context = suite_get_context(state);
    need_driver(context);
    return (scene){.context = context,
                   .stream = suite_create_stream(context),
                   .graph = suite_create_graph(context, true),
                   .memory = (void *)suite_allocate(context, RONDO_MEMORY_DEVICE, BYTES),
                   .seen = (void *)suite_allocate(context, RONDO_MEMORY_PINNED, BYTES)};
}

static void close_scene(scene *s) {
    rondo_graph_destroy(s->graph);
    rondo_stream_destroy(s->stream);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->memory);
    suite_free(s->context, RONDO_MEMORY_PINNED, s->seen);
}

// Replays over zeroed memory, and looks at it.
static void look(scene *s) {
    ASSERT_OK(rondo_stream_fill(s->stream, s->memory, 0, 1, (size_t)2 * BYTES));
    ASSERT_OK(rondo_graph_replay(s->graph, s->stream));
    ASSERT_OK(rondo_stream_copy(s->stream, s->seen, s->memory, (size_t)2 * BYTES,
                                RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_stream_synchronize(s->stream));
}

// Whether the rows from `first` on are `value`, and what lies between them is 0.
static void expect_rows(const scene *s, size_t first, unsigned char value) {
    for (size_t i = 0; i < BYTES; ++i) {
        assert_int_equal(s->seen[first + i], i % PITCH < WIDTH ? value : 0);
    }
}

// ---- rows -------------------------------------------------------------------------------------

static rondo_node record_fill(scene *s, unsigned char value) {
    rondo_node node;
    ASSERT_OK(driver_fill_rows(s->stream, s->memory, PITCH, value, WIDTH, ROWS));
    ASSERT_OK(rondo_stream_get_last_node(s->stream, &node));
    return node;
}

static rondo_work fill_work(void *destination, uint32_t value, size_t count) {
    return (rondo_work){.struct_size = sizeof(rondo_work),
                        .kind = RONDO_NODE_FILL,
                        .destination = destination,
                        .fill_value = value,
                        .element_bytes = 1,
                        .element_count = count};
}

SUITE_CASE(test_conformance_driver__fills_of_rows_take_value_and_destination) {
    scene s = open_scene(state);
    memory_begin(s.graph, s.stream);
    const rondo_node node = record_fill(&s, 5);
    memory_end(s.graph);
    look(&s);
    expect_rows(&s, 0, 5);
    expect_rows(&s, BYTES, 0);

    rondo_work work = fill_work(s.memory + BYTES, 0x12345607, WIDTH * ROWS);
    ASSERT_OK(rondo_graph_patch_node(s.graph, node, &work));
    look(&s);
    expect_rows(&s, 0, 0);
    expect_rows(&s, BYTES, 7);

    work.element_count = WIDTH;
    ASSERT_STATUS(rondo_graph_patch_node(s.graph, node, &work), INVALID);
    ASSERT_MESSAGE_HAS("4 rows of 3 elements of 1 bytes");
    look(&s);
    expect_rows(&s, BYTES, 7);
    close_scene(&s);
}

// What comes behind the fill waits for what came before it, also while it is off.
SUITE_CASE(test_conformance_driver__fills_of_rows_are_switched_off) {
    scene s = open_scene(state);
    memory_begin(s.graph, s.stream);
    ASSERT_OK(suite_linger(s.context, s.stream, 2000));
    ASSERT_OK(rondo_stream_fill(s.stream, s.memory + BYTES, 3, 1, 1));
    const rondo_node node = record_fill(&s, 5);
    ASSERT_OK(rondo_stream_copy(s.stream, s.memory + BYTES + 1, s.memory + BYTES, 1,
                                RONDO_COPY_DEVICE_TO_DEVICE));
    memory_end(s.graph);
    rondo_patch patch = {.node = node, .toggle = RONDO_TOGGLE_DISABLE};
    for (int round = 0; round < 2; ++round) {
        ASSERT_OK(rondo_graph_patch(s.graph, &patch, 1));
        look(&s);
        expect_rows(&s, 0, round == 0 ? 0 : 5);
        assert_int_equal(s.seen[BYTES + 1], 3);
        patch.toggle = RONDO_TOGGLE_ENABLE;
    }
    close_scene(&s);
}

static rondo_node record_copy(scene *s) {
    rondo_node node;
    ASSERT_OK(driver_copy_rows(s->stream, s->memory + BYTES, s->memory, PITCH, WIDTH, ROWS));
    ASSERT_OK(rondo_stream_get_last_node(s->stream, &node));
    return node;
}

// The driver patches none.
SUITE_CASE(test_conformance_driver__copies_of_rows_are_switched_off) {
    scene s = open_scene(state);
    memory_begin(s.graph, s.stream);
    ASSERT_OK(rondo_stream_fill(s.stream, s.memory, 6, 1, BYTES));
    const rondo_node node = record_copy(&s);
    memory_end(s.graph);
    const rondo_work work =
        node_copy_work(s.memory + BYTES, s.memory, WIDTH * ROWS, RONDO_COPY_DEVICE_TO_DEVICE);
    ASSERT_STATUS(rondo_graph_patch_node(s.graph, node, &work), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("several rows");
    rondo_patch patch = {.node = node, .toggle = RONDO_TOGGLE_DISABLE};
    for (int round = 0; round < 2; ++round) {
        ASSERT_OK(rondo_graph_patch(s.graph, &patch, 1));
        look(&s);
        expect_rows(&s, BYTES, round == 0 ? 0 : 6);
        patch.toggle = RONDO_TOGGLE_ENABLE;
    }
    close_scene(&s);
}

// ---- memory in the order of a stream ----------------------------------------------------------

static rondo_copy_kind get_last_kind(rondo_graph *graph) {
    rondo_graph_node node = {.struct_size = sizeof node};
    size_t count = 0;
    ASSERT_OK(rondo_graph_get_node_count(graph, &count));
    ASSERT_OK(rondo_graph_get_node(graph, count - 1, &node));
    assert_int_equal(node.kind, RONDO_NODE_COPY);
    return node.copy_kind;
}

// The driver knows nothing of such memory. It is never taken for the host's, which one may read.
SUITE_CASE(test_conformance_driver__memory_of_a_capture_is_not_the_hosts) {
    scene s = open_scene(state);
    memory_begin(s.graph, s.stream);
    void *taken = NULL;
    ASSERT_OK(driver_take(s.stream, BYTES, &taken));
    ASSERT_OK(driver_copy_default(s.stream, s.memory, taken, 4));
    memory_end(s.graph);
    assert_int_equal(get_last_kind(s.graph), RONDO_COPY_DEVICE_TO_DEVICE);
    ASSERT_OK(rondo_graph_reset(s.graph));

    memory_begin(s.graph, s.stream);
    ASSERT_OK(driver_copy_default(s.stream, s.memory, s.seen, 4));
    memory_end(s.graph);
    assert_int_equal(get_last_kind(s.graph), RONDO_COPY_HOST_TO_DEVICE);
    close_scene(&s);
}

static rondo_status take_in_body(rondo_stream *stream, void *user_data) {
    (void)user_data;
    void *taken = NULL;
    return driver_take(stream, BYTES, &taken);
}

// What the driver says of them does not name them.
SUITE_CASE(test_conformance_driver__memory_nodes_are_named) {
    scene s = open_scene(state);
    suite_need(s.context, RONDO_FEATURE_IF);
    rondo_graph *outer = suite_create_graph(s.context, true);
    void *taken = NULL;
    memory_begin(s.graph, s.stream);
    ASSERT_OK(driver_take(s.stream, BYTES, &taken));
    memory_end(s.graph);
    memory_begin(outer, s.stream);
    ASSERT_STATUS(rondo_stream_add_graph(s.stream, s.graph), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("cublasSetWorkspace");
    rondo_graph_capture_abort(outer);

    memory_begin(outer, s.stream);
    ASSERT_OK(rondo_control_if(s.stream, s.memory, take_in_body, NULL, NULL));
    ASSERT_STATUS(rondo_graph_capture_end(outer), DRIVER);
    ASSERT_MESSAGE_HAS("the body of a conditional node holds a memory node");
    rondo_graph_destroy(outer);
    close_scene(&s);
}
