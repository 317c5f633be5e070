// Nodes that are found by index or label, what they do by now, steps that leave work out, and the
// keys of a cache.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"
#include "rondo/graph_cache.h"
#include "rondo/label.h"
#include "rondo/stepper.h"

enum { PER_SCOPE = 3 };

static node_scene open_scene(void **state) {
    suite_need_execution(suite_get_context(state));
    return node_open_scene(state, true);
}

// x = x + 1 in "a", three times; x = x * 1 + 10 in "a/b"; y = 7 without a scope.
static void record(node_scene *s) {
    memory_begin(s->graph, s->stream);
    ASSERT_OK(rondo_label_push(s->stream, "a"));
    for (int i = 0; i < PER_SCOPE; ++i) {
        ASSERT_OK(suite_affine(s->context, s->stream, s->x, NODE_COUNT, 1, 1));
    }
    ASSERT_OK(rondo_label_push(s->stream, "b"));
    ASSERT_OK(suite_affine(s->context, s->stream, s->x, NODE_COUNT, 1, 10));
    ASSERT_OK(rondo_label_pop(s->stream));
    ASSERT_OK(rondo_label_pop(s->stream));
    ASSERT_OK(rondo_stream_fill(s->stream, s->y, 7, 4, NODE_COUNT));
    memory_end(s->graph);
}

static size_t count_nodes(node_scene *s, const char *label) {
    size_t count;
    ASSERT_OK(rondo_graph_find_nodes(s->graph, label, NULL, 0, &count));
    return count;
}

static rondo_node_state read(node_scene *s, rondo_node node) {
    rondo_node_state state = {.struct_size = sizeof state};
    ASSERT_OK(rondo_graph_read_node(s->graph, node, &state));
    return state;
}

// ---- handles ----------------------------------------------------------------------------------

SUITE_CASE(test_conformance_find_node__by_label) {
    node_scene s = open_scene(state);
    record(&s);
    rondo_node nodes[8];
    size_t count;
    ASSERT_OK(rondo_graph_find_nodes(s.graph, "a/b", nodes, 8, &count));
    assert_int_equal(count, 1);
    assert_int_equal(count_nodes(&s, "a"), PER_SCOPE + 1);
    assert_int_equal(count_nodes(&s, "b"), 0);
    assert_int_equal(count_nodes(&s, "a/"), 0);
    assert_int_equal(count_nodes(&s, ""), 1);
    // Patched by what was found.
    ASSERT_OK(node_patch_affine(s.context, s.graph, nodes[0], s.x, NODE_COUNT, 1, 100));
    memory_replay(s.graph, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 1 + PER_SCOPE + 100);
    // And all of a scope switched off.
    rondo_patch off[PER_SCOPE + 1];
    ASSERT_OK(rondo_graph_find_nodes(s.graph, "a", nodes, 8, &count));
    for (size_t i = 0; i < count; ++i) {
        off[i] = (rondo_patch){nodes[i], NULL, RONDO_TOGGLE_DISABLE};
    }
    ASSERT_OK(rondo_graph_patch(s.graph, off, count));
    memory_replay(s.graph, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 1 + PER_SCOPE + 100);
    ASSERT_VALUE(s.context, s.y, 0, 7);
    // A list that is too short is filled, and the count is whole.
    rondo_node two[3] = {{0}, {0}, {9, 9}};
    ASSERT_OK(rondo_graph_find_nodes(s.graph, "a", two, 2, &count));
    assert_int_equal(count, PER_SCOPE + 1);
    assert_true(two[1].number != 0 && two[2].number == 9);
    node_close_scene(&s);
}

