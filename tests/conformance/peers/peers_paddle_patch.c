// What PaddlePaddle's own tests say of patching an instantiated graph, by their numbers in
// docs/peer_tests.md. They name a pointer, and all kernels that hold it are patched; here a patch
// names the node.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/node/node_support.h"

enum { COUNT = 64 };

// output = input * 3 + 1, by a copy and a kernel.
typedef struct scene {
    suite_context *context;
    rondo_graph *graph;
    rondo_node node;      // the copy
    uint32_t *inputs[3];  // hold 10, 20, 30
    uint32_t *outputs[2];
} scene;

static rondo_work copy_input(const scene *s, int output, int input) {
    return node_copy_work(s->outputs[output], s->inputs[input], COUNT * sizeof(uint32_t),
                          RONDO_COPY_DEVICE_TO_DEVICE);
}

static void record(scene *s, bool takes_handle) {
    rondo_stream *stream = s->context->stream;
    const rondo_work copy = copy_input(s, 0, 0);
    memory_begin(s->graph, stream);
    ASSERT_OK(rondo_stream_add_node(stream, &copy, takes_handle ? &s->node : NULL));
    ASSERT_OK(suite_affine(s->context, stream, s->outputs[0], COUNT, 3, 1));
    memory_end(s->graph);
}

static scene open_scene(void **state, bool takes_handle) {
    scene s = {.context = suite_get_context(state)};
    suite_need_execution(s.context);
    for (uint32_t i = 0; i < 3; ++i) {
        s.inputs[i] = suite_allocate(s.context, RONDO_MEMORY_DEVICE, COUNT);
        suite_set(s.context, s.inputs[i], 10 * (i + 1), COUNT);
    }
    for (int i = 0; i < 2; ++i) {
        s.outputs[i] = suite_allocate(s.context, RONDO_MEMORY_DEVICE, COUNT);
        suite_set(s.context, s.outputs[i], 0, COUNT);
    }
    s.graph = suite_create_graph(s.context, false);
    record(&s, takes_handle);
    return s;
}

static void close_scene(scene *s) {
    rondo_graph_destroy(s->graph);
    for (int i = 0; i < 3; ++i) {
        suite_free(s->context, RONDO_MEMORY_DEVICE, s->inputs[i]);
    }
    for (int i = 0; i < 2; ++i) {
        suite_free(s->context, RONDO_MEMORY_DEVICE, s->outputs[i]);
    }
}

static void replace_input(scene *s, int input) {
    const rondo_work work = copy_input(s, 0, input);
    ASSERT_OK(rondo_graph_patch_node(s->graph, s->node, &work));
}

// Replays, and looks at the first and the last word.
static void check_replay(scene *s, uint32_t expected) {
    memory_replay(s->graph, s->context->stream);
    ASSERT_VALUE(s->context, s->outputs[0], 0, expected);
    ASSERT_VALUE(s->context, s->outputs[0], COUNT - 1, expected);
}

SUITE_CASE(paddle_05_handles_change_no_replay) {
    scene s = open_scene(state, true);
    for (uint32_t i = 0; i < 3; ++i) {
        suite_set(s.context, s.inputs[0], i, COUNT);
        check_replay(&s, 3 * i + 1);
    }
    close_scene(&s);
}

SUITE_CASE(paddle_06_an_input_is_replaced) {
    scene s = open_scene(state, true);
    check_replay(&s, 31);
    replace_input(&s, 1);
    check_replay(&s, 61);
    suite_set(s.context, s.inputs[0], 99, COUNT);  // nobody reads it any more
    suite_set(s.context, s.inputs[1], 4, COUNT);
    check_replay(&s, 13);
    close_scene(&s);
}

SUITE_CASE(paddle_07_a_patch_needs_a_handle) {
    scene s = open_scene(state, false);
    const rondo_work work = copy_input(&s, 0, 1);
    ASSERT_STATUS(rondo_graph_patch_node(s.graph, s.node, &work), STATE);
    ASSERT_MESSAGE_HAS("the handle is none of what graph");
    check_replay(&s, 31);
    close_scene(&s);
}

SUITE_CASE(paddle_08_an_empty_patch_does_nothing) {
    scene s = open_scene(state, true);
    ASSERT_OK(rondo_graph_patch(s.graph, NULL, 0));
    const rondo_patch nothing = {.node = s.node};
    ASSERT_OK(rondo_graph_patch(s.graph, &nothing, 1));
    check_replay(&s, 31);
    close_scene(&s);
}

SUITE_CASE(paddle_09_what_is_not_there_changes_nothing) {
    scene s = open_scene(state, true);
    const rondo_work work = copy_input(&s, 0, 1);
    const rondo_node unknown = {.recording = s.node.recording, .number = s.node.number + 1};
    const rondo_patch patches[] = {{.node = s.node, .work = &work},
                                   {.node = unknown, .work = &work}};
    ASSERT_STATUS(rondo_graph_patch(s.graph, patches, 2), STATE);
    check_replay(&s, 31);
    replace_input(&s, 0);  // what it does already
    check_replay(&s, 31);
    close_scene(&s);
}

