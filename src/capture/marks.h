// capture/marks.h — what a stream remembers of its part in a capture.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_CAPTURE_MARKS_H
#define RONDO_CAPTURE_MARKS_H

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

#endif  // RONDO_CAPTURE_MARKS_H
