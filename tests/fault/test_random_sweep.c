// Fail the nth for random numbers: every driver call (on the fake driver) and every allocation
// (there and on the host) of a scenario fails once, in turn. Whatever fails: the failing call wrote
// a fresh record, nothing stays behind, nothing illegal is asked of the driver, the generator
// stands where those calls put it that succeeded, and nobody is inside it.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "capture/capture.h"
#include "program/edit.h"
#include "random/generator_state.h"
#include "rondo/models.h"
#include "support/fake/fake_random.h"
#include "support/sweep.h"

enum { COUNT = 64, COUNTERS = 16 };

typedef struct world {
    const char *device_name;
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_stream *third;  // some scenarios'
    rondo_event *fork;
    rondo_event *join;
    rondo_graph *graph;
    rondo_generator *generator;
    rondo_generator *other;
    rondo_graph *outer;
    rondo_executor *executor;
    void *memory;
    void *flag;
    uint64_t seed;
    uint64_t offset;      // where the generator should stand
    uint64_t per_replay;  // what a replay of the graph takes
} world;

// ---- the scenario -----------------------------------------------------------------------------

static void open_world(world *w) {
    rondo_graph_options options = {.struct_size = sizeof options};
    options.label = "swept";
    options.keep = RONDO_KEEP_TEMPLATE;
    STEP(rondo_device_open(w->device_name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_stream_create(w->device, NULL, &w->side));
    STEP(rondo_event_create(w->device, 0, &w->fork));
    STEP(rondo_event_create(w->device, 0, &w->join));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, COUNT * sizeof(double) * 2,
                               &w->memory));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, 4, &w->flag));
    STEP(rondo_graph_create(w->device, &options, &w->graph));
    STEP(rondo_generator_create(w->device, 1, &w->generator));
    STEP(rondo_generator_create(w->device, 2, &w->other));
    w->seed = 1;
}

static void work_eagerly(world *w) {
    rondo_generator *g = w->generator;
    const rondo_generator_state place = {.seed = 7, .offset = 100};
    rondo_generator_state state;
    rondo_generator_mark mark;
    rondo_random_range range;
    STEP(rondo_random_words(g, w->stream, w->memory, COUNT));
    w->offset += COUNTERS;
    STEP(rondo_random_uniform(g, w->stream, RONDO_DTYPE_F64, w->memory, COUNT / 2, 0, 1));
    w->offset += COUNTERS;
    STEP(rondo_random_normal(g, w->side, RONDO_DTYPE_F16, w->memory, COUNT, 0, 1));
    w->offset += COUNTERS;
    STEP(rondo_generator_get_mark(g, w->side, &mark));
    STEP(rondo_random_bernoulli(g, w->side, RONDO_DTYPE_I64, w->memory, COUNT, 0.5));
    w->offset += COUNTERS;
    STEP(rondo_generator_rewind(g, w->side, &mark));
    w->offset -= COUNTERS;
    STEP(rondo_generator_get_state(g, &state));
    STEP(rondo_generator_set_state(g, &place));
    w->seed = 7;
    w->offset = 100;
    STEP(rondo_random_dropout(g, w->stream, RONDO_DTYPE_F32, w->memory, w->memory, NULL, COUNT,
                              0.5));
    w->offset += COUNTERS;
    STEP(rondo_generator_reserve(g, w->side, 5, &range));
    w->offset += 5;
    STEP(rondo_generator_get_state(g, &state));
}

static void record(world *w) {
    rondo_generator *g = w->generator;
    rondo__capture *capture = NULL;
    rondo_generator_mark mark;
    rondo_random_range range;
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_random_words(g, w->stream, w->memory, COUNT));
    STEP(rondo_event_record(w->fork, w->stream));
    STEP(rondo_stream_wait_event(w->side, w->fork));
    STEP(rondo_random_words(g, w->side, w->memory, COUNT));
    STEP(rondo_random_words(w->other, w->side, w->memory, COUNT));
    // As before a conditional node.
    STEP(rondo__capture_find(w->stream, &capture, NULL));
    STEP(rondo__capture_enter_scope(capture, w->stream));
    STEP(rondo_generator_get_mark(g, w->stream, &mark));
    STEP(rondo_random_words(g, w->side, w->memory, COUNT));
    STEP(rondo_generator_rewind(g, w->side, &mark));
    STEP(rondo_random_words(g, w->side, w->memory, COUNT));
    STEP(rondo_generator_reserve(g, w->stream, 3, &range));
    STEP(rondo_event_record(w->join, w->side));
    STEP(rondo_stream_wait_event(w->stream, w->join));
    STEP(rondo_graph_capture_end(w->graph));
    w->per_replay = 3 * COUNTERS + 3;
}

