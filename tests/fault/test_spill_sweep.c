// Fail the nth for an executor whose weights do not stay on the GPU: every driver call of the fake
// driver and every allocation fails once while the plan is made, run, captured and replayed.
// Whatever fails, the runs that succeed are right, the next ones work, and nothing is left.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "rondo/models.h"
#include "support/sweep.h"

#define RETURN_UNLESS_OK(call)               \
    do {                                     \
        const rondo_status status_ = (call); \
        if (status_ != RONDO_STATUS_OK) {    \
            return status_;                  \
        }                                    \
    } while (0)

enum { COUNT = 64, WEIGHTS = 4 };

typedef struct world {
    rondo_device *device;
    rondo_builder *builder;
    rondo_program *program;
    rondo_executor *executor;
} world;

// y = x + 1 + 2 + 3 + 4
static rondo_status build(world *w) {
    const rondo_port x = {.struct_size = sizeof x,
                          .name = "h0",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = 1,
                          .extent = {COUNT}};
    RETURN_UNLESS_OK(rondo_builder_create(NULL, &w->builder));
    RETURN_UNLESS_OK(rondo_builder_add_input(w->builder, &x));
    for (int i = 0; i < WEIGHTS; ++i) {
        float values[COUNT];
        char names[3][8];
        (void)snprintf(names[0], 8, "h%d", i);
        (void)snprintf(names[1], 8, "w%d", i);
        (void)snprintf(names[2], 8, "h%d", i + 1);
        for (int k = 0; k < COUNT; ++k) {
            values[k] = (float)(i + 1);
        }
        RETURN_UNLESS_OK(rondo_builder_add_constant(w->builder, names[1], RONDO_DTYPE_F32,
                                                    &(rondo_shape){1, {COUNT}}, values));
        RETURN_UNLESS_OK(rondo_builder_add_node(w->builder, "Add",
                                                (const char *[]){names[0], names[1]}, 2,
                                                (const char *[]){names[2]}, 1, NULL));
    }
    RETURN_UNLESS_OK(rondo_builder_add_output(w->builder, "h4", NULL));
    return rondo_builder_finish(w->builder, &w->program);
}

static rondo_status run_once(rondo_executor *executor) {
    float x[COUNT];
    float y[COUNT];
    const rondo_binding feed = {"h0", {RONDO_DTYPE_F32, {1, {COUNT}}, x, NULL, NULL}};
    rondo_binding fetch = {"h4", {RONDO_DTYPE_F32, {1, {COUNT}}, y, NULL, NULL}};
    for (int i = 0; i < COUNT; ++i) {
        x[i] = (float)i;
    }
    const rondo_status status = rondo_executor_run(executor, &feed, 1, &fetch, 1);
    for (int i = 0; i < COUNT && status == RONDO_STATUS_OK; ++i) {
        assert_true(y[i] == (float)(i + 10));
    }
    return status;
}

static void work(world *w, const char *device_name) {
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .op_by_op = true,
                                            .weight_limit_bytes = 3 * COUNT * sizeof(float)};
    rondo_transfer_stats copied = {.struct_size = sizeof copied};
    STEP(rondo_device_open(device_name, &w->device));
    STEP(build(w));
    STEP(rondo_executor_create(w->program, w->device, &options, &w->executor));
    for (int run = 0; run < 4; ++run) {
        STEP(run_once(w->executor));
    }
    STEP(rondo_executor_get_transfers(w->executor, &copied));
    assert_int_equal(copied.weights.count, 4 * WEIGHTS);
}

static void run_round(const sweep_point *point) {
    world w = {0};
    work(&w, point->device_name);
    (void)sweep_lift();
    for (int run = 0; run < 2 && w.executor != NULL; ++run) {
        const rondo_status status = run_once(w.executor);
        const bool is_lost = point->code == RONDO__CU_ERROR_LAUNCH_FAILED;
        if (status != RONDO_STATUS_OK && !(is_lost && status == RONDO_STATUS_LOST)) {
            sweep_fail(point, "afterwards run %d: %s", run, rondo_error_get_last()->message);
        }
    }
    rondo_executor_destroy(w.executor);
    rondo_builder_destroy(w.builder);
    rondo_program_destroy(w.program);
    rondo_device_release(w.device);
}

static void prepare_fake(void) {
    fake_cuda_install_compiler();
}

static void test_spill_sweep__fake(void **state) {
    (void)state;
    setenv("RONDO_CACHE_DIR", "", 1);
    const sweep_subject subject = {.run = run_round, .prepare = prepare_fake, .dense = 60};
    const sweep_count count = sweep_on_fake("weights", &subject);
    assert_true(count.driver_calls > 50 && count.allocations > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spill_sweep__fake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
