// Memory of captures beyond what other libraries' tests ask for: giving back after failures, blocks
// that outlive their graph, checked replays, recorded work that uses sharers' blocks, growth.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/memory/memory_support.h"
#include "rondo/inspect.h"
#include "rondo/node.h"
#include "support/fake/fake_cuda.h"

enum { COUNT = 1024 };

static void break_capture(rondo_stream *stream) {
    (void)!rondo_stream_synchronize(stream);
}

// A capture that fails or is given up gives everything back, also what is still held.
SUITE_CASE(test_conformance_memory__failed_captures_give_back) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *side = suite_create_stream(context);
    rondo_graph *graph = memory_create_graph(context, "doomed", NULL);
    for (int way = 0; way < 4; ++way) {
        memory_begin(graph, stream);
        uint32_t *held = memory_take(pool, stream, COUNT);
        uint32_t *freed = memory_take(pool, stream, COUNT);
        memory_fill(stream, freed, 1, COUNT);
        memory_join(context, side, stream);
        uint32_t *crossed = memory_take(pool, side, COUNT);
        ASSERT_OK(rondo_pool_use(pool, stream, crossed));
        memory_free(pool, crossed);  // pending until a join that never comes
        memory_free(pool, freed);
        if (way == 0) {
            rondo_graph_capture_abort(graph);
        } else if (way == 1) {
            break_capture(stream);
            ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
        } else if (way == 2) {
            memory_fill(side, held, 1, COUNT);  // and never joined
            ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
        } else {
            break_capture(stream);
            void *address = NULL;
            ASSERT_STATUS(rondo_pool_allocate(pool, stream, 16, &address), STATE);
            rondo_graph_destroy(graph);
            graph = memory_create_graph(context, "doomed", NULL);
        }
        // What the program still holds is its own, as a block of any other origin.
        rondo_pool_stats stats = memory_get_pool_stats(pool);
        assert_int_equal(stats.live_count, 1);
        memory_fill(stream, held, 7, COUNT);
        ASSERT_OK(rondo_stream_synchronize(stream));
        ASSERT_VALUE(context, held, COUNT - 1, 7);
        memory_free(pool, held);
        ASSERT_OK(rondo_stream_synchronize(stream));
        ASSERT_OK(rondo_stream_synchronize(side));
        ASSERT_OK(rondo_pool_trim(pool, 0, NULL));
        stats = memory_get_pool_stats(pool);
        assert_int_equal(stats.reserved_bytes, 0);
        assert_int_equal(stats.pending_bytes, 0);
        assert_int_equal(stats.live_bytes, 0);
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(side);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// Freed late, on a stream that is gone, after the pool's last reference: all is given back.
SUITE_CASE(test_conformance_memory__blocks_outlive_everything) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = memory_create_graph(context, "short", NULL);
    memory_begin(graph, stream);
    uint32_t *x = memory_take(pool, stream, COUNT);
    uint32_t *y = memory_take(pool, stream, COUNT);
    memory_fill(stream, x, 3, COUNT);
    memory_add(context, stream, y, x, 1, COUNT);
    memory_end(graph);
    memory_replay(graph, stream);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
    ASSERT_VALUE(context, y, COUNT - 1, 4);
    memory_free(pool, x);
    ASSERT_VALUE(context, y, 0, 4);
    memory_free(pool, y);  // and with it the pool
}

