// Learned steps on every device: the four guards that look at recording time see what a learned
// patch changes, replays on their way keep what they had, and steps that are refused run as was
// chosen.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/memory/memory_support.h"
#include "rondo/learn.h"

enum { COUNT = 256, BYTES = COUNT * sizeof(uint32_t), FACTOR = 10, TERM = 1 };

// What the step is.
typedef enum what { KERNEL, COPY, UPLOAD } what;

typedef struct scene {
    suite_context *context;
    rondo_stream *stream;
    what does;
    rondo_learned *learned;
    uint32_t *result;
    uint32_t *inputs[2];
    rondo_pool *pool;  // of a temporary; NULL: none
} scene;

// The same with a temporary, which the graph frees behind its last use.
static rondo_status put_with_temporary(rondo_stream *stream, const scene *s, const uint32_t *x,
                                       uint32_t factor) {
    void *temporary;
    rondo_status status = rondo_pool_allocate(s->pool, stream, BYTES, &temporary);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo_stream_copy(stream, temporary, x, BYTES, RONDO_COPY_DEVICE_TO_DEVICE);
    if (status == RONDO_STATUS_OK) {
        status = suite_affine(s->context, stream, temporary, 1, factor, TERM);
    }
    if (status == RONDO_STATUS_OK) {
        status =
            rondo_stream_copy(stream, s->result, temporary, sizeof *x, RONDO_COPY_DEVICE_TO_DEVICE);
    }
    const rondo_status freed = rondo_pool_free(s->pool, temporary);
    return status != RONDO_STATUS_OK ? status : freed;
}

// The first elements of x, times ten and one, in place; or x as it is, copied to the result.
static rondo_status put_step(rondo_stream *stream, const rondo_value *values, void *user_data) {
    const scene *s = user_data;
    uint32_t *x = values[0].pointer;
    const uint32_t factor = (uint32_t)values[1].unsigned_integer;
    if (s->pool != NULL) {
        return put_with_temporary(stream, s, x, factor);
    }
    if (s->does == KERNEL) {
        return suite_affine(s->context, stream, x, 1, factor, TERM);
    }
    rondo_status status = rondo_stream_copy(
        stream, s->result, x, sizeof *x,
        s->does == UPLOAD ? RONDO_COPY_HOST_TO_DEVICE : RONDO_COPY_DEVICE_TO_DEVICE);
    return status == RONDO_STATUS_OK ? suite_affine(s->context, stream, s->result, 1, factor, TERM)
                                     : status;
}

static rondo_status run(scene *s, uint32_t *x, uint32_t factor) {
    const rondo_value values[] = {{.pointer = x}, {.unsigned_integer = factor}};
    return rondo_learned_run(s->learned, s->stream, values, 2);
}

static void run_and_wait(scene *s, uint32_t *x) {
    ASSERT_OK(run(s, x, FACTOR));
    ASSERT_OK(rondo_stream_synchronize(s->stream));
}

static scene open_scene(void **state, what does) {
    suite_context *context = suite_get_context(state);
    const rondo_memory_kind kind = does == UPLOAD ? RONDO_MEMORY_PINNED : RONDO_MEMORY_DEVICE;
    suite_need_execution(context);
    scene s = {.context = context,
               .stream = suite_create_stream(context),
               .does = does,
               .result = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT)};
    for (uint32_t i = 0; i < 2; ++i) {
        s.inputs[i] = suite_allocate(context, kind, COUNT);
        if (does == UPLOAD) {
            s.inputs[i][0] = 3 + i;
        } else {
            suite_set(context, s.inputs[i], 3 + i, COUNT);
        }
    }
    return s;
}

