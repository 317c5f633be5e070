// What the cases on failed captures share.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/capture/blame_support.h"

blame_step blame_create_step(suite_context *context) {
    blame_step s = {.context = context,
                    .graph = suite_create_graph(context, false),
                    .second_graph = suite_create_graph(context, false),
                    .stream = suite_create_stream(context),
                    .branch = suite_create_stream(context),
                    .second_stream = suite_create_stream(context),
                    .event = suite_create_event(context, 0),
                    .old_event = suite_create_event(context, 0),
                    .x = suite_allocate(context, RONDO_MEMORY_DEVICE, BLAME_WORDS)};
    ASSERT_OK(rondo_event_record(s.old_event, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
    // Any other device: the host where this is a GPU, a GPU where this is the host.
    const char *name = context->is_cuda ? "host" : "cuda:0";
    if (rondo_device_open(name, &s.other_device) == RONDO_STATUS_OK) {
        ASSERT_OK(rondo_event_create(s.other_device, 0, &s.other_event));
    }
    return s;
}

void blame_destroy_step(blame_step *s) {
    rondo_graph_destroy(s->second_graph);
    rondo_graph_destroy(s->graph);
    rondo_event_destroy(s->other_event);
    rondo_device_release(s->other_device);
    rondo_event_destroy(s->old_event);
    rondo_event_destroy(s->event);
    rondo_stream_destroy(s->second_stream);
    rondo_stream_destroy(s->branch);
    rondo_stream_destroy(s->stream);
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->x);
}

// Eager work gives the right bytes, and the same graph captures and replays.
void blame_assert_usable(blame_step *s, rondo_graph *graph, rondo_stream *stream) {
    bool is_capturing = true;
    ASSERT_OK(rondo_stream_is_recording(stream, &is_capturing));
    assert_false(is_capturing);
    suite_set(s->context, s->x, 3, BLAME_WORDS);
    ASSERT_OK(suite_affine(s->context, stream, s->x, BLAME_WORDS, 2, 1));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(s->context, s->x, BLAME_WORDS - 1, 7);
    ASSERT_STATUS(rondo_graph_replay(graph, stream), STATE);
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    ASSERT_OK(suite_affine(s->context, stream, s->x, BLAME_WORDS, 5, 0));
    ASSERT_OK(rondo_graph_capture_end(graph));
    rondo_capture_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_graph_get_report(graph, &report));
    assert_int_equal(report.status, RONDO_STATUS_OK);
    assert_int_equal(report.cause, RONDO_CAUSE_NONE);
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_VALUE(s->context, s->x, 0, 7 * 25);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.node_count, 1);
    ASSERT_OK(rondo_graph_reset(graph));
}

void blame_begin_step(blame_step *s, rondo_capture_mode mode) {
    ASSERT_OK(rondo_graph_capture_begin(s->graph, s->stream, mode));
    ASSERT_OK(rondo_label_push(s->stream, "layer3"));
    ASSERT_OK(suite_affine(s->context, s->stream, s->x, BLAME_WORDS, 1, 1));
    ASSERT_OK(rondo_label_push(s->stream, "attention"));
    ASSERT_OK(suite_affine(s->context, s->stream, s->x, BLAME_WORDS, 1, 1));
}

void blame_check_text(const char *text, const char *part, const char *row, const char *what) {
    if (strstr(text, part) == NULL) {
        fail_msg("%s: %s \"%s\" does not say \"%s\"", row, what, text, part);
    }
}

void blame_end_step(blame_step *s) {
    while (rondo_label_get_path(s->stream)[0] != '\0') {
        ASSERT_OK(rondo_label_pop(s->stream));
    }
}
