// Fail the nth for what an executor keeps: every driver call (on the fake driver) and every
// allocation (there and on the host) fails once while variables are reserved, bound, set, run,
// replaced, recorded, replayed, read back and reset. Whatever fails: the failing call wrote a fresh
// record, runs before it gave what they must, and once the variables begin again all is as if
// nothing had failed, with nothing left behind.
//
//   test_variable_sweep [all]       a sample of the points, or all of them
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// What a scenario returns where a call failed.
#define STEP_RESULT false

#include "rondo/models.h"
#include "support/models/add_program.h"
#include "support/sweep.h"

enum { COUNT = 64 };
static size_t g_dense = 50;  // points from there on are a sample
static const rondo_shape row = {.rank = 1, .extent = {COUNT}};
static const double sum_start = 2.0, weight_start = 5.0;
static const float parameter_value = 3.0f, cache_value = 7.0f, x_value = 1.5f;

typedef struct world {
    rondo_device *device;
    rondo_builder *builder;
    rondo_program *program, *kept;
    rondo_executor *executor;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_tensor x, y;                    // on the device, of the graph
    float sum, weight, parameter, cache;  // what each element is
} world;

static void fill(float *values, float value) {
    for (int i = 0; i < COUNT; ++i) {
        values[i] = value;
    }
}

static rondo_tensor on_host(float *values) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = row, .data = values};
}

static void expect(const float *values, float value) {
    for (int i = 0; i < COUNT; ++i) {
        assert_true(values[i] == value);
    }
}

static bool add(rondo_builder *b, const char *x, const char *y, const char *out) {
    STEP(rondo_builder_add_node(b, "Add", (const char *[]){x, y}, 2, (const char *[]){out}, 1,
                                NULL));
    return true;
}

// sum' = sum + x, cache' = x + weight, y = sum + weight + parameter + cache
static bool build(world *w) {
    float parameter[COUNT];
    rondo_port port = {
        .struct_size = sizeof port, .dtype = RONDO_DTYPE_F32, .rank = 1, .extent = {COUNT}};
    rondo_start start = {.struct_size = sizeof start, .kind = RONDO_START_CONSTANT};
    fill(parameter, parameter_value);
    STEP(rondo_builder_create(NULL, &w->builder));
    rondo_builder *b = w->builder;
    port.name = "x";
    STEP(rondo_builder_add_input(b, &port));
    port.name = "cache";
    STEP(rondo_builder_add_input(b, &port));
    port.name = "sum";
    start.a = sum_start;
    STEP(rondo_builder_add_variable(b, &port, &start));
    port.name = "weight";
    start.a = weight_start;
    STEP(rondo_builder_add_variable(b, &port, &start));
    STEP(rondo_builder_add_constant(b, "parameter", RONDO_DTYPE_F32, &row, parameter));
    if (!add(b, "sum", "x", "sum.next") || !add(b, "x", "weight", "cache.next") ||
        !add(b, "sum", "weight", "t0") || !add(b, "t0", "parameter", "t1") ||
        !add(b, "t1", "cache", "y")) {
        return false;
    }
    STEP(rondo_builder_set_update(b, "sum", "sum.next"));
    STEP(rondo_builder_add_output(b, "y", NULL));
    STEP(rondo_builder_add_output(b, "cache.next", NULL));
    STEP(rondo_builder_finish(b, &w->program));
    return true;
}

// What a run gives out, and what is kept then.
static float advance(world *w) {
    const float y = w->sum + w->weight + w->parameter + w->cache;
    w->sum += x_value;
    w->cache = x_value + w->weight;
    return y;
}

