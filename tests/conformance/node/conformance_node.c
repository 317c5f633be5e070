// Nodes by handle: taken, added, built by hand, patched, switched off and on.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"
#include "rondo/control.h"
#include "rondo/stepper.h"
#include "rondo/update.h"

// A graph of one kernel: x = x * factor + term.
static rondo_node record_kernel(node_scene *s, uint32_t factor, uint32_t term) {
    memory_begin(s->graph, s->stream);
    rondo_node node = node_add_affine(s->context, s->stream, s->x, NODE_COUNT, factor, term);
    memory_end(s->graph);
    return node;
}

static rondo_status patch_kernel(node_scene *s, rondo_node node, uint32_t *x, uint32_t factor,
                                 uint32_t term) {
    return node_patch_affine(s->context, s->graph, node, x, NODE_COUNT, factor, term);
}

// ---- patching ---------------------------------------------------------------------------------

SUITE_CASE_EXECUTED(test_conformance_node__kernels_take_other_arguments) {
    node_scene s = node_open_scene(state, false);
    rondo_node node = record_kernel(&s, 1, 1);
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 2);
    ASSERT_OK(patch_kernel(&s, node, s.x, 3, 4));
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 10);
    ASSERT_OK(patch_kernel(&s, node, s.y, 5, 0));
    memory_replay(s.graph, s.stream);
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 10);
    assert_int_equal(node_look(&s, s.y), 25);
    node_close_scene(&s);
}

// A replay on its way does what it was put there for.
SUITE_CASE_EXECUTED(test_conformance_node__patches_spare_replays_in_flight) {
    node_scene s = node_open_scene(state, false);
    rondo_node node = record_kernel(&s, 2, 0);
    ASSERT_OK(suite_linger(s.context, s.stream, 20000));
    uint32_t expected = 1;
    for (uint32_t i = 0; i < 20; ++i) {
        ASSERT_OK(rondo_graph_replay(s.graph, s.stream));
        expected = i == 0 ? expected * 2 : expected * 3 + i;
        ASSERT_OK(patch_kernel(&s, node, s.x, 3, i + 1));
    }
    assert_int_equal(node_look(&s, s.x), expected);
    node_close_scene(&s);
}

static void count_call(void *arguments) {
    struct {
        uint32_t *counter;
        uint32_t step;
    } call;
    memcpy(&call, arguments, sizeof call);
    *call.counter = *call.counter * 10 + call.step;
}

SUITE_CASE_EXECUTED(test_conformance_node__host_functions_take_other_arguments) {
    node_scene s = node_open_scene(state, false);
    struct {
        uint32_t *counter;
        uint32_t step;
    } call = {s.seen, 1};
    s.seen[0] = 0;
    rondo_work work = {.struct_size = sizeof work,
                       .kind = RONDO_NODE_HOST,
                       .name = "count",
                       .function = count_call,
                       .arguments = &call,
                       .argument_bytes = sizeof call};
    memory_begin(s.graph, s.stream);
    rondo_node node = node_add(s.stream, &work);
    memory_end(s.graph);
    for (uint32_t i = 1; i <= 5; ++i) {
        call.step = i;
        ASSERT_OK(rondo_graph_patch_node(s.graph, node, &work));
        ASSERT_OK(rondo_graph_replay(s.graph, s.stream));
        if (i == 3) {
            ASSERT_OK(rondo_graph_replay(s.graph, s.stream));
        }
    }
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    assert_int_equal(s.seen[0], 123345);
    const rondo_patch off = {.node = node, .toggle = RONDO_TOGGLE_DISABLE};
    ASSERT_STATUS(rondo_graph_patch(s.graph, &off, 1), UNSUPPORTED);
    node_close_scene(&s);
}

// As many low bytes of a value as an element has, as in a recording.
SUITE_CASE_EXECUTED(test_conformance_node__patched_values_are_cut) {
    static const uint32_t wanted[] = {[1] = 0x7c7c7c7c, [2] = 0x567c567c, [4] = 0x1234567c};
    for (uint32_t bytes = 1; bytes <= 4; bytes *= 2) {
        node_scene s = node_open_scene(state, false);
        rondo_work work = node_fill_work(s.x, 1, 4 / bytes);
        work.element_bytes = bytes;
        memory_begin(s.graph, s.stream);
        const rondo_node node = node_add(s.stream, &work);
        memory_end(s.graph);
        work.fill_value = 0x1234567c;
        ASSERT_OK(rondo_graph_patch_node(s.graph, node, &work));
        memory_replay(s.graph, s.stream);
        assert_int_equal(node_look(&s, s.x), wanted[bytes]);
        node_close_scene(&s);
    }
}

