// What the cases on graphs in graphs share.
// SPDX-License-Identifier: Apache-2.0
#include "inside_support.h"

#include "capture/capture.h"
#include "rondo/inspect.h"

void inside_assert_dump_has(rondo_graph *graph, rondo_text_format format, const char *part) {
    static suite_text text;
    text = (suite_text){0};
    ASSERT_OK(rondo_graph_dump(graph, format, suite_append_text, &text));
    if (strstr(text.bytes, part) == NULL) {
        print_error("no \"%s\" in:\n%s\n", part, text.bytes);
        fail();
    }
}

void inside_begin(rondo_graph *graph, rondo_stream *stream) {
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
}

rondo_graph *inside_create_deferred(suite_context *context) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.keep = RONDO_KEEP_TEMPLATE_ONLY;
    options.label = "deferred";
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(context->device, &options, &graph));
    return graph;
}

// x = x * factor + 1 as a graph of one node.
rondo_graph *inside_capture_affine(suite_context *context, uint32_t *x, uint32_t factor) {
    rondo_graph *graph = inside_create_deferred(context);
    inside_begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, factor, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    return graph;
}

void inside_replay_and_wait(suite_context *context, rondo_graph *graph) {
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
}

void inside_run_add(void *data) {
    const inside_add_arguments *arguments = data;
    *arguments->x += arguments->term;
}

// Who takes part in the inner graph is asked by the outer graph's replays and outlives the inner.
typedef struct witness {
    rondo__participant head;
    int *prepared;
    int *noted;
    int *destroyed;
} witness;

static rondo_status prepare_witness(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    ++*((witness *)participant)->prepared;
    return RONDO_STATUS_OK;
}

static void note_witness(rondo__participant *participant, rondo_stream *stream) {
    (void)stream;
    ++*((witness *)participant)->noted;
}

static void destroy_witness(rondo__participant *participant) {
    ++*((witness *)participant)->destroyed;
    free(participant);
}

static const rondo__participant_type witness_type = {.name = "a witness",
                                                     .prepare_replay = prepare_witness,
                                                     .note_replay = note_witness,
                                                     .destroy = destroy_witness};

void inside_add_witness(rondo_stream *stream, int counts[3]) {
    rondo__capture *capture;
    ASSERT_OK(rondo__capture_find(stream, &capture, NULL));
    assert_non_null(capture);
    witness *w = malloc(sizeof *w);
    assert_non_null(w);
    *w = (witness){.head = {.type = &witness_type},
                   .prepared = &counts[0],
                   .noted = &counts[1],
                   .destroyed = &counts[2]};
    rondo__capture_add_participant(capture, &w->head);
}

rondo_graph *inside_capture_with_witness(suite_context *context, uint32_t *x, int counts[3]) {
    rondo_graph *graph = inside_create_deferred(context);
    inside_begin(graph, context->stream);
    inside_add_witness(context->stream, counts);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, 2, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    return graph;
}
