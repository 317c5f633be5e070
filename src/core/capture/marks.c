// capture/marks.c — see marks.h.
// SPDX-License-Identifier: Apache-2.0
#include "capture/marks.h"

#include "base/error.h"
#include "base/text.h"
#include "capture/label_stack.h"

enum {
    FRONTIER_MAX = 16,
    // CUDA counts the nodes of a graph one by one (8 ns each), so at a label scope they are counted
    // only while there are few.
    COUNTED_NODES_MAX = 1024,
};

static const char *name_node(const rondo__node_info *info) {
    switch (info->kind) {
        case RONDO__NODE_COPY:
            return "memcpy";
        case RONDO__NODE_FILL:
            return "memset";
        case RONDO__NODE_CHILD:
            return "graph";
        default:
            return info->name != NULL ? info->name : "";
    }
}

// The latest of the nodes that the stream's next one will depend on.
static bool look_at_latest(rondo_stream *stream, rondo__node_handle *out_node) {
    rondo__node_handle nodes[FRONTIER_MAX];
    size_t count = 0;
    if (stream->device->backend->get_frontier(stream, nodes, FRONTIER_MAX, &count) !=
            RONDO_STATUS_OK ||
        count == 0) {
        return false;
    }
    *out_node = nodes[(count < FRONTIER_MAX ? count : FRONTIER_MAX) - 1];
    return true;
}

static void take(rondo_stream *stream, bool counts_many) {
    const rondo__backend *backend = stream->device->backend;
    rondo__stream_marks *marks = &stream->marks;
    rondo_error saved;
    rondo__error_save(&saved);
    uint64_t own_count = marks->work_count - marks->work_count_then;
    size_t count = (size_t)(marks->node_count + own_count);
    bool is_counted = (counts_many || count <= COUNTED_NODES_MAX) &&
                      backend->count_recorded(stream, &count) == RONDO_STATUS_OK;
    rondo__node_handle node;
    rondo__node_info info;
    if (count > marks->node_count || (!is_counted && own_count == 0)) {
        // All of them put there by Rondo's calls on this stream: then the name is known.
        const char *name = "";
        if (is_counted && own_count > 0 && count - marks->node_count == own_count) {
            name = marks->work;
        } else if (look_at_latest(stream, &node) &&
                   backend->describe_recorded(stream, node, &info) == RONDO_STATUS_OK) {
            name = name_node(&info);
        }
        rondo__text_fit(marks->node_name, sizeof marks->node_name, name);
        rondo__text_fit(marks->node_label, sizeof marks->node_label, rondo_label_get_path(stream));
        marks->node_count = count;
        marks->work_count_then = marks->work_count;
    }
    rondo__error_restore(&saved);
}

void rondo__marks_take(rondo_stream *stream) {
    take(stream, false);
}

void rondo__marks_take_exactly(rondo_stream *stream) {
    take(stream, true);
}
