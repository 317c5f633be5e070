// Graphs by hand, beyond kernels, copies and fills: event and conditional nodes, steps between
// nodes, launch attributes, and clones.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"
#include "rondo/label.h"
#include "rondo/stepper.h"
#include "rondo/update.h"

// Begins to build the scene's graph; on a device that cannot, the case is skipped.
static node_scene begin_scene(void **state) {
    node_scene s = node_open_scene(state, true);
    const rondo_status status = rondo_graph_build_begin(s.graph);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        node_close_scene(&s);
        suite_skip("its graphs cannot be built by hand");
    }
    ASSERT_OK(status);
    return s;
}

static rondo_node add(node_scene *s, const rondo_node *after, size_t count,
                      const rondo_work *work) {
    rondo_node node;
    ASSERT_OK(rondo_graph_add_node(s->graph, after, count, work, &node));
    return node;
}

static rondo_node add_affine(node_scene *s, const rondo_node *after, size_t count, uint32_t *x,
                             uint32_t factor, uint32_t term) {
    const suite_affine_arguments arguments = {x, NODE_COUNT, factor, term};
    const rondo_launch launch = suite_describe_affine(s->context, &arguments);
    const rondo_work work = node_kernel_work(&launch);
    return add(s, after, count, &work);
}

static rondo_node_state read(rondo_graph *graph, rondo_node node) {
    rondo_node_state state = {.struct_size = sizeof state};
    ASSERT_OK(rondo_graph_read_node(graph, node, &state));
    return state;
}

static size_t count_edges(rondo_graph *graph) {
    size_t count;
    ASSERT_OK(rondo_graph_list_edges(graph, NULL, 0, &count));
    return count;
}

// What broke a build is told once more by its end.
static void expect_no_graph(node_scene *s) {
    ASSERT_STATUS(rondo_graph_capture_end(s->graph), STATE);
    ASSERT_OK(rondo_graph_build_begin(s->graph));
}

// ---- events -----------------------------------------------------------------------------------

static rondo_work event_work(rondo_node_kind kind, rondo_event *event) {
    return (rondo_work){.struct_size = sizeof(rondo_work), .kind = kind, .event = event};
}

SUITE_CASE(test_conformance_hand_made__events_are_nodes) {
    node_scene s = begin_scene(state);
    rondo_event *before = suite_create_event(s.context, RONDO_EVENT_EXTERNAL);
    rondo_event *behind = suite_create_event(s.context, RONDO_EVENT_EXTERNAL);
    rondo_stream *other = suite_create_stream(s.context);
    const rondo_work wait = event_work(RONDO_NODE_EVENT_WAIT, before);
    const rondo_work record = event_work(RONDO_NODE_EVENT_RECORD, behind);
    const rondo_node first = add_affine(&s, NULL, 0, s.x, 2, 1);
    const rondo_node waiting = add(&s, NULL, 0, &wait);
    const rondo_node second = add_affine(&s, &waiting, 1, s.y, 3, 0);
    const rondo_node both[] = {first, second};
    const rondo_node recording = add(&s, both, 2, &record);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    assert_int_equal(count_edges(s.graph), 3);
    size_t index;
    rondo_graph_node seen = {.struct_size = sizeof seen};
    ASSERT_OK(rondo_graph_get_node_index(s.graph, waiting, &index));
    ASSERT_OK(rondo_graph_get_node(s.graph, index, &seen));
    assert_true(seen.kind == RONDO_NODE_EVENT_WAIT && seen.event != NULL);
    if (!s.context->is_null) {
        const rondo_node_state now = read(s.graph, recording);
        assert_true(now.kind == RONDO_NODE_EVENT_RECORD && now.is_enabled && !now.can_be_patched);
        assert_true(now.event != NULL && now.event != seen.event);
    }
    // Each replay waits for what another stream has put behind the event by then.
    uint32_t x = 1, y = 1;
    for (uint32_t round = 1; round <= 3; ++round) {
        ASSERT_OK(suite_linger(s.context, other, 3000));
        ASSERT_OK(suite_affine(s.context, other, s.y, NODE_COUNT, 1, round));
        ASSERT_OK(rondo_event_record(before, other));
        ASSERT_OK(rondo_graph_replay(s.graph, s.stream));
        ASSERT_OK(rondo_event_synchronize(behind));
        x = 2 * x + 1;
        y = 3 * (y + round);
        ASSERT_VALUE(s.context, s.x, 0, x);
        ASSERT_VALUE(s.context, s.y, 0, y);
    }
    rondo_stream_destroy(other);
    rondo_event_destroy(before);
    rondo_event_destroy(behind);
    node_close_scene(&s);
}