static bool run(world *w) {
    float x[COUNT], y[COUNT];
    const rondo_binding feed = {"x", on_host(x)};
    rondo_binding fetch = {"y", on_host(y)};
    fill(x, x_value);
    STEP(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    expect(y, advance(w));
    return true;
}

static bool set(world *w, const char *name, float value, float *kept) {
    float values[COUNT];
    const rondo_tensor tensor = on_host(values);
    fill(values, value);
    STEP(rondo_executor_set_variable(w->executor, name, &tensor));
    *kept = value;
    return true;
}

static bool read(world *w, const char *name, float value) {
    float values[COUNT];
    const rondo_tensor to = on_host(values);
    rondo_tensor now;
    rondo_stream *stream = rondo_executor_get_stream(w->executor);
    STEP(rondo_executor_get_variable(w->executor, name, &now));
    const uint64_t before = rondo_error_get_last()->sequence;
    const rondo_status status = rondo_tensor_copy(stream, &now, &to);
    rondo_tensor_deinit(&now);
    if (!sweep_step(status, before, "rondo_tensor_copy")) {
        return false;
    }
    STEP(rondo_stream_synchronize(stream));
    expect(values, value);
    return true;
}

static bool replay(world *w) {
    float x[COUNT], y[COUNT];
    const rondo_tensor from = on_host(x), to = on_host(y);
    const rondo_binding feed = {"x", w->x}, fetch = {"y", w->y};
    fill(x, x_value);
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    const uint64_t before = rondo_error_get_last()->sequence;
    const rondo_status status = rondo_executor_record(w->executor, w->stream, &feed, 1, &fetch, 1);
    if (status != RONDO_STATUS_OK) {
        assert_true(rondo_error_get_last()->sequence > before);
        rondo_graph_capture_abort(w->graph);
        return false;
    }
    STEP(rondo_graph_capture_end(w->graph));
    for (int i = 0; i < 2; ++i) {
        STEP(rondo_tensor_copy(w->stream, &from, &w->x));
        STEP(rondo_graph_replay(w->graph, w->stream));
        STEP(rondo_tensor_copy(w->stream, &w->y, &to));
        STEP(rondo_stream_synchronize(w->stream));
        expect(y, advance(w));
    }
    STEP(rondo_graph_reset(w->graph));
    return true;
}

static bool begin_again(world *w) {
    STEP(rondo_executor_reset_variables(w->executor));
    w->sum = (float)sum_start;
    w->weight = (float)weight_start;
    return set(w, "cache", cache_value, &w->cache);
}

static bool open_world(world *w, const char *device_name) {
    rondo_executor_options options = {
        .struct_size = sizeof options, .thread_count = 1, .op_by_op = true};
    w->parameter = parameter_value;
    STEP(rondo_device_open(device_name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_graph_create(w->device, NULL, &w->graph));
    STEP(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &row, &w->x));
    STEP(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &row, &w->y));
    if (!build(w)) {
        return false;
    }
    STEP(rondo_executor_create(w->program, w->device, &options, &w->executor));
    return true;
}

static void work(world *w) {
    uint64_t before = rondo_error_get_last()->sequence;
    if (!sweep_step(rondo_executor_bind(w->executor, "cache.next", "cache"), before, "bind") ||
        !begin_again(w) || !run(w) || !run(w) || !run(w)) {
        return;
    }
    before = rondo_error_get_last()->sequence;
    if (!sweep_step(rondo_executor_reserve_variable(w->executor, "sum", 8 * COUNT), before,
                    "reserve") ||
        !set(w, "weight", 4.0f, &w->weight) || !run(w) || !set(w, "sum", 1.0f, &w->sum) ||
        !run(w) || !read(w, "sum", w->sum) || !replay(w) || !read(w, "cache", w->cache) ||
        !set(w, "parameter", 6.0f, &w->parameter) || !run(w)) {
        return;
    }
    before = rondo_error_get_last()->sequence;
    if (sweep_step(rondo_executor_snapshot(w->executor, &w->kept), before, "snapshot") &&
        begin_again(w)) {
        (void)run(w);
    }
}

// The parameter is set anew, as its replacement may or may not have been done.
static bool work_again(world *w) {
    (void)rondo_graph_reset(w->graph);
    (void)!rondo_executor_bind(w->executor, "cache.next", "cache");
    return set(w, "parameter", 8.0f, &w->parameter) && begin_again(w) && run(w) && run(w) &&
           run(w) && read(w, "sum", w->sum) && replay(w);
}

static void run_round(const sweep_point *point) {
    world w = {0};
    if (open_world(&w, point->device_name)) {
        work(&w);
    }
    (void)sweep_lift();
    // A code that poisons the context leaves nothing that could run.
    const bool is_lost = point->code == RONDO__CU_ERROR_LAUNCH_FAILED;
    if (w.executor != NULL && !work_again(&w) && !is_lost) {
        sweep_fail(point, "afterwards: %s: %s", rondo_error_get_last()->op,
                   rondo_error_get_last()->message);
    }
    rondo_graph_destroy(w.graph);
    rondo_executor_destroy(w.executor);
    rondo_program_destroy(w.kept);
    rondo_program_destroy(w.program);
    rondo_builder_destroy(w.builder);
    rondo_tensor_deinit(&w.x);
    rondo_tensor_deinit(&w.y);
    rondo_stream_destroy(w.stream);
    rondo_device_release(w.device);
}

TEST(test_variable_sweep__fake) {
    setenv("RONDO_CACHE_DIR", "", 1);
    const sweep_subject subject = {
        .run = run_round, .prepare = add_program_prepare_fake, .dense = g_dense};
    const sweep_count count = sweep_on_fake("variables", &subject);
    assert_true(count.driver_calls > 100 && count.allocations > 100);
}

TEST(test_variable_sweep__host) {
    const sweep_subject subject = {.run = run_round, .dense = g_dense};
    const size_t points = sweep_allocations(&subject, "host");
    print_message("variables on the host: swept %zu allocations\n", points);
    assert_true(points > 100);
}

int main(int argc, char **argv) {
    g_dense = argc > 1 && strcmp(argv[1], "all") == 0 ? 0 : g_dense;
    return RUN_TESTS(NULL, NULL);
}