// 10 000 rounds stand in the bench; here enough to see growth.
SUITE_CASE(test_conformance_memory__capture_and_reset_do_not_grow) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *side = suite_create_stream(context);
    rondo_arena *arena;
    ASSERT_OK(rondo_arena_create(context->device, NULL, &arena));
    rondo_graph *graphs[2] = {memory_create_graph(context, "even", arena),
                              memory_create_graph(context, "odd", arena)};
    uint64_t reserved = 0;
    const int rounds = suite_rounds(1000, 24);
    for (int i = 0; i < rounds; ++i) {
        rondo_graph *graph = graphs[i % 2];
        ASSERT_OK(rondo_graph_reset(graph));
        memory_begin(graph, stream);
        uint32_t *x = memory_take(pool, stream, COUNT);
        memory_fill(stream, x, 1, 8);
        memory_join(context, side, stream);
        uint32_t *y = memory_take(pool, side, (size_t)COUNT * (unsigned)(1 + i % 7));
        memory_fill(side, y, 1, 8);
        memory_free(pool, y);
        memory_join(context, stream, side);
        memory_end(graph);
        memory_free(pool, x);
        if (i == 20) {
            reserved = memory_get_pool_stats(pool).reserved_bytes;
        }
        if (i > 20) {
            assert_int_equal(memory_get_pool_stats(pool).reserved_bytes, reserved);
        }
    }
    rondo_graph_destroy(graphs[0]);
    rondo_graph_destroy(graphs[1]);
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_OK(rondo_pool_trim(pool, UINT64_MAX, NULL));  // looks after the last block
    assert_int_equal(
        memory_get_arena_stats(arena).reserved_bytes + memory_get_arena_stats(arena).live_count, 0);
    rondo_arena_release(arena);
    rondo_stream_destroy(side);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// Records an empty body that runs if *predicate is not zero.
static void put_condition(rondo_stream *stream, const uint32_t *predicate) {
    rondo_scope scope;
    ASSERT_OK(rondo_scope_begin(stream, RONDO_SCOPE_IF, predicate, 0, &scope));
    ASSERT_OK(rondo_scope_end(scope));
}

// A graph that is seen to use another's block is not replayed once that was written over.
SUITE_CASE(test_conformance_memory__uses_are_seen_in_recorded_work) {
    bool has_bodies = rondo_device_supports(context->device, RONDO_FEATURE_IF) == RONDO_STATUS_OK;
    for (int way = has_bodies ? 0 : 1; way < 5; ++way) {
        rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
        rondo_stream *stream = suite_create_stream(context);
        rondo_graph *producer = memory_create_graph(context, "producer", NULL);
        rondo_arena *arena = memory_get_arena(producer);
        rondo_graph *consumer = memory_create_graph(context, "consumer", arena);
        rondo_graph *vandal = memory_create_graph(context, "vandal", arena);
        uint32_t *sink = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
        memory_begin(producer, stream);
        uint32_t *x = memory_take(pool, stream, COUNT);
        memory_fill(stream, x, 1, COUNT);
        memory_end(producer);
        memory_begin(consumer, stream);
        if (way == 0) {
            put_condition(stream, x + 7);
        } else if (way == 1) {
            ASSERT_OK(rondo_stream_copy(stream, sink, x + 7, 64, RONDO_COPY_DEVICE_TO_DEVICE));
        } else if (way == 2) {
            ASSERT_OK(suite_affine(context, stream, x + 7, 16, 1, 1));
        } else if (way == 3) {
            ASSERT_OK(rondo_pool_use(pool, stream, x));
            memory_fill(stream, sink, 1, COUNT);
        } else {
            memory_fill(stream, sink, 1, COUNT);  // does not use it
        }
        memory_end(consumer);
        memory_free(pool, x);
        ASSERT_OK(rondo_stream_synchronize(stream));
        memory_begin(vandal, stream);
        uint32_t *y = memory_take(pool, stream, COUNT);
        assert_ptr_equal(y, x);
        memory_fill(stream, y, 9, COUNT);
        memory_end(vandal);
        memory_replay(producer, stream);
        memory_replay(consumer, stream);
        memory_replay(vandal, stream);
        if (way < 4) {
            ASSERT_STATUS(rondo_graph_replay(consumer, stream), STATE);
            ASSERT_MESSAGE_HAS("graph \"consumer\" takes in a block of 4096 bytes");
            ASSERT_MESSAGE_HAS("graph \"vandal\"");
        } else {
            memory_replay(consumer, stream);
        }
        memory_free(pool, y);
        memory_replay(producer, stream);
        memory_replay(consumer, stream);
        // Without the vandal the data is safe again.
        memory_replay(vandal, stream);
        rondo_graph_destroy(vandal);
        memory_replay(producer, stream);
        memory_replay(consumer, stream);
        rondo_graph_destroy(consumer);
        rondo_graph_destroy(producer);
        suite_free(context, RONDO_MEMORY_DEVICE, sink);
        rondo_stream_destroy(stream);
        rondo_pool_release(pool);
    }
}