static void work_in_graphs(world *w) {
    record(w);
    if (w->per_replay == 0) {
        return;
    }
    for (int i = 0; i < 2; ++i) {
        STEP(rondo_graph_replay(w->graph, w->stream));
        w->offset += w->per_replay;
        STEP(rondo_graph_replay(w->graph, w->stream));
        w->offset += w->per_replay;
        STEP(rondo_graph_replay(w->graph, w->side));
        w->offset += w->per_replay;
        STEP(rondo_random_words(w->generator, w->stream, w->memory, COUNT));
        w->offset += COUNTERS;
        STEP(rondo_graph_replay(w->graph, w->side));
        w->offset += w->per_replay;
    }
    STEP(rondo_generator_set_seed(w->generator, 9));
    w->seed = 9;
    w->offset = 0;
    STEP(rondo_graph_replay(w->graph, w->side));
    w->offset += w->per_replay;
    STEP(rondo_graph_reset(w->graph));
    record(w);
    rondo_graph_capture_abort(w->graph);
}

// Draws before, inside and after conditional nodes, one in the other. The predicate is zero at
// first.
static void record_bodies(world *w) {
    rondo_generator *g = w->generator;
    rondo_scope outer;
    rondo_scope inner;
    rondo_stream *body;
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_random_words(g, w->stream, w->memory, COUNT));
    STEP(rondo_scope_begin(w->stream, RONDO_SCOPE_IF, w->flag, 0, &outer));
    STEP(rondo_scope_enter(outer, 0, &body));
    STEP(rondo_random_words(g, body, w->memory, COUNT));
    STEP(rondo_random_words(w->other, body, w->memory, COUNT));
    STEP(rondo_scope_begin(body, RONDO_SCOPE_IF, w->flag, 0, &inner));
    STEP(rondo_scope_enter(inner, 0, &body));
    STEP(rondo_random_words(g, body, w->memory, COUNT));
    STEP(rondo_scope_leave(inner));
    STEP(rondo_scope_end(inner));
    STEP(rondo_scope_leave(outer));
    STEP(rondo_scope_end(outer));
    STEP(rondo_random_words(g, w->stream, w->memory, COUNT));
    STEP(rondo_random_words(w->other, w->stream, w->memory, COUNT));
    STEP(rondo_graph_capture_end(w->graph));
    w->per_replay = 2 * COUNTERS;
}

static void work_in_bodies(world *w) {
    STEP(rondo_stream_fill(w->stream, w->flag, 0, 4, 1));
    record_bodies(w);
    if (w->per_replay == 0) {
        return;
    }
    STEP(rondo_graph_replay(w->graph, w->stream));
    w->offset += w->per_replay;
    STEP(rondo_stream_fill(w->stream, w->flag, 1, 4, 1));
    STEP(rondo_graph_replay(w->graph, w->stream));
    w->offset += w->per_replay + 2 * COUNTERS;
}