static void create_learned(scene *s, rondo_arena *arena, bool checks_addresses) {
    const rondo_argument arguments[] = {
        {.struct_size = sizeof(rondo_argument),
         .name = "x",
         .extent = sizeof(uint32_t),
         .alignment = sizeof(uint32_t),
         .memory = s->does == UPLOAD ? RONDO_MEMORY_PINNED : RONDO_MEMORY_DEVICE,
         .is_unchecked = s->does == UPLOAD},
        {.struct_size = sizeof(rondo_argument), .name = "factor", .kind = RONDO_ARGUMENT_UINT32}};
    const rondo_learned_options options = {.struct_size = sizeof options,
                                           .label = "b",
                                           .fallback = RONDO_LEARN_REFUSE,
                                           .arena = arena,
                                           .check_addresses = checks_addresses};
    ASSERT_OK(
        rondo_learned_create(s->context->device, &options, arguments, 2, put_step, s, &s->learned));
}

static void close_scene(scene *s) {
    const rondo_memory_kind kind = s->does == UPLOAD ? RONDO_MEMORY_PINNED : RONDO_MEMORY_DEVICE;
    rondo_learned_destroy(s->learned);
    for (int i = 0; i < 2; ++i) {
        suite_free(s->context, kind, s->inputs[i]);
    }
    suite_free(s->context, RONDO_MEMORY_DEVICE, s->result);
    rondo_stream_destroy(s->stream);
}

// ---- guards -----------------------------------------------------------------------------------

SUITE_CASE(test_conformance_learned__checked_steps_watch_what_they_use_now) {
    for (int i = 0; i < 2; ++i) {
        scene s = open_scene(state, i == 0 ? KERNEL : COPY);
        create_learned(&s, NULL, true);
        uint32_t *before = suite_allocate(s.context, RONDO_MEMORY_DEVICE, COUNT);
        uint32_t *after = suite_allocate(s.context, RONDO_MEMORY_DEVICE, COUNT);
        suite_set(s.context, after, 7, COUNT);
        run_and_wait(&s, before);
        run_and_wait(&s, after);
        ASSERT_VALUE(s.context, i == 0 ? after : s.result, 0, 71);
        suite_free(s.context, RONDO_MEMORY_DEVICE, before);
        run_and_wait(&s, after);
        suite_free(s.context, RONDO_MEMORY_DEVICE, after);
        ASSERT_STATUS(run(&s, after, FACTOR), INVALID);
        ASSERT_MESSAGE_HAS("was freed since");
        run_and_wait(&s, s.inputs[0]);
        ASSERT_VALUE(s.context, i == 0 ? s.inputs[0] : s.result, 0, 31);
        close_scene(&s);
    }
}

// Graph "a" leaves a block behind, graph "c" overwrites it, and the step is told to read it.
SUITE_CASE(test_conformance_learned__patched_addresses_are_in_order) {
    for (int i = 0; i < 2; ++i) {
        scene s = open_scene(state, i == 0 ? KERNEL : COPY);
        rondo_pool *pool = memory_create_pool(s.context, RONDO_MEMORY_DEVICE);
        rondo_arena *arena;
        ASSERT_OK(rondo_arena_create(s.context->device, NULL, &arena));
        create_learned(&s, arena, false);
        run_and_wait(&s, s.inputs[0]);
        rondo_graph *c = memory_create_graph(s.context, "c", arena);
        memory_begin(c, s.stream);
        uint32_t *temporary = memory_take(pool, s.stream, COUNT);
        memory_fill(s.stream, temporary, 666, COUNT);
        memory_free(pool, temporary);
        memory_end(c);
        rondo_graph *a = memory_create_graph(s.context, "a", arena);
        memory_begin(a, s.stream);
        uint32_t *block = memory_take(pool, s.stream, COUNT);
        memory_fill(s.stream, block, 7, COUNT);
        memory_end(a);
        memory_replay(a, s.stream);
        ASSERT_OK(rondo_arena_begin_round(arena));
        memory_replay(c, s.stream);
        ASSERT_STATUS(run(&s, block, FACTOR), STATE);
        ASSERT_MESSAGE_HAS("graph \"b\" takes in a block");
        ASSERT_MESSAGE_HAS("graph \"c\"");
        memory_replay(a, s.stream);
        run_and_wait(&s, block);
        ASSERT_VALUE(s.context, i == 0 ? block : s.result, 0, 71);
        memory_free(pool, block);
        rondo_graph_destroy(a);
        rondo_graph_destroy(c);
        close_scene(&s);
        rondo_arena_release(arena);
        rondo_pool_release(pool);
    }
}