SUITE_CASE_EXECUTED(test_conformance_node__copies_and_fills_take_other_ends) {
    node_scene s = node_open_scene(state, false);
    uint32_t *source = suite_allocate(s.context, RONDO_MEMORY_PINNED, NODE_COUNT);
    source[0] = 70;
    source[1] = 71;
    const rondo_work fill = node_fill_work(s.x, 5, NODE_COUNT);
    const rondo_work copy = node_copy_work(s.y, s.x, NODE_COUNT * 4, RONDO_COPY_DEVICE_TO_DEVICE);
    const rondo_work up = node_copy_work(s.y + 1, source, 4, RONDO_COPY_HOST_TO_DEVICE);
    memory_begin(s.graph, s.stream);
    const rondo_node nodes[] = {node_add(s.stream, &fill), node_add(s.stream, &copy),
                                node_add(s.stream, &up)};
    memory_end(s.graph);
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.y), 5);
    assert_int_equal(s.seen[1], 70);
    const rondo_work other_fill = node_fill_work(s.x, 0x01020304, 1);
    const rondo_work other_up = node_copy_work(s.y + 2, source + 1, 4, RONDO_COPY_HOST_TO_DEVICE);
    const rondo_patch patches[] = {{.node = nodes[0], .work = &other_fill},
                                   {.node = nodes[2], .work = &other_up}};
    ASSERT_OK(rondo_graph_patch(s.graph, patches, 2));
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.y), 0x01020304);
    assert_int_equal(s.seen[1], 5);
    assert_int_equal(s.seen[2], 71);
    suite_free(s.context, RONDO_MEMORY_PINNED, source);
    node_close_scene(&s);
}

SUITE_CASE_EXECUTED(test_conformance_node__nodes_are_switched_off_and_on) {
    node_scene s = node_open_scene(state, false);
    const suite_affine_arguments arguments = {s.x, NODE_COUNT, 1, 1};
    const rondo_launch launch = suite_describe_affine(s.context, &arguments);
    const rondo_work work = node_kernel_work(&launch);
    const rondo_work fill = node_fill_work(s.x, 100, NODE_COUNT);
    const rondo_work copy = node_copy_work(s.y, s.x, NODE_COUNT * 4, RONDO_COPY_DEVICE_TO_DEVICE);
    memory_begin(s.graph, s.stream);
    rondo_patch patches[] = {{.node = node_add(s.stream, &fill)},
                             {.node = node_add(s.stream, &work)},
                             {.node = node_add(s.stream, &copy)}};
    memory_end(s.graph);
    uint32_t x = 1;
    uint32_t y = 1;
    for (uint32_t mask = 0; mask < 16; ++mask) {
        for (uint32_t i = 0; i < 3; ++i) {
            patches[i].toggle = (mask >> i & 1) != 0 ? RONDO_TOGGLE_ENABLE : RONDO_TOGGLE_DISABLE;
        }
        ASSERT_OK(rondo_graph_patch(s.graph, patches, 3));
        memory_replay(s.graph, s.stream);
        x = (mask & 1) != 0 ? 100 : x;
        x += (mask & 2) != 0;
        y = (mask & 4) != 0 ? x : y;
        assert_int_equal(node_look(&s, s.x), x);
        assert_int_equal(node_look(&s, s.y), y);
    }
    // Patched while off, it does the new work once it is on.
    patches[1].toggle = RONDO_TOGGLE_DISABLE;
    ASSERT_OK(rondo_graph_patch(s.graph, &patches[1], 1));
    ASSERT_OK(patch_kernel(&s, patches[1].node, s.x, 1, 50));
    memory_replay(s.graph, s.stream);
    uint32_t before = node_look(&s, s.x);
    patches[1].toggle = RONDO_TOGGLE_ENABLE;
    ASSERT_OK(rondo_graph_patch(s.graph, &patches[1], 1));
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), before == 100 ? 150 : before + 50);
    node_close_scene(&s);
}

static rondo_status put_nothing(rondo_stream *stream, void *user_data) {
    const node_scene *s = user_data;
    return suite_affine(s->context, stream, s->y, NODE_COUNT, 1, 0);
}

