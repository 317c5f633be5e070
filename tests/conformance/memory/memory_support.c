// memory_support.c — see memory_support.h.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/memory/memory_support.h"

rondo_pool *memory_create_pool(suite_context *context, rondo_memory_kind kind) {
    rondo_pool_options options = {.struct_size = sizeof options};
    options.kind = kind;
    rondo_pool *pool;
    ASSERT_OK(rondo_pool_create(context->device, &options, &pool));
    return pool;
}

rondo_graph *memory_create_graph(suite_context *context, const char *label, rondo_arena *arena) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.label = label;
    options.arena = arena;
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(context->device, &options, &graph));
    return graph;
}

rondo_graph *memory_create_checked_graph(suite_context *context) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.label = "checked";
    options.check_addresses = true;
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(context->device, &options, &graph));
    return graph;
}

rondo_arena *memory_get_arena(rondo_graph *graph) {
    rondo_arena *arena;
    ASSERT_OK(rondo_graph_get_arena(graph, &arena));
    return arena;
}

uint32_t *memory_take(rondo_pool *pool, rondo_stream *stream, size_t count) {
    void *address;
    ASSERT_OK(rondo_pool_allocate(pool, stream, count * sizeof(uint32_t), &address));
    assert_non_null(address);
    assert_int_equal((uintptr_t)address % 512, 0);
    return address;
}

void memory_free(rondo_pool *pool, void *address) {
    ASSERT_OK(rondo_pool_free(pool, address));
}

void memory_begin(rondo_graph *graph, rondo_stream *stream) {
    ASSERT_OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
}

void memory_end(rondo_graph *graph) {
    ASSERT_OK(rondo_graph_capture_end(graph));
}

void memory_replay(rondo_graph *graph, rondo_stream *stream) {
    ASSERT_OK(rondo_graph_replay(graph, stream));
    ASSERT_OK(rondo_stream_synchronize(stream));
}

void memory_join(suite_context *context, rondo_stream *stream, rondo_stream *other) {
    rondo_event *event = suite_create_event(context, 0);
    ASSERT_OK(rondo_event_record(event, other));
    ASSERT_OK(rondo_stream_wait_event(stream, event));
    rondo_event_destroy(event);
}

void memory_fill(rondo_stream *stream, uint32_t *x, uint32_t value, size_t count) {
    ASSERT_OK(rondo_stream_fill(stream, x, value, 4, count));
}

void memory_add(suite_context *context, rondo_stream *stream, uint32_t *y, const uint32_t *x,
                uint32_t term, size_t count) {
    ASSERT_OK(rondo_stream_copy(stream, y, x, count * sizeof *y, RONDO_COPY_DEVICE_TO_DEVICE));
    ASSERT_OK(suite_affine(context, stream, y, (uint32_t)count, 1, term));
}

rondo_pool_stats memory_get_pool_stats(rondo_pool *pool) {
    rondo_pool_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_pool_get_stats(pool, &stats));
    return stats;
}

rondo_arena_stats memory_get_arena_stats(rondo_arena *arena) {
    rondo_arena_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_arena_get_stats(arena, &stats));
    return stats;
}
