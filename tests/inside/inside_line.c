// inside_line.c — a graph made node by node (graph/line.h) is the one that a capture records.
// SPDX-License-Identifier: Apache-2.0
#include "graph/line.h"
#include "inside/inside_objects.h"
#include "rondo/label.h"
#include "rondo/node.h"
#include "rondo/update.h"

enum { COUNT = 64, NODES = 7, LOOKS = 6 };

typedef struct scene {
    suite_context *context;
    uint32_t *x, *y;
    suite_affine_arguments arguments[NODES];
    rondo_launch launches[NODES];
    rondo__line_node nodes[NODES];
} scene;

static void set_kernel(scene *s, size_t i, uint32_t *x, uint32_t factor, uint32_t flags) {
    s->arguments[i] = (suite_affine_arguments){x, COUNT, factor, 1};
    s->launches[i] = suite_describe_affine(s->context, &s->arguments[i]);
    s->launches[i].flags = flags;
    s->nodes[i] = (rondo__line_node){.kind = RONDO__NODE_KERNEL, .launch = &s->launches[i]};
}

// Kernels that overlap with a kernel, a fill and a copy, or with nothing; and one that does not.
static void make_scene(suite_context *context, scene *s) {
    *s = (scene){.context = context};
    s->x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    s->y = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    suite_set(context, s->x, 3, COUNT);
    suite_set(context, s->y, 5, COUNT);
    set_kernel(s, 0, s->x, 3, RONDO_LAUNCH_OVERLAP);
    set_kernel(s, 1, s->x, 5, RONDO_LAUNCH_OVERLAP);
    set_kernel(s, 2, s->x, 7, 0);
    s->nodes[3] = (rondo__line_node){.kind = RONDO__NODE_FILL, .destination = s->y, .bytes = 32};
    set_kernel(s, 4, s->y, 2, RONDO_LAUNCH_OVERLAP);
    s->nodes[5] = (rondo__line_node){
        .kind = RONDO__NODE_COPY, .source = s->x, .destination = s->y, .bytes = 4 * COUNT / 2};
    set_kernel(s, 6, s->y, 11, RONDO_LAUNCH_OVERLAP);
}

static const char *get_label(size_t i) {
    static const char *const labels[NODES] = {"a", "a", "b", "b", "", "c", "c"};
    return labels[i];
}

static rondo_status put(const scene *s, const rondo__line_node *node) {
    rondo_stream *stream = s->context->stream;
    return node->kind == RONDO__NODE_KERNEL ? rondo_stream_launch(stream, node->launch)
           : node->kind == RONDO__NODE_COPY
               ? rondo_stream_copy(stream, node->destination, node->source, node->bytes,
                                   RONDO_COPY_DEVICE_TO_DEVICE)
               : rondo_stream_fill(stream, node->destination, 0, 1, node->bytes);
}

static rondo_graph *create_graph(const scene *s, rondo_graph_keeps keep) {
    const rondo_graph_options options = {
        .struct_size = sizeof options, .keep = keep, .label = "line"};
    rondo_graph *graph = NULL;
    ASSERT_OK(rondo_graph_create(s->context->device, &options, &graph));
    return graph;
}

static void capture(const scene *s, rondo_graph *graph) {
    rondo_stream *stream = s->context->stream;
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    for (size_t i = 0; i < NODES; ++i) {
        const bool has_label = get_label(i)[0] != '\0';
        if (has_label) {
            ASSERT_OK(rondo_label_push(stream, get_label(i)));
        }
        ASSERT_OK(put(s, &s->nodes[i]));
        if (has_label) {
            ASSERT_OK(rondo_label_pop(stream));
        }
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
}

// False: this device has no lines.
static bool line_up(const scene *s, rondo_graph *graph) {
    rondo__graph_line line;
    const rondo_status status = rondo__graph_line_begin(graph, s->context->stream, &line);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        return false;
    }
    ASSERT_OK(status);
    for (size_t i = 0; i < NODES; ++i) {
        rondo_status added = rondo__graph_line_label(&line, s->context->stream, get_label(i));
        if (added == RONDO_STATUS_OK) {
            added = rondo__graph_line_append(&line, &s->nodes[i]);
        }
        if (added != RONDO_STATUS_OK) {
            rondo__graph_line_abandon(&line);
        }
        ASSERT_OK(added);
    }
    ASSERT_OK(rondo__graph_line_end(&line));
    return true;
}

