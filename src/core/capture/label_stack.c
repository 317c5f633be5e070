// capture/label_stack.c — the label scopes that are open on a stream.
// SPDX-License-Identifier: Apache-2.0

#include "capture/label_stack.h"

#include <string.h>

#include "base/error.h"
#include "base/log/hook.h"
#include "base/memory.h"

// An open scope.
typedef struct open_label {
    size_t length;  // of the path before it
    rondo__hook_scope hook;
} open_label;

struct rondo__label_stack {
    char *path;  // what was inherited, and all open scopes
    // Of a stream that records a body: how much of the path was open outside, and how much of that
    // stands on the conditional node already.
    size_t inherited_length;
    size_t node_length;
    size_t capacity;
    open_label *open;
    size_t depth;
    size_t depth_capacity;
};

void rondo__label_stack_destroy(rondo__label_stack *stack) {
    if (stack != NULL) {
        rondo__free(stack->path);
        rondo__free(stack->open);
        rondo__free(stack);
    }
}

const char *rondo_label_get_path(const rondo_stream *stream) {
    return stream != NULL && stream->labels != NULL && stream->labels->path != NULL
               ? stream->labels->path
               : "";
}

size_t rondo__label_get_depth(const rondo_stream *stream) {
    return stream->labels != NULL ? stream->labels->depth : 0;
}

void rondo__label_close_above(rondo_stream *stream, size_t depth) {
    while (rondo__label_get_depth(stream) > depth) {
        rondo__label_close(stream);
    }
}

// Room for a path of so many bytes.
static rondo_status reserve_path(rondo_stream *stream, size_t length) {
    if (stream->labels == NULL) {
        stream->labels = rondo__calloc(1, sizeof *stream->labels);
        if (stream->labels == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    rondo__label_stack *stack = stream->labels;
    return RONDO__ARRAY_RESERVE(stack->path, stack->capacity, length + 1);
}

rondo_status rondo__label_reserve(rondo_stream *stream, size_t text_length) {
    RETURN_IF_ERROR(reserve_path(stream, strlen(rondo_label_get_path(stream)) + 1 + text_length));
    rondo__label_stack *stack = stream->labels;
    rondo_status status =
        RONDO__ARRAY_RESERVE(stack->open, stack->depth_capacity, stack->depth + 1);
    return status;
}

void rondo__label_open(rondo_stream *stream, const char *text) {
    rondo__label_stack *stack = stream->labels;
    size_t length = strlen(stack->path);
    open_label *label = &stack->open[stack->depth++];
    label->length = length;
    if (length > 0) {
        stack->path[length++] = '/';
    }
    memcpy(stack->path + length, text, strlen(text) + 1);
    label->hook = rondo__hook_enter(RONDO__SPAN_USER, text);
}

void rondo__label_close(rondo_stream *stream) {
    rondo__label_stack *stack = stream->labels;
    const open_label *label = &stack->open[--stack->depth];
    stack->path[label->length] = '\0';
    rondo__hook_leave(&label->hook);
}

// ---- bodies -----------------------------------------------------------------------------------

rondo_status rondo__label_inherit(rondo_stream *body, const rondo_stream *parent,
                                  const char *node_path) {
    const char *path = rondo_label_get_path(parent);
    size_t length = strlen(path);
    if (length == 0 && body->labels == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(reserve_path(body, length));
    rondo__label_stack *stack = body->labels;
    memcpy(stack->path, path, length + 1);
    stack->depth = 0;
    stack->inherited_length = length;
    // A scope that was opened behind the node is the body's. One that was closed there changes
    // nothing any more.
    node_path = node_path != NULL ? node_path : "";
    size_t node_length = strlen(node_path);
    bool is_inside = node_length < length && strncmp(path, node_path, node_length) == 0 &&
                     (node_length == 0 || path[node_length] == '/');
    stack->node_length = is_inside ? node_length : length;
    return RONDO_STATUS_OK;
}

size_t rondo__label_get_inherited_length(const rondo_stream *stream) {
    return stream->labels != NULL ? stream->labels->inherited_length : 0;
}

const char *rondo__label_get_own_path(const rondo_stream *stream) {
    const char *path = rondo_label_get_path(stream);
    size_t outside = stream->labels != NULL ? stream->labels->node_length : 0;
    return path[outside] == '/' && outside > 0 ? path + outside + 1 : path + outside;
}