SUITE_CASE(test_conformance_hand_made__wrong_events_break_the_build) {
    node_scene s = begin_scene(state);
    rondo_event *event = suite_create_event(s.context, 0);
    const rondo_work plain = event_work(RONDO_NODE_EVENT_RECORD, event);
    const rondo_work none = event_work(RONDO_NODE_EVENT_WAIT, NULL);
    ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 0, &plain, NULL), INVALID);
    ASSERT_MESSAGE_HAS("RONDO_EVENT_EXTERNAL");
    expect_no_graph(&s);
    ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 0, &none, NULL), INVALID);
    expect_no_graph(&s);
    // No patch could change them, so steppers take none.
    rondo_stepper *stepper;
    ASSERT_OK(rondo_stepper_create(s.context->device, NULL, &stepper));
    ASSERT_OK(rondo_stepper_begin(stepper, s.stream));
    ASSERT_STATUS(rondo_stepper_put(stepper, &plain), INVALID);
    ASSERT_MESSAGE_HAS("cannot be put by steps");
    ASSERT_STATUS(rondo_stepper_end(stepper), STATE);
    rondo_stepper_destroy(stepper);
    rondo_event_destroy(event);
    node_close_scene(&s);
}

// ---- conditional nodes ------------------------------------------------------------------------

static rondo_status add_to(node_scene *s, rondo_stream *stream, uint32_t *x, uint32_t factor,
                           uint32_t term) {
    return suite_affine(s->context, stream, x, NODE_COUNT, factor, term);
}

static rondo_status then_body(rondo_stream *stream, void *scene) {
    return add_to(scene, stream, ((node_scene *)scene)->x, 1, 10);
}

static rondo_status else_body(rondo_stream *stream, void *scene) {
    return add_to(scene, stream, ((node_scene *)scene)->x, 1, 100);
}

// x += 1, and one turn less is left in y.
static rondo_status loop_body(rondo_stream *stream, void *scene) {
    node_scene *s = scene;
    const rondo_status status = add_to(s, stream, s->x, 1, 1);
    return status == RONDO_STATUS_OK ? add_to(s, stream, s->y, 1, UINT32_MAX) : status;
}

static rondo_work conditional_work(node_scene *s, rondo_scope_kind kind,
                                   const rondo_body_function *bodies, uint32_t count) {
    return (rondo_work){.struct_size = sizeof(rondo_work),
                        .kind = RONDO_NODE_CONDITIONAL,
                        .scope = kind,
                        .predicate = s->y,
                        .bodies = bodies,
                        .body_count = count,
                        .user_data = s};
}

// x = 0, then the conditional node, then x * 2.
static void build_around(node_scene *s, const rondo_work *work) {
    const rondo_work clear = node_fill_work(s->x, 0, NODE_COUNT);
    rondo_node node = add(s, NULL, 0, &clear);
    node = add(s, &node, 1, work);
    const rondo_node conditional = node;
    (void)add_affine(s, &node, 1, s->x, 2, 0);
    ASSERT_OK(rondo_graph_capture_end(s->graph));
    size_t index;
    rondo_graph_node seen = {.struct_size = sizeof seen};
    ASSERT_OK(rondo_graph_get_node_index(s->graph, conditional, &index));
    ASSERT_OK(rondo_graph_get_node(s->graph, index, &seen));
    assert_true(seen.kind == RONDO_NODE_CONDITIONAL && seen.predicate == s->y);
    assert_int_equal(seen.branch_count, work->body_count);
}

static void expect_after(node_scene *s, uint32_t predicate, uint32_t x) {
    suite_set(s->context, s->y, predicate, NODE_COUNT);
    memory_replay(s->graph, s->stream);
    ASSERT_VALUE(s->context, s->x, 0, x);
}