static void need_lines(const suite_context *context) {
    if (context->device->backend->begin_line == NULL) {
        suite_skip("this device has no lines");
    }
}

// Nodes that were added have other defaults on a GPU than recorded ones, of attributes that no
// launch asks for; all else is the same.
static void compare_nodes(const scene *s, rondo_graph *captured, rondo_graph *made) {
    rondo_difference differences[NODES];
    rondo_graph_edge edges[2][NODES];
    size_t counts[2] = {0}, count = 0;
    for (size_t i = 0; i < NODES; ++i) {
        differences[i] = (rondo_difference){.struct_size = sizeof differences[i]};
    }
    ASSERT_OK(rondo_graph_compare(captured, made, differences, NODES, &count));
    assert_true(count == 0 || (!s->context->is_fake && count <= NODES));
    for (size_t i = 0; i < count; ++i) {
        assert_string_equal(differences[i].field, "other attributes");
    }
    for (int g = 0; g < 2; ++g) {
        rondo_graph *graph = g == 0 ? captured : made;
        ASSERT_OK(rondo_graph_list_edges(graph, edges[g], NODES, &counts[g]));
    }
    assert_int_equal(counts[0], NODES - 1);
    assert_int_equal(counts[1], NODES - 1);
    for (size_t i = 0; i < NODES - 1; ++i) {
        assert_int_equal(edges[0][i].from, edges[1][i].from);
        assert_int_equal(edges[0][i].to, edges[1][i].to);
        assert_int_equal(edges[0][i].is_programmatic, edges[1][i].is_programmatic);
    }
    for (size_t i = 0; i < NODES; ++i) {
        rondo_graph_node nodes[2] = {{.struct_size = sizeof nodes[0]},
                                     {.struct_size = sizeof nodes[0]}};
        ASSERT_OK(rondo_graph_get_node(captured, i, &nodes[0]));
        ASSERT_OK(rondo_graph_get_node(made, i, &nodes[1]));
        assert_string_equal(nodes[0].label, nodes[1].label);
    }
}

static void compare_stats(const rondo_graph *captured, const rondo_graph *made) {
    rondo_graph_stats stats[2] = {{.struct_size = sizeof stats[0]},
                                  {.struct_size = sizeof stats[0]}};
    ASSERT_OK(rondo_graph_get_stats(captured, &stats[0]));
    ASSERT_OK(rondo_graph_get_stats(made, &stats[1]));
    assert_int_equal(stats[0].node_count, stats[1].node_count);
    assert_int_equal(stats[0].kernel_count, stats[1].kernel_count);
    assert_int_equal(stats[0].copy_count, stats[1].copy_count);
    assert_int_equal(stats[0].device_bytes, stats[1].device_bytes);
    assert_int_equal(stats[0].device_bytes_is_estimate, stats[1].device_bytes_is_estimate);
}

// Replays one of the graphs, and shows what it left.
static void replay(const scene *s, rondo_graph *graph, uint32_t out[2 * LOOKS]) {
    static const size_t looks[LOOKS] = {0, 7, 8, 31, 32, COUNT - 1};

    suite_set(s->context, s->x, 3, COUNT);
    suite_set(s->context, s->y, 5, COUNT);
    ASSERT_OK(rondo_graph_replay(graph, s->context->stream));
    ASSERT_OK(rondo_stream_synchronize(s->context->stream));
    for (size_t i = 0; i < LOOKS; ++i) {
        out[i] = suite_get(s->context, s->x, looks[i]);
        out[LOOKS + i] = suite_get(s->context, s->y, looks[i]);
    }
}

