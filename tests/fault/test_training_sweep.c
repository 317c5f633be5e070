// Fail the nth allocation, or the nth driver call on the emulated GPU, of building, planning,
// running, recording, replaying, saving and loading a training step, in turn: each failure is
// reported, nothing is left, the checkpoint is whole or not there, and what goes on from it comes
// to the bits of a training that met no failure.
//
//   test_training_sweep [all]      all: each of them, not a sample
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rondo/models.h"
#define STEP_RESULT false
#include "support/short_forms.h"
#include "support/sweep.h"

enum { ROWS = 6, COLUMNS = 4, PLACES = 3, STEPS = 4, SAMPLE = 24 };

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
    STEP(rondo_builder_add_input(b, &PORT("ids", RONDO_DTYPE_I64, PLACES)));
    STEP(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, PLACES, COLUMNS)));
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

static bool train(world *w, uint32_t first, uint32_t end) {
    for (uint32_t step = first; step < end; ++step) {
        int64_t ids[PLACES] = {step, 5, 5};
        float x[PLACES * COLUMNS];
        const rondo_binding feeds[] = {BIND("ids", RONDO_DTYPE_I64, ids, PLACES),
                                       BIND("x", RONDO_DTYPE_F32, x, PLACES, COLUMNS)};
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

// A step, the state after it kept, two more steps, and back to the state.
static bool work(world *w, const char *device) {
    STEP(rondo_device_open(device, &w->device));
    if (!build(w)) {
        return false;
    }
    STEP(rondo_executor_create(w->program, w->device, NULL, &w->executor));
    if (!train(w, 0, 1)) {
        return false;
    }
    STEP(rondo_checkpoint_save(w->executor, checkpoint));
    if (!train(w, 1, STEPS)) {
        return false;
    }
    STEP(rondo_checkpoint_load(w->executor, checkpoint));
    return train(w, 1, STEPS);
}

static void close_world(world *w) {
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_builder_destroy(w->builder);
    rondo_device_release(w->device);
    *w = (world){0};
}

static void expect_wanted(world *w, const sweep_point *point, const char *when) {
    float values[ROWS * COLUMNS + COLUMNS];
    if (!read_all(w, values)) {
        sweep_fail(point, "%s: %s", when, rondo_error_get_last()->message);
    }
    if (memcmp(values, g_wanted, sizeof values) != 0) {
        sweep_fail(point, "%s: other bits", when);
    }
}

// Goes on from what is kept: the file is whole or not there, and the steps behind it have the bits
// of those that met no failure.
static void go_on(world *w, const sweep_point *point) {
    const uint32_t first = access(checkpoint, F_OK) == 0 ? 1 : 0;
    const rondo_status status = first > 0 ? rondo_checkpoint_load(w->executor, checkpoint)
                                          : rondo_executor_reset_variables(w->executor);
    if (status != RONDO_STATUS_OK || !train(w, first, STEPS)) {
        sweep_fail(point, "no way to go on: %s", rondo_error_get_last()->message);
    }
    expect_wanted(w, point, "gone on");
}

static void play(const sweep_point *point) {
    world w = {0};
    (void)remove(checkpoint);
    const bool is_done = work(&w, point->device_name);
    const bool has_failed = sweep_lift();
    if (is_done) {
        expect_wanted(&w, point, "in spite of the failure");
    }
    if (has_failed && w.executor != NULL) {
        go_on(&w, point);
    }
    close_world(&w);
}

// Lines that tell of what fails here on purpose are not shown.
static void find_wanted(const char *device) {
    world w = {0};
    assert_true(work(&w, device));
    assert_true(read_all(&w, g_wanted));
    close_world(&w);
    rondo_log_set_sink(sweep_ignore_line, NULL);
}

TEST(test_training_sweep__allocations) {
    find_wanted("host");
    const sweep_subject subject = {.run = play, .dense = g_dense};
    const size_t points = sweep_allocations(&subject, "host");
    print_message("%zu allocations failed\n", points);
    assert_true(points > 50);
    (void)remove(checkpoint);
}

// ---- the emulated GPU ---------------------------------------------------------------------------

typedef struct emulated_driver {
    void (*fail_nth)(long n, int code);
    const char *(*get_failed_call)(void);
    size_t (*count_objects)(void);
    size_t (*count_calls)(void);
} emulated_driver;

// False where another driver is loaded, or none.
static bool find_driver(emulated_driver *out_driver) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const char *const names[] = {"emulated_fail_nth", "emulated_get_failed_call",
                                 "emulated_count_objects", "emulated_count_calls"};
    void *functions[4];
    for (size_t i = 0; i < 4; ++i) {
        functions[i] = library != NULL ? dlsym(library, names[i]) : NULL;
        if (functions[i] == NULL) {
            return false;
        }
    }
    _Static_assert(sizeof *out_driver == sizeof functions, "pointers to functions alone");
    memcpy(out_driver, functions, sizeof functions);
    return true;
}

// Whether call n failed in it.
static bool fail_call(const emulated_driver *driver, long n, int code, size_t objects) {
    const bool is_lost = code == RONDO__CU_ERROR_LAUNCH_FAILED;  // the context takes no calls then
    char name[80];
    world w = {0};
    (void)remove(checkpoint);
    driver->fail_nth(n, code);
    const bool is_done = work(&w, "cuda:0");
    (void)snprintf(name, sizeof name, "%ld, %.60s", n, driver->get_failed_call());
    const bool has_failed = driver->get_failed_call()[0] != '\0';
    const sweep_point point = {.device_name = "cuda:0", .what = name, .n = (size_t)n};
    if (!is_done && !has_failed) {
        sweep_fail(&point, "a step failed though no call did: %s", rondo_error_get_last()->message);
    }
    if (!is_lost || is_done) {
        driver->fail_nth(-1, 0);
    }
    if (is_done) {
        expect_wanted(&w, &point, "in spite of the failure");
    }
    if (has_failed && w.executor != NULL && !is_lost) {
        go_on(&w, &point);
    }
    close_world(&w);
    driver->fail_nth(-1, 0);
    if (has_failed && is_lost && access(checkpoint, F_OK) == 0) {
        assert_true(build(&w));  // another process would go on; here it is another executor
        OK(rondo_device_open("cuda:0", &w.device));
        OK(rondo_executor_create(w.program, w.device, NULL, &w.executor));
        go_on(&w, &point);
        close_world(&w);
    }
    if (driver->count_objects() > objects) {
        sweep_fail(&point, "%zu objects are left, where %zu are without a failure",
                   driver->count_objects(), objects);
    }
    return has_failed;
}

TEST(test_training_sweep__driver_calls) {
    static const int codes[] = {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO__CU_ERROR_UNKNOWN,
                                RONDO__CU_ERROR_LAUNCH_FAILED};
    emulated_driver driver;
    if (!find_driver(&driver)) {
        print_message("left out: it is for the emulated GPU\n");
        return;
    }
    find_wanted("cuda:0");
    const size_t objects = driver.count_objects();
    const size_t before = driver.count_calls();
    (void)fail_call(&driver, -1, 0, objects);
    const size_t calls = driver.count_calls() - before;
    const size_t every = g_dense > 0 ? calls / SAMPLE + 1 : 1;
    size_t points = 0;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; ++c) {
        for (size_t n = c; fail_call(&driver, (long)n, codes[c], objects); n += every) {
            points += 1;
        }
    }
    print_message("%zu of %zu driver calls failed\n", points, 3 * calls);
    assert_true(points >= SAMPLE);
    (void)remove(checkpoint);
}

int main(int argc, char **argv) {
    g_dense = argc > 1 && strcmp(argv[1], "all") == 0 ? 0 : g_dense;
    return RUN_TESTS(NULL, NULL);
}
