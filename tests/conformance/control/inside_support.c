// What the cases on graphs in graphs share.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/control/inside_support.h"

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

rondo_graph *inside_capture_affine(suite_context *context, uint32_t *x, uint32_t factor) {
    rondo_graph *graph = inside_create_deferred(context);
    inside_begin(graph, context->stream);
    ASSERT_OK(suite_affine(context, context->stream, x, 1, factor, 1));
    ASSERT_OK(rondo_graph_capture_end(graph));
    return graph;
}

// The side stream follows the context's stream, until `join_side`.
static void fork_side(suite_context *context, const inside_nest *nest) {
    ASSERT_OK(rondo_event_record(nest->fork, context->stream));
    ASSERT_OK(rondo_stream_wait_event(nest->side, nest->fork));
}

static void join_side(suite_context *context, const inside_nest *nest) {
    ASSERT_OK(rondo_event_record(nest->join, nest->side));
    ASSERT_OK(rondo_stream_wait_event(context->stream, nest->join));
}

void inside_make_nest(suite_context *context, inside_nest *out_nest) {
    rondo_stream *stream = context->stream;
    inside_nest nest = {.x = suite_allocate(context, RONDO_MEMORY_DEVICE, 64)};
    nest.y = nest.x + 32;
    nest.side = suite_create_stream(context);
    nest.fork = suite_create_event(context, 0);
    nest.join = suite_create_event(context, 0);
    nest.empty = inside_create_deferred(context);
    inside_begin(nest.empty, stream);
    ASSERT_OK(rondo_graph_capture_end(nest.empty));

    nest.forked = inside_create_deferred(context);
    inside_begin(nest.forked, stream);
    fork_side(context, &nest);
    ASSERT_OK(suite_affine(context, stream, nest.x, 1, 2, 1));
    ASSERT_OK(suite_affine(context, nest.side, nest.y, 1, 3, 1));
    join_side(context, &nest);
    ASSERT_OK(rondo_graph_capture_end(nest.forked));

    nest.middle = inside_create_deferred(context);
    inside_begin(nest.middle, stream);
    ASSERT_OK(rondo_stream_add_graph(stream, nest.empty));
    ASSERT_OK(rondo_stream_add_graph(stream, nest.forked));
    ASSERT_OK(rondo_stream_add_graph(stream, nest.forked));
    ASSERT_OK(rondo_graph_capture_end(nest.middle));

    nest.outer = suite_create_graph(context, true);
    inside_begin(nest.outer, stream);
    ASSERT_OK(rondo_stream_fill(stream, nest.x, 1, 4, 64));
    fork_side(context, &nest);
    ASSERT_OK(suite_affine(context, nest.side, nest.y + 1, 1, 7, 0));
    ASSERT_OK(rondo_stream_add_graph(stream, nest.middle));
    join_side(context, &nest);
    ASSERT_OK(rondo_stream_add_graph(stream, nest.empty));
    ASSERT_OK(suite_affine(context, stream, nest.y, 1, 10, 0));
    ASSERT_OK(rondo_graph_capture_end(nest.outer));
    *out_nest = nest;
}

void inside_drop_nest(suite_context *context, inside_nest *nest) {
    rondo_graph_destroy(nest->outer);
    rondo_graph_destroy(nest->middle);
    rondo_graph_destroy(nest->forked);
    rondo_graph_destroy(nest->empty);
    rondo_event_destroy(nest->join);
    rondo_event_destroy(nest->fork);
    rondo_stream_destroy(nest->side);
    suite_free(context, RONDO_MEMORY_DEVICE, nest->x);
}

void inside_replay_and_wait(suite_context *context, rondo_graph *graph) {
    ASSERT_OK(rondo_graph_replay(graph, context->stream));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
}

void inside_run_add(void *data) {
    const inside_add_arguments *arguments = data;
    *arguments->x += arguments->term;
}