SUITE_CASE(paddle_10_two_pointers_at_once) {
    scene s = open_scene(state, true);
    rondo_stream *stream = s.context->stream;
    const rondo_work first = copy_input(&s, 0, 0);
    const rondo_work second = copy_input(&s, 1, 1);
    ASSERT_OK(rondo_graph_reset(s.graph));
    memory_begin(s.graph, stream);
    const rondo_node nodes[] = {node_add(stream, &first), node_add(stream, &second)};
    memory_end(s.graph);
    const rondo_work works[] = {copy_input(&s, 0, 2), copy_input(&s, 1, 0)};
    const rondo_patch patches[] = {{.node = nodes[0], .work = &works[0]},
                                   {.node = nodes[1], .work = &works[1]}};
    ASSERT_OK(rondo_graph_patch(s.graph, patches, 2));
    check_replay(&s, 30);
    ASSERT_VALUE(s.context, s.outputs[1], 0, 10);
    close_scene(&s);
}

SUITE_CASE(paddle_11_one_behind_the_other) {
    static const int order[] = {1, 2, 0, 2};
    scene s = open_scene(state, true);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; ++i) {
        replace_input(&s, order[i]);
        check_replay(&s, 30 * ((uint32_t)order[i] + 1) + 1);
    }
    // Also without a replay between.
    replace_input(&s, 0);
    replace_input(&s, 1);
    check_replay(&s, 61);
    close_scene(&s);
}

SUITE_CASE(paddle_12_after_several_replays) {
    scene s = open_scene(state, true);
    for (int i = 0; i < 5; ++i) {
        check_replay(&s, 31);
    }
    replace_input(&s, 2);
    for (int i = 0; i < 5; ++i) {
        check_replay(&s, 91);
    }
    close_scene(&s);
}

SUITE_CASE(paddle_13_one_pointer_in_several_kernels) {
    enum { KERNELS = 4 };
    scene s = open_scene(state, true);
    rondo_stream *stream = s.context->stream;
    rondo_patch patches[KERNELS];
    suite_affine_arguments arguments[KERNELS];
    rondo_launch launches[KERNELS];
    rondo_work works[KERNELS];
    ASSERT_OK(rondo_graph_reset(s.graph));
    memory_begin(s.graph, stream);
    for (uint32_t i = 0; i < KERNELS; ++i) {
        patches[i] =
            (rondo_patch){.node = node_add_affine(s.context, stream, s.inputs[0], COUNT, 2, i),
                          .work = &works[i]};
        arguments[i] = (suite_affine_arguments){s.inputs[1], COUNT, 2, i};
        launches[i] = suite_describe_affine(s.context, &arguments[i]);
        works[i] = node_kernel_work(&launches[i]);
    }
    memory_end(s.graph);
    memory_replay(s.graph, stream);
    ASSERT_VALUE(s.context, s.inputs[0], 0, 171);
    ASSERT_OK(rondo_graph_patch(s.graph, patches, KERNELS));
    memory_replay(s.graph, stream);
    ASSERT_VALUE(s.context, s.inputs[0], 0, 171);
    ASSERT_VALUE(s.context, s.inputs[1], 0, 331);
    close_scene(&s);
}

// Two graphs whose memory comes from one arena: one's patch leaves the other as it was.
SUITE_CASE(paddle_14_in_a_shared_pool) {
    scene s = open_scene(state, true);
    rondo_stream *stream = s.context->stream;
    rondo_pool *pool = memory_create_pool(s.context, RONDO_MEMORY_DEVICE);
    rondo_arena *arena;
    ASSERT_OK(rondo_arena_create(s.context->device, NULL, &arena));
    rondo_graph *graphs[2];
    rondo_node nodes[2];
    uint32_t *temporaries[2];
    for (int i = 0; i < 2; ++i) {
        graphs[i] = memory_create_graph(s.context, i == 0 ? "first" : "second", arena);
        memory_begin(graphs[i], stream);
        uint32_t *temporary = memory_take(pool, stream, COUNT);
        const rondo_work in = node_copy_work(temporary, s.inputs[0], COUNT * sizeof(uint32_t),
                                             RONDO_COPY_DEVICE_TO_DEVICE);
        nodes[i] = node_add(stream, &in);
        memory_add(s.context, stream, s.outputs[i], temporary, 1, COUNT);
        memory_free(pool, temporary);
        memory_end(graphs[i]);
        temporaries[i] = temporary;
    }
    const rondo_work other = node_copy_work(temporaries[0], s.inputs[1], COUNT * sizeof(uint32_t),
                                            RONDO_COPY_DEVICE_TO_DEVICE);
    ASSERT_OK(rondo_graph_patch_node(graphs[0], nodes[0], &other));
    for (int round = 0; round < 3; ++round) {
        memory_replay(graphs[0], stream);
        memory_replay(graphs[1], stream);
        ASSERT_VALUE(s.context, s.outputs[0], 0, 21);
        ASSERT_VALUE(s.context, s.outputs[1], 0, 11);
    }
    rondo_graph_destroy(graphs[0]);
    rondo_graph_destroy(graphs[1]);
    rondo_arena_release(arena);
    rondo_pool_release(pool);
    close_scene(&s);
}
