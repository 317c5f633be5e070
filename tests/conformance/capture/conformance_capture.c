// What breaks a capture and what does not. After every failure the stream works, the graph is
// empty, and the next capture succeeds.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "conformance/conformance.h"
#include "conformance/random/random_support.h"
#include "rondo/random.h"
#include "rondo/report.h"
#include "support/peek.h"

// Records and replays once on `stream`: proves that stream and graph are whole. Leaves the graph
// empty.
static void assert_usable(suite_context *context, rondo_graph *graph, rondo_stream *stream) {
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, x, 1, 1);
    bool is_capturing = true;
    ASSERT_OK(rondo_stream_is_recording(stream, &is_capturing));
    assert_false(is_capturing);
    ASSERT_OK(suite_affine(context, stream, x, 1, 2, 0));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(context, x, 0, 2);
    ASSERT_STATUS(rondo_graph_replay(graph, stream), STATE);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, stream, x, 1, 5, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(context, x, 0, 11);
    ASSERT_OK(rondo_graph_reset(graph));
    suite_free(context, RONDO_MEMORY_DEVICE, x);
}

// A graph that records on a stream of its own, with one node so far.
typedef struct recording {
    rondo_graph *graph;
    rondo_stream *stream;
    uint32_t *x;
} recording;

static recording begin_recording(suite_context *context) {
    recording made = {.graph = suite_create_graph(context, false),
                      .stream = suite_create_stream(context),
                      .x = suite_allocate(context, RONDO_MEMORY_DEVICE, 64)};
    ASSERT_OK(rondo_graph_capture_begin(made.graph, made.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, made.stream, made.x, 1, 1, 1));
    return made;
}

static void destroy_recording(suite_context *context, recording *made) {
    rondo_graph_destroy(made->graph);
    rondo_stream_destroy(made->stream);
    suite_free(context, RONDO_MEMORY_DEVICE, made->x);
}

// The call before this one was refused: the capture is broken, its end says so, and all is usable.
static void assert_broken(suite_context *context, recording *made) {
    bool is_capturing = true;
    ASSERT_OK(rondo_stream_is_recording(made->stream, &is_capturing));
    assert_false(is_capturing);
    ASSERT_STATUS(suite_affine(context, made->stream, made->x, 1, 1, 1), STATE);
    ASSERT_STATUS(rondo_graph_capture_end(made->graph), STATE);
    assert_usable(context, made->graph, made->stream);
}

SUITE_CASE(test_conformance_capture__synchronize_breaks_it) {
    recording made = begin_recording(context);
    ASSERT_STATUS(rondo_stream_synchronize(made.stream), STATE);
    assert_broken(context, &made);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__query_breaks_it) {
    recording made = begin_recording(context);
    bool is_idle;
    ASSERT_STATUS(rondo_stream_query(made.stream, &is_idle), STATE);
    assert_broken(context, &made);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__asking_a_recorded_event_breaks_it) {
    recording made = begin_recording(context);
    rondo_event *event = suite_create_event(context, 0);
    bool is_complete;
    ASSERT_OK(rondo_event_record(event, made.stream));
    ASSERT_STATUS(rondo_event_query(event, &is_complete), STATE);
    assert_broken(context, &made);
    ASSERT_OK(rondo_graph_capture_begin(made.graph, made.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, made.stream, made.x, 1, 1, 1));
    ASSERT_OK(rondo_event_record(event, made.stream));
    ASSERT_STATUS(rondo_event_synchronize(event), STATE);
    assert_broken(context, &made);
    // Recorded outside, the event is an ordinary one again.
    ASSERT_OK(rondo_event_record(event, made.stream));
    ASSERT_OK(rondo_event_synchronize(event));
    rondo_event_destroy(event);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__device_synchronize_breaks_it) {
    recording made = begin_recording(context);
    ASSERT_STATUS(rondo_device_synchronize(context->device), STATE);
    assert_broken(context, &made);
    ASSERT_OK(rondo_device_synchronize(context->device));
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__pageable_copy_breaks_it) {
    recording made = begin_recording(context);
    static uint32_t pageable[64];
    ASSERT_STATUS(rondo_stream_copy(made.stream, made.x, pageable, sizeof pageable,
                                    RONDO_COPY_HOST_TO_DEVICE),
                  STATE);
    ASSERT_MESSAGE_HAS("pageable");
    assert_broken(context, &made);
    ASSERT_OK(rondo_graph_capture_begin(made.graph, made.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, made.stream, made.x, 1, 1, 1));
    ASSERT_STATUS(rondo_stream_copy(made.stream, pageable, made.x, sizeof pageable,
                                    RONDO_COPY_DEVICE_TO_HOST),
                  STATE);
    assert_broken(context, &made);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__an_unjoined_stream_is_named) {
    recording made = begin_recording(context);
    rondo_stream *branch = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    ASSERT_OK(rondo_event_record(event, made.stream));
    ASSERT_OK(rondo_stream_wait_event(branch, event));
    bool is_capturing = false;
    ASSERT_OK(rondo_stream_is_recording(branch, &is_capturing));
    assert_true(is_capturing);
    ASSERT_OK(suite_affine(context, branch, made.x + 32, 1, 1, 1));
    ASSERT_STATUS(rondo_graph_capture_end(made.graph), STATE);
    ASSERT_MESSAGE_HAS("join");
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(made.graph, &report));
    assert_int_equal(report.stream_number, peek_get_number(branch));
    ASSERT_OK(rondo_stream_is_recording(branch, &is_capturing));
    assert_false(is_capturing);
    ASSERT_OK(suite_affine(context, branch, made.x, 1, 1, 1));
    ASSERT_OK(rondo_stream_synchronize(branch));
    assert_usable(context, made.graph, made.stream);
    rondo_event_destroy(event);
    rondo_stream_destroy(branch);
    destroy_recording(context, &made);
}