SUITE_CASE(test_conformance_hand_made__if_and_else_are_nodes) {
    static const rondo_body_function bodies[] = {then_body, else_body};
    suite_need(context, RONDO_FEATURE_IF_ELSE);
    node_scene s = begin_scene(state);
    const rondo_work both = conditional_work(&s, RONDO_SCOPE_IF_ELSE, bodies, 2);
    build_around(&s, &both);
    expect_after(&s, 1, 20);
    expect_after(&s, 0, 200);
    expect_after(&s, 7, 20);
    ASSERT_OK(rondo_graph_reset(s.graph));
    ASSERT_OK(rondo_graph_build_begin(s.graph));
    const rondo_work one = conditional_work(&s, RONDO_SCOPE_IF, bodies, 1);
    build_around(&s, &one);
    expect_after(&s, 1, 20);
    expect_after(&s, 0, 0);
    node_close_scene(&s);
}

SUITE_CASE(test_conformance_hand_made__loops_and_choices_are_nodes) {
    static const rondo_body_function turn[] = {loop_body};
    static const rondo_body_function choices[] = {then_body, NULL, else_body};
    suite_need(context, RONDO_FEATURE_WHILE);
    suite_need(context, RONDO_FEATURE_SWITCH);
    node_scene s = begin_scene(state);
    const rondo_work loop = conditional_work(&s, RONDO_SCOPE_WHILE, turn, 1);
    build_around(&s, &loop);
    expect_after(&s, 5, 10);
    expect_after(&s, 0, 0);
    expect_after(&s, 1, 2);
    ASSERT_OK(rondo_graph_reset(s.graph));
    ASSERT_OK(rondo_graph_build_begin(s.graph));
    const rondo_work choice = conditional_work(&s, RONDO_SCOPE_SWITCH, choices, 3);
    build_around(&s, &choice);
    expect_after(&s, 0, 20);
    expect_after(&s, 1, 0);
    expect_after(&s, 2, 200);
    expect_after(&s, 3, 0);
    node_close_scene(&s);
}

// The body is a graph that was made before, by hand, too.
static rondo_status graph_body(rondo_stream *stream, void *graph) {
    return rondo_stream_add_graph(stream, graph);
}

SUITE_CASE(test_conformance_hand_made__a_body_may_be_a_graph) {
    static const rondo_body_function bodies[] = {graph_body};
    suite_need(context, RONDO_FEATURE_IF);
    suite_need_children(context);
    node_scene s = begin_scene(state);
    rondo_node node = add_affine(&s, NULL, 0, s.x, 1, 3);
    (void)add_affine(&s, &node, 1, s.x, 5, 0);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    node_scene outer = s;
    outer.graph = suite_create_graph(s.context, true);
    ASSERT_OK(rondo_graph_build_begin(outer.graph));
    rondo_work work = conditional_work(&s, RONDO_SCOPE_IF, bodies, 1);
    work.user_data = s.graph;
    build_around(&outer, &work);
    expect_after(&outer, 1, 30);
    expect_after(&outer, 0, 0);
    rondo_graph_destroy(outer.graph);
    node_close_scene(&s);
}

static rondo_status adding_body(rondo_stream *stream, void *scene) {
    const node_scene *s = scene;
    const rondo_work work = node_fill_work(s->x, 0, NODE_COUNT);
    (void)stream;
    return rondo_graph_add_node(s->graph, NULL, 0, &work, NULL);
}

SUITE_CASE(test_conformance_hand_made__wrong_bodies_break_the_build) {
    static const rondo_body_function bodies[] = {then_body, else_body};
    static const rondo_body_function adding[] = {adding_body};
    suite_need(context, RONDO_FEATURE_WHILE);
    node_scene s = begin_scene(state);
    const rondo_work loop = conditional_work(&s, RONDO_SCOPE_WHILE, bodies, 2);
    ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 0, &loop, NULL), INVALID);
    ASSERT_MESSAGE_HAS("1 bodies, not 2");
    expect_no_graph(&s);
    const rondo_work none = conditional_work(&s, RONDO_SCOPE_SWITCH, bodies, 0);
    ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 0, &none, NULL), INVALID);
    expect_no_graph(&s);
    const rondo_work kind = conditional_work(&s, 9, bodies, 1);
    ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 0, &kind, NULL), INVALID);
    ASSERT_MESSAGE_HAS("9 is not a kind of scope");
    expect_no_graph(&s);
    const rondo_work nested = conditional_work(&s, RONDO_SCOPE_WHILE, adding, 1);
    ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 0, &nested, NULL), STATE);
    ASSERT_MESSAGE_HAS("put the work on the stream");
    expect_no_graph(&s);
    node_close_scene(&s);
}

