// Fail the nth for an executor whose weights do not stay on the GPU: every driver call of the fake
// driver and every allocation fails once while the plan is made, run, captured and replayed.
// Whatever fails, the runs that succeed are right, the next ones work, and nothing is left.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/error.h"
#include "support/models/executor_sweep.h"

enum { COUNT = 64, WEIGHTS = 4 };

// y = x + 1 + 2 + 3 + 4
static rondo_status build(executor_world *w) {
    RETURN_IF_ERROR(executor_world_begin(w, "h0", COUNT));
    for (int i = 0; i < WEIGHTS; ++i) {
        float values[COUNT];
        char names[3][8];
        (void)snprintf(names[0], 8, "h%d", i);
        (void)snprintf(names[1], 8, "w%d", i);
        (void)snprintf(names[2], 8, "h%d", i + 1);
        for (int k = 0; k < COUNT; ++k) {
            values[k] = (float)(i + 1);
        }
        RETURN_IF_ERROR(rondo_builder_add_constant(w->builder, names[1], RONDO_DTYPE_F32,
                                                   &(rondo_shape){1, {COUNT}}, values));
        RETURN_IF_ERROR(rondo_builder_add_node(w->builder, "Add",
                                               (const char *[]){names[0], names[1]}, 2,
                                               (const char *[]){names[2]}, 1, NULL));
    }
    RETURN_IF_ERROR(rondo_builder_add_output(w->builder, "h4", NULL));
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

static void work(executor_world *w, const char *device_name) {
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

TEST(test_spill_sweep__fake) {
    executor_sweep_on_fake("weights",
                           &(executor_sweep){work, run_once, 1, .dense = 60, .count_min = 50});
}

TEST_MAIN()