static rondo_status record_patched(node_scene *s, rondo_graph *graph, bool has_body,
                                   rondo_patch *patch) {
    memory_begin(graph, s->stream);
    patch->node = node_add_affine(s->context, s->stream, s->x, NODE_COUNT, 1, 1);
    if (has_body) {
        ASSERT_OK(rondo_control_if(s->stream, s->y, put_nothing, NULL, s));
    }
    memory_end(graph);
    return rondo_graph_patch(graph, patch, 1);
}

// An update takes over what was recorded, without the patches of either graph.
SUITE_CASE_EXECUTED(test_conformance_node__updates_end_patches) {
    node_scene s = node_open_scene(state, false);
    rondo_graph *source = suite_create_graph(s.context, true);
    for (uint32_t i = 0; i < 4; ++i) {
        rondo_patch patch = {.toggle = RONDO_TOGGLE_DISABLE};
        ASSERT_OK(record_patched(&s, s.graph, false, &patch));
        ASSERT_OK(record_patched(&s, source, i % 2 != 0, &patch));
        ASSERT_OK(rondo_graph_update(s.graph, source, NULL));
        memory_replay(s.graph, s.stream);
        assert_int_equal(node_look(&s, s.x), 2 + i);
        ASSERT_OK(rondo_graph_reset(s.graph));
    }
    rondo_graph_destroy(source);
    node_close_scene(&s);
}

// ---- handles ----------------------------------------------------------------------------------

SUITE_CASE(test_conformance_node__the_last_node_is_that_of_any_call) {
    node_scene s = node_open_scene(state, false);
    rondo_stream *other = suite_create_stream(s.context);
    rondo_node node;
    ASSERT_STATUS(rondo_stream_get_last_node(s.stream, &node), STATE);
    memory_begin(s.graph, s.stream);
    ASSERT_STATUS(rondo_stream_get_last_node(s.stream, &node), STATE);
    ASSERT_MESSAGE_HAS("nothing was recorded");
    ASSERT_OK(suite_affine(s.context, s.stream, s.x, NODE_COUNT, 1, 1));
    ASSERT_OK(rondo_stream_get_last_node(s.stream, &node));
    memory_join(s.context, other, s.stream);
    ASSERT_OK(suite_affine(s.context, other, s.y, NODE_COUNT, 1, 1));
    ASSERT_OK(suite_affine(s.context, s.stream, s.x, NODE_COUNT, 1, 1));
    memory_join(s.context, s.stream, other);
    rondo_node several;
    ASSERT_STATUS(rondo_stream_get_last_node(s.stream, &several), STATE);
    ASSERT_MESSAGE_HAS("comes behind 2 nodes");
    assert_int_equal(several.recording, 0);
    memory_end(s.graph);
    size_t index = 9;
    ASSERT_OK(rondo_graph_get_node_index(s.graph, node, &index));
    rondo_graph_node described = {.struct_size = sizeof described};
    ASSERT_OK(rondo_graph_get_node(s.graph, index, &described));
    assert_string_equal(described.name, "affine");
    rondo_stream_destroy(other);
    node_close_scene(&s);
}

SUITE_CASE_EXECUTED(test_conformance_node__handles_end_with_their_recording) {
    node_scene s = node_open_scene(state, false);
    rondo_graph *source = suite_create_graph(s.context, true);
    rondo_node node = record_kernel(&s, 1, 1);
    ASSERT_OK(rondo_graph_reset(s.graph));
    ASSERT_STATUS(patch_kernel(&s, node, s.x, 1, 1), STATE);
    rondo_node next = record_kernel(&s, 1, 1);
    ASSERT_STATUS(patch_kernel(&s, node, s.x, 1, 1), STATE);
    ASSERT_MESSAGE_HAS("handles end when");
    ASSERT_STATUS(patch_kernel(&s, (rondo_node){0}, s.x, 1, 1), STATE);
    rondo_node beyond = {.recording = next.recording, .number = next.number + 1};
    ASSERT_STATUS(patch_kernel(&s, beyond, s.x, 1, 1), STATE);
    ASSERT_OK(patch_kernel(&s, next, s.x, 1, 7));
    ASSERT_OK(rondo_graph_instantiate(s.graph));
    ASSERT_STATUS(patch_kernel(&s, next, s.x, 1, 1), STATE);
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 2);  // made of the template, which was never patched

    rondo_graph *kept = s.graph;
    s.graph = source;
    rondo_node of_source = record_kernel(&s, 1, 2);
    s.graph = kept;
    ASSERT_STATUS(patch_kernel(&s, of_source, s.x, 1, 1), STATE);
    ASSERT_OK(rondo_graph_update(s.graph, source, NULL));
    ASSERT_STATUS(patch_kernel(&s, of_source, s.x, 1, 1), STATE);
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 4);
    memory_begin(source, s.stream);
    ASSERT_STATUS(patch_kernel(&s, of_source, s.x, 1, 1), STATE);
    s.graph = source;
    ASSERT_STATUS(patch_kernel(&s, of_source, s.x, 1, 1), STATE);
    s.graph = kept;
    ASSERT_OK(suite_affine(s.context, s.stream, s.x, NODE_COUNT, 1, 1));
    memory_end(source);
    rondo_graph_destroy(source);
    node_close_scene(&s);
}