// What a node uses already is no news: the temporary lies where "a" has a block by now.
SUITE_CASE(test_conformance_learned__nodes_keep_their_own_places) {
    scene s = open_scene(state, KERNEL);
    rondo_arena *arena;
    s.pool = memory_create_pool(s.context, RONDO_MEMORY_DEVICE);
    ASSERT_OK(rondo_arena_create(s.context->device, NULL, &arena));
    create_learned(&s, arena, false);
    run_and_wait(&s, s.inputs[0]);
    rondo_graph *a = memory_create_graph(s.context, "a", arena);
    memory_begin(a, s.stream);
    uint32_t *block = memory_take(s.pool, s.stream, COUNT);
    memory_fill(s.stream, block, 7, COUNT);
    memory_end(a);
    ASSERT_OK(run(&s, s.inputs[0], 2));
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(s.context, s.result, 0, 7);
    ASSERT_STATUS(run(&s, block, 2), STATE);
    ASSERT_MESSAGE_HAS("graph \"b\" itself writes over the block");
    ASSERT_OK(run(&s, s.inputs[1], 2));
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(s.context, s.result, 0, 9);
    memory_free(s.pool, block);
    rondo_graph_destroy(a);
    close_scene(&s);
    rondo_arena_release(arena);
    rondo_pool_release(s.pool);
}

// A pool gives pinned memory that the step reads since a patch to nobody else.
SUITE_CASE(test_conformance_learned__pinned_memory_of_patches_is_in_use) {
    scene s = open_scene(state, UPLOAD);
    rondo_pool *pool = memory_create_pool(s.context, RONDO_MEMORY_PINNED);
    uint32_t *block = memory_take(pool, s.stream, COUNT);
    create_learned(&s, NULL, false);
    run_and_wait(&s, s.inputs[0]);
    block[0] = 7;
    run_and_wait(&s, block);
    ASSERT_VALUE(s.context, s.result, 0, 71);
    memory_free(pool, block);
    uint32_t *next = memory_take(pool, s.stream, COUNT);
    assert_ptr_not_equal(next, block);
    memory_free(pool, next);
    rondo_pool_release(pool);
    close_scene(&s);
}

// A source that a replay may not find any more; the run after it is none the worse.
SUITE_CASE(test_conformance_learned__pageable_sources_are_refused) {
    static uint32_t pageable[COUNT];
    scene s = open_scene(state, UPLOAD);
    create_learned(&s, NULL, false);
    run_and_wait(&s, s.inputs[0]);
    // It is the recording that fails, where the run is compared with one.
    const rondo_status status = run(&s, pageable, FACTOR);
    suite_assert_status(
        status, status == RONDO_STATUS_UNSUPPORTED ? RONDO_STATUS_UNSUPPORTED : RONDO_STATUS_STATE,
        "rondo_learned_run", __FILE__, __LINE__);
    ASSERT_MESSAGE_HAS("pageable");
    run_and_wait(&s, s.inputs[1]);
    ASSERT_VALUE(s.context, s.result, 0, 41);
    close_scene(&s);
}

// ---- replays on their way ---------------------------------------------------------------------

// Values of runs that wait on the stream are those that they were given, whatever came after.
SUITE_CASE(test_conformance_learned__runs_on_a_stream_keep_their_values) {
    suite_gate *gate = suite_gate_create(context);  // or skips
    scene s = open_scene(state, KERNEL);
    create_learned(&s, NULL, false);
    run_and_wait(&s, s.inputs[0]);
    suite_set(s.context, s.inputs[0], 3, 1);
    ASSERT_OK(suite_gate_enter(gate, s.stream));
    ASSERT_OK(run(&s, s.inputs[0], 2));  // 3 -> 7
    ASSERT_OK(run(&s, s.inputs[0], 5));  // 7 -> 36
    ASSERT_OK(run(&s, s.inputs[1], 3));  // 4 -> 13
    ASSERT_OK(run(&s, s.inputs[0], 2));  // 36 -> 73
    suite_gate_open(gate);
    ASSERT_OK(rondo_stream_synchronize(s.stream));
    ASSERT_VALUE(s.context, s.inputs[0], 0, 73);
    ASSERT_VALUE(s.context, s.inputs[1], 0, 13);
    suite_gate_destroy(gate);
    close_scene(&s);
}