// A block that one graph left and another one's capture freed: it is nobody's until that has ended,
// and then everybody's, but its data is not lost without a word.
SUITE_CASE(test_conformance_memory__what_was_taken_in_waits_for_the_end) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *first = memory_create_graph(context, "first", NULL);
    rondo_arena *arena = memory_get_arena(first);
    rondo_graph *second = memory_create_graph(context, "second", arena);
    rondo_graph *third = memory_create_graph(context, "third", arena);
    memory_begin(first, stream);
    uint32_t *x = memory_take(pool, stream, COUNT);
    memory_fill(stream, x, 1, COUNT);
    memory_end(first);
    memory_begin(second, stream);
    memory_free(pool, x);
    ASSERT_STATUS(rondo_pool_free(pool, x), INVALID);  // once is enough
    ASSERT_STATUS(rondo_pool_use(pool, context->stream, x), INVALID);
    uint32_t *y = memory_take(pool, stream, COUNT);
    assert_ptr_not_equal(x, y);
    memory_fill(stream, y, 2, COUNT);
    memory_free(pool, y);
    assert_int_equal(memory_get_pool_stats(pool).live_count, 1);
    memory_end(second);
    assert_int_equal(memory_get_pool_stats(pool).live_count, 0);
    memory_begin(third, stream);
    uint32_t *z = memory_take(pool, stream, COUNT);
    assert_true(z == x || suite_is_swept);
    memory_fill(stream, z, 3, COUNT);
    memory_end(third);
    memory_replay(first, stream);
    memory_replay(second, stream);
    memory_replay(third, stream);
    if (z == x) {
        ASSERT_STATUS(rondo_graph_replay(second, stream), STATE);
        ASSERT_MESSAGE_HAS("graph \"second\" takes in a block");
        ASSERT_VALUE(context, z, 5, 3);
    }
    memory_free(pool, z);
    memory_replay(first, stream);
    memory_replay(second, stream);
    rondo_graph_destroy(third);
    rondo_graph_destroy(second);
    rondo_graph_destroy(first);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// A block from before a capture that was freed in it is the program's again when that fails.
