// Graphs seen from inside and put into each other: node lists, dumps of what is inside, recording a
// graph into another capture.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/control/inside_support.h"
#include "rondo/control.h"
#include "rondo/inspect.h"
#include "rondo/pool.h"
#include "rondo/report.h"
#include "rondo/update.h"
#include "support/short_forms.h"

// ---- node lists -------------------------------------------------------------------------------

SUITE_CASE(test_conformance_inside__nodes_tell_every_field) {
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 300);
    uint32_t *pinned = suite_allocate(context, RONDO_MEMORY_PINNED, 300);
    rondo_event *event = suite_create_event(context, RONDO_EVENT_EXTERNAL);
    rondo_graph *graph = suite_create_graph(context, true);
    inside_begin(graph, stream);
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
        rondo_graph_node node = {.struct_size = sizeof node};
        ASSERT_OK(rondo_graph_get_node(graph, i, &node));
        ++seen[node.kind];
        assert_true((node.native != NULL) == context->is_cuda);
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
    inside_assert_dump_has(graph, RONDO_TEXT_JSON, "\"kind\": \"event_record\", \"event\": \"0x");
    inside_assert_dump_has(graph, RONDO_TEXT_JSON,
                           "\"element_bytes\": 2, \"width\": 100, \"height\": 1");
    inside_assert_dump_has(graph, RONDO_TEXT_JSON,
                           "\"stats\": {\"nodes\": 5, \"kernels\": 1, \"copies\": 2");
    inside_assert_dump_has(graph, RONDO_TEXT_DOT, "event_wait\\n0x");
    rondo_graph_node node = {.struct_size = sizeof node};
    ASSERT_STATUS(rondo_graph_get_node(graph, 5, &node), INVALID);
    ASSERT_STATUS(rondo_graph_list_edges(graph, NULL, 3, &count), INVALID);
    ASSERT_OK(rondo_graph_reset(graph));
    ASSERT_STATUS(rondo_graph_get_node_count(graph, &count), STATE);
    ASSERT_STATUS(rondo_graph_get_node(graph, 0, &node), STATE);
    rondo_graph_destroy(graph);
    rondo_event_destroy(event);
}

SUITE_CASE(test_conformance_inside__programmatic_edges) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_graph *graph = inside_create_deferred(context);
    struct {
        uint32_t *x;
        uint32_t count, factor, term;
    } arguments = {x, 1, 1, 0};
    rondo_launch launch = LAUNCH("affine", context->affine, 1, 32, &arguments, 20);
    inside_begin(graph, context->stream);
    ASSERT_OK(rondo_stream_launch(context->stream, &launch));
    launch.flags = RONDO_LAUNCH_OVERLAP;
    ASSERT_OK(rondo_stream_launch(context->stream, &launch));
    ASSERT_OK(rondo_graph_capture_end(graph));
    rondo_graph_edge edge;
    uint64_t count = 0;
    ASSERT_OK(rondo_graph_list_edges(graph, &edge, 1, &count));
    assert_int_equal(count, 1);
    rondo_device_info info = {.struct_size = sizeof info};
    ASSERT_OK(rondo_device_get_info(context->device, &info));
    assert_int_equal(edge.is_programmatic, context->is_cuda && info.arch_major >= 9);
    if (edge.is_programmatic) {
        inside_assert_dump_has(graph, RONDO_TEXT_JSON, "[0, 1, \"programmatic\"]");
        inside_assert_dump_has(graph, RONDO_TEXT_DOT,
                               "n0 -> n1 [style=dashed, label=\"programmatic\"]");
    }
    rondo_graph_destroy(graph);
}

// What was recorded is counted for whoever asks, also before there is an executable.
SUITE_CASE(test_conformance_inside__counts_before_the_instantiation) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_graph *graph = inside_create_deferred(context);
    inside_begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 1, 0));
    ASSERT_OK(rondo_stream_fill(context->stream, x, 3, 4, 1));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 0));
    ASSERT_OK(rondo_graph_capture_end(graph));
    inside_assert_dump_has(graph, RONDO_TEXT_JSON, "\"nodes\": 3, \"kernels\": 2, \"copies\": 1,");
    inside_assert_dump_has(graph, RONDO_TEXT_DOT, "3 nodes, 2 kernels, 1 copies");
    for (int is_ready = 0; is_ready < 2; ++is_ready) {
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        ASSERT_OK(rondo_graph_get_stats(graph, &stats));
        assert_int_equal(stats.node_count, 3);
        assert_int_equal(stats.kernel_count, 2);
        assert_int_equal(stats.copy_count, 1);
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
    }
    ASSERT_VALUE(context, x, 0, 6);
    rondo_graph_destroy(graph);
}