// ---- steps that are refused -------------------------------------------------------------------

// y = x, then n times y * 3 + 1; and x gets one more. So n decides how many nodes there are.
static rondo_status put_loop(rondo_stream *stream, const rondo_value *values, void *user_data) {
    suite_context *context = user_data;
    uint32_t *x = values[0].pointer;
    uint32_t *y = values[1].pointer;
    rondo_status status = rondo_stream_copy(stream, y, x, BYTES, RONDO_COPY_DEVICE_TO_DEVICE);
    for (uint64_t i = 0; i < values[2].unsigned_integer && status == RONDO_STATUS_OK; ++i) {
        status = suite_affine(context, stream, y, COUNT, 3, 1);
    }
    return status == RONDO_STATUS_OK ? suite_affine(context, stream, x, COUNT, 1, 1) : status;
}

static uint32_t loop(uint32_t x, uint64_t n) {
    return n == 0 ? x : loop(x * 3 + 1, n - 1);
}

static const rondo_argument loop_arguments[] = {
    {.struct_size = sizeof(rondo_argument), .name = "x", .extent = BYTES, .alignment = 4},
    {.struct_size = sizeof(rondo_argument), .name = "y", .extent = BYTES, .alignment = 4},
    {.struct_size = sizeof(rondo_argument),
     .name = "n",
     .kind = RONDO_ARGUMENT_UINT32,
     .least.unsigned_integer = 1,
     .most.unsigned_integer = 6},
};

static rondo_learned *create_refused(suite_context *context, rondo_learned_fallback fallback,
                                     const rondo_argument *arguments, size_t count,
                                     rondo_learned_function step, void *user_data) {
    const rondo_graph_cache_options cache = {.struct_size = sizeof cache,
                                             .policy = RONDO_CACHE_ALWAYS_CAPTURE};
    const rondo_learned_options options = {
        .struct_size = sizeof options, .fallback = fallback, .cache = &cache};
    rondo_learned *learned = NULL;
    ASSERT_OK(rondo_learned_create(context->device, &options, arguments, count, step, user_data,
                                   &learned));
    return learned;
}

static rondo_learned_stats get_stats(const rondo_learned *learned) {
    rondo_learned_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_learned_get_stats(learned, &stats));
    return stats;
}

static rondo_learned_report get_report(const rondo_learned *learned) {
    rondo_learned_report report = {.struct_size = sizeof report};
    ASSERT_OK(rondo_learned_get_report(learned, &report));
    return report;
}

static rondo_graph_cache_stats get_cache_stats(rondo_learned *learned) {
    rondo_graph_cache_stats stats = {.struct_size = sizeof stats};
    ASSERT_OK(rondo_graph_cache_get_stats(rondo_learned_get_cache(learned), &stats));
    return stats;
}