SUITE_CASE(test_conformance_memory__frees_are_rolled_back) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *stream = suite_create_stream(context);
    rondo_graph *graph = memory_create_graph(context, "doomed", NULL);
    for (int way = 0; way < 3; ++way) {
        uint32_t *x = memory_take(pool, stream, COUNT);
        memory_fill(stream, x, 7, COUNT);
        ASSERT_OK(rondo_stream_synchronize(stream));
        memory_begin(graph, stream);
        if (way == 1) {
            break_capture(stream);  // frees after the break are no other
        }
        memory_free(pool, x);
        if (way == 0) {
            rondo_graph_capture_abort(graph);
        } else {
            break_capture(stream);
            ASSERT_STATUS(rondo_graph_capture_end(graph), STATE);
        }
        assert_int_equal(memory_get_pool_stats(pool).live_count, 1);
        ASSERT_VALUE(context, x, COUNT - 1, 7);
        memory_free(pool, x);
        assert_int_equal(memory_get_pool_stats(pool).live_count, 0);
    }
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// Two captures side by side: a block that one takes in from the other, which frees it before its
// own end. Only what happens to that block counts for the first.
SUITE_CASE(test_conformance_memory__taken_in_from_an_open_capture) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *streams[2] = {suite_create_stream(context), suite_create_stream(context)};
    rondo_graph *producer = memory_create_graph(context, "producer", NULL);
    rondo_arena *arena = memory_get_arena(producer);
    rondo_graph *consumer = memory_create_graph(context, "consumer", arena);
    rondo_graph *vandal = memory_create_graph(context, "vandal", arena);
    uint32_t *sink = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    memory_begin(producer, streams[0]);
    uint32_t *x = memory_take(pool, streams[0], COUNT);
    memory_begin(consumer, streams[1]);
    uint32_t *between = memory_take(pool, streams[0], COUNT);
    memory_fill(streams[0], x, 1, COUNT);
    ASSERT_OK(rondo_pool_use(pool, streams[1], x));
    memory_fill(streams[1], sink, 1, 1);
    memory_free(pool, x);  // held to the end: the other capture uses it
    uint32_t *y = memory_take(pool, streams[0], 2 * COUNT);
    memory_fill(streams[0], y, 1, COUNT);
    memory_end(producer);
    memory_end(consumer);
    memory_free(pool, y);
    memory_begin(vandal, streams[0]);
    uint32_t *z = memory_take(pool, streams[0], 2 * COUNT);
    assert_ptr_equal(z, y);
    memory_fill(streams[0], z, 9, COUNT);
    memory_free(pool, z);
    memory_free(pool, between);
    memory_end(vandal);
    memory_replay(producer, streams[0]);
    memory_replay(vandal, streams[0]);
    memory_replay(consumer, streams[0]);
    rondo_graph_destroy(producer);
    memory_replay(consumer, streams[0]);
    rondo_graph_destroy(vandal);
    rondo_graph_destroy(consumer);
    rondo_stream_destroy(streams[1]);
    rondo_stream_destroy(streams[0]);
    rondo_pool_release(pool);
}

static void touch_word(void *arguments) {
    ++**(uint32_t **)arguments;
}

