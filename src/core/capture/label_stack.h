// capture/label_stack.h — the label scopes that are open on a stream, and the path they make.
//
// A graph turns them into labels of nodes (graph/label/label.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "rondo/label.h"

// The scopes open on a stream. NULL until the first push. All calls: the thread that uses the
// stream.
typedef struct rondo__label_stack rondo__label_stack;

void rondo__label_stack_destroy(rondo__label_stack *stack);  // NULL is fine

// Room for one more scope with a text of this length; nothing is opened yet.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per stream.
RONDO_MUST_USE rondo_status rondo__label_reserve(rondo_stream *stream, size_t text_length);
// Opens the scope for which there is room, or closes the latest.
void rondo__label_open(rondo_stream *stream, const char *text);
void rondo__label_close(rondo_stream *stream);

// How many scopes are open; closes those above `depth`.
size_t rondo__label_get_depth(const rondo_stream *stream);
void rondo__label_close_above(rondo_stream *stream, size_t depth);

// `body` is about to record a body of a conditional node on `parent`; `node_path` (NULL: empty) was
// open there when the node was recorded. The path on `body` begins with what is open on `parent`.
//
// Errors:    NO_MEMORY.
// Threads:   the thread that uses both streams.
RONDO_MUST_USE rondo_status rondo__label_inherit(rondo_stream *body, const rondo_stream *parent,
                                                 const char *node_path);
// How much of the stream's path it has inherited.
size_t rondo__label_get_inherited_length(const rondo_stream *stream);
// The stream's path behind that of the conditional node whose body it records.
const char *rondo__label_get_own_path(const rondo_stream *stream);