SUITE_CASE(test_conformance_node__a_node_has_one_handle) {
    node_scene s = node_open_scene(state, false);
    rondo_node taken;
    rondo_node nodes[40];
    memory_begin(s.graph, s.stream);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; ++i) {
        nodes[i] = node_add_affine(s.context, s.stream, s.x, NODE_COUNT, 1, 1);
        for (int again = 0; again < 2; ++again) {
            ASSERT_OK(rondo_stream_get_last_node(s.stream, &taken));
            assert_memory_equal(&taken, &nodes[i], sizeof taken);
        }
        assert_true(i == 0 || nodes[i].number != nodes[i - 1].number);
    }
    memory_end(s.graph);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; ++i) {
        size_t index = 99;
        ASSERT_OK(rondo_graph_get_node_index(s.graph, nodes[i], &index));
        assert_int_equal(index, i);
    }
    node_close_scene(&s);
}

// ---- what is refused --------------------------------------------------------------------------

// A node that was patched already is checked as the first time.
SUITE_CASE_EXECUTED(test_conformance_node__a_second_patch_is_checked_as_the_first) {
    node_scene s = node_open_scene(state, false);
    rondo_node node = record_kernel(&s, 1, 1);
    const suite_affine_arguments arguments = {s.x, NODE_COUNT, 1, 5};
    const rondo_launch good = suite_describe_affine(s.context, &arguments);
    rondo_launch launch;
    const rondo_work work = node_kernel_work(&launch);
    for (int round = 0; round < 2; ++round) {
        launch = good;
        launch.arguments = NULL;
        ASSERT_STATUS(rondo_graph_patch_node(s.graph, node, &work), INVALID);
        launch = good;
        launch.flags = 0x80;
        ASSERT_STATUS(rondo_graph_patch_node(s.graph, node, &work), INVALID);
        launch = good;
        launch.function = NULL;
        ASSERT_STATUS(rondo_graph_patch_node(s.graph, node, &work), INVALID);
        launch = good;
        ASSERT_OK(rondo_graph_patch_node(s.graph, node, &work));
    }
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 6);
    node_close_scene(&s);
}

