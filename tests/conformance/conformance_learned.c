// Learned steps on every device: the four guards that look at recording time see what a learned
// patch changes, and replays on their way keep what they had.
// SPDX-License-Identifier: Apache-2.0
#include "memory_support.h"
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
} scene;

// The first elements of x, times ten and one, in place; or x as it is, copied to the result.
static rondo_status put_step(rondo_stream *stream, const rondo_value *values, void *user_data) {
    const scene *s = user_data;
    uint32_t *x = values[0].pointer;
    const uint32_t factor = (uint32_t)values[1].unsigned_integer;
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

static void test_conformance_learned__checked_steps_watch_what_they_use_now(void **state) {
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
        ASSERT_STATUS(run(&s, after, FACTOR), STATE);
        ASSERT_MESSAGE_HAS("uses memory that is gone");
        run_and_wait(&s, s.inputs[0]);
        ASSERT_VALUE(s.context, i == 0 ? s.inputs[0] : s.result, 0, 31);
        close_scene(&s);
    }
}

// Graph "a" leaves a block behind, graph "c" overwrites it, and the step is told to read it.
static void test_conformance_learned__patched_addresses_are_in_order(void **state) {
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

// A pool gives pinned memory that the step reads since a patch to nobody else.
static void test_conformance_learned__pinned_memory_of_patches_is_in_use(void **state) {
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
static void test_conformance_learned__pageable_sources_are_refused(void **state) {
    static uint32_t pageable[COUNT];
    scene s = open_scene(state, UPLOAD);
    create_learned(&s, NULL, false);
    run_and_wait(&s, s.inputs[0]);
    ASSERT_STATUS(run(&s, pageable, FACTOR), STATE);
    ASSERT_MESSAGE_HAS("pageable");
    run_and_wait(&s, s.inputs[1]);
    ASSERT_VALUE(s.context, s.result, 0, 41);
    close_scene(&s);
}

// ---- replays on their way ---------------------------------------------------------------------

// Values of runs that wait on the stream are those that they were given, whatever came after.
static void test_conformance_learned__runs_on_a_stream_keep_their_values(void **state) {
    scene s = open_scene(state, KERNEL);
    suite_gate *gate = suite_gate_create(s.context);
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

static const suite_entry learned_cases[] = {
    SUITE_CASE(test_conformance_learned__checked_steps_watch_what_they_use_now),
    SUITE_CASE(test_conformance_learned__patched_addresses_are_in_order),
    SUITE_CASE(test_conformance_learned__pinned_memory_of_patches_is_in_use),
    SUITE_CASE(test_conformance_learned__pageable_sources_are_refused),
    SUITE_CASE(test_conformance_learned__runs_on_a_stream_keep_their_values),
    {NULL, NULL, false},
};
SUITE_LIST(learned);
