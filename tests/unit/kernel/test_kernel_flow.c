// The kernels of control flow over the fake driver: the bits that the host gives, in one launch
// of a graph, whatever the driver knows of conditional nodes.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake/fake_cuda.h"
#include "support/fake/fake_flow.h"
#include "support/models/flow_models.h"
#include "support/models/model_fixture.h"
#include "support/test.h"

enum { OUTPUT_COUNT = 7 };

static void run(rondo_executor *executor, uint64_t seed, int64_t n, bool go,
                rondo_binding *fetches) {
    static char names[OUTPUT_COUNT][8];
    flow_feeds feeds;
    flow_feeds_make(&feeds, seed, n, go);
    for (size_t i = 0; i < OUTPUT_COUNT; ++i) {
        (void)snprintf(names[i], sizeof names[i], "out%d", (int)i);
        fetches[i] = (rondo_binding){.name = names[i]};
    }
    OK(rondo_executor_run(executor, feeds.bindings, FLOW_FEED_COUNT, fetches, OUTPUT_COUNT));
}

// Runs both and compares what comes out; trip counts and conditions change from run to run.
static void compare(rondo_executor *executor, rondo_executor *host, bool is_on_device) {
    for (int round = 0; round < 8; ++round) {
        rondo_binding results[2][OUTPUT_COUNT];
        const size_t kernels = fake_cuda_count_calls("cuLaunchKernel");
        run(executor, (uint64_t)round, round % 4, round % 3 != 0, results[0]);
        run(host, (uint64_t)round, round % 4, round % 3 != 0, results[1]);
        for (size_t i = 0; i < OUTPUT_COUNT; ++i) {
            const rondo_tensor *a = &results[0][i].tensor;
            const rondo_tensor *b = &results[1][i].tensor;
            assert_true(a->dtype == b->dtype && rondo_shape_is_equal(&a->shape, &b->shape));
            assert_memory_equal(a->data, b->data, rondo_tensor_get_bytes(b));
            rondo_tensor_deinit(&results[0][i].tensor);
            rondo_tensor_deinit(&results[1][i].tensor);
        }
        // Replays launch the graph, and nothing beside it.
        if (round >= 2 && is_on_device) {
            assert_int_equal(fake_cuda_count_calls("cuLaunchKernel") - kernels, 0);
        }
    }
}

TEST(test_kernel_flow__one_launch_a_run) {
    static const struct {
        int version;
        bool is_on_device;
    } rows[] = {
        {13000, true},
        {12030, true},   // an If with two branches is a row of Ifs
        {12020, false},  // no conditional nodes
    };
    setenv("RONDO_CACHE_DIR", "", 1);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        const fake_cuda_options options = {
            .device_count = 1, .driver_version = rows[r].version, .has_get_proc_address = true};
        fake_cuda_reset(&options);
        fake_cuda_install();
        fake_cuda_install_compiler();
        fake_flow_set_kernels();
        model_fixture f;
        model_fixture_init(&f);
        (void)flow_model_build_moves(&f.builder);
        model_fixture_load(&f);
        rondo_device *device;
        rondo_executor *executor;
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        OK(rondo_device_open("cuda:0", &device));
        OK(rondo_executor_create(f.program, device, NULL, &executor));
        compare(executor, f.executor, rows[r].is_on_device);
        OK(rondo_executor_get_stats(executor, &stats));
        assert_int_equal(stats.bypassed_count, rows[r].is_on_device ? 0 : 3);
        assert_true(!rows[r].is_on_device || stats.segment_count == 1);
        rondo_executor_destroy(executor);
        rondo_device_release(device);
        model_fixture_deinit(&f);
        assert_string_equal(fake_cuda_get_violations(), "");
        assert_int_equal(fake_cuda_count_objects(), 0);
        fake_cuda_uninstall();
    }
}

TEST_MAIN()