SUITE_CASE_EXECUTED(test_conformance_node__wrong_patches_change_nothing) {
    node_scene s = node_open_scene(state, false);
    const suite_affine_arguments arguments = {s.x, NODE_COUNT, 1, 1};
    const rondo_launch launch = suite_describe_affine(s.context, &arguments);
    const rondo_work kernel = node_kernel_work(&launch);
    const rondo_work copy = node_copy_work(s.y, s.x, 4, RONDO_COPY_DEVICE_TO_DEVICE);
    memory_begin(s.graph, s.stream);
    const rondo_node first = node_add(s.stream, &kernel);
    const rondo_node second = node_add(s.stream, &copy);
    memory_end(s.graph);

    const suite_affine_arguments other = {s.x, NODE_COUNT, 1, 1000};
    rondo_launch good_launch = suite_describe_affine(s.context, &other);
    rondo_launch bad_launch = good_launch;
    bad_launch.argument_bytes = 12;
    rondo_launch empty_launch = good_launch;
    empty_launch.grid[1] = 0;
    const rondo_work good = node_kernel_work(&good_launch);
    const rondo_work short_arguments = node_kernel_work(&bad_launch);
    const rondo_work no_blocks = node_kernel_work(&empty_launch);
    const rondo_work fill = node_fill_work(s.x, 1, 1);
    const rondo_work nothing = node_copy_work(s.y, s.x, 0, RONDO_COPY_DEVICE_TO_DEVICE);
    const rondo_work turned = node_copy_work(s.y, s.seen, 4, RONDO_COPY_HOST_TO_DEVICE);
    const struct {
        rondo_patch patch;
        rondo_status status;
    } rows[] = {
        {{.node = first, .work = &short_arguments}, RONDO_STATUS_INVALID},
        {{.node = first, .work = &no_blocks}, RONDO_STATUS_INVALID},
        {{.node = first, .work = &fill}, RONDO_STATUS_INVALID},
        {{.node = first, .work = &(rondo_work){.struct_size = 1}}, RONDO_STATUS_INVALID},
        {{.node = first, .toggle = 3}, RONDO_STATUS_INVALID},
        {{.node = second, .work = &nothing}, RONDO_STATUS_INVALID},
        {{.node = second, .work = &turned}, RONDO_STATUS_INVALID},
        {{.node = {UINT64_MAX, 1}, .work = &good}, RONDO_STATUS_STATE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const bool is_first = rows[i].patch.node.number == first.number;
        const rondo_work other_copy = node_copy_work(s.y, s.x + 1, 4, RONDO_COPY_DEVICE_TO_DEVICE);
        const rondo_patch both[] = {
            {.node = is_first ? second : first, .work = is_first ? &other_copy : &good},
            rows[i].patch};
        suite_assert_status(rondo_graph_patch(s.graph, both, 2), rows[i].status, "a row", __FILE__,
                            __LINE__);
    }
    const rondo_patch twice[] = {{.node = first, .work = &good}, {.node = first, .work = &good}};
    ASSERT_STATUS(rondo_graph_patch(s.graph, twice, 2), INVALID);
    ASSERT_MESSAGE_HAS("twice");
    ASSERT_STATUS(rondo_graph_patch(s.graph, NULL, 1), INVALID);
    ASSERT_STATUS(rondo_graph_patch(NULL, twice, 1), INVALID);
    ASSERT_OK(rondo_graph_patch(s.graph, NULL, 0));
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 2);
    assert_int_equal(node_look(&s, s.y), 2);
    node_close_scene(&s);
}

SUITE_CASE_EXECUTED(test_conformance_node__pageable_memory_is_refused_in_patches) {
    node_scene s = node_open_scene(state, false);
    uint32_t pageable[NODE_COUNT] = {9};
    const rondo_work good = node_copy_work(s.x, s.seen, 4, RONDO_COPY_HOST_TO_DEVICE);
    const rondo_work bad = node_copy_work(s.x, pageable, 4, RONDO_COPY_HOST_TO_DEVICE);
    memory_begin(s.graph, s.stream);
    const rondo_node node = node_add(s.stream, &good);
    memory_end(s.graph);
    ASSERT_STATUS(rondo_graph_patch_node(s.graph, node, &bad), STATE);
    ASSERT_MESSAGE_HAS("pageable");
    node_close_scene(&s);
}

// A pool gives pinned memory that a patched copy reads to nobody else.
SUITE_CASE_EXECUTED(test_conformance_node__pinned_memory_of_patches_is_in_use) {
    node_scene s = node_open_scene(state, false);
    rondo_pool *pool = memory_create_pool(s.context, RONDO_MEMORY_PINNED);
    uint32_t *block = memory_take(pool, s.stream, NODE_COUNT);
    const rondo_work first = node_copy_work(s.x, s.seen, 4, RONDO_COPY_HOST_TO_DEVICE);
    const rondo_work second = node_copy_work(s.x, block, 4, RONDO_COPY_HOST_TO_DEVICE);
    memory_begin(s.graph, s.stream);
    const rondo_node node = node_add(s.stream, &first);
    memory_end(s.graph);
    ASSERT_OK(rondo_graph_patch_node(s.graph, node, &second));
    memory_free(pool, block);
    uint32_t *next = memory_take(pool, s.stream, NODE_COUNT);
    assert_ptr_not_equal(next, block);
    memory_free(pool, next);
    ASSERT_OK(rondo_graph_reset(s.graph));
    rondo_pool_release(pool);
    node_close_scene(&s);
}

