// peers_host_memory.c — PyTorch's cases about host memory in captures, by number: pinned memory is
// pooled, and not given out again while a replay may read it; pageable memory is refused, or kept.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/memory/memory_support.h"

enum { COUNT = 1024 };

typedef struct world {
    suite_context *context;
    rondo_pool *pool;  // pinned
    rondo_stream *stream;
    uint32_t *device;
} world;

static world make_world(void **state) {
    world w = {.context = suite_get_context(state)};
    w.pool = memory_create_pool(w.context, RONDO_MEMORY_PINNED);
    w.stream = suite_create_stream(w.context);
    w.device = suite_allocate(w.context, RONDO_MEMORY_DEVICE, COUNT);
    return w;
}

static void free_world(world *w) {
    suite_free(w->context, RONDO_MEMORY_DEVICE, w->device);
    rondo_stream_destroy(w->stream);
    rondo_pool_release(w->pool);
}

static void copy_in(world *w, const uint32_t *host) {
    ASSERT_OK(rondo_stream_copy(w->stream, w->device, host, COUNT * sizeof *host,
                                RONDO_COPY_HOST_TO_DEVICE));
}

static void set_host(uint32_t *host, uint32_t value) {
    for (size_t i = 0; i < COUNT; ++i) {
        host[i] = value;
    }
}

SUITE_CASE(torch_41_pinned_blocks_differ) {
    world w = make_world(state);
    rondo_graph *graph = memory_create_graph(w.context, "pinned", NULL);
    memory_begin(graph, w.stream);
    uint32_t *a = memory_take(w.pool, w.stream, COUNT);
    uint32_t *b = memory_take(w.pool, w.stream, COUNT);
    assert_ptr_not_equal(a, b);
    memory_end(graph);
    memory_free(w.pool, a);
    memory_free(w.pool, b);
    rondo_graph_destroy(graph);
    free_world(&w);
}

SUITE_CASE(torch_42_pinned_and_never_copied_is_reused) {
    world w = make_world(state);
    rondo_graph *graph = memory_create_graph(w.context, "pinned", NULL);
    memory_begin(graph, w.stream);
    uint32_t *a = memory_take(w.pool, w.stream, COUNT);
    memory_free(w.pool, a);
    uint32_t *b = memory_take(w.pool, w.stream, COUNT);
    assert_ptr_equal(a, b);
    memory_end(graph);
    memory_free(w.pool, b);
    rondo_graph_destroy(graph);
    free_world(&w);
}

// Taken before the capture or in it, freed in it or later: once copied, not again.
SUITE_CASE(torch_43_pinned_and_copied_is_never_reused) {
    world w = make_world(state);
    rondo_graph *graph = memory_create_graph(w.context, "pinned", NULL);
    uint32_t *eager = memory_take(w.pool, w.stream, COUNT);
    memory_begin(graph, w.stream);
    uint32_t *a = memory_take(w.pool, w.stream, COUNT);
    set_host(a, 11);
    copy_in(&w, a);
    memory_free(w.pool, a);
    uint32_t *b = memory_take(w.pool, w.stream, COUNT);
    assert_ptr_not_equal(a, b);
    copy_in(&w, eager);
    memory_free(w.pool, b);
    copy_in(&w, a);  // its bytes are still there, though it was freed
    memory_end(graph);
    memory_free(w.pool, eager);
    for (int i = 0; i < 600; ++i) {
        uint32_t *other = memory_take(w.pool, w.stream, COUNT);
        assert_ptr_not_equal(other, eager);
        assert_ptr_not_equal(other, a);
        set_host(other, 99);
        if (i % 2 == 0) {
            memory_free(w.pool, other);
        }
    }
    memory_replay(graph, w.stream);
    ASSERT_VALUE(w.context, w.device, 5, 11);
    rondo_graph_destroy(graph);
    // Now both may serve again.
    ASSERT_OK(rondo_pool_trim(w.pool, UINT64_MAX, NULL));
    assert_int_equal(memory_get_pool_stats(w.pool).pending_bytes, 0);
    free_world(&w);
}

// The same across two graphs that share memory, for each of the ways in which a block may be used.
SUITE_CASE(torch_44_pinned_across_two_graphs) {
    world w = make_world(state);
    for (int variant = 0; variant < 16; ++variant) {
        bool copies_in_first = (variant & 1) != 0;
        bool copies_in_second = (variant & 2) != 0;
        bool frees_in_first = (variant & 4) != 0;
        bool replays_between = (variant & 8) != 0;
        rondo_graph *first = memory_create_graph(w.context, "first", NULL);
        rondo_graph *second = memory_create_graph(w.context, "second", memory_get_arena(first));
        memory_begin(first, w.stream);
        uint32_t *a = memory_take(w.pool, w.stream, COUNT);
        set_host(a, 5);
        if (copies_in_first) {
            copy_in(&w, a);
        }
        if (frees_in_first) {
            memory_free(w.pool, a);
        }
        memory_end(first);
        if (replays_between) {
            memory_replay(first, w.stream);
        }
        memory_begin(second, w.stream);
        if (!frees_in_first) {
            if (copies_in_second) {
                copy_in(&w, a);
            }
            memory_free(w.pool, a);
        }
        uint32_t *b = memory_take(w.pool, w.stream, COUNT);
        bool was_copied = copies_in_first || (copies_in_second && !frees_in_first);
        // What the second capture frees is nobody's before its end.
        if (was_copied || !frees_in_first) {
            assert_ptr_not_equal(a, b);
        } else {
            assert_ptr_equal(a, b);
        }
        set_host(b, 6);
        memory_end(second);
        if (copies_in_first) {
            memory_replay(first, w.stream);
            ASSERT_VALUE(w.context, w.device, 1, 5);
        }
        memory_free(w.pool, b);
        rondo_graph_destroy(second);
        rondo_graph_destroy(first);
        assert_int_equal(memory_get_pool_stats(w.pool).live_count, 0);
    }
    free_world(&w);
}

