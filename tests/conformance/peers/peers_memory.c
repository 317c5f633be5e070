// peers_memory.c — what PyTorch's tests of memory in captures promise, by the number in
// docs/peer_tests.md; and what its tests do not ask for.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include "conformance/memory/memory_support.h"

enum { COUNT = 1024 };  // elements of most blocks: 4 KiB

// ---- one graph --------------------------------------------------------------------------------

SUITE_CASE(torch_11_capture_out_of_memory) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = memory_create_graph(context, "greedy", NULL);
    rondo_stream *stream = suite_create_stream(context);
    void *address = NULL;
    memory_begin(graph, stream);
    uint32_t *small = memory_take(pool, stream, COUNT);
    ASSERT_STATUS(rondo_pool_allocate(pool, stream, (size_t)1 << 50, &address), NO_DEVICE_MEMORY);
    ASSERT_MESSAGE_HAS("pool: 4096 live in 1 blocks");
    assert_null(address);
    // It is no capture error: the capture goes on.
    memory_fill(stream, small, 7, COUNT);
    memory_end(graph);
    memory_replay(graph, stream);
    ASSERT_VALUE(context, small, COUNT - 1, 7);
    ASSERT_OK(rondo_graph_reset(graph));
    // Or it is given up.
    memory_begin(graph, stream);
    ASSERT_STATUS(rondo_pool_allocate(pool, stream, (size_t)1 << 50, &address), NO_DEVICE_MEMORY);
    rondo_graph_capture_abort(graph);
    memory_begin(graph, stream);
    memory_fill(stream, small, 8, COUNT);
    memory_end(graph);
    memory_replay(graph, stream);
    ASSERT_VALUE(context, small, 0, 8);
    memory_free(pool, small);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// PyTorch: 100 captures of a product that needs a workspace.