// A checked graph watches what it uses now, and nothing else.
SUITE_CASE_EXECUTED(test_conformance_node__checked_graphs_watch_what_patches_use) {
    node_scene s = node_open_scene(state, false);
    rondo_graph_destroy(s.graph);
    s.graph = memory_create_checked_graph(s.context);
    uint32_t *before = suite_allocate(s.context, RONDO_MEMORY_DEVICE, NODE_COUNT);
    uint32_t *after = suite_allocate(s.context, RONDO_MEMORY_DEVICE, NODE_COUNT);
    const suite_affine_arguments arguments = {before, NODE_COUNT, 1, 1};
    const rondo_launch launch = suite_describe_affine(s.context, &arguments);
    const rondo_work work = node_kernel_work(&launch);
    memory_begin(s.graph, s.stream);
    const rondo_node node = node_add(s.stream, &work);
    memory_end(s.graph);
    memory_replay(s.graph, s.stream);
    ASSERT_OK(patch_kernel(&s, node, after, 1, 1));
    suite_free(s.context, RONDO_MEMORY_DEVICE, before);
    memory_replay(s.graph, s.stream);
    suite_free(s.context, RONDO_MEMORY_DEVICE, after);
    ASSERT_STATUS(rondo_graph_replay(s.graph, s.stream), STATE);
    ASSERT_MESSAGE_HAS("uses memory that is gone");
    ASSERT_OK(patch_kernel(&s, node, s.x, 1, 1));
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 2);
    node_close_scene(&s);
}

// Memory that was freed stays refused until the nodes that use it name other memory: a patch of
// something else does not hide it.
SUITE_CASE_EXECUTED(test_conformance_node__patches_do_not_hide_freed_memory) {
    node_scene s = node_open_scene(state, false);
    rondo_graph_destroy(s.graph);
    s.graph = memory_create_checked_graph(s.context);
    rondo_pool *pool = memory_create_pool(s.context, RONDO_MEMORY_DEVICE);
    uint32_t *gone = memory_take(pool, s.stream, NODE_COUNT);
    rondo_work work = node_fill_work(gone, 1, 1);
    rondo_work other = node_fill_work(s.x, 1, 1);
    memory_begin(s.graph, s.stream);
    const rondo_node node = node_add(s.stream, &work);
    const rondo_node second = node_add(s.stream, &work);
    const rondo_node third = node_add(s.stream, &other);
    memory_end(s.graph);
    memory_replay(s.graph, s.stream);
    memory_free(pool, gone);
    work.fill_value = other.fill_value = 5;
    const struct {
        rondo_patch patch;
        rondo_status status;
    } rows[] = {{{.node = node, .work = &work}, RONDO_STATUS_STATE},
                {{.node = third, .work = &other}, RONDO_STATUS_OK},
                {{.node = node, .toggle = RONDO_TOGGLE_DISABLE}, RONDO_STATUS_OK},
                {{.node = node, .toggle = RONDO_TOGGLE_ENABLE}, RONDO_STATUS_STATE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        ASSERT_STATUS(rondo_graph_replay(s.graph, s.stream), STATE);
        suite_assert_status(rondo_graph_patch(s.graph, &rows[i].patch, 1), rows[i].status, "a row",
                            __FILE__, __LINE__);
        if (rows[i].status != RONDO_STATUS_OK) {
            ASSERT_MESSAGE_HAS("would use memory that is gone");
        }
    }
    ASSERT_STATUS(rondo_graph_replay(s.graph, s.stream), STATE);
    // The next block lies there again. Each node has to name it.
    uint32_t *again = memory_take(pool, s.stream, NODE_COUNT);
    ASSERT_STATUS(rondo_graph_replay(s.graph, s.stream), STATE);
    work.destination = again;
    work.fill_value = 6;
    ASSERT_OK(rondo_graph_patch_node(s.graph, node, &work));
    ASSERT_STATUS(rondo_graph_replay(s.graph, s.stream), STATE);
    ASSERT_MESSAGE_HAS("uses memory that is gone");
    ASSERT_OK(rondo_graph_patch_node(s.graph, second, &work));
    other.fill_value = 7;
    ASSERT_OK(rondo_graph_patch_node(s.graph, third, &other));
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, again), 6);
    ASSERT_OK(rondo_graph_reset(s.graph));
    memory_free(pool, again);
    rondo_pool_release(pool);
    node_close_scene(&s);
}

static rondo_status take_no_handle(rondo_stream *stream, void *user_data) {
    const node_scene *s = user_data;
    rondo_node node;
    ASSERT_OK(suite_affine(s->context, stream, s->x, NODE_COUNT, 1, 1));
    ASSERT_STATUS(rondo_stream_get_last_node(stream, &node), UNSUPPORTED);
    return RONDO_STATUS_OK;
}