// ---- steps ------------------------------------------------------------------------------------

typedef struct step_case {
    node_scene *scene;
    rondo_stream *other;
    rondo_event *event;
} step_case;

// x and y at once, and what joins them is left to the next node.
static rondo_status forked_step(rondo_stream *stream, void *user_data) {
    const step_case *it = user_data;
    node_scene *s = it->scene;
    ASSERT_OK(rondo_label_push(stream, "step"));
    ASSERT_OK(rondo_event_record(it->event, stream));
    ASSERT_OK(rondo_stream_wait_event(it->other, it->event));
    ASSERT_OK(add_to(s, it->other, s->y, 1, 7));
    ASSERT_OK(add_to(s, stream, s->x, 10, 0));
    ASSERT_OK(rondo_event_record(it->event, it->other));
    ASSERT_OK(rondo_stream_wait_event(stream, it->event));
    return RONDO_STATUS_OK;
}

static rondo_status empty_step(rondo_stream *stream, void *user_data) {
    (void)stream;
    (void)user_data;
    return RONDO_STATUS_OK;
}

static rondo_status ending_step(rondo_stream *stream, void *graph) {
    (void)stream;
    rondo_graph_capture_abort(graph);
    return RONDO_STATUS_OK;
}

static rondo_status failing_step(rondo_stream *stream, void *user_data) {
    (void)stream;
    (void)user_data;
    return RONDO_STATUS_BAD_DATA;
}

SUITE_CASE(test_conformance_hand_made__steps_are_recorded_between_nodes) {
    node_scene s = begin_scene(state);
    step_case it = {&s, suite_create_stream(s.context), suite_create_event(s.context, 0)};
    const rondo_work fills[] = {node_fill_work(s.x, 2, NODE_COUNT),
                                node_fill_work(s.y, 3, NODE_COUNT)};
    const rondo_node starts[] = {add(&s, NULL, 0, &fills[0]), add(&s, NULL, 0, &fills[1])};
    rondo_node last[4] = {{0}};
    size_t count;
    ASSERT_OK(rondo_graph_add_step(s.graph, starts, 2, forked_step, &it, last, 4, &count));
    assert_int_equal(count, 2);
    // A step that records nothing stands where it began.
    rondo_node same[2] = {{0}};
    ASSERT_OK(rondo_graph_add_step(s.graph, last, 2, empty_step, NULL, same, 1, &count));
    assert_int_equal(count, 2);
    assert_true(same[0].number == last[0].number || same[0].number == last[1].number);
    assert_int_equal(same[1].number, 0);
    const rondo_work sum = node_copy_work(s.y, s.x, 4, RONDO_COPY_DEVICE_TO_DEVICE);
    (void)add(&s, last, 2, &sum);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    assert_int_equal(count_edges(s.graph), 6);
    size_t found;
    ASSERT_OK(rondo_graph_find_nodes(s.graph, "step", NULL, 0, &found));
    assert_int_equal(found, 2);
    for (int round = 0; round < 2; ++round) {
        memory_replay(s.graph, s.stream);
        ASSERT_VALUE(s.context, s.x, 0, 20);
        ASSERT_VALUE(s.context, s.y, 0, 20);
        ASSERT_VALUE(s.context, s.y, 1, 10);
    }
    rondo_event_destroy(it.event);
    rondo_stream_destroy(it.other);
    node_close_scene(&s);
}