// Each kind of work with each kind of memory, freed, or freed and given out again.
SUITE_CASE(test_conformance_memory__checked_replays_refuse_stale_memory) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *stream = suite_create_stream(context);
    uint32_t *other = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    for (int way = 0; way < 12; ++way) {
        bool is_pooled = way % 2 != 0;
        int work = way / 2;
        if (work == 4 && is_pooled && context->is_cuda) {
            continue;  // a host function does not touch device memory
        }
        rondo_graph *graph = memory_create_checked_graph(context);
        uint32_t *pinned = suite_allocate(context, RONDO_MEMORY_PINNED, COUNT);
        uint32_t *x = is_pooled ? memory_take(pool, stream, COUNT)
                                : suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
        uint32_t *word = is_pooled ? x : pinned;
        memory_begin(graph, stream);
        uint32_t *own = memory_take(pool, stream, COUNT);
        memory_fill(stream, own, 1, COUNT);
        const char *name = "a copy";
        if (work == 0) {
            ASSERT_OK(rondo_stream_copy(stream, other, x + 3, 64, RONDO_COPY_DEVICE_TO_DEVICE));
        } else if (work == 1) {
            ASSERT_OK(rondo_stream_copy(stream, x + 3, other, 64, RONDO_COPY_DEVICE_TO_DEVICE));
        } else if (work == 2) {
            memory_fill(stream, x, 1, 4);
            name = "a fill";
        } else if (work == 3) {
            ASSERT_OK(suite_affine(context, stream, x, 4, 1, 1));
            name = "affine";
        } else if (work == 4) {
            ASSERT_OK(rondo_stream_call_host(stream, "touch", touch_word, &word, sizeof word));
            name = "touch";
        } else {
            ASSERT_OK(rondo_stream_copy(stream, pinned, x, 64, RONDO_COPY_DEVICE_TO_HOST));
        }
        memory_free(pool, own);  // the graph's own memory may be freed
        memory_end(graph);
        memory_replay(graph, stream);
        memory_replay(graph, stream);
        bool frees_pinned = work == 4 && !is_pooled;
        if (is_pooled) {
            memory_free(pool, x);
        } else if (frees_pinned) {
            suite_free(context, RONDO_MEMORY_PINNED, pinned);
        } else {
            suite_free(context, RONDO_MEMORY_DEVICE, x);
        }
        ASSERT_STATUS(rondo_graph_replay(graph, stream), STATE);
        ASSERT_MESSAGE_HAS("graph \"checked\" uses memory that is gone");
        ASSERT_MESSAGE_HAS(name);
        ASSERT_MESSAGE_HAS(is_pooled ? "pool's block" : "rondo_memory_allocate");
        if (is_pooled) {
            // At the same address again, but another block.
            uint32_t *again = memory_take(pool, stream, COUNT);
            assert_ptr_equal(again, x);
            ASSERT_STATUS(rondo_graph_replay(graph, stream), STATE);
            memory_free(pool, again);
        }
        ASSERT_OK(rondo_graph_reset(graph));
        memory_begin(graph, stream);
        memory_fill(stream, other, 1, 4);
        memory_end(graph);
        memory_replay(graph, stream);
        rondo_graph_destroy(graph);
        if (frees_pinned) {
            suite_free(context, RONDO_MEMORY_DEVICE, x);
        } else {
            suite_free(context, RONDO_MEMORY_PINNED, pinned);
        }
    }
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// What the driver keeps for an executable: an estimate until it is measured.
SUITE_CASE(test_conformance_memory__driver_bytes_of_an_executable) {
    rondo_graph *graph = suite_create_graph(context, true);
    rondo_stream *stream = suite_create_stream(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    uint64_t bytes = 1;
    ASSERT_STATUS(rondo_graph_measure_device_bytes(graph, &bytes), STATE);
    assert_int_equal(bytes, 0);
    memory_begin(graph, stream);
    const int nodes = suite_rounds(500, 10);
    for (int i = 0; i < nodes; ++i) {
        ASSERT_OK(suite_affine(context, stream, x, COUNT, 1, 1));
    }
    memory_end(graph);
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_get_stats(graph, &stats));
    if (!context->is_cuda) {
        assert_int_equal(stats.device_bytes, 0);
        assert_false(stats.device_bytes_is_estimate);
    } else {
        assert_true(stats.device_bytes > (uint64_t)nodes * 100);
        assert_true(stats.device_bytes_is_estimate);
    }
    if (!context->is_cuda) {
        ASSERT_STATUS(rondo_graph_measure_device_bytes(graph, &bytes), UNSUPPORTED);
    } else {
        ASSERT_OK(rondo_graph_measure_device_bytes(graph, &bytes));
        print_message("%d kernel nodes: %llu bytes measured, %llu estimated\n", nodes,
                      (unsigned long long)bytes, (unsigned long long)stats.device_bytes);
        if (context->is_prompt) {
            assert_int_equal(bytes, FAKE_CUDA_EXEC_BYTES);
        } else {
            assert_in_range(bytes, nodes * 500, nodes * 10000);
        }
        ASSERT_OK(rondo_graph_get_stats(graph, &stats));
        assert_int_equal(stats.device_bytes, bytes);
        assert_false(stats.device_bytes_is_estimate);
    }
    memory_replay(graph, stream);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
}