SUITE_CASE(torch_45_a_pageable_source_is_refused) {
    world w = make_world(state);
    rondo_graph *graph = memory_create_graph(w.context, "pageable", NULL);
    uint32_t source[COUNT];
    set_host(source, 1);
    memory_begin(graph, w.stream);
    ASSERT_STATUS(
        rondo_stream_copy(w.stream, w.device, source, sizeof source, RONDO_COPY_HOST_TO_DEVICE),
        STATE);
    ASSERT_MESSAGE_HAS("pageable");
    ASSERT_MESSAGE_HAS("RONDO_MEMORY_PINNED");
    ASSERT_MESSAGE_HAS("RONDO_PAGEABLE_SNAPSHOT");
    ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
    rondo_graph_destroy(graph);
    free_world(&w);
}

SUITE_CASE(torch_46_a_pageable_destination_is_refused) {
    world w = make_world(state);
    rondo_graph_options options = {.struct_size = sizeof options};
    options.pageable_sources = RONDO_PAGEABLE_SNAPSHOT;  // helps sources only
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(w.context->device, &options, &graph));
    uint32_t destination[COUNT];
    memory_begin(graph, w.stream);
    ASSERT_STATUS(rondo_stream_copy(w.stream, destination, w.device, sizeof destination,
                                    RONDO_COPY_DEVICE_TO_HOST),
                  STATE);
    ASSERT_MESSAGE_HAS("pageable");
    ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
    rondo_graph_destroy(graph);
    free_world(&w);
}

// The source may change or die: each replay reads what stood there at the capture.
SUITE_CASE(snapshots_of_pageable_sources) {
    world w = make_world(state);
    enum { LARGE = 1 << 18 };
    uint32_t *large = suite_allocate(w.context, RONDO_MEMORY_DEVICE, LARGE);
    rondo_graph_options options = {.struct_size = sizeof options};
    options.pageable_sources = RONDO_PAGEABLE_SNAPSHOT;
    rondo_graph *graph;
    ASSERT_OK(rondo_graph_create(w.context->device, &options, &graph));
    for (int round = 0; round < 3; ++round) {
        uint32_t *source = malloc(COUNT * sizeof *source);
        uint32_t *many = malloc(LARGE * sizeof *many);
        assert_non_null(source);
        assert_non_null(many);
        set_host(source, 20);
        for (uint32_t i = 0; i < LARGE; ++i) {
            many[i] = i;
        }
        rondo_capture_mode mode = round == 2 ? RONDO_CAPTURE_GLOBAL : RONDO_CAPTURE_THREAD_LOCAL;
        ASSERT_OK(rondo_graph_capture_begin(graph, w.stream, mode));
        copy_in(&w, source);
        set_host(source, 30);
        ASSERT_OK(suite_affine(w.context, w.stream, w.device, COUNT, 1, 1));
        ASSERT_OK(rondo_stream_copy(w.stream, large, many, LARGE * sizeof *many,
                                    RONDO_COPY_HOST_TO_DEVICE));
        // A second one, from the same place with other bytes.
        ASSERT_OK(rondo_stream_copy(w.stream, w.device + 1, source, sizeof *source,
                                    RONDO_COPY_HOST_TO_DEVICE));
        memory_end(graph);
        free(source);
        free(many);
        for (int i = 0; i < 2; ++i) {
            suite_set(w.context, w.device, 0, COUNT);
            suite_set(w.context, large, 0, LARGE);
            memory_replay(graph, w.stream);
            ASSERT_VALUE(w.context, w.device, 0, 21);
            ASSERT_VALUE(w.context, w.device, 1, 30);
            ASSERT_VALUE(w.context, w.device, COUNT - 1, 21);
            ASSERT_VALUE(w.context, large, LARGE - 1, LARGE - 1);
        }
        ASSERT_OK(rondo_graph_reset(graph));
    }
    rondo_graph_destroy(graph);
    suite_free(w.context, RONDO_MEMORY_DEVICE, large);
    free_world(&w);
}

// The pool dies before the graph that reads its memory.
SUITE_CASE(pinned_memory_outlives_its_pool) {
    world w = make_world(state);
    rondo_graph *graph = memory_create_graph(w.context, "reader", NULL);
    rondo_pool *pool = memory_create_pool(w.context, RONDO_MEMORY_PINNED);
    uint32_t *source = memory_take(pool, w.stream, COUNT);
    set_host(source, 77);
    memory_begin(graph, w.stream);
    copy_in(&w, source);
    memory_end(graph);
    memory_free(pool, source);
    rondo_pool_release(pool);
    memory_replay(graph, w.stream);
    ASSERT_VALUE(w.context, w.device, 0, 77);
    rondo_graph_destroy(graph);
    free_world(&w);
}
