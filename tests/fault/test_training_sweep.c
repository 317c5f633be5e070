// Fail the nth allocation of building, planning, running and saving a training step, in turn: each
// failure is reported, nothing is left, and the same executor, set back to the start, then comes to
// the bits of one that met no failure.
//
//   test_training_sweep [all]      all: each of them, not a sample
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#define STEP_RESULT false
#include "support/sweep.h"

enum { ROWS = 6, COLUMNS = 4, PLACES = 3, STEPS = 3 };

static const char checkpoint[] = "test_training_sweep.checkpoint";
static size_t g_dense = 60;
static float g_wanted[ROWS * COLUMNS + COLUMNS];

typedef struct world {
    rondo_device *device;
    rondo_builder *builder;
    rondo_program *program;
    rondo_executor *executor;
} world;

static void fill(uint32_t seed, size_t count, float *out) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)((double)(seed >> 8) / 16777216.0 - 0.5);
    }
}

static bool add(rondo_builder *b, const char *op, const char *x, const char *y, const char *out) {
    STEP(rondo_builder_add_node(b, op, (const char *[]){x, y}, 2, (const char *[]){out}, 1, NULL));
    return true;
}

// loss = mean((table[ids] * w - x)^2): rows of a table, and a weight of its own.
static bool build(world *w) {
    float values[ROWS * COLUMNS];
    const rondo_port ids = {.struct_size = sizeof ids,
                            .name = "ids",
                            .dtype = RONDO_DTYPE_I64,
                            .rank = 1,
                            .extent = {PLACES}};
    const rondo_port x = {.struct_size = sizeof x,
                          .name = "x",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = 2,
                          .extent = {PLACES, COLUMNS}};
    const rondo_tensor table = {
        .dtype = RONDO_DTYPE_F32, .shape = {2, {ROWS, COLUMNS}}, .data = values};
    const rondo_tensor line = {.dtype = RONDO_DTYPE_F32, .shape = {1, {COLUMNS}}, .data = values};
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .optimizer = RONDO_OPTIMIZER_ADAM,
                                            .learning_rate = 0.1,
                                            .scale_loss = true,
                                            .rows = (const char *const[]){"table"},
                                            .rows_count = 1};
    fill(1, ROWS * COLUMNS, values);
    STEP(rondo_builder_create(NULL, &w->builder));
    rondo_builder *b = w->builder;
    STEP(rondo_builder_add_input(b, &ids));
    STEP(rondo_builder_add_input(b, &x));
    STEP(rondo_builder_add_parameter(b, "table", &table, RONDO_PARAMETER_COPIED));
    STEP(rondo_builder_add_parameter(b, "w", &line, RONDO_PARAMETER_COPIED));
    STEP(rondo_builder_add_embedding(b, "ids", "table", "rows"));
    if (!add(b, "Mul", "rows", "w", "p") || !add(b, "Sub", "p", "x", "d") ||
        !add(b, "Mul", "d", "d", "q")) {
        return false;
    }
    STEP(rondo_builder_add_mean(b, "q", "loss"));
    STEP(rondo_builder_add_output(b, "loss", NULL));
    STEP(rondo_builder_minimize(b, "loss", &options));
    STEP(rondo_builder_finish(b, &w->program));
    return true;
}

static bool train(world *w) {
    for (uint32_t step = 0; step < STEPS; ++step) {
        int64_t ids[PLACES] = {step, 5, 5};
        float x[PLACES * COLUMNS];
        const rondo_binding feeds[] = {
            {"ids", {.dtype = RONDO_DTYPE_I64, .shape = {1, {PLACES}}, .data = ids}},
            {"x", {.dtype = RONDO_DTYPE_F32, .shape = {2, {PLACES, COLUMNS}}, .data = x}}};
        fill(100 + step, PLACES * COLUMNS, x);
        STEP(rondo_executor_run(w->executor, feeds, 2, NULL, 0));
    }
    return true;
}

static bool read_values(world *w, const char *name, float *out) {
    rondo_tensor now;
    STEP(rondo_executor_get_variable(w->executor, name, &now));
    memcpy(out, now.data, rondo_tensor_get_bytes(&now));
    rondo_tensor_deinit(&now);
    return true;
}

static bool read_all(world *w, float *out) {
    return read_values(w, "table", out) && read_values(w, "w", out + ROWS * COLUMNS);
}

static bool work(world *w, const char *device) {
    float values[ROWS * COLUMNS + COLUMNS];
    STEP(rondo_device_open(device, &w->device));
    if (!build(w)) {
        return false;
    }
    STEP(rondo_executor_create(w->program, w->device, NULL, &w->executor));
    if (!train(w)) {
        return false;
    }
    STEP(rondo_checkpoint_save(w->executor, checkpoint));
    STEP(rondo_checkpoint_load(w->executor, checkpoint));
    return read_all(w, values);
}

static void play(const sweep_point *point) {
    world w = {0};
    float values[ROWS * COLUMNS + COLUMNS];
    (void)work(&w, point->device_name);
    const bool has_failed = sweep_lift();
    if (has_failed && w.executor != NULL) {
        OK(rondo_executor_reset_variables(w.executor));
        if (!train(&w) || !read_all(&w, values) || memcmp(values, g_wanted, sizeof values) != 0) {
            sweep_fail(point, "the executor came to something else afterwards");
        }
    }
    rondo_executor_destroy(w.executor);
    rondo_program_destroy(w.program);
    rondo_builder_destroy(w.builder);
    rondo_device_release(w.device);
}

TEST(test_training_sweep__allocations) {
    world w = {0};
    assert_true(work(&w, "host"));
    assert_true(read_all(&w, g_wanted));
    rondo_executor_destroy(w.executor);
    rondo_program_destroy(w.program);
    rondo_builder_destroy(w.builder);
    rondo_device_release(w.device);
    rondo_log_set_sink(sweep_ignore_line, NULL);
    const sweep_subject subject = {.run = play, .dense = g_dense};
    const size_t points = sweep_allocations(&subject, "host");
    print_message("%zu allocations failed\n", points);
    assert_true(points > 50);
    (void)remove(checkpoint);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_sweep__allocations),
    };
    g_dense = argc > 1 && strcmp(argv[1], "all") == 0 ? 0 : g_dense;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