SUITE_CASE(torch_12_repeated_captures_do_not_grow) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = memory_create_graph(context, "again", NULL);
    rondo_stream *stream = suite_create_stream(context);
    uint64_t reserved = 0;
    uint64_t calls = 0;
    const int rounds = suite_rounds(300, 4);
    for (int i = 0; i < rounds; ++i) {
        memory_begin(graph, stream);
        uint32_t *x = memory_take(pool, stream, COUNT);
        uint32_t *workspace = memory_take(pool, stream, (size_t)1 << 20);
        memory_fill(stream, workspace, 1, COUNT);
        memory_add(context, stream, x, workspace, (uint32_t)i, COUNT);
        memory_free(pool, workspace);
        memory_end(graph);
        memory_replay(graph, stream);
        ASSERT_VALUE(context, x, 0, 1u + (unsigned)i);
        memory_free(pool, x);
        ASSERT_OK(rondo_graph_reset(graph));
        rondo_pool_stats stats = memory_get_pool_stats(pool);
        if (i == 1) {
            reserved = stats.reserved_bytes;
            calls = stats.driver_call_count;
        } else if (i > 1) {
            assert_int_equal(stats.reserved_bytes, reserved);
            assert_int_equal(stats.driver_call_count, calls);
            assert_int_equal(stats.live_count, 0);
        }
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

SUITE_CASE(torch_18_stats_and_use_after_the_graph) {
    static const size_t counts[] = {COUNT, (size_t)3 << 20};  // a small one, one of 12 MiB
    static const uint64_t regions[] = {2u << 20, 32u << 20};
    for (int i = 0; i < 2; ++i) {
        rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
        rondo_graph *graph = memory_create_graph(context, "counted", NULL);
        rondo_stream *stream = suite_create_stream(context);
        uint64_t bytes = counts[i] * 4;
        memory_begin(graph, stream);
        uint32_t *input = memory_take(pool, stream, counts[i]);
        uint32_t *output = memory_take(pool, stream, counts[i]);
        memory_fill(stream, input, 5, counts[i]);
        memory_add(context, stream, output, input, 1, counts[i]);
        memory_free(pool, input);
        memory_end(graph);
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        ASSERT_OK(rondo_graph_get_stats(graph, &stats));
        assert_int_equal(stats.arena_live_bytes, bytes);
        assert_int_equal(stats.arena_peak_bytes, 2 * bytes);
        assert_int_equal(stats.arena_reserved_bytes, regions[i]);
        assert_int_equal(memory_get_pool_stats(pool).reserved_bytes, regions[i]);
        // The graph needs its memory: emptying the cache leaves it alone.
        uint64_t released = 1;
        ASSERT_OK(rondo_pool_trim(pool, 0, &released));
        assert_int_equal(released, 0);
        memory_replay(graph, stream);
        rondo_graph_destroy(graph);
        // The output is valid, and now the only live block.
        ASSERT_VALUE(context, output, counts[i] - 1, 6);
        assert_int_equal(memory_get_pool_stats(pool).live_count, 1);
        assert_int_equal(memory_get_pool_stats(pool).live_bytes, bytes);
        ASSERT_OK(rondo_pool_trim(pool, 0, &released));
        assert_int_equal(released, 0);
        memory_free(pool, output);
        ASSERT_OK(rondo_stream_synchronize(stream));
        ASSERT_OK(rondo_pool_trim(pool, 0, &released));
        assert_int_equal(released, regions[i]);
        assert_int_equal(memory_get_pool_stats(pool).reserved_bytes, 0);
        rondo_stream_destroy(stream);
        rondo_pool_release(pool);
    }
}

// Blocks that were freed before a capture, and that another stream may still use, are not asked
// about during it; declaring a use inside it is harmless.
SUITE_CASE(torch_19_declared_uses_around_a_capture) {
    suite_gate *gate = suite_gate_create(context);
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = memory_create_graph(context, "uses", NULL);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *other = suite_create_stream(context);
    rondo_stream *busy = suite_create_stream(context);
    uint32_t *pending = memory_take(pool, stream, COUNT);
    ASSERT_OK(suite_gate_enter(gate, busy));
    memory_fill(busy, pending, 1, COUNT);
    ASSERT_OK(rondo_pool_use(pool, busy, pending));
    memory_free(pool, pending);
    assert_int_equal(memory_get_pool_stats(pool).pending_bytes, 4096);

    memory_begin(graph, stream);
    uint32_t *x = memory_take(pool, stream, COUNT);
    assert_ptr_not_equal(x, pending);
    memory_fill(stream, x, 2, COUNT);
    memory_join(context, other, stream);
    ASSERT_OK(suite_affine(context, other, x, COUNT, 3, 0));
    ASSERT_OK(rondo_pool_use(pool, other, x));
    // Done by now: eager work gets it back beside the open capture, the capture's own does not.
    suite_gate_open(gate);
    ASSERT_OK(rondo_stream_synchronize(busy));
    uint32_t *y = memory_take(pool, stream, COUNT);
    assert_ptr_not_equal(y, pending);
    memory_free(pool, y);
    uint32_t *eager = memory_take(pool, busy, COUNT);
    assert_int_equal(memory_get_pool_stats(pool).pending_bytes, 0);
    memory_free(pool, eager);
    memory_join(context, stream, other);
    memory_end(graph);
    memory_replay(graph, stream);
    ASSERT_VALUE(context, x, 1, 6);
    memory_free(pool, x);
    rondo_graph_destroy(graph);
    ASSERT_OK(rondo_pool_trim(pool, 0, NULL));
    assert_int_equal(memory_get_pool_stats(pool).pending_bytes, 0);
    rondo_pool_release(pool);
    rondo_stream_destroy(busy);
    rondo_stream_destroy(other);
    rondo_stream_destroy(stream);
    suite_gate_destroy(gate);
}

SUITE_CASE(torch_32_joined_streams_take_from_the_arena) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = memory_create_graph(context, "joined", NULL);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *side = suite_create_stream(context);
    uint32_t *eager = memory_take(pool, side, COUNT);
    memory_free(pool, eager);
    memory_begin(graph, stream);
    memory_join(context, side, stream);
    uint32_t *x = memory_take(pool, side, COUNT);
    assert_ptr_not_equal(x, eager);  // the cache of the stream itself is eager memory
    memory_fill(side, x, 4, COUNT);
    memory_join(context, stream, side);
    memory_end(graph);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    assert_int_equal(stats.arena_live_bytes, 4096);
    memory_free(pool, x);
    // Eager work never gets memory of the graph, freed or not.
    for (int i = 0; i < 600; ++i) {
        void *address;
        ASSERT_OK(rondo_pool_allocate(pool, i % 2 == 0 ? side : stream, 4096, &address));
        assert_ptr_not_equal(address, x);
        if (i % 3 == 0) {
            memory_free(pool, address);
        }
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(side);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);  // what was not freed goes with the last of the blocks
}