// What Rondo records by itself at the end is not told as the program's last work.
SUITE_CASE(test_conformance_capture__an_unjoined_stream_beside_a_generator) {
    rondo_generator *generator = suite_create_generator(context, 1);
    recording made = begin_recording(context);
    rondo_stream *branch = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    ASSERT_OK(rondo_random_words(generator, made.stream, made.x, 4));
    ASSERT_OK(rondo_event_record(event, made.stream));
    ASSERT_OK(rondo_stream_wait_event(branch, event));
    ASSERT_OK(suite_affine(context, branch, made.x + 32, 1, 1, 1));
    ASSERT_STATUS(rondo_graph_capture_end(made.graph), STATE);
    rondo_capture_report report = {.struct_size = sizeof report};
    char text[1024];
    ASSERT_OK(rondo_graph_get_report(made.graph, &report));
    assert_int_equal(report.stream_number, peek_get_number(branch));
    assert_non_null(strstr(report.last_node_name, "words"));
    (void)rondo_capture_report_format(&report, text, sizeof text);
    assert_null(strstr(text, "advance"));
    rondo_event_destroy(event);
    rondo_stream_destroy(branch);
    destroy_recording(context, &made);
    rondo_generator_release(generator);
}

SUITE_CASE(test_conformance_capture__outside_work_cannot_be_waited_for) {
    rondo_event *event = suite_create_event(context, 0);
    ASSERT_OK(rondo_event_record(event, context->stream));
    recording made = begin_recording(context);
    ASSERT_STATUS(rondo_stream_wait_event(made.stream, event), STATE);
    assert_broken(context, &made);
    rondo_event_destroy(event);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__two_captures_do_not_merge) {
    recording first = begin_recording(context);
    recording second = begin_recording(context);
    rondo_event *event = suite_create_event(context, 0);
    ASSERT_OK(rondo_event_record(event, first.stream));
    ASSERT_STATUS(rondo_stream_wait_event(second.stream, event), STATE);
    ASSERT_STATUS(rondo_graph_capture_end(second.graph), STATE);
    ASSERT_STATUS(rondo_graph_capture_end(first.graph), STATE);
    assert_usable(context, first.graph, first.stream);
    assert_usable(context, second.graph, second.stream);
    // The event's capture has ended, so it stands for nothing.
    ASSERT_STATUS(rondo_stream_wait_event(first.stream, event), STATE);
    rondo_event_destroy(event);
    destroy_recording(context, &first);
    destroy_recording(context, &second);
}