// ---- a graph inside another -------------------------------------------------------------------

SUITE_CASE(test_conformance_inside__a_graph_is_recorded_into_another) {
    suite_need_children(context);
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    uint32_t *counter = suite_allocate(context, RONDO_MEMORY_PINNED, 1);
    *counter = 0;
    suite_set(context, x, 1, 1);
    // Inner: x = (x * 2 + 1) * 3 + 1, and the host counts by 5.
    rondo_graph *inner = inside_create_deferred(context);
    inside_add_arguments add = {.x = counter, .term = 5};
    inside_begin(inner, stream);
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    ASSERT_OK(rondo_stream_call_host(stream, "add", inside_run_add, &add, sizeof add));
    ASSERT_OK(suite_affine(context, stream, x, 1, 3, 1));
    ASSERT_OK(rondo_graph_capture_end(inner));
    add.term = 1000;  // the graph has a copy

    rondo_graph *outer = suite_create_graph(context, true);
    inside_begin(outer, stream);
    ASSERT_OK(suite_affine(context, stream, x, 1, 1, 1));
    ASSERT_OK(rondo_stream_add_graph(stream, inner));
    ASSERT_OK(suite_affine(context, stream, x, 1, 5, 0));
    ASSERT_OK(rondo_stream_add_graph(stream, inner));
    ASSERT_OK(rondo_graph_capture_end(outer));
    ASSERT_VALUE(context, x, 0, 1);
    rondo_graph_destroy(inner);

    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(outer, &stats));
    assert_int_equal(stats.node_count, 4);
    assert_int_equal(stats.kernel_count, context->is_cuda ? 6 : 8);
    uint64_t inner_count = 0;
    for (uint64_t i = 0; i < 4; ++i) {
        rondo_graph_node node = {.struct_size = sizeof node};
        ASSERT_OK(rondo_graph_get_node(outer, i, &node));
        inner_count += node.kind == RONDO_NODE_CHILD ? node.inner_count : 0;
    }
    assert_int_equal(inner_count, 6);
    inside_assert_dump_has(outer, RONDO_TEXT_JSON, "\"kind\": \"child\", \"graph\": {\"nodes\": [");
    inside_assert_dump_has(outer, RONDO_TEXT_DOT, "subgraph cluster_n1 {");
    inside_assert_dump_has(outer, RONDO_TEXT_DOT, "  n1_0 -> n1_1;");
    inside_assert_dump_has(outer, RONDO_TEXT_DOT, "n1_1 [label=\"1 host\\nadd\"]");

    uint32_t expected = 1;
    for (int round = 1; round <= 3; ++round) {
        inside_replay_and_wait(context, outer);
        expected += 1;
        expected = (expected * 2 + 1) * 3 + 1;
        expected *= 5;
        expected = (expected * 2 + 1) * 3 + 1;
        ASSERT_VALUE(context, x, 0, expected);
        assert_int_equal(*counter, 10 * round);
    }
    rondo_graph_destroy(outer);
}

// Branches outside and inside, graphs inside graphs inside graphs, empty ones among them.
SUITE_CASE(test_conformance_inside__branches_and_depth) {
    suite_need_children(context);
    inside_nest nest;
    inside_make_nest(context, &nest);
    for (int round = 0; round < 3; ++round) {
        inside_replay_and_wait(context, nest.outer);
        ASSERT_VALUE(context, nest.x, 0, 7);
        ASSERT_VALUE(context, nest.y, 0, 130);
        ASSERT_VALUE(context, nest.y, 1, 7);
    }
    inside_assert_dump_has(nest.outer, RONDO_TEXT_JSON, "\"kind\": \"child\"");
    inside_drop_nest(context, &nest);
}