// A block that a second stream used is not taken again before the join, and is after it.
SUITE_CASE(torch_38_reuse_after_two_streams_joined) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = memory_create_graph(context, "two", NULL);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *side = suite_create_stream(context);
    memory_begin(graph, stream);
    uint32_t *sink = memory_take(pool, stream, COUNT);
    uint32_t *data = memory_take(pool, stream, COUNT);
    memory_fill(stream, data, 3, COUNT);
    memory_join(context, side, stream);
    uint32_t *sum = memory_take(pool, side, COUNT);
    memory_add(context, side, sum, data, 2, COUNT);
    ASSERT_OK(rondo_pool_use(pool, side, data));
    memory_free(pool, data);
    uint32_t *early = memory_take(pool, stream, COUNT);
    assert_ptr_not_equal(early, data);
    memory_fill(stream, early, 9, COUNT);
    memory_join(context, stream, side);
    memory_fill(stream, sink, 1, COUNT);
    uint32_t *late = memory_take(pool, stream, COUNT);
    assert_ptr_equal(late, data);
    memory_fill(stream, late, 8, COUNT);
    memory_end(graph);
    for (int i = 0; i < 3; ++i) {
        memory_replay(graph, stream);
        ASSERT_VALUE(context, sum, 0, 5);
        ASSERT_VALUE(context, late, 0, 8);
    }
    memory_free(pool, sink);
    memory_free(pool, sum);
    memory_free(pool, early);
    memory_free(pool, late);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(side);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

SUITE_CASE(torch_39_reuse_needs_all_four_streams) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = memory_create_graph(context, "four", NULL);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *sides[3];
    uint32_t *blocks[3];
    memory_begin(graph, stream);
    uint32_t *data = memory_take(pool, stream, COUNT);
    memory_fill(stream, data, 3, COUNT);
    for (int i = 0; i < 3; ++i) {
        sides[i] = suite_create_stream(context);
        memory_join(context, sides[i], stream);
        blocks[i] = memory_take(pool, sides[i], COUNT);
        memory_add(context, sides[i], blocks[i], data, (uint32_t)i, COUNT);
        ASSERT_OK(rondo_pool_use(pool, sides[i], data));
    }
    memory_free(pool, data);
    uint32_t *others[3];
    for (int i = 0; i < 3; ++i) {
        others[i] = memory_take(pool, stream, COUNT);
        assert_ptr_not_equal(others[i], data);
        memory_fill(stream, others[i], 0, COUNT);
        memory_join(context, stream, sides[i]);
    }
    uint32_t *late = memory_take(pool, stream, COUNT);
    assert_ptr_equal(late, data);
    memory_fill(stream, late, 0, COUNT);
    memory_end(graph);
    memory_replay(graph, stream);
    for (int i = 0; i < 3; ++i) {
        ASSERT_VALUE(context, blocks[i], 5, 3 + (uint32_t)i);
        memory_free(pool, blocks[i]);
        memory_free(pool, others[i]);
        rondo_stream_destroy(sides[i]);
    }
    memory_free(pool, late);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// A block freed on one stream serves another one only once that comes after it.
