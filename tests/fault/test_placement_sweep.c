// Fail the nth for an executor whose ops are on both sides, or on two GPUs: each driver call of the
// fake driver and every allocation fails once while places are set, the plan is made, looked at,
// run, captured and replayed. Whatever fails, the runs that succeed are right, the next ones work,
// and nothing is left.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "support/models/executor_sweep.h"

enum { COUNT = 8, SHOWN_MAX = 32 };

static const char *g_place;  // of the op in the middle

static rondo_status add(rondo_builder *builder, const char *op, const char *from, const char *to) {
    return rondo_builder_add_node(builder, op, &from, 1, &to, 1, NULL);
}

// y = |-relu(x)|; z: where relu(x) is not 0, a shape that depends on data.
static rondo_status build(executor_world *w) {
    RETURN_IF_ERROR(executor_world_begin(w, "x", COUNT));
    RETURN_IF_ERROR(add(w->builder, "Relu", "x", "a"));
    RETURN_IF_ERROR(rondo_builder_begin_place(w->builder, g_place));
    RETURN_IF_ERROR(add(w->builder, "Neg", "a", "b"));
    RETURN_IF_ERROR(rondo_builder_end_place(w->builder));
    RETURN_IF_ERROR(add(w->builder, "Abs", "b", "y"));
    RETURN_IF_ERROR(add(w->builder, "NonZero", "a", "z"));
    RETURN_IF_ERROR(rondo_builder_add_output(w->builder, "y", NULL));
    RETURN_IF_ERROR(rondo_builder_add_output(w->builder, "z", NULL));
    return rondo_builder_finish(w->builder, &w->program);
}

static rondo_status run_once(rondo_executor *executor, bool waits) {
    float x[COUNT];
    float y[COUNT];
    rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {COUNT}}, x, NULL, NULL}};
    rondo_binding fetches[] = {{"y", {RONDO_DTYPE_F32, {1, {COUNT}}, y, NULL, NULL}},
                               {.name = "z"}};
    for (int i = 0; i < COUNT; ++i) {
        x[i] = (float)(i - 3);
    }
    rondo_status status = waits ? rondo_executor_run(executor, &feed, 1, fetches, 2)
                                : rondo_executor_run_async(executor, &feed, 1, fetches, 2, NULL);
    if (!waits && status == RONDO_STATUS_OK) {
        status = rondo_executor_wait(executor);
    }
    for (int i = 0; i < COUNT && status == RONDO_STATUS_OK; ++i) {
        assert_true(y[i] == (i > 3 ? (float)(i - 3) : 0.0f));
    }
    rondo_tensor_deinit(&fetches[1].tensor);
    return status;
}

static void work(executor_world *w, const char *device_name) {
    const char *const place = "Abs=gpu";
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .thread_count = 1,
                                            .place = &place,
                                            .place_count = 1,
                                            .self_check_every = 4};
    rondo_placement shown[SHOWN_MAX];
    rondo_transfer_stats copied = {.struct_size = sizeof copied};
    size_t count;
    STEP(rondo_device_open(device_name, &w->device));
    STEP(build(w));
    STEP(rondo_program_set_place(w->program, "Relu", "gpu"));
    STEP(rondo_executor_create(w->program, w->device, &options, &w->executor));
    STEP(rondo_executor_list_placements(w->executor, NULL, 0, SHOWN_MAX, shown, &count));
    for (int run = 0; run < 5; ++run) {
        STEP(run_once(w->executor, run % 3 != 2));
    }
    STEP(rondo_executor_get_transfers(w->executor, &copied));
    assert_true(count < SHOWN_MAX && copied.to_host.count >= 5);
    assert_true(copied.to_device.count + copied.between_devices.count >= 5);
}

static rondo_status run_again(rondo_executor *executor) {
    return run_once(executor, true);
}

TEST(test_placement_sweep__fake) {
    static const char *const places[] = {"cpu", "gpu:1"};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        g_place = places[i];
        executor_sweep_on_fake(g_place,
                               &(executor_sweep){work, run_again, 2, .dense = 60, .count_min = 50});
    }
}

TEST_MAIN()