SUITE_CASE(test_conformance_inside__memory_travels_along) {
    suite_need_children(context);
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    rondo_pool *pool;
    ASSERT_OK(rondo_pool_create(context->device, NULL, &pool));
    rondo_graph *inner = inside_create_deferred(context);
    void *block = NULL;
    inside_begin(inner, stream);
    ASSERT_OK(rondo_pool_allocate(pool, stream, 64, &block));
    ASSERT_OK(rondo_stream_fill(stream, block, 5, 4, 1));
    ASSERT_OK(suite_affine(context, stream, block, 1, 2, 1));
    ASSERT_OK(rondo_stream_copy(stream, x, block, 4, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(rondo_pool_free(pool, block));
    ASSERT_OK(rondo_graph_capture_end(inner));
    rondo_graph *outer = suite_create_graph(context, false);
    inside_begin(outer, stream);
    ASSERT_OK(rondo_stream_add_graph(stream, inner));
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
    inside_replay_and_wait(context, outer);
    ASSERT_VALUE(context, x, 0, 33);
    for (int i = 0; i < 4; ++i) {
        ASSERT_OK(rondo_pool_free(pool, others[i]));
    }
    // An update hands it over as well.
    rondo_graph *updated = suite_create_graph(context, false);
    rondo_graph *source = inside_create_deferred(context);
    for (uint32_t round = 0; round < 3; ++round) {
        inside_begin(source, stream);
        ASSERT_OK(rondo_pool_allocate(pool, stream, 64, &block));
        ASSERT_OK(rondo_stream_fill(stream, block, round, 4, 1));
        ASSERT_OK(suite_affine(context, stream, block, 1, 2, 1));
        ASSERT_OK(rondo_stream_copy(stream, x, block, 4, RONDO_COPY_DEVICE_TO_DEVICE));
        ASSERT_OK(rondo_pool_free(pool, block));
        ASSERT_OK(rondo_graph_capture_end(source));
        ASSERT_OK(rondo_graph_update(updated, source, NULL));
        inside_replay_and_wait(context, updated);
        ASSERT_VALUE(context, x, 0, 2 * round + 1);
    }
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(updated, &stats));
    assert_true(stats.arena_reserved_bytes > 0);
    rondo_graph_destroy(source);
    inside_replay_and_wait(context, updated);
    rondo_graph_destroy(updated);
    rondo_graph_destroy(outer);
    rondo_pool_stats pool_stats = {.struct_size = sizeof pool_stats};
    ASSERT_OK(rondo_pool_trim(pool, 0, NULL));
    ASSERT_OK(rondo_pool_get_stats(pool, &pool_stats));
    assert_int_equal(pool_stats.live_count, 0);
    assert_int_equal(pool_stats.reserved_bytes, 0);
    rondo_pool_release(pool);
}

SUITE_CASE(test_conformance_inside__recording_refused) {
    suite_need_children(context);
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    rondo_graph *kept = inside_capture_affine(context, x, 2);
    rondo_graph *bare = suite_create_graph(context, false);
    inside_begin(bare, stream);
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(bare));

    ASSERT_STATUS(rondo_stream_add_graph(stream, kept), STATE);
    ASSERT_MESSAGE_HAS("rondo_graph_replay");
    rondo_graph *outer = suite_create_graph(context, false);
    // The capture would lack what was to be recorded.
    rondo_graph *const refused[] = {bare, outer, NULL};
    for (int i = 0; i < 3; ++i) {
        inside_begin(outer, stream);
        rondo_status status = rondo_stream_add_graph(stream, refused[i]);
        assert_int_equal(status, i < 2 ? RONDO_STATUS_STATE : RONDO_STATUS_INVALID);
        if (i == 0) {
            ASSERT_MESSAGE_HAS("RONDO_KEEP_TEMPLATE");
        }
        ASSERT_STATUS(rondo_graph_capture_end(outer), STATE);
        assert_string_equal(rondo_error_get_last()->call, "rondo_stream_add_graph");
    }
    inside_begin(outer, stream);
    ASSERT_STATUS(rondo_stream_add_graph(NULL, kept), INVALID);
    ASSERT_STATUS(rondo_graph_replay(kept, stream), STATE);
    ASSERT_MESSAGE_HAS("rondo_stream_add_graph");
    // Neither broke the capture: no stream was named, and replays are never recorded.
    ASSERT_OK(rondo_stream_add_graph(stream, kept));
    ASSERT_OK(rondo_graph_capture_end(outer));
    inside_replay_and_wait(context, outer);
    ASSERT_VALUE(context, x, 0, 3);
    rondo_graph_destroy(outer);
    rondo_graph_destroy(bare);
    rondo_graph_destroy(kept);
}