// Runs take turns on the streams; each goes on with what the one before left in x.
SUITE_CASE_EXECUTED(test_conformance_learned__refused_steps_run_as_was_chosen) {
    static const struct {
        rondo_learned_fallback fallback;
        uint64_t eager_count;
        uint64_t graph_count;  // in the cache
    } rows[] = {{RONDO_LEARN_RECAPTURE, 0, 0},
                {RONDO_LEARN_EAGER, 12, 0},
                {RONDO_LEARN_CACHE, 0, 6},
                {RONDO_LEARN_FIXED, 0, 3}};
    enum { RUNS = 12 };
    rondo_stream *streams[] = {suite_create_stream(context), suite_create_stream(context)};
    uint32_t *x[] = {suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT),
                     suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT)};
    uint32_t *y = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_learned *learned =
            create_refused(context, rows[i].fallback, loop_arguments, 3, put_loop, context);
        uint32_t expected[] = {5, 1000};
        suite_set(context, x[0], expected[0], COUNT);
        suite_set(context, x[1], expected[1], COUNT);
        for (uint64_t k = 0; k < RUNS; ++k) {
            const uint64_t n = 1 + k % 3;
            const rondo_value values[] = {
                {.pointer = x[k % 2]}, {.pointer = y}, {.unsigned_integer = n}};
            rondo_stream *stream = streams[k / 4 % 2];
            ASSERT_OK(rondo_learned_run(learned, stream, values, 3));
            ASSERT_OK(rondo_stream_synchronize(stream));
            ASSERT_VALUE(context, y, COUNT - 1, loop(expected[k % 2]++, n));
        }
        ASSERT_VALUE(context, x[0], COUNT - 1, expected[0]);
        ASSERT_VALUE(context, x[1], 0, expected[1]);
        const rondo_learned_report report = get_report(learned);
        assert_int_equal(report.refusal, RONDO_REFUSAL_NODES);
        assert_int_equal(report.fallback, rows[i].fallback);
        assert_int_equal(get_stats(learned).fallback_count, RUNS);
        assert_int_equal(rondo_learned_get_cache(learned) != NULL, rows[i].graph_count > 0);
        // A capture that fails is an eager run, too.
        assert_true(get_stats(learned).fallback_eager_count == rows[i].eager_count ||
                    suite_is_swept);
        if (rows[i].graph_count > 0 && !suite_is_swept) {
            assert_int_equal(get_cache_stats(learned).capture_count, rows[i].graph_count);
            assert_int_equal(get_cache_stats(learned).hit_count, RUNS - rows[i].graph_count);
        }
        rondo_learned_destroy(learned);
    }
    suite_free(context, RONDO_MEMORY_DEVICE, x[0]);
    suite_free(context, RONDO_MEMORY_DEVICE, x[1]);
    rondo_stream_destroy(streams[0]);
    rondo_stream_destroy(streams[1]);
}

// The same without the copy.
static rondo_status put_loop_in_place(rondo_stream *stream, const rondo_value *values,
                                      void *user_data) {
    suite_context *context = user_data;
    rondo_status status = RONDO_STATUS_OK;
    for (uint64_t i = 0; i < values[2].unsigned_integer && status == RONDO_STATUS_OK; ++i) {
        status = suite_affine(context, stream, values[1].pointer, COUNT, 3, 1);
    }
    return status == RONDO_STATUS_OK ? suite_affine(context, stream, values[0].pointer, COUNT, 1, 1)
                                     : status;
}

// Pointers to memory in common have no buffers of their own: that run is eager, and right.
SUITE_CASE_EXECUTED(test_conformance_learned__fixed_buffers_do_not_part_what_overlaps) {
    uint32_t *memory = suite_allocate(context, RONDO_MEMORY_DEVICE, 3 * COUNT);
    rondo_learned *learned =
        create_refused(context, RONDO_LEARN_FIXED, loop_arguments, 3, put_loop_in_place, context);
    for (size_t i = 0; i < 3; ++i) {
        const size_t distance = i * COUNT / 2;
        const rondo_value values[] = {
            {.pointer = memory}, {.pointer = memory + distance}, {.unsigned_integer = 2}};
        suite_set(context, memory, 7, 3 * COUNT);
        ASSERT_OK(rondo_learned_run(learned, context->stream, values, 3));
        ASSERT_OK(rondo_stream_synchronize(context->stream));
        ASSERT_VALUE(context, memory, 0, i == 0 ? loop(7, 2) + 1 : 8);
        ASSERT_VALUE(context, memory, COUNT - 1, i < 2 ? loop(7, 2) + 1 : 8);
        ASSERT_VALUE(context, memory, distance + COUNT - 1, loop(7, 2) + (i == 0));
        ASSERT_VALUE(context, memory, distance + COUNT, 7);
        // A capture that fails is an eager run, too.
        assert_true(get_stats(learned).fallback_eager_count == (i == 0 ? 1 : 2) || suite_is_swept);
    }
    rondo_learned_destroy(learned);
}