SUITE_CASE(test_conformance_hand_made__wrong_steps_break_the_build) {
    node_scene s = begin_scene(state);
    size_t count = 9;
    ASSERT_STATUS(rondo_graph_add_step(s.graph, NULL, 0, failing_step, NULL, NULL, 0, &count),
                  BAD_DATA);
    assert_int_equal(count, 0);
    expect_no_graph(&s);
    ASSERT_STATUS(rondo_graph_add_step(s.graph, NULL, 0, NULL, NULL, NULL, 0, &count), INVALID);
    expect_no_graph(&s);
    ASSERT_STATUS(rondo_graph_add_step(s.graph, NULL, 0, adding_body, &s, NULL, 0, &count), STATE);
    expect_no_graph(&s);
    ASSERT_STATUS(rondo_graph_add_step(s.graph, NULL, 0, ending_step, s.graph, NULL, 0, &count),
                  STATE);
    ASSERT_MESSAGE_HAS("has ended or aborted it");
    ASSERT_STATUS(rondo_graph_add_step(s.graph, NULL, 0, empty_step, NULL, NULL, 0, &count), STATE);
    node_close_scene(&s);
}

// ---- launch attributes ------------------------------------------------------------------------

// Two launches of y + 1, the second as wanted; NULL: this device cannot.
static bool build_special(node_scene *s, const rondo_launch *wanted, rondo_node *out_node) {
    const suite_affine_arguments arguments = {s->y, NODE_COUNT, 1, 1};
    rondo_launch launch = suite_describe_affine(s->context, &arguments);
    rondo_work work = node_kernel_work(&launch);
    const rondo_node first = add(s, NULL, 0, &work);
    launch.grid[0] = 2;
    launch.flags = wanted->flags;
    launch.priority = wanted->priority;
    memcpy(launch.cluster, wanted->cluster, sizeof launch.cluster);
    const rondo_status status = rondo_graph_add_node(s->graph, &first, 1, &work, out_node);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        ASSERT_MESSAGE_HAS("clusters came with compute capability 9.0");
        expect_no_graph(s);
        return false;
    }
    ASSERT_OK(status);
    ASSERT_OK(rondo_graph_capture_end(s->graph));
    return true;
}

SUITE_CASE(test_conformance_hand_made__launches_have_attributes) {
    static const rondo_launch rows[] = {
        {.cluster = {2, 1, 1}},
        {.flags = RONDO_LAUNCH_COOPERATIVE},
        {.priority = 2},
        {.priority = -1},
    };
    node_scene s = begin_scene(state);
    uint32_t expected = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_node node;
        if (!build_special(&s, &rows[i], &node)) {
            continue;
        }
        if (!s.context->is_null) {
            const rondo_node_state now = read(s.graph, node);
            assert_memory_equal(now.cluster, rows[i].cluster, sizeof now.cluster);
            assert_int_equal(now.is_cooperative, (rows[i].flags & RONDO_LAUNCH_COOPERATIVE) != 0);
            // A GPU has the levels 0 to 5, and takes the nearest.
            assert_int_equal(now.priority,
                             s.context->is_cuda && rows[i].priority < 0 ? 0 : rows[i].priority);
            // They stay where the node takes other arguments, of a grid that fits them.
            const suite_affine_arguments arguments = {s.y, NODE_COUNT, 1, 10};
            rondo_launch launch = suite_describe_affine(s.context, &arguments);
            const rondo_work work = node_kernel_work(&launch);
            if (now.cluster[0] == 2) {
                ASSERT_STATUS(rondo_graph_patch_node(s.graph, node, &work), INVALID);
                ASSERT_MESSAGE_HAS("was recorded with clusters of 2 x 1 x 1 blocks");
            }
            launch.grid[0] = 2;
            ASSERT_OK(rondo_graph_patch_node(s.graph, node, &work));
            assert_memory_equal(read(s.graph, node).cluster, rows[i].cluster, sizeof now.cluster);
            expected += 11;
        }
        memory_replay(s.graph, s.stream);
        ASSERT_VALUE(s.context, s.y, 0, expected);
        ASSERT_OK(rondo_graph_reset(s.graph));
        ASSERT_OK(rondo_graph_build_begin(s.graph));
    }
    node_close_scene(&s);
}

