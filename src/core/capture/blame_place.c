// capture/blame_place.c — see blame_place.h.
// SPDX-License-Identifier: Apache-2.0
#include "capture/blame_place.h"

#include <stdio.h>

#include "base/text.h"
#include "base/thread.h"
#include "capture/label_stack.h"
#include "capture/marks.h"

// The body that the stream records into, as far as this thread may look at it; otherwise NULL.
static const rondo__capture_body *find_open_body(const rondo__capture *capture,
                                                 const rondo_stream *stream) {
    const rondo__capture_body *body = rondo__capture_get_body(capture, stream->marks.capture_id);
    bool may_ask =
        body != NULL && body->stream != NULL && body->thread_number == rondo__thread_get_number();
    return may_ask ? body : NULL;
}

static uint32_t count_bodies_around(const rondo__capture *capture, const rondo_stream *stream) {
    uint32_t depth = 0;
    const rondo__capture_body *body = rondo__capture_get_body(capture, stream->marks.capture_id);
    while (body != NULL) {
        ++depth;
        body = rondo__capture_get_body(capture, body->parent_id);
    }
    return depth;
}

// A path of the stream's own scopes, behind what was open where its body began. The stream that the
// body began on has inherited that.
static void copy_path(char destination[RONDO__BLAME_LABEL_BYTES], const rondo__capture *capture,
                      const rondo_stream *stream, const char *path) {
    const rondo__capture_body *body = find_open_body(capture, stream);
    size_t length = body != NULL && body->stream != stream
                        ? rondo__label_get_inherited_length(body->stream)
                        : 0;
    if (length > 0) {
        length = length < RONDO__BLAME_LABEL_BYTES ? length : RONDO__BLAME_LABEL_BYTES;
        snprintf(destination, RONDO__BLAME_LABEL_BYTES, "%.*s%s%s", (int)length,
                 rondo_label_get_path(body->stream), path[0] != '\0' ? "/" : "", path);
    } else {
        rondo__text_fit(destination, RONDO__BLAME_LABEL_BYTES, path);
    }
}

// The path that is open on the stream. A branch without scopes of its own lies in those of the
// stream that the capture, or the body, began on, as far as the thread that uses that one can tell.
static void copy_open_path(char destination[RONDO__BLAME_LABEL_BYTES],
                           const rondo__capture *capture, const rondo_stream *stream) {
    const rondo__capture_body *body = find_open_body(capture, stream);
    bool is_outside = rondo__capture_get_body(capture, stream->marks.capture_id) == NULL;
    const rondo_stream *first = NULL;
    if (body != NULL) {
        first = body->stream;
    } else if (is_outside && capture->thread_number == rondo__thread_get_number()) {
        first = capture->origin;
    }
    if (rondo_label_get_path(stream)[0] == '\0' && first != NULL) {
        rondo__text_fit(destination, RONDO__BLAME_LABEL_BYTES, rondo_label_get_path(first));
    } else {
        copy_path(destination, capture, stream, rondo_label_get_path(stream));
    }
}

// The latest node that the stream recorded, and its label; `path` is open there.
static void fill_node(rondo__capture *capture, rondo_stream *stream, const char *path, bool asks) {
    rondo__blame *blame = &capture->blame;
    size_t count = 0;
    blame->is_index_exact =
        asks && stream->device->backend->count_recorded(stream, &count) == RONDO_STATUS_OK;
    if (blame->is_index_exact) {
        rondo__marks_take_exactly(stream);
    }
    const rondo__stream_marks *marks = &stream->marks;
    uint64_t since = marks->work_count - marks->work_count_then;
    if (since > 0 && !blame->is_index_exact) {
        rondo__text_fit(blame->node_name, sizeof blame->node_name, marks->work);
        rondo__text_fit(blame->node_label, sizeof blame->node_label, path);
    } else {
        since = 0;
        rondo__text_fit(blame->node_name, sizeof blame->node_name, marks->node_name);
        if (marks->work_count == 0 && marks->node_label[0] == '\0') {
            rondo__text_fit(blame->node_label, sizeof blame->node_label, path);
        } else {
            copy_path(blame->node_label, capture, stream, marks->node_label);
        }
    }
    uint64_t total = marks->node_count + since;
    blame->has_node = total > 0;
    blame->node_index = total > 0 ? total - 1 : 0;
    blame->node_depth = total > 0 ? count_bodies_around(capture, stream) : 0;
}

void rondo__blame_fill_place(rondo__capture *capture, rondo_stream *stream, const char *call,
                             bool asks) {
    rondo__blame *blame = &capture->blame;
    if (blame->has_place) {
        return;
    }
    blame->has_place = true;
    rondo__text_fit(blame->noticed_by, sizeof blame->noticed_by, call);
    copy_open_path(blame->label, capture, stream);
    fill_node(capture, stream, blame->label, asks);
    // A body in which nothing was recorded yet: what came last is the conditional node, or more.
    const rondo__capture_body *body = find_open_body(capture, stream);
    while (!blame->has_node && body != NULL) {
        char path[RONDO__BLAME_LABEL_BYTES];
        copy_open_path(path, capture, body->parent);
        fill_node(capture, body->parent, path, asks);
        body = find_open_body(capture, body->parent);
    }
}