SUITE_CASE(test_conformance_find_node__by_index) {
    node_scene s = open_scene(state);
    memory_begin(s.graph, s.stream);
    const rondo_node first = node_add_affine(s.context, s.stream, s.x, NODE_COUNT, 1, 1);
    ASSERT_OK(suite_affine(s.context, s.stream, s.x, NODE_COUNT, 2, 0));
    memory_end(s.graph);
    size_t count, index;
    rondo_node node, again;
    ASSERT_OK(rondo_graph_get_node_count(s.graph, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; ++i) {
        ASSERT_OK(rondo_graph_get_node_handle(s.graph, i, &node));
        ASSERT_OK(rondo_graph_get_node_index(s.graph, node, &index));
        assert_int_equal(index, i);
        ASSERT_OK(rondo_graph_get_node_handle(s.graph, i, &again));
        assert_memory_equal(&node, &again, sizeof node);  // a node has one handle
    }
    ASSERT_OK(rondo_graph_get_node_index(s.graph, first, &index));
    ASSERT_OK(rondo_graph_get_node_handle(s.graph, index, &again));
    assert_memory_equal(&first, &again, sizeof first);
    ASSERT_OK(rondo_graph_get_node_handle(s.graph, 1 - index, &node));
    ASSERT_OK(node_patch_affine(s.context, s.graph, node, s.x, NODE_COUNT, 3, 0));
    memory_replay(s.graph, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 6);
    ASSERT_STATUS(rondo_graph_get_node_handle(s.graph, 2, &node), INVALID);
    ASSERT_MESSAGE_HAS("has 2 nodes; there is no node 2");
    assert_true(node.recording == 0 && node.number == 0);
    ASSERT_OK(rondo_graph_reset(s.graph));
    ASSERT_STATUS(rondo_graph_get_node_handle(s.graph, 0, &node), STATE);
    rondo_node_state now = {.struct_size = sizeof now};
    ASSERT_STATUS(rondo_graph_read_node(s.graph, first, &now), STATE);
    rondo_graph *bare = suite_create_graph(s.context, false);
    memory_begin(bare, s.stream);
    ASSERT_OK(suite_affine(s.context, s.stream, s.x, NODE_COUNT, 2, 0));
    memory_end(bare);
    ASSERT_STATUS(rondo_graph_get_node_handle(bare, 0, &node), STATE);
    ASSERT_MESSAGE_HAS("did not keep its template");
    rondo_graph_destroy(bare);
    node_close_scene(&s);
}

// ---- what nodes do ----------------------------------------------------------------------------

SUITE_CASE(test_conformance_find_node__what_the_executable_does) {
    node_scene s = open_scene(state);
    const rondo_work fill = node_fill_work(s.y, 7, NODE_COUNT);
    memory_begin(s.graph, s.stream);
    const rondo_node kernel = node_add_affine(s.context, s.stream, s.x, NODE_COUNT, 3, 4);
    const rondo_node filling = node_add(s.stream, &fill);
    memory_end(s.graph);
    rondo_node_state now = {.struct_size = sizeof now};
    const rondo_status status = rondo_graph_read_node(s.graph, kernel, &now);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        node_close_scene(&s);
        suite_skip("its nodes cannot be patched");
    }
    ASSERT_OK(status);
    suite_affine_arguments arguments = {0};
    assert_int_equal(now.kind, RONDO_NODE_KERNEL);
    assert_true(now.is_enabled && now.can_be_patched && now.function != NULL);
    assert_int_equal(now.block[0], 128);
    assert_true(now.argument_bytes >= offsetof(suite_affine_arguments, term) + 4);
    memcpy(&arguments, now.arguments, offsetof(suite_affine_arguments, term) + 4);
    assert_true(arguments.x == s.x && arguments.factor == 3 && arguments.term == 4);
    // Patched and switched off.
    ASSERT_OK(node_patch_affine(s.context, s.graph, kernel, s.y, NODE_COUNT, 5, 6));
    const rondo_patch off = {kernel, NULL, RONDO_TOGGLE_DISABLE};
    ASSERT_OK(rondo_graph_patch(s.graph, &off, 1));
    now = read(&s, kernel);
    memcpy(&arguments, now.arguments, offsetof(suite_affine_arguments, term) + 4);
    assert_true(!now.is_enabled && arguments.x == s.y && arguments.term == 6);
    const rondo_work other = node_fill_work(s.x, 9, NODE_COUNT);
    ASSERT_OK(rondo_graph_patch_node(s.graph, filling, &other));
    now = read(&s, filling);
    assert_int_equal(now.kind, RONDO_NODE_FILL);
    assert_true(now.is_enabled && now.destination == s.x && now.fill_value == 9 &&
                now.element_bytes == 4 && now.byte_count == NODE_COUNT * 4);
    // The template stays.
    rondo_graph_node recorded = {.struct_size = sizeof recorded};
    size_t index;
    ASSERT_OK(rondo_graph_get_node_index(s.graph, filling, &index));
    ASSERT_OK(rondo_graph_get_node(s.graph, index, &recorded));
    assert_true(recorded.destination == s.y && recorded.fill_value == 7);
    node_close_scene(&s);
}

// ---- steps that leave work out ----------------------------------------------------------------

