// What a process holds after many plans were made and their executor destroyed: no more than
// before. A process of its own, since it looks at all of the process's memory.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/model_builder.h"
#include "support/test.h"

enum { FLOAT = 1, CHANNELS = 128, LAYERS = 6, PLANS = 20 };

static double get_resident_mib(void) {
    long pages[2] = {0};
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2) {
        pages[1] = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return (double)pages[1] * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

// Convolutions in a row over images of any size, each with 0.6 MiB of weights.
static rondo_program *make_network(void) {
    model_builder b;
    model_builder_init(&b);
    const int64_t dims[] = {CHANNELS, CHANNELS, 3, 3};
    const size_t bytes = CHANNELS * CHANNELS * 9 * sizeof(float);
    float *weights = model_builder_allocate(&b, bytes);
    char input[24] = "x";
    for (int layer = 0; layer < LAYERS; ++layer) {
        char weight[24], output[24], wires[64];
        (void)snprintf(weight, sizeof weight, "w%d", layer);
        (void)snprintf(output, sizeof output, layer + 1 < LAYERS ? "y%d" : "y", layer);
        (void)snprintf(wires, sizeof wires, "%s %s", input, weight);
        weights[(size_t)layer * 100] = 0.5f;
        model_builder_set_raw(
            &b, model_builder_add_initializer(&b, b.graph, weight, FLOAT, 4, dims), weights, bytes);
        model_builder_add_node(&b, b.graph, "Conv", output, wires, output);
        (void)snprintf(input, sizeof input, "%s", output);
    }
    model_builder_add_input(&b, b.graph, "x", FLOAT, "1 128 32 width");
    model_builder_add_output(&b, b.graph, "y", FLOAT, NULL);
    size_t byte_count = 0;
    rondo_program *program = NULL;
    const uint8_t *packed = model_builder_pack(&b, &byte_count);
    OK(rondo_program_parse_onnx(packed, byte_count, &program));
    model_builder_deinit(&b);
    return program;
}

// Makes and runs `plan_count` plans; returns what the process holds with them, and in
// *out_constant_bytes what the last one says it holds.
static double run_plans(rondo_program *program, rondo_device *device, int plan_count,
                        uint64_t *out_constant_bytes) {
    rondo_executor *executor;
    rondo_executor_options options = {.struct_size = sizeof options};
    options.plan_limit = PLANS;
    OK(rondo_executor_create(program, device, &options, &executor));
    for (int plan = 0; plan < plan_count; ++plan) {
        const rondo_shape shape = {.rank = 4, .extent = {1, CHANNELS, 32, 32 + 4 * plan}};
        rondo_binding feed = {.name = "x"};
        rondo_binding fetch = {.name = "y"};
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feed.tensor));
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        rondo_tensor_deinit(&feed.tensor);
        rondo_tensor_deinit(&fetch.tensor);
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    *out_constant_bytes = stats.constant_bytes;
    const double held = get_resident_mib();
    rondo_executor_destroy(executor);
    return held;
}

TEST(test_executor_memory__destroying_gives_it_back) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("sanitizers keep what is freed\n");
    skip();
#endif
    rondo_device *device;
    OK(rondo_device_open("host", &device));
    rondo_program *program = make_network();
    uint64_t constant_bytes = 0;
    (void)run_plans(program, device, 1, &constant_bytes);  // loads what stays loaded
    const double weights_mib = LAYERS * CHANNELS * CHANNELS * 9 * 4 / 1048576.0;
    assert_true((double)constant_bytes >= weights_mib * 1048576.0);
    const double start = get_resident_mib();
    for (int round = 0; round < 2; ++round) {
        const double most = run_plans(program, device, PLANS, &constant_bytes);
        const double end = get_resident_mib();
        print_message("%.1f MiB before, %.1f with %d plans, %.1f after\n", start, most, PLANS, end);
        // Otherwise this test would show nothing.
        assert_true(most > start + weights_mib);
        assert_true(end <= 1.1 * start + 4.0);
    }
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// Shapes that grow from run to run share memory: a few pieces, each twice as large as the one
// before. And what an executor says that it holds is all of it.
TEST(test_executor_memory__growing_shapes_share_it) {
    enum { FIRST = 20, STEP = 2 };
    model_builder b;
    size_t byte_count = 0;
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    model_builder_init(&b);
    model_builder_add_input(&b, b.graph, "x", FLOAT, "n 131072");
    model_builder_add_node(&b, b.graph, "Relu", "relu", "x", "y");
    model_builder_add_output(&b, b.graph, "y", FLOAT, NULL);
    const uint8_t *packed = model_builder_pack(&b, &byte_count);
    OK(rondo_program_parse_onnx(packed, byte_count, &program));
    model_builder_deinit(&b);
    OK(rondo_device_open("host", &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    for (int plan = 0; plan < PLANS; ++plan) {
        const rondo_shape shape = {.rank = 2, .extent = {FIRST + STEP * plan, 131072}};
        rondo_binding feed = {.name = "x"};
        rondo_binding fetch = {.name = "y"};
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feed.tensor));
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        rondo_tensor_deinit(&feed.tensor);
        rondo_tensor_deinit(&fetch.tensor);
    }
    OK(rondo_executor_get_stats(executor, &stats));
    print_message("the last of %d plans needs %.1f MiB, all have %.1f\n", PLANS,
                  (double)stats.arena_bytes / 1048576.0, (double)stats.plan_bytes / 1048576.0);
    assert_int_equal(stats.plan_count, PLANS);
    assert_true(stats.plan_bytes <= 4 * stats.arena_bytes);
    assert_true(stats.memory_bytes >= stats.plan_bytes + stats.constant_bytes);
    assert_int_equal(stats.device_memory_bytes, 0);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

TEST_MAIN()
