// Fail the nth for random numbers: every driver call (on the fake driver) and every allocation
// (there and on the host) of a scenario fails once, in turn. Whatever fails: the failing call wrote
// a fresh record, nothing stays behind, nothing illegal is asked of the driver, and the generator
// stands where those calls put it that succeeded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/capture.h"
#include "base/memory.h"
#include "rondo/rondo.h"
#include "support/fake_cuda.h"
#include "support/fake_random.h"

enum { COUNT = 64, COUNTERS = 16 };

typedef struct world {
    const char *device_name;
    rondo_device *device;
    rondo_stream *stream;
    rondo_stream *side;
    rondo_event *fork;
    rondo_event *join;
    rondo_graph *graph;
    rondo_generator *generator;
    rondo_generator *other;
    void *memory;
    uint64_t seed;
    uint64_t offset;      // where the generator should stand
    uint64_t per_replay;  // what a replay of the graph takes
} world;

static bool step(rondo_status status, uint64_t sequence_before, const char *text) {
    if (status == RONDO_STATUS_OK) {
        return true;
    }
    const rondo_error *error = rondo_error_get_last();
    if (error->sequence <= sequence_before || error->status != status ||
        error->message[0] == '\0' || error->file == NULL) {
        fail_msg("%s: returned %d without a record of its own (%d: %s)", text, (int)status,
                 (int)error->status, error->message);
    }
    return false;
}

#define STEP(call)                                             \
    do {                                                       \
        uint64_t sequence_ = rondo_error_get_last()->sequence; \
        if (!step((call), sequence_, #call)) {                 \
            return;                                            \
        }                                                      \
    } while (0)

// ---- the scenario -----------------------------------------------------------------------------

static void open_world(world *w) {
    rondo_graph_options options = rondo_graph_options_default();
    options.label = "swept";
    STEP(rondo_device_open(w->device_name, &w->device));
    STEP(rondo_stream_create(w->device, &w->stream));
    STEP(rondo_stream_create(w->device, &w->side));
    STEP(rondo_event_create(w->device, 0, &w->fork));
    STEP(rondo_event_create(w->device, 0, &w->join));
    STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, COUNT * sizeof(double) * 2,
                               &w->memory));
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

static void close_world(world *w) {
    rondo_generator_release(w->other);
    rondo_graph_destroy(w->graph);
    rondo_generator_release(w->generator);
    rondo_event_destroy(w->fork);
    rondo_event_destroy(w->join);
    rondo_stream_destroy(w->side);
    rondo_stream_destroy(w->stream);
    rondo_memory_free(w->device, RONDO_MEMORY_DEVICE, w->memory);
    rondo_device_release(w->device);
}

// Failures are over: unless the device is lost, the generator stands where it should, and draws.
static void check_generator(world *w, const char *what, size_t n) {
    rondo_graph_capture_abort(w->graph);
    if (w->generator == NULL || w->other == NULL) {
        return;
    }
    // A failure that no call could report is kept for the next wait.
    (void)!rondo_device_synchronize(w->device);
    rondo_generator_state state;
    const rondo_status status = rondo_generator_get_state(w->generator, &state);
    if (status == RONDO_STATUS_LOST || status == RONDO_STATUS_DRIVER) {
        return;
    }
    if (status != RONDO_STATUS_OK || state.seed != w->seed || state.offset != w->offset) {
        fail_msg("%s %zu (%s): the generator stands at %llu, %llu (status %d), not at %llu, %llu",
                 what, n, fake_cuda_get_failed_call(), (unsigned long long)state.seed,
                 (unsigned long long)state.offset, (int)status, (unsigned long long)w->seed,
                 (unsigned long long)w->offset);
    }
    uint32_t drawn[COUNT];
    uint32_t expected[4];
    assert_int_equal(rondo_random_words(w->generator, w->side, w->memory, COUNT), RONDO_STATUS_OK);
    assert_int_equal(
        rondo_stream_copy(w->side, drawn, w->memory, sizeof drawn, RONDO_COPY_DEVICE_TO_HOST),
        RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_synchronize(w->side), RONDO_STATUS_OK);
    rondo_philox_u32(w->seed, 0, w->offset, expected);
    assert_memory_equal(drawn, expected, sizeof expected);
}