// A kernel, `count` branches of two, one that joins them; 0: ten kernels in a row.
static void build_branches(suite_context *context, rondo_graph *graph, uint32_t *x, size_t count) {
    const suite_affine_arguments arguments = {x, 1, 1, 1};
    const rondo_launch launch = suite_describe_affine(context, &arguments);
    const rondo_work work = {
        .struct_size = sizeof work, .kind = RONDO_NODE_KERNEL, .launch = &launch};
    rondo_node root;
    rondo_node ends[32];
    ASSERT_OK(rondo_graph_build_begin(graph));
    ASSERT_OK(rondo_graph_add_node(graph, NULL, 0, &work, &root));
    for (size_t i = 0; i < count; ++i) {
        ASSERT_OK(rondo_graph_add_node(graph, &root, 1, &work, &ends[i]));
        const rondo_node first = ends[i];
        ASSERT_OK(rondo_graph_add_node(graph, &first, 1, &work, &ends[i]));
    }
    for (size_t i = 0; count == 0 && i < 9; ++i) {
        const rondo_node former = root;
        ASSERT_OK(rondo_graph_add_node(graph, &former, 1, &work, &root));
    }
    if (count > 0) {
        ASSERT_OK(rondo_graph_add_node(graph, ends, count, &work, NULL));
    }
    ASSERT_OK(rondo_graph_capture_end(graph));
}

// The estimate goes by nodes and branches, within half as much again of what was measured.
SUITE_CASE(test_conformance_memory__driver_bytes_of_branches) {
    static const struct {
        size_t branch_count;
        uint64_t bytes;  // on an H200, driver 580
    } rows[] = {{0, 122900}, {1, 112600}, {2, 245800}, {8, 942100}, {32, 3737600}};
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && context->is_cuda; ++i) {
        rondo_graph *graph = suite_create_graph(context, true);
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        uint64_t bytes = rows[i].bytes;
        build_branches(context, graph, x, rows[i].branch_count);
        ASSERT_OK(rondo_graph_get_stats(graph, &stats));
        assert_in_range(stats.device_bytes, bytes * 2 / 3, bytes * 3 / 2);
        if (!context->is_prompt) {
            ASSERT_OK(rondo_graph_measure_device_bytes(graph, &bytes));
            print_message("%zu branches: %llu bytes measured, %llu estimated\n",
                          rows[i].branch_count, (unsigned long long)bytes,
                          (unsigned long long)stats.device_bytes);
            assert_in_range(stats.device_bytes, bytes / 2, bytes * 2);
        }
        rondo_graph_destroy(graph);
    }
}

// In global mode any driver call for memory breaks the capture; the pool's do not.
SUITE_CASE(test_conformance_memory__every_mode_may_take_memory) {
    static const rondo_capture_mode modes[] = {RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_GLOBAL,
                                               RONDO_CAPTURE_RELAXED};
    rondo_stream *stream = suite_create_stream(context);
    for (int i = 0; i < 3; ++i) {
        rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
        rondo_graph *graph = memory_create_graph(context, "mode", NULL);
        ASSERT_OK(rondo_graph_capture_begin(graph, stream, modes[i]));
        uint32_t *x = memory_take(pool, stream, COUNT);
        memory_fill(stream, x, 3, COUNT);
        memory_end(graph);
        memory_replay(graph, stream);
        ASSERT_VALUE(context, x, 0, 3);
        memory_free(pool, x);
        rondo_graph_destroy(graph);
        rondo_pool_release(pool);
    }
    rondo_stream_destroy(stream);
}