// Three works: x + 1, then x * 2 where `doubles`, then x + 10.
static rondo_status put_step(node_scene *s, rondo_stepper *stepper, bool doubles) {
    static const uint32_t factors[] = {1, 2, 1}, terms[] = {1, 0, 10};
    rondo_status status = rondo_stepper_begin(stepper, s->stream);
    for (int i = 0; i < 3 && status == RONDO_STATUS_OK; ++i) {
        const suite_affine_arguments arguments = {s->x, NODE_COUNT, factors[i], terms[i]};
        const rondo_launch launch = suite_describe_affine(s->context, &arguments);
        const rondo_work work = node_kernel_work(&launch);
        status = i != 1 || doubles ? rondo_stepper_put(stepper, &work)
                                   : rondo_stepper_skip(stepper, &work);
    }
    return status != RONDO_STATUS_OK ? status : rondo_stepper_end(stepper);
}

static void do_nothing(void *arguments) {
    (void)arguments;
}

SUITE_CASE_EXECUTED(test_conformance_find_node__steps_leave_work_out) {
    // In each the eager step, the recorded one and patched ones leave out other work.
    for (uint32_t pattern = 0; pattern < (uint32_t)suite_rounds(32, 2); ++pattern) {
        node_scene s = open_scene(state);
        rondo_stepper *stepper;
        ASSERT_OK(rondo_stepper_create(s.context->device, NULL, &stepper));
        uint32_t expected = 1;
        for (uint32_t i = 0; i < 5; ++i) {
            const bool doubles = (pattern >> i & 1) != 0;
            ASSERT_OK(put_step(&s, stepper, doubles));
            expected = (expected + 1) * (doubles ? 2 : 1) + 10;
            ASSERT_OK(rondo_stream_synchronize(s.stream));
            ASSERT_VALUE(s.context, s.x, 0, expected);
        }
        rondo_stepper_destroy(stepper);
        node_close_scene(&s);
    }
    node_scene s = open_scene(state);
    rondo_stepper *stepper;
    ASSERT_OK(rondo_stepper_create(s.context->device, NULL, &stepper));
    const rondo_work host = {
        .struct_size = sizeof host, .kind = RONDO_NODE_HOST, .name = "f", .function = do_nothing};
    ASSERT_STATUS(rondo_stepper_skip(stepper, &host), STATE);
    ASSERT_OK(rondo_stepper_begin(stepper, s.stream));
    ASSERT_STATUS(rondo_stepper_skip(stepper, &host), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("host functions cannot be switched off");
    ASSERT_STATUS(rondo_stepper_end(stepper), STATE);
    rondo_stepper_destroy(stepper);
    node_close_scene(&s);
}

// ---- keys of a cache --------------------------------------------------------------------------

static rondo_status fill_step(rondo_stream *stream, void *user_data) {
    return rondo_stream_fill(stream, user_data, 3, 4, NODE_COUNT);
}

SUITE_CASE(test_conformance_find_node__keys_of_a_cache) {
    node_scene s = open_scene(state);
    rondo_graph_cache *cache;
    rondo_cache_key keys[4] = {{0}};
    size_t count;
    const rondo_graph_cache_options options = {
        .struct_size = sizeof options, .policy = RONDO_CACHE_ALWAYS_CAPTURE, .entry_limit = 2};
    ASSERT_OK(rondo_graph_cache_create(s.context->device, &options, &cache));
    ASSERT_OK(rondo_graph_cache_list_keys(cache, keys, 4, &count));
    assert_int_equal(count, 0);
    static const char *const names[] = {"a", "bb", "ccc"};
    for (size_t i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_graph_cache_run(cache, names[i], i + 1, s.stream, fill_step, s.x, NULL));
    }
    ASSERT_OK(rondo_graph_cache_run(cache, "bb", 2, s.stream, fill_step, s.x, NULL));
    ASSERT_OK(rondo_graph_cache_list_keys(cache, keys, 4, &count));
    assert_int_equal(count, 3);
    static const char *const order[] = {"bb", "ccc", "a"};  // "a" had to go, and has no graph
    for (size_t i = 0; i < 3 && !suite_is_swept; ++i) {  // where memory is short, nor have others
        assert_int_equal(keys[i].byte_count, strlen(order[i]));
        assert_memory_equal(keys[i].bytes, order[i], keys[i].byte_count);
        rondo_graph_cache_entry entry = {.struct_size = sizeof entry};
        ASSERT_OK(rondo_graph_cache_get_entry(cache, keys[i].bytes, keys[i].byte_count, &entry));
        assert_int_equal(entry.has_graph, i < 2);
    }
    ASSERT_OK(rondo_graph_cache_list_keys(cache, NULL, 0, &count));
    assert_int_equal(count, 3);
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    rondo_graph_cache_destroy(cache);
    node_close_scene(&s);
}