SUITE_CASE(test_conformance_node__nodes_in_bodies_have_no_handles) {
    suite_need(context, RONDO_FEATURE_IF);
    node_scene s = node_open_scene(state, false);
    memory_begin(s.graph, s.stream);
    ASSERT_OK(rondo_control_if(s.stream, s.y, take_no_handle, NULL, &s));
    rondo_node node;
    ASSERT_OK(rondo_stream_get_last_node(s.stream, &node));
    memory_end(s.graph);
    const rondo_patch patch = {.node = node, .toggle = RONDO_TOGGLE_DISABLE};
    ASSERT_STATUS(rondo_graph_patch(s.graph, &patch, 1), UNSUPPORTED);
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.x), 2);
    node_close_scene(&s);
}

// ---- graphs by hand ---------------------------------------------------------------------------

SUITE_CASE_EXECUTED(test_conformance_node__graphs_are_built_by_hand) {
    node_scene s = node_open_scene(state, false);
    rondo_graph_destroy(s.graph);
    s.graph = suite_create_graph(s.context, true);
    const rondo_work top = node_fill_work(s.x, 7, NODE_COUNT);
    const rondo_work left = node_copy_work(s.y, s.x, 4, RONDO_COPY_DEVICE_TO_DEVICE);
    const rondo_work right = node_copy_work(s.y + 1, s.x, 4, RONDO_COPY_DEVICE_TO_DEVICE);
    const suite_affine_arguments arguments = {s.y, 2, 10, 1};
    const rondo_launch launch = suite_describe_affine(s.context, &arguments);
    const rondo_work bottom = node_kernel_work(&launch);
    ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 0, &top, NULL), STATE);
    ASSERT_OK(rondo_graph_build_begin(s.graph));
    ASSERT_STATUS(rondo_graph_build_begin(s.graph), STATE);
    rondo_node nodes[4];
    ASSERT_OK(rondo_graph_add_node(s.graph, NULL, 0, &top, &nodes[0]));
    ASSERT_OK(rondo_graph_add_node(s.graph, &nodes[0], 1, &left, &nodes[1]));
    ASSERT_OK(rondo_graph_add_node(s.graph, &nodes[0], 1, &right, &nodes[2]));
    ASSERT_OK(rondo_graph_add_node(s.graph, &nodes[1], 2, &bottom, &nodes[3]));
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    size_t edge_count = 0;
    ASSERT_OK(rondo_graph_list_edges(s.graph, NULL, 0, &edge_count));
    assert_int_equal(edge_count, 4);
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.y), 71);
    assert_int_equal(s.seen[1], 71);
    const rondo_work other = node_fill_work(s.x, 3, NODE_COUNT);
    ASSERT_OK(rondo_graph_patch_node(s.graph, nodes[0], &other));
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.y), 31);

    // Several ends, and one that nobody has the handle of.
    ASSERT_OK(rondo_graph_reset(s.graph));
    ASSERT_OK(rondo_graph_build_begin(s.graph));
    ASSERT_OK(rondo_graph_add_node(s.graph, NULL, 0, &other, &nodes[0]));
    ASSERT_OK(rondo_graph_add_node(s.graph, &nodes[0], 1, &left, NULL));
    ASSERT_OK(rondo_graph_add_node(s.graph, &nodes[0], 1, &right, &nodes[2]));
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    memory_fill(s.stream, s.y, 0, NODE_COUNT);
    memory_replay(s.graph, s.stream);
    assert_int_equal(node_look(&s, s.y), 3);
    assert_int_equal(s.seen[1], 3);

    // A handle that is not the graph's makes no half graph.
    ASSERT_OK(rondo_graph_reset(s.graph));
    ASSERT_OK(rondo_graph_build_begin(s.graph));
    ASSERT_STATUS(rondo_graph_add_node(s.graph, nodes, 1, &top, NULL), STATE);
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    ASSERT_OK(rondo_graph_build_begin(s.graph));
    rondo_graph_capture_abort(s.graph);
    ASSERT_OK(rondo_graph_build_begin(s.graph));
    node_close_scene(&s);
}