// A graph that is destroyed while the stream of its last replay records: that stream cannot be
// waited for, so nobody gets the memory yet.
SUITE_CASE(test_conformance_memory__held_back_while_a_replay_may_run) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *other = suite_create_stream(context);
    rondo_graph *first = memory_create_graph(context, "first", NULL);
    rondo_graph *second = memory_create_graph(context, "second", NULL);
    memory_begin(first, stream);
    uint32_t *x = memory_take(pool, stream, COUNT);
    ASSERT_OK(suite_linger(context, stream, 2000));
    memory_fill(stream, x, 1, COUNT);
    memory_free(pool, x);
    memory_end(first);
    ASSERT_OK(rondo_graph_replay(first, stream));
    memory_begin(second, stream);
    ASSERT_OK(rondo_graph_reset(first));
    uint64_t asked = memory_get_pool_stats(pool).driver_call_count;
    uint32_t *inside = memory_take(pool, stream, COUNT);
    // A pool that the driver refused memory waits for the replay; then the block may be anywhere.
    bool has_waited = memory_get_pool_stats(pool).driver_call_count > asked + 1;
    assert_true(has_waited || inside != x);
    uint32_t *eager = memory_take(pool, other, COUNT);
    assert_true(has_waited || eager != x);
    memory_free(pool, eager);
    memory_free(pool, inside);
    memory_end(second);
    // Nor does the graph itself, as long as that is not clear.
    memory_begin(first, stream);
    x = memory_take(pool, stream, COUNT);
    memory_fill(stream, x, 2, COUNT);
    memory_end(first);
    memory_replay(first, stream);
    ASSERT_VALUE(context, x, 0, 2);
    memory_free(pool, x);
    rondo_graph_destroy(first);
    rondo_graph_destroy(second);
    ASSERT_OK(rondo_stream_synchronize(stream));
    ASSERT_OK(rondo_stream_synchronize(other));
    ASSERT_OK(rondo_pool_trim(pool, 0, NULL));
    assert_int_equal(memory_get_pool_stats(pool).reserved_bytes, 0);
    rondo_stream_destroy(other);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// A sharer without memory holds none back.
SUITE_CASE(test_conformance_memory__held_back_by_graphs_with_memory_alone) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *streams[] = {suite_create_stream(context), suite_create_stream(context)};
    rondo_arena *arena;
    ASSERT_OK(rondo_arena_create(context->device, NULL, &arena));
    rondo_graph *full = memory_create_graph(context, "full", arena);
    rondo_graph *empty = memory_create_graph(context, "empty", arena);
    rondo_graph *others[2];
    memory_begin(full, streams[0]);
    uint32_t *x = memory_take(pool, streams[0], COUNT);
    memory_fill(streams[0], x, 1, COUNT);
    memory_free(pool, x);
    memory_end(full);
    memory_begin(empty, streams[1]);
    memory_end(empty);
    ASSERT_OK(rondo_graph_replay(empty, streams[1]));
    ASSERT_OK(rondo_graph_replay(full, streams[0]));
    for (int i = 0; i < 2; ++i) {
        others[i] = memory_create_graph(context, "other", NULL);
        memory_begin(others[i], streams[i]);
    }
    rondo_graph_destroy(empty);
    rondo_graph_destroy(full);
    for (int i = 0; i < 2; ++i) {
        memory_end(others[i]);
        rondo_graph_destroy(others[i]);
        ASSERT_OK(rondo_stream_synchronize(streams[i]));
        rondo_stream_destroy(streams[i]);
    }
    ASSERT_OK(rondo_pool_trim(pool, 0, NULL));
    assert_int_equal(memory_get_pool_stats(pool).reserved_bytes, 0);
    rondo_arena_release(arena);
    rondo_pool_release(pool);
}

// ---- sharers on several streams ---------------------------------------------------------------

// A graph that takes long to compute `first` + 5 in memory that it shares, and copies that out.
static rondo_graph *capture_slow(suite_context *context, rondo_pool *pool, rondo_stream *stream,
                                 rondo_arena *arena, uint32_t first, uint32_t *output) {
    rondo_graph *graph = memory_create_graph(context, "slow", arena);
    memory_begin(graph, stream);
    uint32_t *x = memory_take(pool, stream, COUNT);
    memory_fill(stream, x, first, COUNT);
    for (int k = 0; k < 5; ++k) {
        ASSERT_OK(suite_spin(context, stream, 500));
        ASSERT_OK(suite_affine(context, stream, x, COUNT, 1, 1));
    }
    ASSERT_OK(rondo_stream_copy(stream, output, x, COUNT * 4, RONDO_COPY_DEVICE_TO_DEVICE));
    memory_free(pool, x);
    memory_end(graph);
    return graph;
}

