// blame_support.h — a step in a capture that is going to break, and what must hold afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/conformance.h"
#include "rondo/label.h"
#include "rondo/report.h"

enum { BLAME_WORDS = 64 };

typedef struct blame_step {
    suite_context *context;
    rondo_graph *graph;
    rondo_stream *stream;
    rondo_stream *branch;
    rondo_event *event;
    rondo_event *old_event;  // recorded before the capture
    rondo_device *other_device;
    rondo_event *other_event;
    rondo_graph *second_graph;  // a capture of its own, on second_stream
    rondo_stream *second_stream;
    uint32_t *x;
    bool is_stream_gone;
} blame_step;

blame_step blame_create_step(suite_context *context);
void blame_destroy_step(blame_step *s);
// Begins a capture and records two kernels, the second inside the scopes "layer3/attention".
void blame_begin_step(blame_step *s, rondo_capture_mode mode);
// Closes the scopes that are open.
void blame_end_step(blame_step *s);
// Eager work gives the right bytes, and the same graph captures and replays.
void blame_assert_usable(blame_step *s, rondo_graph *graph, rondo_stream *stream);
// Fails the test unless `text` has `part`; `row` and `what` say which text it is.
void blame_check_text(const char *text, const char *part, const char *row, const char *what);
