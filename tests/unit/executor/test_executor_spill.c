// Weights beyond a limit, on the fake driver: results equal those of the host bit for bit, eager,
// captured, replayed and checked; each weight is brought once for each op that reads it, ahead of
// its use; what is on the GPU keeps to the limit.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/models/build_node.h"
#include "support/models/placed_program.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { COUNT = 512, LAYERS = 6, RUNS = 5, BYTES = COUNT * sizeof(float) };

static rondo_device *g_gpu;
static rondo_device *g_host;

static int open_all(void **state) {
    (void)state;
    placed_open(NULL, &g_gpu, &g_host);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    placed_close(&g_gpu, 1, g_host);
    return 0;
}

// y = |...|x + w0| * w1 ...|: adds and products in turn. `cut`: an op in the middle whose shape
// depends on data, so that there are two segments; w0 is read by the first and the last op.
static rondo_program *build(bool is_cut) {
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, COUNT)));
    char last[16] = "x";
    for (int i = 0; i <= LAYERS; ++i) {
        float values[COUNT];
        char names[2][16];
        for (int k = 0; k < COUNT; ++k) {
            values[k] = (float)((k * 7 + i * 3) % 11) / 4 - 1;
        }
        (void)snprintf(names[0], 16, "w%d", i % LAYERS);
        (void)snprintf(names[1], 16, "h%d", i);
        if (i < LAYERS) {
            OK(rondo_builder_add_constant(builder, names[0], RONDO_DTYPE_F32,
                                          &(rondo_shape){1, {COUNT}}, values));
        }
        const char *const inputs[] = {last, names[0]};
        const char *const outputs[] = {names[1]};
        const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                    .name = names[1]};
        OK(rondo_builder_add_node(builder, i % 2 == 0 ? "Add" : "Mul", inputs, 2, outputs, 1,
                                  &options));
        if (is_cut && i == 2) {
            OK(rondo_builder_add_node(builder, "NonZero", outputs, 1, (const char *[]){"places"}, 1,
                                      NULL));
            OK(rondo_builder_add_output(builder, "places", NULL));
        }
        (void)snprintf(last, sizeof last, "%s", names[1]);
    }
    OK(rondo_builder_add_node(builder, "Abs", (const char *[]){last}, 1, (const char *[]){"y"}, 1,
                              NULL));
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

static void run(rondo_executor *executor, int number, float y[COUNT]) {
    float x[COUNT];
    for (int k = 0; k < COUNT; ++k) {
        x[k] = (float)(k % 13 - 6 + number);
    }
    const rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {COUNT}}, x, NULL, NULL}};
    rondo_binding fetch = {"y", {RONDO_DTYPE_F32, {1, {COUNT}}, y, NULL, NULL}};
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
}

// Runs beside the host.
static void compare(rondo_executor *gpu, rondo_program *program) {
    rondo_executor *host;
    OK(rondo_executor_create(program, g_host, NULL, &host));
    for (int i = 0; i < RUNS; ++i) {
        float have[COUNT];
        float want[COUNT];
        run(gpu, i, have);
        run(host, i, want);
        assert_memory_equal(have, want, sizeof want);
    }
    rondo_executor_destroy(host);
}

static void expect_brought(const rondo_executor *gpu, uint64_t weights, uint64_t spilled_bytes,
                           uint64_t resident_bytes) {
    rondo_transfer_stats copied = {.struct_size = sizeof copied};
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_transfers(gpu, &copied));
    OK(rondo_executor_get_stats(gpu, &stats));
    assert_int_equal(copied.weights.count, weights);
    assert_int_equal(copied.weights.bytes, weights * BYTES);
    assert_int_equal(stats.spilled_constant_bytes, spilled_bytes);
    assert_int_equal(stats.constant_bytes, resident_bytes);
}

// Room for two buffers and one weight or none; what is fused reads several at once.
TEST(test_executor_spill__results) {
    static const rondo_executor_options rows[] = {
        {.struct_size = sizeof rows[0]},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_OFF},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_ON, .branches = RONDO_BRANCHES_ON},
        {.struct_size = sizeof rows[0], .self_check_every = 1},
    };
    for (int is_cut = 0; is_cut < 2; ++is_cut) {
        rondo_program *program = build(is_cut > 0);
        for (size_t o = 0; o < sizeof rows / sizeof *rows; ++o) {
            rondo_executor_options options = rows[o];
            rondo_executor *gpu;
            options.weight_limit_bytes = 4 * BYTES;
            options.op_by_op = true;
            OK(rondo_executor_create(program, g_gpu, &options, &gpu));
            compare(gpu, program);
            // Of six weights one stays; the first one is read twice, if it is brought.
            if (options.self_check_every == 0) {
                expect_brought(gpu, RUNS * 6, 5 * BYTES, BYTES);
            }
            rondo_executor_destroy(gpu);
        }
        rondo_program_destroy(program);
    }
}

