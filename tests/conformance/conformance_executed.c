// Proof that a graph really ran: each kind of node leaves a trace that only a run can leave, and
// where the backend counts the nodes it runs, the count is right.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/conformance.h"

static void count_up(void *arguments) {
    ++**(uint32_t **)arguments;
}

typedef struct traces {
    uint32_t *x;       // a kernel adds one
    uint32_t *filled;  // a fill sets it
    uint32_t *copied;  // a copy of x, pinned
    uint32_t *called;  // a host function adds one, pinned
} traces;

static rondo_status leave_traces(suite_context *context, rondo_stream *stream, traces *t) {
    rondo_status status = suite_affine(context, stream, t->x, 1, 1, 1);
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_fill(stream, t->filled, 7, 4, 1);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_copy(stream, t->copied, t->x, 4, RONDO_COPY_DEVICE_TO_HOST);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_call_host(stream, "count_up", count_up, &t->called, sizeof t->called);
    }
    return status;
}

static traces make_traces(suite_context *context) {
    traces t = {.x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1),
                .filled = suite_allocate(context, RONDO_MEMORY_DEVICE, 1),
                .copied = suite_allocate(context, RONDO_MEMORY_PINNED, 1),
                .called = suite_allocate(context, RONDO_MEMORY_PINNED, 1)};
    suite_set(context, t.x, 0, 1);
    *t.called = 0;
    return t;
}

static void free_traces(suite_context *context, traces *t) {
    suite_free(context, RONDO_MEMORY_DEVICE, t->x);
    suite_free(context, RONDO_MEMORY_DEVICE, t->filled);
    suite_free(context, RONDO_MEMORY_PINNED, t->copied);
    suite_free(context, RONDO_MEMORY_PINNED, t->called);
}

static void check_executed(suite_context *context, rondo_graph *graph, uint64_t expected) {
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.executed_count, context->is_cuda ? 0 : expected);
}

SUITE_CASE_EXECUTED(test_conformance_executed__every_node_runs_in_every_replay) {
    traces t = make_traces(context);
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(leave_traces(context, context->stream, &t));
    ASSERT_OK(rondo_graph_capture_end(graph));
    check_executed(context, graph, 0);  // recorded, not run
    assert_int_equal(*t.called, 0);
    for (uint32_t replay = 1; replay <= 5; ++replay) {
        suite_set(context, t.filled, 0, 1);
        *t.copied = 0;
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        ASSERT_VALUE(context, t.x, 0, replay);
        ASSERT_VALUE(context, t.filled, 0, 7);
        assert_int_equal(*t.copied, replay);
        assert_int_equal(*t.called, replay);
        check_executed(context, graph, 4 * (uint64_t)replay);
    }
    ASSERT_OK(rondo_graph_reset(graph));
    check_executed(context, graph, 0);
    rondo_graph_destroy(graph);
    free_traces(context, &t);
}

SUITE_CASE_EXECUTED(test_conformance_executed__instantiating_again_keeps_the_count) {
    traces t = make_traces(context);
    rondo_graph *graph = suite_create_graph(context, true);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(leave_traces(context, context->stream, &t));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_graph_instantiate(graph));  // with the replay in flight, perhaps
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    assert_int_equal(*t.called, 2);
    check_executed(context, graph, 8);
    rondo_graph_destroy(graph);
    free_traces(context, &t);
}

SUITE_CASE_EXECUTED(test_conformance_executed__parallel_branches_are_counted) {
    enum { BRANCHES = 4, NODES = 6, REPLAYS = 50 };
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, BRANCHES);
    suite_set(context, x, 0, BRANCHES);
    rondo_stream *streams[BRANCHES];
    rondo_event *joins[BRANCHES];
    rondo_event *fork = suite_create_event(context, 0);
    for (int i = 0; i < BRANCHES; ++i) {
        streams[i] = suite_create_stream(context);
        joins[i] = suite_create_event(context, 0);
    }
    rondo_graph *graph = suite_create_graph(context, false);
    ASSERT_OK(rondo_graph_capture_begin(graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(rondo_event_record(fork, context->stream));
    for (int i = 0; i < BRANCHES; ++i) {
        ASSERT_OK(rondo_stream_wait_event(streams[i], fork));
        for (int j = 0; j < NODES; ++j) {
            ASSERT_OK(suite_affine(context, streams[i], x + i, 1, 1, 1));
        }
        ASSERT_OK(rondo_event_record(joins[i], streams[i]));
        ASSERT_OK(rondo_stream_wait_event(context->stream, joins[i]));
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
    for (int i = 0; i < REPLAYS; ++i) {
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
    }
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    for (size_t i = 0; i < BRANCHES; ++i) {
        ASSERT_VALUE(context, x, i, NODES * REPLAYS);
    }
    check_executed(context, graph, (uint64_t)BRANCHES * NODES * REPLAYS);
    rondo_graph_destroy(graph);
    for (int i = 0; i < BRANCHES; ++i) {
        rondo_event_destroy(joins[i]);
        rondo_stream_destroy(streams[i]);
    }
    rondo_event_destroy(fork);
}
