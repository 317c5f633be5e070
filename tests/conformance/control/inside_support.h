// inside_support.h — what the cases on graphs in graphs share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/conformance.h"
#include "rondo/text.h"

// Fails unless the dump has that part.
void inside_assert_dump_has(rondo_graph *graph, rondo_text_format format, const char *part);
// Begins a thread-local capture.
void inside_begin(rondo_graph *graph, rondo_stream *stream);
// A graph that keeps its template and makes no executable by itself.
rondo_graph *inside_create_deferred(suite_context *context);
// x = x * factor + 1 as such a graph of one node.
rondo_graph *inside_capture_affine(suite_context *context, uint32_t *x, uint32_t factor);
// Graphs in graphs in graphs, with branches outside and inside and empty ones among them. A replay
// of `outer` leaves 7 in x[0], 130 in y[0] and 7 in y[1].
typedef struct inside_nest {
    uint32_t *x, *y;
    rondo_stream *side;
    rondo_event *fork, *join;
    rondo_graph *empty, *forked, *middle,
        *outer;  // forked: two branches; middle: empty, forked twice
} inside_nest;
void inside_make_nest(suite_context *context, inside_nest *out_nest);
void inside_drop_nest(suite_context *context, inside_nest *nest);
void inside_replay_and_wait(suite_context *context, rondo_graph *graph);

// A host function that adds to a number.
typedef struct inside_add_arguments {
    uint32_t *x;
    uint32_t term;
} inside_add_arguments;
void inside_run_add(void *data);