// A handle goes where the one that it comes behind was; what is wrong breaks the build.
SUITE_CASE(test_conformance_node__the_new_handle_may_replace_the_old) {
    node_scene s = node_open_scene(state, false);
    const rondo_work work = node_fill_work(s.x, 7, NODE_COUNT);
    rondo_graph_destroy(s.graph);
    s.graph = suite_create_graph(s.context, true);
    rondo_status begun = rondo_graph_build_begin(s.graph);
    if (begun == RONDO_STATUS_UNSUPPORTED) {
        node_close_scene(&s);
        return;
    }
    ASSERT_OK(begun);
    rondo_node node = {0};
    for (size_t i = 0; i < 3; ++i) {
        ASSERT_OK(rondo_graph_add_node(s.graph, &node, i > 0, &work, &node));
    }
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    size_t edge_count = 0;
    ASSERT_OK(rondo_graph_list_edges(s.graph, NULL, 0, &edge_count));
    assert_int_equal(edge_count, 2);
    ASSERT_OK(rondo_graph_reset(s.graph));
    ASSERT_OK(rondo_graph_build_begin(s.graph));
    ASSERT_OK(rondo_graph_add_node(s.graph, NULL, 0, &work, NULL));
    ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 3, &work, &node), INVALID);
    assert_int_equal(node.recording, 0);
    ASSERT_STATUS(rondo_graph_capture_end(s.graph), STATE);
    node_close_scene(&s);
}

// ---- one call for each launch -----------------------------------------------------------------

static rondo_status put_step(node_scene *s, rondo_stepper *stepper, uint32_t term, uint32_t count) {
    rondo_status status = rondo_stepper_begin(stepper, s->stream);
    for (uint32_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        const suite_affine_arguments arguments = {s->x, NODE_COUNT, 1, i == 0 ? 1 : term};
        const rondo_launch launch = suite_describe_affine(s->context, &arguments);
        const rondo_work work = node_kernel_work(&launch);
        status = rondo_stepper_put(stepper, &work);
    }
    return status != RONDO_STATUS_OK ? status : rondo_stepper_end(stepper);
}

SUITE_CASE_EXECUTED(test_conformance_node__a_stepper_runs_records_and_patches) {
    node_scene s = node_open_scene(state, false);
    rondo_stepper *stepper;
    rondo_stepper_options options = {.struct_size = sizeof options, .eager_steps = 2, .mode = 9};
    ASSERT_STATUS(rondo_stepper_create(s.context->device, &options, &stepper), INVALID);
    ASSERT_MESSAGE_HAS("9 is not a capture mode");
    options.mode = RONDO_CAPTURE_THREAD_LOCAL;
    ASSERT_OK(rondo_stepper_create(s.context->device, &options, &stepper));
    uint32_t expected = 1;
    for (uint32_t i = 0; i < 8; ++i) {
        ASSERT_OK(put_step(&s, stepper, 10 * i, 3));
        expected += 1 + 20 * i;
        assert_int_equal(node_look(&s, s.x), expected);
        assert_int_equal(rondo_stepper_get_mode(stepper), i < 2    ? RONDO_STEPPER_EAGER
                                                          : i == 2 ? RONDO_STEPPER_RECORDS
                                                                   : RONDO_STEPPER_PATCHES);
    }
    // A step of another shape is refused whole, and the next one is the first again.
    ASSERT_STATUS(put_step(&s, stepper, 1, 2), STATE);
    ASSERT_MESSAGE_HAS("put 2 works of the 3");
    assert_int_equal(node_look(&s, s.x), expected);
    ASSERT_OK(put_step(&s, stepper, 1, 2));
    assert_int_equal(rondo_stepper_get_mode(stepper), RONDO_STEPPER_EAGER);
    ASSERT_OK(put_step(&s, stepper, 1, 2));
    ASSERT_OK(put_step(&s, stepper, 1, 2));
    ASSERT_STATUS(put_step(&s, stepper, 1, 3), STATE);
    ASSERT_MESSAGE_HAS("more than the 2 works");
    ASSERT_STATUS(rondo_stepper_end(stepper), STATE);
    ASSERT_MESSAGE_HAS("not whole");
    ASSERT_STATUS(rondo_stepper_put(stepper, NULL), STATE);
    ASSERT_STATUS(rondo_stepper_end(stepper), STATE);
    assert_int_equal(node_look(&s, s.x), expected + 6);
    ASSERT_OK(rondo_stepper_begin(stepper, s.stream));
    ASSERT_STATUS(rondo_stepper_begin(stepper, s.stream), STATE);
    ASSERT_STATUS(rondo_stepper_reset(stepper), STATE);
    ASSERT_STATUS(rondo_stepper_put(stepper, NULL), INVALID);
    ASSERT_STATUS(rondo_stepper_end(stepper), STATE);
    rondo_stepper_destroy(stepper);
    node_close_scene(&s);
}