SUITE_CASE_EXECUTED(test_inside_line__is_as_captured) {
    need_lines(context);
    for (rondo_graph_keeps keep = RONDO_KEEP_EXECUTABLE; keep <= RONDO_KEEP_TEMPLATE; ++keep) {
        uint32_t results[2][2 * LOOKS];
        scene s;
        make_scene(context, &s);
        rondo_graph *captured = create_graph(&s, keep);
        rondo_graph *made = create_graph(&s, keep);
        ASSERT_OK(rondo_label_push(context->stream, "outer"));
        capture(&s, captured);
        const bool has_line = line_up(&s, made);
        ASSERT_OK(rondo_label_pop(context->stream));
        if (has_line) {
            if (keep == RONDO_KEEP_TEMPLATE) {
                compare_nodes(&s, captured, made);
            }
            compare_stats(captured, made);
            replay(&s, captured, results[0]);
            replay(&s, made, results[1]);
            assert_memory_equal(results[0], results[1], sizeof results[0]);
        }
        rondo_graph_destroy(made);
        rondo_graph_destroy(captured);
    }
}

// Its nodes are found and patched, it takes a capture's place, and it is recorded into again.
SUITE_CASE_EXECUTED(test_inside_line__is_used_as_any_graph) {
    need_lines(context);
    uint32_t results[2][2 * LOOKS];
    scene s;
    make_scene(context, &s);
    rondo_graph *captured = create_graph(&s, RONDO_KEEP_TEMPLATE);
    rondo_graph *made = create_graph(&s, RONDO_KEEP_TEMPLATE);
    if (line_up(&s, made)) {
        rondo_node nodes[2];
        size_t count = 0;
        ASSERT_OK(rondo_graph_find_nodes(made, "b", nodes, 2, &count));
        assert_int_equal(count, 2);
        s.arguments[2].factor = 13;
        const rondo_work work = {
            .struct_size = sizeof work, .kind = RONDO_NODE_KERNEL, .launch = &s.launches[2]};
        ASSERT_OK(rondo_graph_patch_node(made, nodes[0], &work));
        capture(&s, captured);
        replay(&s, made, results[0]);
        replay(&s, captured, results[1]);
        assert_memory_equal(results[0], results[1], sizeof results[0]);
        rondo_update_report report = {.struct_size = sizeof report};
        s.arguments[6].factor = 17;
        ASSERT_OK(rondo_graph_reset(captured));
        capture(&s, captured);
        replay(&s, captured, results[1]);
        ASSERT_OK(rondo_graph_update(made, captured, &report));
        replay(&s, made, results[0]);
        assert_memory_equal(results[0], results[1], sizeof results[0]);
        ASSERT_OK(rondo_graph_reset(made));
        capture(&s, made);
        replay(&s, made, results[0]);
        assert_memory_equal(results[0], results[1], sizeof results[0]);
    }
    rondo_graph_destroy(made);
    rondo_graph_destroy(captured);
}

// What only a capture can record is refused, and the graph stays empty.
SUITE_CASE(test_inside_line__refuses_what_it_cannot) {
    need_lines(context);
    scene s;
    make_scene(context, &s);
    rondo_graph *graph = create_graph(&s, RONDO_KEEP_EXECUTABLE);
    rondo__graph_line line;
    s.launches[2].priority = 1;
    const rondo_status begun = rondo__graph_line_begin(graph, context->stream, &line);
    if (begun != RONDO_STATUS_UNSUPPORTED) {
        ASSERT_OK(begun);
        const rondo_status first = rondo__graph_line_append(&line, &s.nodes[0]);
        const rondo_status second = rondo__graph_line_append(&line, &s.nodes[2]);
        rondo__graph_line_abandon(&line);
        ASSERT_OK(first);
        assert_int_equal(second, RONDO_STATUS_UNSUPPORTED);
    }
    ASSERT_STATUS(rondo_graph_replay(graph, context->stream), STATE);
    const rondo_stream_options options = {.struct_size = sizeof options, .priority = 1};
    rondo_stream *stream = NULL;
    ASSERT_OK(rondo_stream_create(context->device, &options, &stream));
    if (stream->priority != 0) {
        ASSERT_STATUS(rondo__graph_line_begin(graph, stream, &line), UNSUPPORTED);
    }
    rondo_stream_destroy(stream);
    rondo_graph_destroy(graph);
}