SUITE_CASE(reuse_by_another_stream_after_the_join) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = memory_create_graph(context, "handed over", NULL);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *side = suite_create_stream(context);
    memory_begin(graph, stream);
    memory_join(context, side, stream);
    uint32_t *first = memory_take(pool, side, COUNT);
    memory_fill(side, first, 1, COUNT);
    memory_free(pool, first);
    // At once on the same stream.
    uint32_t *again = memory_take(pool, side, COUNT);
    assert_ptr_equal(again, first);
    memory_fill(side, again, 2, COUNT);
    memory_free(pool, again);
    rondo_event *freed = suite_create_event(context, 0);
    ASSERT_OK(rondo_event_record(freed, side));
    uint32_t *later = memory_take(pool, side, (size_t)COUNT * 2);
    memory_fill(side, later, 3, COUNT);
    memory_free(pool, later);

    uint32_t *early = memory_take(pool, stream, COUNT);
    assert_ptr_not_equal(early, first);
    // The place where the first block was freed; not yet what was freed behind it.
    ASSERT_OK(rondo_stream_wait_event(stream, freed));
    uint32_t *x = memory_take(pool, stream, (size_t)COUNT * 2);
    assert_ptr_not_equal(x, later);
    memory_join(context, stream, side);
    memory_fill(stream, x, 0, COUNT);
    uint32_t *y = memory_take(pool, stream, (size_t)COUNT * 2);
    assert_true(y == later || y == first);
    memory_fill(stream, y, 0, COUNT);
    memory_end(graph);
    memory_replay(graph, stream);
    rondo_event_destroy(freed);
    memory_free(pool, early);
    memory_free(pool, x);
    memory_free(pool, y);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(side);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

typedef struct taker {
    rondo_pool *pool;
    rondo_stream *stream;
    void *address;
    rondo_status status;
} taker;

static void *take_on_thread(void *data) {
    taker *t = data;
    t->status = rondo_pool_allocate(t->pool, t->stream, 4096, &t->address);
    return NULL;
}

// One thread's stream records, another's does not; the arena empties when the graph dies.
SUITE_CASE(torch_56_threads_inside_and_outside) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_graph *graph = memory_create_graph(context, "threads", NULL);
    rondo_arena *arena = memory_get_arena(graph);
    rondo_arena_retain(arena);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *joined = suite_create_stream(context);
    rondo_stream *eager = suite_create_stream(context);
    memory_begin(graph, stream);
    memory_join(context, joined, stream);
    taker inside = {.pool = pool, .stream = joined};
    taker outside = {.pool = pool, .stream = eager};
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, take_on_thread, &inside), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, take_on_thread, &outside), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(inside.status, RONDO_STATUS_OK);
    assert_int_equal(outside.status, RONDO_STATUS_OK);
    assert_int_equal(memory_get_arena_stats(arena).live_count, 1);
    assert_int_equal(memory_get_pool_stats(pool).live_count, 2);
    memory_fill(joined, inside.address, 1, COUNT);
    memory_join(context, stream, joined);
    memory_end(graph);
    memory_free(pool, outside.address);
    memory_free(pool, inside.address);
    rondo_graph_destroy(graph);
    ASSERT_OK(rondo_stream_synchronize(joined));
    uint64_t released = 0;
    ASSERT_OK(rondo_pool_trim(pool, 0, &released));
    assert_int_equal(memory_get_arena_stats(arena).reserved_bytes, 0);
    assert_int_equal(memory_get_arena_stats(arena).graph_count, 0);
    assert_int_equal(memory_get_pool_stats(pool).reserved_bytes, 0);
    rondo_arena_release(arena);
    rondo_stream_destroy(eager);
    rondo_stream_destroy(joined);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// ---- several graphs ---------------------------------------------------------------------------

// Two graphs with eager work between; sharing saves what the first has freed.
SUITE_CASE(torch_15_two_successive_graphs) {
    uint64_t reserved[2];
    for (int shares = 0; shares < 2; ++shares) {
        rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
        rondo_stream *stream = suite_create_stream(context);
        rondo_graph *g0 = memory_create_graph(context, "first", NULL);
        rondo_graph *g1 =
            memory_create_graph(context, "second", shares != 0 ? memory_get_arena(g0) : NULL);
        uint32_t *a = memory_take(pool, stream, COUNT);
        memory_fill(stream, a, 1, COUNT);
        memory_begin(g0, stream);
        uint32_t *t = memory_take(pool, stream, COUNT);
        memory_add(context, stream, t, a, 1, COUNT);
        uint32_t *b = memory_take(pool, stream, COUNT);
        memory_add(context, stream, b, t, 1, COUNT);
        memory_free(pool, t);
        memory_end(g0);
        memory_begin(g1, stream);
        uint32_t *c = memory_take(pool, stream, COUNT);
        assert_int_equal(c == t, shares);  // what the first has freed
        memory_add(context, stream, c, b, 5, COUNT);
        memory_end(g1);
        ASSERT_OK(rondo_graph_replay(g0, stream));
        ASSERT_OK(suite_affine(context, stream, b, COUNT, 2, 0));  // eager work between
        memory_replay(g1, stream);
        ASSERT_VALUE(context, b, 0, 6);
        ASSERT_VALUE(context, c, COUNT - 1, 11);
        reserved[shares] = memory_get_pool_stats(pool).reserved_bytes;
        memory_free(pool, a);
        memory_free(pool, b);
        memory_free(pool, c);
        rondo_graph_destroy(g0);
        rondo_graph_destroy(g1);
        rondo_stream_destroy(stream);
        rondo_pool_release(pool);
    }
    assert_int_equal(reserved[0] - reserved[1], 2 << 20);  // one region
}

