// What the cases on graphs in graphs share.
// SPDX-License-Identifier: Apache-2.0
#include "inside_support.h"

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