// On another stream a sharer comes after the last one's, also where that stream records by then, or
// is gone; on the same stream nothing is asked of the driver.
SUITE_CASE(test_conformance_memory__sharers_come_after_the_last_stream) {
    rondo_pool *pool = memory_create_pool(context, RONDO_MEMORY_DEVICE);
    rondo_stream *stream = suite_create_stream(context);
    rondo_stream *last = suite_create_stream(context);
    rondo_arena *arena = NULL;
    ASSERT_OK(rondo_arena_create(context->device, NULL, &arena));
    uint32_t *outputs = suite_allocate(context, RONDO_MEMORY_DEVICE, 2 * COUNT);
    rondo_graph *graphs[2];
    for (uint32_t i = 0; i < 2; ++i) {
        graphs[i] = capture_slow(context, pool, stream, arena, 10 * i, outputs + i * COUNT);
    }
    rondo_graph *other = suite_create_graph(context, false);
    for (int round = 0; round < 3; ++round) {
        ASSERT_OK(rondo_graph_replay(graphs[0], last));
        if (round == 1) {
            memory_begin(other, last);
            memory_fill(last, outputs, 1, 1);
        } else if (round == 2) {
            rondo_stream_destroy(last);
        }
        ASSERT_OK(rondo_graph_replay(graphs[1], stream));
        ASSERT_OK(rondo_stream_synchronize(stream));
        if (round == 1) {
            memory_end(other);
        }
        ASSERT_VALUE(context, outputs, COUNT - 1, 5);
        ASSERT_VALUE(context, outputs + COUNT, COUNT - 1, 15);
    }
    if (context->is_fake) {
        size_t calls = fake_cuda_count_calls(NULL);
        ASSERT_OK(rondo_graph_replay(graphs[0], stream));
        ASSERT_OK(rondo_graph_replay(graphs[1], stream));
        // A stream whose end nobody could wait for is still asked after.
        if (!fake_cuda_has_failed()) {
            assert_int_equal(fake_cuda_count_calls(NULL), calls + 2);
        }
    }
    rondo_graph_destroy(other);
    rondo_graph_destroy(graphs[0]);
    rondo_graph_destroy(graphs[1]);
    rondo_arena_release(arena);
    rondo_stream_destroy(stream);
    rondo_pool_release(pool);
}

// What the stream's own eager work left in the cache goes back to the driver when a capture on that
// stream needs the room, whether that work was waited for or still runs.
SUITE_CASE(test_conformance_memory__the_cache_makes_room_for_a_capture) {
    rondo_pool_options options = {.struct_size = sizeof options};
    options.limit_bytes = 8 << 20;
    enum { MOST = (6 << 20) / sizeof(uint32_t) };
    for (int round = 0; round < 2; ++round) {
        rondo_pool *pool;
        ASSERT_OK(rondo_pool_create(context->device, &options, &pool));
        rondo_stream *stream = suite_create_stream(context);
        uint32_t *warm = memory_take(pool, stream, MOST);
        memory_fill(stream, warm, 1, COUNT);
        memory_free(pool, warm);
        if (round == 0) {
            ASSERT_OK(rondo_stream_synchronize(stream));
        }
        rondo_graph *graph = suite_create_graph(context, false);
        memory_begin(graph, stream);
        uint32_t *x = memory_take(pool, stream, MOST);
        memory_fill(stream, x, 7, COUNT);
        memory_end(graph);
        memory_replay(graph, stream);
        ASSERT_VALUE(context, x, COUNT - 1, 7);
        assert_true(memory_get_pool_stats(pool).reserved_bytes <= 8 << 20);
        memory_free(pool, x);
        rondo_graph_destroy(graph);
        rondo_stream_destroy(stream);
        rondo_pool_release(pool);
    }
}
