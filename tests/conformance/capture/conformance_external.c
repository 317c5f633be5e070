// External events: recorded and waited for by graphs, at each replay.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "conformance/conformance.h"

enum { EXTERNAL = RONDO_EVENT_EXTERNAL, TIMED_EXTERNAL = RONDO_EVENT_EXTERNAL | RONDO_EVENT_TIMED };

static void begin(rondo_graph *graph, rondo_stream *stream) {
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
}

// An event of a capture: it does not fork, and it is untouched until the replay.
SUITE_CASE(test_conformance_external__a_record_happens_at_each_replay) {
    rondo_event *event = suite_create_event(context, EXTERNAL);
    rondo_stream *other = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, true);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    bool is_complete = false;
    bool is_capturing = true;

    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_event_record(event, context->stream));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    // Neither asking nor an eager wait elsewhere disturbs the capture.
    ASSERT_OK(rondo_event_query(event, &is_complete));
    assert_true(is_complete);
    ASSERT_OK(rondo_stream_wait_event(other, event));
    ASSERT_OK(rondo_stream_is_recording(other, &is_capturing));
    assert_false(is_capturing);
    ASSERT_OK(rondo_graph_capture_end(graph));
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 3);

    if (!context->is_prompt) {  // otherwise nothing can be pending
        suite_gate *gate = suite_gate_create(context);
        ASSERT_OK(suite_gate_enter(gate, context->stream));
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_OK(rondo_event_query(event, &is_complete));
        assert_false(is_complete);
        suite_gate_open(gate);
        ASSERT_OK(rondo_event_synchronize(event));
        ASSERT_OK(rondo_event_query(event, &is_complete));
        assert_true(is_complete);
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        suite_gate_destroy(gate);
    } else {
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
    }
    ASSERT_VALUE(context, x, 0, 7);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(other);
    rondo_event_destroy(event);
}

// A graph waits for work that was put on another stream before the replay, each time anew.
SUITE_CASE(test_conformance_external__a_wait_means_records_before_the_replay) {
    rondo_event *event = suite_create_event(context, EXTERNAL);
    rondo_stream *other = suite_create_stream(context);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    begin(graph, context->stream);
    ASSERT_OK(rondo_stream_wait_event(context->stream, event));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 3, 0));
    ASSERT_OK(rondo_graph_capture_end(graph));
    // Nothing recorded yet: nothing to wait for.
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    ASSERT_VALUE(context, x, 0, 3);
    uint32_t expected = 3;
    for (int round = 0; round < 3; ++round) {
        ASSERT_OK(suite_spin(context, other, 2000));
        ASSERT_OK(suite_affine(context, other, x, 1, 1, 1));
        ASSERT_OK(rondo_event_record(event, other));
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        expected = (expected + 1) * 3;
        ASSERT_VALUE(context, x, 0, expected);
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(other);
    rondo_event_destroy(event);
}

// A record that comes behind the replay, though before the replay has begun, is none of them.
SUITE_CASE(test_conformance_external__a_wait_means_no_later_record) {
    rondo_event *event = suite_create_event(context, EXTERNAL);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_stream_wait_event(context->stream, event));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 3, 0));
    ASSERT_OK(rondo_event_record(event, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    ASSERT_VALUE(context, x, 0, 21);
    rondo_graph_destroy(graph);
    rondo_event_destroy(event);
}

// A graph may record an event and wait for it: the wait means the replay before.
SUITE_CASE(test_conformance_external__no_graph_waits_for_itself) {
    rondo_event *event = suite_create_event(context, EXTERNAL);
    rondo_graph *graph = suite_create_graph(context, false);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    begin(graph, context->stream);
    ASSERT_OK(rondo_stream_wait_event(context->stream, event));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_event_record(event, context->stream));
    ASSERT_OK(rondo_graph_capture_end(graph));
    rondo_event_destroy(event);  // the graph keeps it
    for (int round = 0; round < 5; ++round) {
        ASSERT_OK(rondo_graph_replay(graph, context->stream));
    }
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    ASSERT_VALUE(context, x, 0, 63);
    ASSERT_OK(rondo_graph_reset(graph));
    rondo_graph_destroy(graph);
}

// Outside of captures an external event is as any other.
SUITE_CASE(test_conformance_external__eagerly_as_any_other) {
    rondo_event *start = suite_create_event(context, TIMED_EXTERNAL);
    rondo_event *end = suite_create_event(context, TIMED_EXTERNAL);
    rondo_stream *other = suite_create_stream(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    int64_t elapsed_ns = 0;
    suite_set(context, x, 1, 1);
    ASSERT_STATUS(rondo_event_get_elapsed_ns(start, end, &elapsed_ns), STATE);
    ASSERT_OK(rondo_event_record(start, context->stream));
    ASSERT_OK(suite_spin(context, context->stream, 2000));
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_event_record(end, context->stream));
    ASSERT_OK(rondo_stream_wait_event(other, end));
    ASSERT_OK(suite_affine(context, other, x, 1, 5, 0));
    ASSERT_OK(rondo_stream_synchronize(other));
    ASSERT_VALUE(context, x, 0, 15);
    ASSERT_OK(rondo_event_get_elapsed_ns(start, end, &elapsed_ns));
    assert_true(elapsed_ns >= (context->is_fake ? 200000 : 1900000));
    rondo_event *wrong;
    ASSERT_STATUS(rondo_event_create(context->device, 1u << 5, &wrong), INVALID);
    ASSERT_MESSAGE_HAS("RONDO_EVENT_EXTERNAL");
    rondo_stream_destroy(other);
    rondo_event_destroy(start);
    rondo_event_destroy(end);
}