SUITE_CASE(test_conformance_hand_made__clusters_divide_the_grid) {
    node_scene s = begin_scene(state);
    const suite_affine_arguments arguments = {s.x, NODE_COUNT, 1, 1};
    static const uint32_t wrong[][3] = {{2, 1, 1}, {1, 0, 1}, {0, 1, 0}};
    for (size_t i = 0; i < 3; ++i) {
        rondo_launch launch = suite_describe_affine(s.context, &arguments);
        launch.grid[0] = 3;
        memcpy(launch.cluster, wrong[i], sizeof launch.cluster);
        const rondo_work work = node_kernel_work(&launch);
        ASSERT_STATUS(rondo_graph_add_node(s.graph, NULL, 0, &work, NULL), INVALID);
        ASSERT_MESSAGE_HAS("do not divide the grid");
        expect_no_graph(&s);
    }
    node_close_scene(&s);
}

// The edge by which a kernel overlaps its predecessor is the one that it was added behind.
SUITE_CASE(test_conformance_hand_made__overlap_makes_its_edge_programmatic) {
    node_scene s = begin_scene(state);
    const suite_affine_arguments arguments = {s.x, NODE_COUNT, 1, 1};
    rondo_launch launch = suite_describe_affine(s.context, &arguments);
    const rondo_work work = node_kernel_work(&launch);
    rondo_node node = add_affine(&s, NULL, 0, s.x, 1, 1);
    (void)add_affine(&s, NULL, 0, s.y, 1, 1);
    launch.flags = RONDO_LAUNCH_OVERLAP;
    node = add(&s, &node, 1, &work);
    launch.flags = 0;
    (void)add(&s, &node, 1, &work);
    ASSERT_OK(rondo_graph_capture_end(s.graph));
    rondo_graph_edge edges[4];
    size_t count, overlaps = 0;
    ASSERT_OK(rondo_graph_list_edges(s.graph, edges, 4, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; ++i) {
        overlaps += edges[i].is_programmatic ? 1 : 0;
    }
    assert_true(overlaps == 1 || (overlaps == 0 && !(s.context->is_cuda && s.context->is_fake)));
    node_close_scene(&s);
}

// ---- clones -----------------------------------------------------------------------------------

static rondo_graph *make_clone(rondo_graph *graph) {
    rondo_graph *made;
    const rondo_status status = rondo_graph_clone(graph, NULL, &made);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        return NULL;
    }
    ASSERT_OK(status);
    return made;
}

static void record_labelled(node_scene *s) {
    memory_begin(s->graph, s->stream);
    ASSERT_OK(rondo_label_push(s->stream, "a"));
    ASSERT_OK(suite_affine(s->context, s->stream, s->x, NODE_COUNT, 2, 1));
    ASSERT_OK(rondo_label_pop(s->stream));
    ASSERT_OK(suite_affine(s->context, s->stream, s->y, NODE_COUNT, 3, 1));
    memory_end(s->graph);
}

SUITE_CASE(test_conformance_hand_made__clones_are_patched_apart) {
    node_scene s = node_open_scene(state, true);
    record_labelled(&s);
    rondo_graph *other = make_clone(s.graph);
    if (other == NULL) {
        node_close_scene(&s);
        suite_skip("its graphs cannot be cloned");
    }
    size_t count;
    rondo_node own, others;
    ASSERT_OK(rondo_graph_compare(s.graph, other, NULL, 0, &count));
    assert_int_equal(count, 0);
    ASSERT_OK(rondo_graph_find_nodes(s.graph, "a", &own, 1, &count));
    assert_int_equal(count, 1);
    ASSERT_OK(rondo_graph_find_nodes(other, "a", &others, 1, &count));
    assert_int_equal(count, 1);
    assert_true(own.recording != others.recording);
    // One handle is not the other graph's.
    ASSERT_STATUS(node_patch_affine(s.context, other, own, s.x, NODE_COUNT, 2, 1), STATE);
    ASSERT_OK(node_patch_affine(s.context, other, others, s.x, NODE_COUNT, 5, 0));
    memory_replay(s.graph, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 3);
    ASSERT_VALUE(s.context, s.y, 0, 4);
    memory_replay(other, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 15);
    ASSERT_VALUE(s.context, s.y, 0, 13);
    // A clone of what was patched has no patches; it outlives both.
    rondo_graph *third;
    ASSERT_OK(rondo_graph_clone(other, "third", &third));
    rondo_graph_destroy(other);
    ASSERT_OK(rondo_graph_reset(s.graph));
    memory_replay(third, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 31);
    ASSERT_VALUE(s.context, s.y, 0, 40);
    // What was cloned can be reset and record again.
    ASSERT_OK(rondo_graph_reset(third));
    memory_begin(third, s.stream);
    memory_fill(s.stream, s.x, 8, NODE_COUNT);
    memory_end(third);
    memory_replay(third, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 8);
    rondo_graph_destroy(third);
    node_close_scene(&s);
}