// Which weights, and why; before the first run, and behind it. The copies are nodes of the graph.
TEST(test_executor_spill__queries) {
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .graphs = RONDO_GRAPHS_ON,
                                            .op_by_op = true,
                                            .weight_limit_bytes = 4 * BYTES};
    rondo_program *program = build(false);
    rondo_executor *gpu;
    OK(rondo_executor_create(program, g_gpu, &options, &gpu));
    for (int i = 0; i < 3; ++i) {
        rondo_placement list[64];
        size_t count;
        size_t spilled = 0;
        OK(rondo_executor_list_placements(gpu, NULL, 0, 64, list, &count));
        for (size_t k = 0; k < count; ++k) {
            const bool is_far = strstr(list[k].reason, "weight_limit_bytes") != NULL;
            assert_true(!is_far || (strcmp(list[k].place, "cpu") == 0 && list[k].bytes == BYTES));
            spilled += is_far ? 1 : 0;
        }
        assert_int_equal(spilled, 5);
        float y[COUNT];
        run(gpu, i, y);
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(gpu, &stats));
    assert_int_equal(stats.node_count, 8 + 6);  // ops and copies
    assert_true(stats.device_memory_bytes < 8 * BYTES + stats.arena_bytes);
    text_sink sink = {{0}, 0};
    OK(rondo_executor_describe(gpu, RONDO_TEXT_PLAIN, text_sink_append, &sink));
    assert_non_null(strstr(sink.text, "spilled: 10240 bytes of weights are in pinned memory"));
    assert_non_null(strstr(sink.text, "\n  w1: 2048 bytes\n"));
    rondo_executor_destroy(gpu);
    rondo_program_destroy(program);
}

// A limit that leaves no room for the buffers is refused by name; one that is wide enough, or on
// the host, changes nothing.
TEST(test_executor_spill__limits) {
    rondo_program *program = build(false);
    rondo_executor_options options = {
        .struct_size = sizeof options, .op_by_op = true, .weight_limit_bytes = BYTES};
    rondo_executor *executor;
    float x[COUNT] = {0};
    const rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {COUNT}}, x, NULL, NULL}};
    OK(rondo_executor_create(program, g_gpu, &options, &executor));
    EXPECT(NO_MEMORY, "weight_limit_bytes (--weight-limit) is 2048",
           rondo_executor_run(executor, &feed, 1, NULL, 0));
    rondo_executor_destroy(executor);
    options.weight_limit_bytes = 6 * BYTES;
    OK(rondo_executor_create(program, g_gpu, &options, &executor));
    compare(executor, program);
    expect_brought(executor, 0, 0, 6 * BYTES);
    rondo_executor_destroy(executor);
    options.weight_limit_bytes = 1;
    OK(rondo_executor_create(program, g_host, &options, &executor));
    compare(executor, program);
    expect_brought(executor, 0, 0, 0);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

// A weight that is set anew is brought as it is then; the executors share what is in pinned memory.
TEST(test_executor_spill__new_values) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .op_by_op = true, .weight_limit_bytes = 4 * BYTES};
    rondo_program *program = build(false);
    rondo_executor *gpu[2];
    rondo_executor *host;
    float values[COUNT];
    for (int k = 0; k < COUNT; ++k) {
        values[k] = (float)(k % 5);
    }
    const rondo_tensor fresh = {RONDO_DTYPE_F32, {1, {COUNT}}, values, NULL, NULL};
    OK(rondo_executor_create(program, g_host, NULL, &host));
    for (int i = 0; i < 2; ++i) {
        OK(rondo_executor_create(program, g_gpu, &options, &gpu[i]));
        compare(gpu[i], program);
    }
    OK(rondo_executor_set_variable(gpu[0], "w1", &fresh));
    OK(rondo_executor_set_variable(host, "w1", &fresh));
    for (int i = 0; i < RUNS; ++i) {
        float have[COUNT];
        float want[COUNT];
        run(gpu[0], i, have);
        run(host, i, want);
        assert_memory_equal(have, want, sizeof want);
    }
    compare(gpu[1], program);
    rondo_executor_destroy(gpu[0]);
    rondo_executor_destroy(gpu[1]);
    rondo_executor_destroy(host);
    rondo_program_destroy(program);
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return test_run("tests", g_listed, open_all, close_all, NULL, NULL);
}
