// inside_table.c — what the backend's table does by itself, without a graph around it.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_child.h"
#include "conformance/inside_support.h"
#include "graph/graph_object.h"
#include "inside/inside_objects.h"

static rondo__template *record_template(suite_context *context, uint32_t *x, uint32_t factor,
                                        int extra_nodes) {
    inside_begin_bare(context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, factor, 1));
    for (int i = 0; i < extra_nodes; ++i) {
        ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 1));
    }
    return inside_end_bare(context->stream);
}

static void test_inside_table__executables_take_updates(void **state) {
    suite_context *context = suite_get_context(state);
    const rondo__backend *backend = context->device->backend;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo__template *first = record_template(context, x, 3, 1);
    rondo__template *same = record_template(context, x, 10, 1);
    rondo__template *longer = record_template(context, x, 7, 4);
    rondo__executable *executable = NULL;
    ASSERT_OK(backend->instantiate(first, &executable));
    inside_keep_executable(executable);
    ASSERT_OK(backend->replay(executable, context->stream));  // (1 * 3 + 1) + 1
    bool was_updated = false;
    ASSERT_OK(backend->update(executable, same, &was_updated));
    assert_true(was_updated);
    // The template is no longer needed, and the replay in flight is not disturbed.
    inside_drop_template(same);
    ASSERT_OK(backend->replay(executable, context->stream));  // (5 * 10 + 1) + 1
    ASSERT_VALUE(context, x, 0, 52);
    ASSERT_OK(backend->update(executable, longer, &was_updated));
    assert_false(was_updated);
    ASSERT_OK(backend->replay(executable, context->stream));
    ASSERT_VALUE(context, x, 0, 522);
    inside_drop_executable(executable);
    inside_drop_template(longer);
    inside_drop_template(first);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

// What runs on the host: all nodes, each behind those before it, across the borders of the graphs.
static void test_inside_table__host_graphs_are_flattened(void **state) {
    suite_context *context = suite_get_context(state);
    if (!context->is_host) {
        print_message("skipped: only the host flattens graphs in graphs\n");
        skip();
    }
    rondo_stream *stream = context->stream;
    rondo_stream *side = suite_create_stream(context);
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 64);
    uint32_t *y = x + 32;
    rondo_graph *empty = inside_create_deferred(context);
    inside_begin(empty, stream);
    ASSERT_OK(rondo_graph_capture_end(empty));
    rondo_graph *forked = inside_create_deferred(context);  // x and y side by side
    inside_begin(forked, stream);
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    ASSERT_OK(suite_affine(context, side, y, 1, 3, 1));
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_graph_capture_end(forked));
    rondo_graph *middle = inside_create_deferred(context);
    inside_begin(middle, stream);
    ASSERT_OK(rondo_stream_add_graph(stream, empty));
    ASSERT_OK(rondo_stream_add_graph(stream, forked));
    ASSERT_OK(rondo_stream_add_graph(stream, forked));
    ASSERT_OK(rondo_graph_capture_end(middle));
    rondo_graph *outer = suite_create_graph(context, true);
    inside_begin(outer, stream);
    ASSERT_OK(rondo_stream_fill(stream, x, 1, 4, 64));
    ASSERT_OK(rondo_event_record(fork, stream));
    ASSERT_OK(rondo_stream_wait_event(side, fork));
    ASSERT_OK(suite_affine(context, side, y + 1, 1, 7, 0));
    ASSERT_OK(rondo_stream_add_graph(stream, middle));
    ASSERT_OK(rondo_event_record(join, side));
    ASSERT_OK(rondo_stream_wait_event(stream, join));
    ASSERT_OK(rondo_stream_add_graph(stream, empty));
    ASSERT_OK(suite_affine(context, stream, y, 1, 10, 0));
    ASSERT_OK(rondo_graph_capture_end(outer));
    const rondo__host_template *recorded = (const rondo__host_template *)outer->recorded;
    const rondo__host_template *flat;
    ASSERT_OK(rondo__host_flatten(recorded, &flat));
    assert_int_equal(flat->node_count, 7);
    assert_int_equal(flat->edge_count, 10);
    rondo__host_unflatten(recorded, flat);
    rondo_graph_destroy(outer);
    rondo_graph_destroy(middle);
    rondo_graph_destroy(forked);
    rondo_graph_destroy(empty);
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(side);
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

static const suite_entry table_cases[] = {
    SUITE_CASE(test_inside_table__executables_take_updates),
    SUITE_CASE(test_inside_table__host_graphs_are_flattened),
    {NULL, NULL, false},
};
SUITE_LIST(table);