typedef struct sharers {
    rondo_pool *pool;
    rondo_arena *arena;
    rondo_stream *stream;
    rondo_graph *graphs[3];
    uint32_t *input;
    uint32_t *c;  // of graph 0, freed in graph 1
    uint32_t *d;
    uint32_t *e;
    uint32_t *f;
} sharers;

// PyTorch's three graphs: c and d from the first, e = c + 3 in the second, which frees c, and
// f = d + 4 in the third, which lands where c was if they share.
static sharers make_three(suite_context *context, bool shares, bool allows_any_order) {
    sharers s = {.pool = memory_create_pool(context, RONDO_MEMORY_DEVICE),
                 .stream = suite_create_stream(context)};
    if (shares) {
        rondo_arena_options options = {.struct_size = sizeof options};
        options.allows_any_order = allows_any_order;
        ASSERT_OK(rondo_arena_create(context->device, &options, &s.arena));
    }
    static const char *const labels[] = {"zero", "one", "two"};
    for (int i = 0; i < 3; ++i) {
        s.graphs[i] = memory_create_graph(context, labels[i], s.arena);
    }
    s.input = memory_take(s.pool, s.stream, COUNT);
    memory_fill(s.stream, s.input, 1, COUNT);
    memory_begin(s.graphs[0], s.stream);
    uint32_t *b = memory_take(s.pool, s.stream, COUNT);
    memory_add(context, s.stream, b, s.input, 0, COUNT);
    s.c = memory_take(s.pool, s.stream, COUNT);
    memory_add(context, s.stream, s.c, b, 1, COUNT);
    s.d = memory_take(s.pool, s.stream, COUNT);
    memory_add(context, s.stream, s.d, b, 2, COUNT);
    memory_end(s.graphs[0]);
    memory_begin(s.graphs[1], s.stream);
    s.e = memory_take(s.pool, s.stream, COUNT);
    memory_add(context, s.stream, s.e, s.c, 3, COUNT);
    memory_free(s.pool, s.c);
    memory_end(s.graphs[1]);
    ASSERT_OK(rondo_stream_synchronize(s.stream));  // c is free once eager work is done with it
    memory_begin(s.graphs[2], s.stream);
    s.f = memory_take(s.pool, s.stream, COUNT);
    memory_add(context, s.stream, s.f, s.d, 4, COUNT);
    memory_end(s.graphs[2]);
    memory_free(s.pool, b);
    return s;
}

static void free_three(sharers *s) {
    memory_free(s->pool, s->input);
    memory_free(s->pool, s->d);
    memory_free(s->pool, s->e);
    memory_free(s->pool, s->f);
    for (int i = 0; i < 3; ++i) {
        rondo_graph_destroy(s->graphs[i]);
    }
    rondo_arena_release(s->arena);
    rondo_stream_destroy(s->stream);
    rondo_pool_release(s->pool);
}

