// capture/marks.h — a stream's notes on its part in a capture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// A stream joined (or began) the capture, or the body of a conditional node, with this id.
static inline void rondo__marks_begin(rondo_stream *stream, uint64_t capture_id) {
    if (stream->marks.capture_id != capture_id) {
        rondo__stream_marks *marks = &stream->marks;
        marks->capture_id = capture_id;
        marks->work = NULL;
        marks->work_count = 0;
        marks->node_count = 0;
        marks->work_count_then = 0;
        marks->node_name[0] = '\0';
        marks->node_label[0] = '\0';
    }
}

// Names the latest node and, while there are few, counts them, for a break later that cannot be
// asked about. On failure the marks stay as they were; the error record stays in any case.
void rondo__marks_take(rondo_stream *stream);
// The same, and counts however many there are.
void rondo__marks_take_exactly(rondo_stream *stream);