typedef struct hidden {
    suite_context *context;
    uint32_t *x;
    uint32_t *table;  // pinned; NULL: none
    uint32_t calls;
} hidden;

// x becomes the number of this call, or n by way of host memory.
static rondo_status put_hidden(rondo_stream *stream, const rondo_value *values, void *user_data) {
    hidden *h = user_data;
    ++h->calls;
    if (h->table == NULL) {
        return suite_affine(h->context, stream, h->x, 1, 0,
                            h->calls * 16 + (uint32_t)values[0].unsigned_integer);
    }
    *h->table = (uint32_t)values[0].unsigned_integer;
    return rondo_stream_copy(stream, h->x, h->table, sizeof *h->table, RONDO_COPY_HOST_TO_DEVICE);
}

// A graph that was kept would do again what the step did before.
SUITE_CASE(test_conformance_learned__no_graph_is_kept_of_steps_with_hidden_state) {
    static const rondo_learned_fallback fallbacks[] = {RONDO_LEARN_CACHE, RONDO_LEARN_FIXED};
    const rondo_argument argument = {.struct_size = sizeof argument,
                                     .name = "n",
                                     .kind = RONDO_ARGUMENT_UINT32,
                                     .least.unsigned_integer = 1,
                                     .most.unsigned_integer = 9};
    suite_need_execution(context);
    uint32_t *table = suite_allocate(context, RONDO_MEMORY_PINNED, 1);
    hidden h = {.context = context, .x = suite_allocate(context, RONDO_MEMORY_DEVICE, 1)};
    for (int i = 0; i < 4; ++i) {
        h.table = i % 2 == 0 ? NULL : table;
        rondo_learned *learned =
            create_refused(context, fallbacks[i / 2], &argument, 1, put_hidden, &h);
        for (uint64_t k = 0; k < 6; ++k) {
            const rondo_value value = {.unsigned_integer = 1 + k % 2};
            ASSERT_OK(rondo_learned_run(learned, context->stream, &value, 1));
            ASSERT_OK(rondo_stream_synchronize(context->stream));
            ASSERT_VALUE(context, h.x, 0, (h.table == NULL ? h.calls * 16 : 0) + 1 + k % 2);
        }
        assert_int_equal(get_report(learned).fallback, RONDO_LEARN_RECAPTURE);
        assert_int_equal(get_stats(learned).fallback_count, 6);
        assert_int_equal(get_cache_stats(learned).key_count, 0);
        rondo_learned_destroy(learned);
    }
}

// Nothing is put into a capture of somebody else's.
SUITE_CASE(test_conformance_learned__refused_steps_are_not_recorded) {
    static const rondo_learned_fallback fallbacks[] = {RONDO_LEARN_RECAPTURE, RONDO_LEARN_EAGER,
                                                       RONDO_LEARN_CACHE, RONDO_LEARN_FIXED};
    suite_need_execution(context);
    uint32_t *x = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    uint32_t *y = suite_allocate(context, RONDO_MEMORY_DEVICE, COUNT);
    const rondo_value values[] = {{.pointer = x}, {.pointer = y}, {.unsigned_integer = 2}};
    for (size_t i = 0; i < sizeof fallbacks / sizeof *fallbacks; ++i) {
        rondo_learned *learned =
            create_refused(context, fallbacks[i], loop_arguments, 3, put_loop, context);
        rondo_graph *graph = suite_create_graph(context, true);
        rondo_graph_stats stats = {.struct_size = sizeof stats};
        ASSERT_OK(rondo_learned_run(learned, context->stream, values, 3));
        memory_begin(graph, context->stream);
        ASSERT_STATUS(rondo_learned_run(learned, context->stream, values, 3), STATE);
        memory_fill(context->stream, x, 3, 1);
        memory_end(graph);
        ASSERT_OK(rondo_graph_get_stats(graph, &stats));
        assert_int_equal(stats.node_count, 1);
        rondo_graph_destroy(graph);
        rondo_learned_destroy(learned);
    }
}
