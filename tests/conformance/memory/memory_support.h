// memory_support.h — what the cases about memory of captures share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/conformance.h"
#include "rondo/pool.h"

rondo_pool *memory_create_pool(suite_context *context, rondo_memory_kind kind);
rondo_graph *memory_create_graph(suite_context *context, const char *label, rondo_arena *arena);
// With check_addresses, and the label "checked".
rondo_graph *memory_create_checked_graph(suite_context *context);
rondo_arena *memory_get_arena(rondo_graph *graph);

// A block of `count` elements; fails the test when there is none.
uint32_t *memory_take(rondo_pool *pool, rondo_stream *stream, size_t count);
void memory_free(rondo_pool *pool, void *address);
void memory_begin(rondo_graph *graph, rondo_stream *stream);
void memory_end(rondo_graph *graph);
// Replays and waits.
void memory_replay(rondo_graph *graph, rondo_stream *stream);

// Lets `stream` wait for what `other` stands at.
void memory_join(suite_context *context, rondo_stream *stream, rondo_stream *other);
// Puts a fill of one element on the stream.
void memory_fill(rondo_stream *stream, uint32_t *x, uint32_t value, size_t count);
// y[i] = x[i] + term, in stream order, through a copy.
void memory_add(suite_context *context, rondo_stream *stream, uint32_t *y, const uint32_t *x,
                uint32_t term, size_t count);

rondo_pool_stats memory_get_pool_stats(rondo_pool *pool);
rondo_arena_stats memory_get_arena_stats(rondo_arena *arena);
