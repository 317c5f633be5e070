// Fail the nth in models with If, Loop and Scan: every driver call (on the fake driver) and every
// allocation (there and on the host) of planning, running, capturing and replaying fails once, in
// turn. Whatever fails: the failing call wrote a fresh record, nothing illegal is asked of the
// driver, nothing stays behind, and unless the device is lost the next runs are right.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/fake/fake_flow.h"
#include "support/models/flow_models.h"
#include "support/short_forms.h"
#include "support/sweep.h"

enum { RUN_COUNT = 3 };

static rondo_program *g_program;
static float g_expected[2][36];  // out6 with the condition true, then false

static rondo_status run(rondo_executor *executor, bool go, float *result) {
    flow_feeds feeds;
    flow_feeds_make(&feeds, 5, 3, go);
    rondo_binding fetch = BIND("out6", RONDO_DTYPE_F32, result, 3, 4, 3);
    return rondo_executor_run(executor, feeds.bindings, FLOW_FEED_COUNT, &fetch, 1);
}

static bool is_right(const float *result, bool go) {
    return memcmp(result, g_expected[go ? 0 : 1], sizeof g_expected[0]) == 0;
}

static void run_round(const sweep_point *point) {
    rondo_device *device = NULL;
    rondo_executor *executor = NULL;
    float result[36] = {0};
    uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_status status = rondo_device_open(point->device_name, &device);
    if (status == RONDO_STATUS_OK) {
        status = rondo_executor_create(g_program, device, NULL, &executor);
    }
    for (int i = 0; i < RUN_COUNT && status == RONDO_STATUS_OK; ++i) {
        status = run(executor, i % 2 == 0, result);
        if (status == RONDO_STATUS_OK && !is_right(result, i % 2 == 0)) {
            sweep_fail(point, "run %d gives something else", i);
        }
    }
    (void)sweep_step(status, sequence, "a run");
    (void)sweep_lift();
    for (int i = 0; i < 2 && executor != NULL && status != RONDO_STATUS_LOST; ++i) {
        status = run(executor, i % 2 != 0, result);
        if (status != RONDO_STATUS_LOST && status != RONDO_STATUS_DRIVER &&
            (status != RONDO_STATUS_OK || !is_right(result, i % 2 != 0))) {
            sweep_fail(point, "the next run: status %d, %s", (int)status,
                       rondo_error_get_last()->message);
        }
    }
    rondo_executor_destroy(executor);
    rondo_device_release(device);
}

static void prepare_fake(void) {
    fake_flow_set_kernels();
    fake_cuda_install_compiler();
}

TEST(test_flow_sweep__fake_driver) {
    const sweep_subject subject = {.run = run_round, .prepare = prepare_fake};
    setenv("RONDO_CACHE_DIR", "", 1);
    const sweep_count count = sweep_on_fake("control flow in a model", &subject);
    assert_true(count.driver_calls > 100 && count.allocations > 100);
}

TEST(test_flow_sweep__host) {
    const sweep_subject subject = {.run = run_round};
    const size_t points = sweep_allocations(&subject, "host");
    print_message("host: swept %zu points\n", points);
    assert_true(points > 100);
}

static int make_program(void **state) {
    (void)state;
    model_builder builder;
    size_t byte_count = 0;
    rondo_device *device;
    rondo_executor *executor;
    model_builder_init(&builder);
    (void)flow_model_build_moves(&builder);
    const uint8_t *bytes = model_builder_pack(&builder, &byte_count);
    OK(rondo_program_parse_onnx(bytes, byte_count, &g_program));
    model_builder_deinit(&builder);
    OK(rondo_device_open("host", &device));
    OK(rondo_executor_create(g_program, device, NULL, &executor));
    OK(run(executor, true, g_expected[0]));
    OK(run(executor, false, g_expected[1]));
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    return memcmp(g_expected[0], g_expected[1], sizeof g_expected[0]) != 0 ? 0 : -1;
}

static int free_program(void **state) {
    (void)state;
    rondo_program_destroy(g_program);
    return 0;
}

int main(void) {
    return RUN_TESTS(make_program, free_program);
}