SUITE_CASE(torch_17_three_graphs_in_and_out_of_order) {
    // Apart: any order is right.
    sharers s = make_three(context, false, false);
    static const int orders[2][3] = {{0, 1, 2}, {0, 2, 1}};
    for (int order = 0; order < 2; ++order) {
        for (int i = 0; i < 3; ++i) {
            memory_replay(s.graphs[orders[order][i]], s.stream);
        }
        ASSERT_VALUE(context, s.e, 0, 5);
        ASSERT_VALUE(context, s.f, 0, 7);
    }
    free_three(&s);

    // Shared: right in the order of captures; the other order is refused before harm is done.
    s = make_three(context, true, false);
    assert_ptr_equal(s.f, s.c);
    for (int i = 0; i < 3; ++i) {
        memory_replay(s.graphs[i], s.stream);
    }
    ASSERT_VALUE(context, s.e, 0, 5);
    ASSERT_VALUE(context, s.f, 0, 7);
    // f is held, and the first graph would write over it.
    ASSERT_STATUS(rondo_graph_replay(s.graphs[0], s.stream), STATE);
    ASSERT_MESSAGE_HAS("graph \"zero\" would write over");
    ASSERT_MESSAGE_HAS("graph \"two\"");
    ASSERT_VALUE(context, s.f, 0, 7);
    ASSERT_OK(rondo_arena_begin_round(s.arena));
    memory_replay(s.graphs[0], s.stream);
    memory_replay(s.graphs[2], s.stream);
    ASSERT_STATUS(rondo_graph_replay(s.graphs[1], s.stream), STATE);
    ASSERT_MESSAGE_HAS("graph \"one\" takes in a block");
    ASSERT_MESSAGE_HAS("graph \"two\"");
    ASSERT_MESSAGE_HAS("replay \"zero\" first");
    // As the message says.
    ASSERT_OK(rondo_arena_begin_round(s.arena));
    memory_replay(s.graphs[0], s.stream);
    memory_replay(s.graphs[1], s.stream);
    ASSERT_VALUE(context, s.e, 0, 5);
    free_three(&s);

    // Opted out: nothing is refused, and the data is wrong, as in PyTorch.
    s = make_three(context, true, true);
    memory_replay(s.graphs[0], s.stream);
    memory_replay(s.graphs[2], s.stream);
    memory_replay(s.graphs[1], s.stream);
    ASSERT_VALUE(context, s.f, 0, 7);
    ASSERT_VALUE(context, s.e, 0, 10);
    free_three(&s);
}

// Two graphs on two streams at once: apart they run side by side; sharers, which would corrupt each
// other, are put one after the other.
SUITE_CASE(torch_16_concurrent_replays) {
    for (int shares = 0; shares < 2; ++shares) {
        rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
        rondo_stream *streams[2] = {suite_create_stream(context), suite_create_stream(context)};
        rondo_graph *graphs[2];
        uint32_t *outputs[2];
        graphs[0] = memory_create_graph(context, "left", NULL);
        graphs[1] =
            memory_create_graph(context, "right", shares != 0 ? memory_get_arena(graphs[0]) : NULL);
        uint32_t *temporaries[2];
        for (uint32_t i = 0; i < 2; ++i) {
            outputs[i] = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
            memory_begin(graphs[i], streams[i]);
            uint32_t *x = memory_take(pool, streams[i], COUNT);
            temporaries[i] = x;
            memory_fill(streams[i], x, 10 * i, COUNT);
            for (int k = 0; k < 5; ++k) {
                ASSERT_OK(suite_linger(context, streams[i], 500));
                ASSERT_OK(suite_affine(context, streams[i], x, COUNT, 1, 1));
            }
            ASSERT_OK(rondo_stream_copy(streams[i], outputs[i], x, COUNT * sizeof *x,
                                        RONDO_COPY_DEVICE_TO_DEVICE));
            memory_free(pool, x);
            memory_end(graphs[i]);
        }
        assert_int_equal(temporaries[0] == temporaries[1], shares);
        for (int round = 0; round < 5; ++round) {
            ASSERT_OK(rondo_graph_replay(graphs[round % 2], streams[round % 2]));
            ASSERT_OK(rondo_graph_replay(graphs[1 - round % 2], streams[1 - round % 2]));
            ASSERT_OK(rondo_stream_synchronize(streams[0]));
            ASSERT_OK(rondo_stream_synchronize(streams[1]));
            ASSERT_VALUE(context, outputs[0], 3, 5);
            ASSERT_VALUE(context, outputs[1], 3, 15);
        }
        for (int i = 0; i < 2; ++i) {
            rondo_graph_destroy(graphs[i]);
            rondo_stream_destroy(streams[i]);
            suite_free(context, RONDO_MEMORY_DEVICE, outputs[i]);
        }
        rondo_pool_release(pool);
    }
}