typedef void (*scenario)(world *w);

static void run_scenario(world *w, scenario run) {
    open_world(w);
    if (w->other != NULL) {
        run(w);
    }
}

// ---- the sweeps -------------------------------------------------------------------------------

static void start_fake(void) {
    fake_cuda_reset(NULL);
    fake_random_set_kernels();
    fake_cuda_install();
    fake_cuda_install_compiler();
}

static void check_nothing_is_left(const char *what, size_t n) {
    if (fake_cuda_count_objects() != 0 || fake_cuda_get_violations()[0] != '\0') {
        fail_msg("%s %zu (%s): %zu objects left; violations: %s", what, n,
                 fake_cuda_get_failed_call(), fake_cuda_count_objects(),
                 fake_cuda_get_violations());
    }
}

static size_t sweep_driver_calls(scenario run, rondo__cu_result code) {
    for (size_t n = 0;; ++n) {
        world w = {.device_name = "cuda:0"};
        start_fake();
        fake_cuda_fail_nth((long)n, code);
        run_scenario(&w, run);
        const bool has_failed = fake_cuda_has_failed();
        if (!has_failed) {
            fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
        }
        check_generator(&w, "driver call", n);
        close_world(&w);
        check_nothing_is_left("driver call", n);
        if (!has_failed) {
            return n;
        }
    }
}

typedef struct heap_plan {
    size_t countdown;
    bool has_failed;
} heap_plan;

static bool fail_allocation(void *user_data) {
    heap_plan *plan = user_data;
    if (plan->has_failed || plan->countdown-- > 0) {
        return false;
    }
    plan->has_failed = true;
    return true;
}

static size_t sweep_allocations(scenario run, const char *device_name) {
    const bool is_fake = strcmp(device_name, "host") != 0;
    for (size_t n = 0;; ++n) {
        world w = {.device_name = device_name};
        heap_plan plan = {.countdown = n};
        if (is_fake) {
            start_fake();
        }
        rondo__memory_set_fault(fail_allocation, &plan);
        run_scenario(&w, run);
        rondo__memory_set_fault(NULL, NULL);
        check_generator(&w, "allocation", n);
        close_world(&w);
        if (is_fake) {
            check_nothing_is_left("allocation", n);
        }
        if (!plan.has_failed) {
            return n;
        }
    }
}

static void ignore_line(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    (void)message;
}

static void sweep_on_fake(const char *name, scenario run) {
    static const rondo__cu_result codes[] = {
        RONDO__CU_ERROR_OUT_OF_MEMORY,
        RONDO__CU_ERROR_UNKNOWN,
        RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        RONDO__CU_ERROR_LAUNCH_FAILED,
    };
    setenv("RONDO_CACHE_DIR", "", 1);
    rondo_log_set_sink(ignore_line, NULL);
    size_t driver_points = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
        driver_points += sweep_driver_calls(run, codes[i]);
    }
    const size_t heap_points = sweep_allocations(run, "cuda:0");
    rondo_log_set_sink(NULL, NULL);
    fake_cuda_uninstall();
    print_message("%s: swept %zu points (%zu driver calls, %zu allocations)\n", name,
                  driver_points + heap_points, driver_points, heap_points);
    assert_true(driver_points > 100 && heap_points > 10);
}

static void test_random_sweep__eager_on_the_fake_driver(void **state) {
    (void)state;
    sweep_on_fake("random, eager", work_eagerly);
}

static void test_random_sweep__graphs_on_the_fake_driver(void **state) {
    (void)state;
    sweep_on_fake("random, in graphs", work_in_graphs);
}

static void test_random_sweep__host(void **state) {
    (void)state;
    rondo_log_set_sink(ignore_line, NULL);
    const size_t eager = sweep_allocations(work_eagerly, "host");
    const size_t graphs = sweep_allocations(work_in_graphs, "host");
    rondo_log_set_sink(NULL, NULL);
    print_message("random, host: swept %zu points\n", eager + graphs);
    assert_true(eager > 10 && graphs > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sweep__eager_on_the_fake_driver),
        cmocka_unit_test(test_random_sweep__graphs_on_the_fake_driver),
        cmocka_unit_test(test_random_sweep__host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