// Bodies are shown inside their node, and graphs can be recorded into bodies and beside them.
SUITE_CASE(test_conformance_inside__bodies_and_children) {
    suite_need(context, RONDO_FEATURE_IF_ELSE);
    rondo_stream *stream = context->stream;
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    uint32_t *predicate = x + 1;
    rondo_event *event = suite_create_event(context, RONDO_EVENT_EXTERNAL);
    rondo_graph *inner = inside_capture_affine(context, x, 2);
    rondo_graph *outer = suite_create_graph(context, true);
    rondo_scope scope;
    rondo_stream *body;
    inside_begin(outer, stream);
    ASSERT_OK(rondo_stream_add_graph(stream, inner));
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF_ELSE, predicate, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    ASSERT_OK(suite_affine(context, body, x, 1, 3, 0));
    ASSERT_OK(rondo_stream_add_graph(body, inner));
    ASSERT_OK(suite_affine(context, body, x, 1, 1, 5));
    ASSERT_OK(rondo_scope_leave(scope));
    ASSERT_OK(rondo_scope_end(scope));
    ASSERT_OK(suite_affine(context, stream, x, 1, 10, 0));
    ASSERT_OK(rondo_graph_capture_end(outer));
    rondo_graph_destroy(inner);
    for (uint32_t round = 0; round < 4; ++round) {
        suite_set(context, x, 1, 1);
        suite_set(context, predicate, round % 2, 1);
        inside_replay_and_wait(context, outer);
        ASSERT_VALUE(context, x, 0, round % 2 == 0 ? 30 : 240);
    }
    uint64_t count = 0;
    uint64_t inside = 0;
    ASSERT_OK(rondo_graph_get_node_count(outer, &count));
    for (uint64_t i = 0; i < count; ++i) {
        rondo_graph_node node = {.struct_size = sizeof node};
        ASSERT_OK(rondo_graph_get_node(outer, i, &node));
        if (node.kind == RONDO_NODE_CONDITIONAL) {
            assert_string_equal(node.name, "if_else");
            assert_ptr_equal(node.predicate, predicate);
            assert_int_equal(node.branch_count, 2);
            inside = node.inner_count;
        }
    }
    assert_int_equal(inside, 3);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(outer, &stats));
    assert_true(stats.kernel_count >= 5);  // one, three and one; CUDA adds what sets the condition
    inside_assert_dump_has(outer, RONDO_TEXT_JSON, "\"name\": \"if_else\", \"predicate\": \"0x");
    inside_assert_dump_has(outer, RONDO_TEXT_JSON, "\"bodies\": [{\"nodes\": [");
    inside_assert_dump_has(outer, RONDO_TEXT_DOT, "_0_1 [label=\"1 child\"];");
    // What has conditional nodes cannot be copied; and events do not happen inside bodies.
    rondo_graph *other = suite_create_graph(context, false);
    inside_begin(other, stream);
    ASSERT_STATUS(rondo_stream_add_graph(stream, outer), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("conditional node");
    rondo_graph_capture_abort(other);
    inside_begin(other, stream);
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, predicate, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    ASSERT_STATUS(rondo_event_record(event, body), UNSUPPORTED);
    ASSERT_MESSAGE_HAS("conditional");
    rondo_graph_capture_abort(other);
    inside_begin(other, stream);
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, predicate, 0, &scope));
    ASSERT_OK(rondo_scope_enter(scope, 0, &body));
    ASSERT_STATUS(rondo_stream_wait_event(body, event), UNSUPPORTED);
    rondo_graph_capture_abort(other);
    rondo_graph_destroy(other);
    rondo_graph_destroy(outer);
    rondo_event_destroy(event);
}

// CUDA itself overlooks such forks, and the graph would begin them and end without them.
SUITE_CASE(test_conformance_inside__forks_that_end_in_such_nodes_are_joined) {
    suite_need_children(context);
    suite_need(context, RONDO_FEATURE_IF);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 2);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *side = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    rondo_graph *inner = inside_capture_affine(context, x, 1);
    rondo_graph *outer = suite_create_graph(context, true);
    for (int i = 0; i < 4; ++i) {
        const bool is_scope = i % 2 != 0;
        const bool is_joined = i >= 2;
        rondo_scope scope;
        inside_begin(outer, stream);
        ASSERT_OK(rondo_event_record(event, stream));
        ASSERT_OK(rondo_stream_wait_event(side, event));
        if (is_scope) {
            ASSERT_OK(rondo_scope_begin(side, RONDO_SCOPE_IF, x, 0, &scope));
            ASSERT_OK(rondo_scope_end(scope));
        } else {
            ASSERT_OK(rondo_stream_add_graph(side, inner));
        }
        ASSERT_OK(suite_affine(context, stream, x + 1, 1, 1, 1));
        if (is_joined) {
            ASSERT_OK(rondo_event_record(event, side));
            ASSERT_OK(rondo_stream_wait_event(stream, event));
            ASSERT_OK(rondo_graph_capture_end(outer));
        } else {
            rondo_capture_report report = {.struct_size = sizeof report};
            ASSERT_STATUS(rondo_graph_capture_end(outer), STATE);
            ASSERT_MESSAGE_HAS("not joined");
            ASSERT_OK(rondo_graph_get_report(outer, &report));
            assert_int_equal(report.cause, RONDO_CAUSE_UNJOINED_STREAM);
        }
        ASSERT_OK(rondo_graph_reset(outer));
    }
    rondo_graph_destroy(outer);
    rondo_graph_destroy(inner);
    rondo_event_destroy(event);
    rondo_stream_destroy(side);
    rondo_stream_destroy(stream);
}