static void count_call(void *arguments) {
    uint32_t *counter;
    memcpy(&counter, arguments, sizeof counter);
    *counter += 1;
}

// Memory of the graph's own, host functions, events and random numbers: the clone shares them.
SUITE_CASE(test_conformance_hand_made__clones_share_what_a_graph_needs) {
    // First, as a device without such events skips.
    rondo_event *event = suite_create_event(context, RONDO_EVENT_EXTERNAL);
    node_scene s = node_open_scene(state, true);
    rondo_pool *pool = memory_create_pool(s.context, RONDO_MEMORY_DEVICE);
    s.seen[0] = 0;
    memory_begin(s.graph, s.stream);
    uint32_t *block = memory_take(pool, s.stream, NODE_COUNT);
    memory_fill(s.stream, block, 5, NODE_COUNT);
    ASSERT_OK(suite_affine(s.context, s.stream, block, NODE_COUNT, 3, 1));
    ASSERT_OK(rondo_stream_copy(s.stream, s.x, block, NODE_COUNT * sizeof *block,
                                RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(rondo_stream_call_host(s.stream, "count", count_call, &s.seen, sizeof s.seen));
    ASSERT_OK(rondo_event_record(event, s.stream));
    memory_free(pool, block);
    memory_end(s.graph);
    rondo_graph *other = make_clone(s.graph);
    if (other == NULL) {
        node_close_scene(&s);
        rondo_event_destroy(event);
        rondo_pool_release(pool);
        suite_skip("its graphs cannot be cloned");
    }
    rondo_event_destroy(event);
    memory_replay(s.graph, s.stream);
    memory_replay(other, s.stream);
    rondo_graph_destroy(s.graph);
    s.graph = suite_create_graph(s.context, true);
    memory_fill(s.stream, s.x, 0, NODE_COUNT);
    memory_replay(other, s.stream);
    ASSERT_VALUE(s.context, s.x, 0, 16);
    assert_true(s.context->is_null || s.seen[0] == 3);
    rondo_graph_destroy(other);
    rondo_pool_release(pool);
    node_close_scene(&s);
}

SUITE_CASE(test_conformance_hand_made__some_graphs_have_no_clones) {
    static const rondo_body_function bodies[] = {then_body};
    node_scene s = node_open_scene(state, true);
    rondo_graph *made = s.graph;
    ASSERT_STATUS(rondo_graph_clone(s.graph, NULL, &made), STATE);
    assert_null(made);
    rondo_graph *bare = suite_create_graph(s.context, false);
    memory_begin(bare, s.stream);
    memory_fill(s.stream, s.x, 1, NODE_COUNT);
    memory_end(bare);
    ASSERT_STATUS(rondo_graph_clone(bare, NULL, &made), STATE);
    rondo_graph_destroy(bare);
    rondo_graph *checked = memory_create_checked_graph(s.context);
    memory_begin(checked, s.stream);
    memory_fill(s.stream, s.x, 1, NODE_COUNT);
    memory_end(checked);
    const rondo_status status = rondo_graph_clone(checked, NULL, &made);
    assert_true(status == RONDO_STATUS_UNSUPPORTED || status == RONDO_STATUS_STATE);
    rondo_graph_destroy(checked);
    if (rondo_device_supports(s.context->device, RONDO_FEATURE_IF) == RONDO_STATUS_OK) {
        memory_begin(s.graph, s.stream);
        ASSERT_OK(rondo_control_if(s.stream, s.y, bodies[0], NULL, &s));
        memory_end(s.graph);
        ASSERT_STATUS(rondo_graph_clone(s.graph, NULL, &made), UNSUPPORTED);
        assert_true(s.context->is_null ||
                    strstr(rondo_error_get_last()->message, "record it again") != NULL);
    }
    node_close_scene(&s);
}