// A graph as a node of another one.
static void work_in_recorded_graphs(world *w) {
    record(w);
    if (w->per_replay == 0) {
        return;
    }
    rondo_graph_options options = {.struct_size = sizeof options};
    STEP(rondo_graph_create(w->device, &options, &w->outer));
    STEP(rondo_graph_capture_begin(w->outer, w->side, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_random_words(w->generator, w->side, w->memory, COUNT));
    STEP(rondo_stream_add_graph(w->side, w->graph));
    STEP(rondo_random_words(w->generator, w->side, w->memory, COUNT));
    STEP(rondo_graph_capture_end(w->outer));
    STEP(rondo_graph_replay(w->outer, w->side));
    w->offset += w->per_replay + 2 * COUNTERS;
    STEP(rondo_graph_replay(w->graph, w->stream));
    w->offset += w->per_replay;
}

static void replay_on(world *w, rondo_stream *stream) {
    STEP(rondo_graph_replay(w->graph, stream));
    w->offset += w->per_replay;
}

// Uses that must come after others on streams that run, that record and that are gone.
static void work_after_recording(world *w) {
    rondo_generator_state state;
    STEP(rondo_graph_capture_begin(w->outer, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_stream_fill(w->stream, w->memory, 0, 4, 1));
    replay_on(w, w->side);
    STEP(rondo_random_words(w->other, w->third, w->memory, COUNT));
    STEP(rondo_generator_get_state(w->generator, &state));
    STEP(rondo_graph_capture_end(w->outer));
    STEP(rondo_graph_reset(w->outer));
    replay_on(w, w->stream);
    replay_on(w, w->side);
    STEP(rondo_graph_capture_begin(w->outer, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_event_record(w->fork, w->stream));
    STEP(rondo_stream_wait_event(w->side, w->fork));
    replay_on(w, w->third);
    STEP(rondo_event_record(w->join, w->side));
    STEP(rondo_stream_wait_event(w->stream, w->join));
    STEP(rondo_graph_capture_end(w->outer));
}

static void work_after_streams_went(world *w) {
    rondo_stream *gone = w->third;
    w->third = NULL;
    rondo_stream_destroy(gone);
    replay_on(w, w->stream);
    STEP(rondo_graph_reset(w->outer));
    STEP(rondo_stream_create(w->device, NULL, &w->third));
    STEP(rondo_random_words(w->generator, w->third, w->memory, COUNT));
    w->offset += COUNTERS;
    STEP(rondo_graph_capture_begin(w->outer, w->side, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_event_record(w->fork, w->side));
    STEP(rondo_stream_wait_event(w->third, w->fork));
    gone = w->third;
    w->third = NULL;
    rondo_stream_destroy(gone);  // in the capture, which that breaks
    replay_on(w, w->stream);
    rondo_graph_capture_abort(w->outer);
    replay_on(w, w->side);
}

static void work_on_many_streams(world *w) {
    record(w);
    if (w->per_replay == 0) {
        return;
    }
    STEP(rondo_graph_create(w->device, NULL, &w->outer));
    STEP(rondo_stream_create(w->device, NULL, &w->third));
    replay_on(w, w->stream);
    uint64_t before = w->offset;
    work_after_recording(w);
    rondo_graph_capture_abort(w->outer);  // nothing to give up unless a call failed
    if (w->offset == before + 4 * w->per_replay) {
        work_after_streams_went(w);
    }
}

// A program of ops that draw, with a generator of its own for one of them.
static rondo_program *g_program;

static void work_in_programs(world *w) {
    rondo_executor_options options = {.struct_size = sizeof options};
    options.seed = 3;
    STEP(rondo_executor_create(g_program, w->device, &options, &w->executor));
    for (int run = 0; run < 3; ++run) {
        rondo_binding fetches[2] = {{.name = "a"}, {.name = "b"}};
        uint64_t sequence = rondo_error_get_last()->sequence;
        rondo_status status = rondo_executor_run(w->executor, NULL, 0, fetches, 2);
        rondo_tensor_deinit(&fetches[0].tensor);
        rondo_tensor_deinit(&fetches[1].tensor);
        if (!sweep_step(status, sequence, "rondo_executor_run")) {
            return;
        }
    }
}

static void close_world(world *w) {
    rondo_executor_destroy(w->executor);
    rondo_graph_destroy(w->outer);
    rondo_generator_release(w->other);
    rondo_graph_destroy(w->graph);
    rondo_generator_release(w->generator);
    rondo_event_destroy(w->fork);
    rondo_event_destroy(w->join);
    rondo_stream_destroy(w->third);
    rondo_stream_destroy(w->side);
    rondo_stream_destroy(w->stream);
    rondo_memory_free(w->device, w->memory);
    rondo_memory_free(w->device, w->flag);
    rondo_device_release(w->device);
}

// No call that failed may have kept a generator for its thread.
static void check_entries(const world *w, const sweep_point *point) {
    const rondo_generator *const generators[] = {w->generator, w->other};
    for (int i = 0; i < 2; ++i) {
        if (atomic_load(&generators[i]->user) != 0) {
            sweep_fail(point, "generator %u is still in use", (unsigned)generators[i]->number);
        }
    }
}

// Failures are over: unless the device is lost, the generator stands where it should, and draws.
static void check_generator(world *w, const sweep_point *point) {
    rondo_graph_capture_abort(w->graph);
    rondo_graph_capture_abort(w->outer);
    if (w->generator == NULL || w->other == NULL) {
        return;
    }
    check_entries(w, point);
    // A failure that no call could report is kept for the next wait.
    (void)!rondo_device_synchronize(w->device);
    rondo_generator_state state;
    const rondo_status status = rondo_generator_get_state(w->generator, &state);
    if (status == RONDO_STATUS_LOST || status == RONDO_STATUS_DRIVER) {
        return;
    }
    if (status != RONDO_STATUS_OK || state.seed != w->seed || state.offset != w->offset) {
        sweep_fail(point, "the generator stands at %llu, %llu (status %d), not at %llu, %llu",
                   (unsigned long long)state.seed, (unsigned long long)state.offset, (int)status,
                   (unsigned long long)w->seed, (unsigned long long)w->offset);
    }
    uint32_t drawn[COUNT];
    uint32_t expected[4];
    OK(rondo_random_words(w->generator, w->side, w->memory, COUNT));
    OK(rondo_stream_copy(w->side, drawn, w->memory, sizeof drawn, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(w->side));
    rondo_random_philox(w->seed, 0, w->offset, expected);
    assert_memory_equal(drawn, expected, sizeof expected);
}

typedef void (*scenario)(world *w);

static void run_round(const sweep_point *point) {
    scenario run = *(const scenario *)point->data;
    world w = {.device_name = point->device_name};
    open_world(&w);
    if (w.other != NULL) {
        run(&w);
    }
    (void)sweep_lift();
    check_generator(&w, point);
    close_world(&w);
}

// ---- the sweeps -------------------------------------------------------------------------------

static void prepare_fake(void) {
    fake_random_set_kernels();
    fake_cuda_install_compiler();
}

static void sweep_on(const char *name, scenario run) {
    const sweep_subject subject = {.run = run_round, .data = &run, .prepare = prepare_fake};
    setenv("RONDO_CACHE_DIR", "", 1);
    sweep_count count = sweep_on_fake(name, &subject);
    assert_true(count.driver_calls > 100 && count.allocations > 10);
}

TEST(test_random_sweep__eager_on_the_fake_driver) {
    sweep_on("random, eager", work_eagerly);
}

TEST(test_random_sweep__graphs_on_the_fake_driver) {
    sweep_on("random, in graphs", work_in_graphs);
}

TEST(test_random_sweep__bodies_on_the_fake_driver) {
    sweep_on("random, in bodies", work_in_bodies);
}

TEST(test_random_sweep__recorded_graphs_on_the_fake_driver) {
    sweep_on("random, in recorded graphs", work_in_recorded_graphs);
}

TEST(test_random_sweep__many_streams_on_the_fake_driver) {
    sweep_on("random, on many streams", work_on_many_streams);
}

TEST(test_random_sweep__programs_on_the_fake_driver) {
    sweep_on("random, in programs", work_in_programs);
}

TEST(test_random_sweep__host) {
    static const scenario scenarios[] = {work_eagerly,         work_in_graphs,
                                         work_in_bodies,       work_in_recorded_graphs,
                                         work_on_many_streams, work_in_programs};
    size_t points = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; ++i) {
        const sweep_subject subject = {.run = run_round, .data = &scenarios[i]};
        const size_t more = sweep_allocations(&subject, "host");
        assert_true(more > 10);
        points += more;
    }
    print_message("random, host: swept %zu points\n", points);
}

// a = RandomNormal; b = Dropout(a) in training.
static int make_program(void **state) {
    (void)state;
    static const int64_t shape[] = {COUNT};
    static uint8_t yes = 1;
    rondo_tensor training = {.dtype = RONDO_DTYPE_BOOL, .data = &yes};
    int32_t inputs[3] = {0, -1, 0};
    int32_t dropped;
    const bool is_made =
        rondo__program_create("draws", &g_program) == RONDO_STATUS_OK &&
        rondo__program_add_value(g_program, "a", &inputs[0]) == RONDO_STATUS_OK &&
        rondo__program_add_value(g_program, "b", &dropped) == RONDO_STATUS_OK &&
        rondo__program_add_constant(g_program, "training", &training, &inputs[2]) ==
            RONDO_STATUS_OK &&
        rondo__program_add_simple(g_program, "", "RandomNormal", "normal", NULL, 0, inputs, 1) ==
            RONDO_STATUS_OK &&
        rondo__op_set_ints(&g_program->nodes[0].op, "shape", shape, 1) == RONDO_STATUS_OK &&
        rondo__op_set_float(&g_program->nodes[0].op, "seed", 8.0f) == RONDO_STATUS_OK &&
        rondo__program_add_simple(g_program, "", "Dropout", "dropout", inputs, 3, &dropped, 1) ==
            RONDO_STATUS_OK &&
        rondo__program_add_output(g_program, inputs[0]) == RONDO_STATUS_OK &&
        rondo__program_add_output(g_program, dropped) == RONDO_STATUS_OK;
    if (!is_made) {
        return -1;
    }
    g_program->values[inputs[0]].dtype = RONDO_DTYPE_F32;
    g_program->values[dropped].dtype = RONDO_DTYPE_F32;
    return rondo__program_verify(g_program) == RONDO_STATUS_OK ? 0 : -1;
}

static int free_program(void **state) {
    (void)state;
    rondo_program_destroy(g_program);
    return 0;
}

int main(void) {
    return RUN_TESTS(make_program, free_program);
}
