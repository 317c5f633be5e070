// If, Loop and Scan decided on the device: the same bits as host control, in every mode.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants the four above first
#include <cmocka.h>

#include "executor/plan.h"
#include "support/flow_models.h"
#include "support/model_fixture.h"

enum { MODEL_COUNT = 120, RUN_COUNT = 6 };

// Runs one executor and gives its outputs as one block of numbers.
static void run(rondo_executor *executor, size_t output_count, uint64_t seed, int64_t n, bool go,
                float *out) {
    flow_feeds feeds;
    rondo_binding fetches[FLOW_OUTPUT_MAX] = {{0}};
    char names[FLOW_OUTPUT_MAX][8];
    flow_feeds_make(&feeds, seed, n, go);
    for (size_t i = 0; i < output_count; ++i) {
        (void)snprintf(names[i], sizeof names[i], "out%zu", i);
        fetches[i].name = names[i];
        fetches[i].tensor = (rondo_tensor){
            .dtype = RONDO_DTYPE_F32, .shape = {.rank = 2, .extent = {3, 3}}, .data = out + 9 * i};
    }
    model_fixture_check(
        rondo_executor_run(executor, feeds.bindings, FLOW_FEED_COUNT, fetches, output_count));
}

static rondo_executor *create(model_fixture *f, rondo_graphs_mode graphs, bool op_by_op,
                              bool on_host) {
    rondo_executor_options options = {.struct_size = sizeof options};
    options.graphs = graphs;
    options.op_by_op = op_by_op;
    rondo_executor *executor;
    model_fixture_check(rondo_executor_create(f->program, f->device, &options, &executor));
    executor->keeps_control_on_host = on_host;
    return executor;
}

static void test_executor_device_control__same_bits_as_on_the_host(void **state) {
    (void)state;
    static const struct {
        int64_t n;
        bool go;
    } rows[RUN_COUNT] = {{2, true}, {0, true}, {1, true}, {5, false}, {7, true}, {2, true}};
    size_t device_count = 0;
    for (uint64_t seed = 0; seed < MODEL_COUNT; ++seed) {
        model_fixture f;
        model_fixture_init(&f);
        const size_t count = flow_model_build(&f.builder, seed);
        model_fixture_load(&f);
        rondo_executor *executors[] = {
            create(&f, RONDO_GRAPHS_OFF, false, true),  // the others as this one
            create(&f, RONDO_GRAPHS_ON, false, false), create(&f, RONDO_GRAPHS_OFF, false, false),
            create(&f, RONDO_GRAPHS_OFF, true, true),  // the last as this one
            create(&f, RONDO_GRAPHS_ON, true, false),
        };
        for (size_t r = 0; r < RUN_COUNT; ++r) {
            float results[5][9 * FLOW_OUTPUT_MAX];
            for (size_t e = 0; e < 5; ++e) {
                run(executors[e], count, seed + r, rows[r].n, rows[r].go, results[e]);
                const float *like = results[e < 3 ? 0 : 3];
                if (memcmp(results[e], like, 9 * count * sizeof(float)) != 0) {
                    fail_msg("model %d, run %zu: executor %zu has other bits", (int)seed, r, e);
                }
            }
        }
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        model_fixture_check(rondo_executor_get_stats(executors[1], &stats));
        device_count += stats.bypassed_count == 0 ? 1 : 0;
        for (size_t e = 0; e < 5; ++e) {
            rondo_executor_destroy(executors[e]);
        }
        model_fixture_deinit(&f);
    }
    // Most of them run without the host: a trip count that nobody knows ahead is fine.
    print_message("%zu of %d models without a bypass\n", device_count, (int)MODEL_COUNT);
    assert_true(device_count >= MODEL_COUNT * 3 / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_device_control__same_bits_as_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