SUITE_CASE(test_conformance_capture__stream_records_once_at_a_time) {
    recording made = begin_recording(context);
    rondo_graph *other = suite_create_graph(context, false);
    ASSERT_STATUS(rondo_graph_capture_begin(other, made.stream, RONDO_CAPTURE_THREAD_LOCAL), STATE);
    ASSERT_STATUS(
        rondo_graph_capture_begin(made.graph, context->stream, RONDO_CAPTURE_THREAD_LOCAL), STATE);
    ASSERT_STATUS(rondo_graph_capture_begin(made.graph, made.stream, RONDO_CAPTURE_THREAD_LOCAL),
                  STATE);
    // None of these did any harm.
    ASSERT_OK(suite_affine(context, made.stream, made.x, 1, 1, 1));
    ASSERT_OK(rondo_graph_capture_end(made.graph));
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(made.graph, &stats));
    assert_int_equal(stats.node_count, 2);
    ASSERT_OK(rondo_graph_reset(made.graph));
    assert_usable(context, made.graph, made.stream);
    rondo_graph_destroy(other);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__abort_and_destroy_give_up) {
    recording made = begin_recording(context);
    rondo_graph_capture_abort(made.graph);
    rondo_graph_capture_abort(made.graph);
    rondo_graph_capture_abort(NULL);
    assert_usable(context, made.graph, made.stream);
    // A broken capture can be aborted, too.
    ASSERT_OK(rondo_graph_capture_begin(made.graph, made.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_STATUS(rondo_stream_synchronize(made.stream), STATE);
    rondo_graph_capture_abort(made.graph);
    assert_usable(context, made.graph, made.stream);
    // Destroying the graph ends its capture.
    ASSERT_OK(rondo_graph_capture_begin(made.graph, made.stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(context, made.stream, made.x, 1, 1, 1));
    rondo_graph_destroy(made.graph);
    made.graph = suite_create_graph(context, false);
    assert_usable(context, made.graph, made.stream);
    destroy_recording(context, &made);
}

SUITE_CASE_EXECUTED(test_conformance_capture__own_allocations_are_allowed) {
    recording made = begin_recording(context);
    uint32_t *device_memory = suite_allocate(context, RONDO_MEMORY_DEVICE, 1000);
    uint32_t *pinned_memory = suite_allocate(context, RONDO_MEMORY_PINNED, 1000);
    ASSERT_OK(rondo_stream_fill(made.stream, device_memory, 9, 4, 1000));
    ASSERT_OK(rondo_stream_copy(made.stream, pinned_memory, device_memory, 4000,
                                RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_graph_capture_end(made.graph));
    ASSERT_OK(rondo_graph_replay(made.graph, made.stream));
    ASSERT_OK(rondo_stream_synchronize(made.stream));
    assert_int_equal(pinned_memory[999], 9);
    rondo_graph_destroy(made.graph);
    made.graph = NULL;
    suite_free(context, RONDO_MEMORY_DEVICE, device_memory);
    suite_free(context, RONDO_MEMORY_PINNED, pinned_memory);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__global_mode_forbids_own_allocations) {
    recording made = begin_recording(context);
    rondo_graph_capture_abort(made.graph);
    ASSERT_OK(rondo_graph_capture_begin(made.graph, made.stream, RONDO_CAPTURE_GLOBAL));
    ASSERT_OK(suite_affine(context, made.stream, made.x, 1, 1, 1));
    void *address = made.x;
    ASSERT_STATUS(rondo_memory_allocate(context->device, RONDO_MEMORY_DEVICE, 64, &address), STATE);
    assert_null(address);
    assert_broken(context, &made);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__other_streams_run_meanwhile) {
    uint32_t *y = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    suite_set(context, y, 1, 1);
    recording made = begin_recording(context);
    ASSERT_OK(suite_affine(context, context->stream, y, 1, 2, 5));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    ASSERT_VALUE(context, y, 0, 7);
    ASSERT_OK(rondo_graph_capture_end(made.graph));
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(made.graph, &stats));
    assert_int_equal(stats.node_count, 1);
    suite_free(context, RONDO_MEMORY_DEVICE, y);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__a_fork_needs_no_work) {
    recording made = begin_recording(context);
    rondo_stream *branch = suite_create_stream(context);
    rondo_event *fork = suite_create_event(context, 0);
    rondo_event *join = suite_create_event(context, 0);
    ASSERT_OK(rondo_event_record(fork, made.stream));
    ASSERT_OK(rondo_stream_wait_event(branch, fork));
    ASSERT_OK(rondo_event_record(join, branch));
    ASSERT_OK(rondo_stream_wait_event(made.stream, join));
    ASSERT_OK(suite_affine(context, made.stream, made.x, 1, 1, 1));
    ASSERT_OK(rondo_graph_capture_end(made.graph));
    ASSERT_OK(rondo_graph_replay(made.graph, made.stream));
    ASSERT_OK(rondo_stream_synchronize(made.stream));
    rondo_event_destroy(join);
    rondo_event_destroy(fork);
    rondo_stream_destroy(branch);
    destroy_recording(context, &made);
}

SUITE_CASE(test_conformance_capture__failures_leave_nothing_behind) {
    recording made = begin_recording(context);
    rondo_graph_capture_abort(made.graph);
    rondo_stream *branch = suite_create_stream(context);
    rondo_event *event = suite_create_event(context, 0);
    const int rounds = suite_rounds(60, 12);
    for (int i = 0; i < rounds; ++i) {
        ASSERT_OK(rondo_graph_capture_begin(made.graph, made.stream, (rondo_capture_mode)(i % 3)));
        ASSERT_OK(suite_affine(context, made.stream, made.x, 1, 1, 1));
        ASSERT_OK(rondo_event_record(event, made.stream));
        ASSERT_OK(rondo_stream_wait_event(branch, event));
        ASSERT_OK(suite_affine(context, branch, made.x + 32, 1, 1, 1));
        if (i % 2 == 0) {
            ASSERT_STATUS(rondo_stream_synchronize(i % 4 == 0 ? branch : made.stream), STATE);
        }
        ASSERT_STATUS(rondo_graph_capture_end(made.graph), STATE);
    }
    ASSERT_OK(rondo_stream_synchronize(branch));
    assert_usable(context, made.graph, made.stream);
    rondo_event_destroy(event);
    rondo_stream_destroy(branch);
    destroy_recording(context, &made);
}
