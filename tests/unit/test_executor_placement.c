// Where ops run, on a GPU of the fake driver: results equal those of the host bit for bit, eager and
// replayed; each tensor crosses once in a run and direction, and only where it must; what cannot be
// done is refused by name.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake_cuda.h"

enum { COUNT = 8, RUNS = 5, NODES_MAX = 8, BYTES = COUNT * sizeof(float) };

static rondo_device *g_gpu;
static rondo_device *g_host;

static int open_all(void **state) {
    static const fake_cuda_options options = {
        .device_count = 1, .driver_version = 13000, .has_get_proc_address = true};
    (void)state;
    fake_cuda_reset(&options);
    fake_cuda_install();
    fake_cuda_install_compiler();
    OK(rondo_device_open("cuda:0", &g_gpu));
    OK(rondo_device_open("host", &g_host));
    return 0;
}

static int close_all(void **state) {
    (void)state;
    rondo_device_release(g_gpu);
    rondo_device_release(g_host);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
    return 0;
}

// ---- programs -----------------------------------------------------------------------------------

typedef struct node {
    const char *op;
    const char *inputs[3];
    const char *output;  // and the node's name
    const char *place;   // NULL: nobody says
} node;

static void add_constants(rondo_builder *builder) {
    const int64_t whole[] = {2, 4};
    const int64_t zero = 0;
    float table[4 * COUNT];
    for (int i = 0; i < 4 * COUNT; ++i) {
        table[i] = (float)i / 4;
    }
    OK(rondo_builder_add_constant(builder, "table", RONDO_DTYPE_F32, &(rondo_shape){2, {4, COUNT}},
                                  table));
    OK(rondo_builder_add_constant(builder, "square", RONDO_DTYPE_I64, &(rondo_shape){1, {2}},
                                  whole));
    OK(rondo_builder_add_constant(builder, "zero", RONDO_DTYPE_I64, &(rondo_shape){1, {1}}, &zero));
}

// Inputs x [COUNT] f32 and i [1] i64; each node has the output of its name.
static rondo_program *build(const node *nodes, const char *const *outputs) {
    rondo_builder *builder;
    rondo_program *program;
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    rondo_port i = {.struct_size = sizeof i, .name = "i", .dtype = RONDO_DTYPE_I64, .rank = 1};
    x.extent[0] = COUNT;
    i.extent[0] = 1;
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_input(builder, &x));
    OK(rondo_builder_add_input(builder, &i));
    add_constants(builder);
    for (const node *n = nodes; n < nodes + NODES_MAX && n->op != NULL; ++n) {
        const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                    .name = n->output};
        size_t count = 0;
        while (count < 3 && n->inputs[count] != NULL) {
            count += 1;
        }
        OK(rondo_builder_begin_place(builder, n->place != NULL ? n->place : "all"));
        OK(rondo_builder_add_node(builder, n->op, n->inputs, count, &n->output, 1, &options));
        OK(rondo_builder_end_place(builder));
    }
    for (; *outputs != NULL; ++outputs) {
        OK(rondo_builder_add_output(builder, *outputs, NULL));
    }
    OK(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);
    return program;
}

typedef struct feeds {
    float x[COUNT];
    int64_t i;
    rondo_binding list[2];
} feeds;

static void fill(feeds *f, int run) {
    for (int k = 0; k < COUNT; ++k) {
        f->x[k] = (float)(k - 3 + run);
    }
    f->i = run % 4;
    f->list[0] = (rondo_binding){"x", {RONDO_DTYPE_F32, {1, {COUNT}}, f->x, NULL, NULL}};
    f->list[1] = (rondo_binding){"i", {RONDO_DTYPE_I64, {1, {1}}, &f->i, NULL, NULL}};
}

static void expect_same(const rondo_tensor *have, const rondo_tensor *want, const char *what) {
    const size_t bytes = rondo_tensor_get_bytes(want);
    assert_true(rondo_shape_is_equal(&have->shape, &want->shape));
    if (memcmp(have->data, want->data, bytes) != 0) {
        fail_msg("%s: another result than on the host, the first %g, not %g", what,
                 (double)*(const float *)have->data, (double)*(const float *)want->data);
    }
}

static size_t count_outputs(const char *const *outputs) {
    size_t count = 0;
    while (outputs[count] != NULL) {
        count += 1;
    }
    return count;
}

// Runs both executors a few times, with other inputs each time, and compares.
static void compare(rondo_executor *gpu, rondo_executor *host, const char *const *outputs,
                    const char *what, bool waits) {
    const size_t count = count_outputs(outputs);
    for (int run = 0; run < RUNS; ++run) {
        feeds f;
        rondo_binding have[3] = {{0}};
        rondo_binding want[3] = {{0}};
        fill(&f, run);
        for (size_t k = 0; k < count; ++k) {
            have[k].name = want[k].name = outputs[k];
        }
        OK(rondo_executor_run(host, f.list, 2, want, count));
        if (waits) {
            OK(rondo_executor_run(gpu, f.list, 2, have, count));
        } else {
            OK(rondo_executor_run_async(gpu, f.list, 2, have, count, NULL));
            memset(f.x, 0, sizeof f.x);
            f.i = 0;
            OK(rondo_executor_wait(gpu));
        }
        for (size_t k = 0; k < count; ++k) {
            expect_same(&have[k].tensor, &want[k].tensor, what);
            rondo_tensor_deinit(&have[k].tensor);
            rondo_tensor_deinit(&want[k].tensor);
        }
    }
}

typedef struct counts {
    uint64_t to_device, to_host, stopped;  // copies of one run
    uint64_t segments, bypassed;
} counts;

static void expect_counts(const rondo_executor *executor, const counts *want, const char *what) {
    rondo_transfer_stats have = {.struct_size = sizeof have};
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_transfers(executor, &have));
    OK(rondo_executor_get_stats(executor, &stats));
    assert_int_equal(have.run_count, RUNS);
    const uint64_t stopped = have.synchronous_to_device.count + have.synchronous_to_host.count;
    if (have.to_device.count != RUNS * want->to_device ||
        have.to_host.count != RUNS * want->to_host || stopped != RUNS * want->stopped ||
        stats.segment_count != want->segments || stats.bypassed_count != want->bypassed) {
        fail_msg("%s: in %d runs %d copies to the GPU, %d to the host, %d of them waited for; %d "
                 "segments, %d bypassed",
                 what, RUNS, (int)have.to_device.count, (int)have.to_host.count, (int)stopped,
                 (int)stats.segment_count, (int)stats.bypassed_count);
    }
}

// ---- what crosses -------------------------------------------------------------------------------

typedef struct story {
    const char *what;
    node nodes[NODES_MAX];
    const char *outputs[4];
    counts want;
} story;

static const story stories[] = {
    {"there and back",
     {{"Relu", {"x"}, "a", NULL}, {"Neg", {"a"}, "b", "cpu"}, {"Abs", {"b"}, "y", NULL}},
     {"y"},
     {1, 1, 0, 1, 0}},
    {"read twice",
     {{"Relu", {"x"}, "a", NULL},
      {"Neg", {"a"}, "b", "cpu"},
      {"Add", {"a", "b"}, "c", "cpu"},
      {"Abs", {"b"}, "d", NULL},
      {"Add", {"c", "d"}, "y", NULL},
      {"Neg", {"c"}, "z", NULL}},
     {"y", "z"},
     {2, 1, 0, 1, 0}},
    {"through views",
     {{"Relu", {"x"}, "a", NULL},
      {"Reshape", {"a", "square"}, "s", NULL},
      {"Neg", {"s"}, "b", "cpu"},
      {"Neg", {"a"}, "c", "cpu"},
      {"Flatten", {"b"}, "f", NULL},
      {"Abs", {"f"}, "y", NULL},
      {"Abs", {"c"}, "z", NULL}},
     {"y", "z"},
     {2, 1, 0, 1, 0}},
    {"an input for both",
     {{"Relu", {"x"}, "y", NULL}, {"Neg", {"x"}, "z", "cpu"}},
     {"y", "z"},
     {0, 0, 0, 1, 0}},
    {"only the processor",
     {{"Relu", {"x"}, "a", "cpu"}, {"Neg", {"a"}, "y", "cpu"}},
     {"y"},
     {0, 0, 0, 1, 0}},
    {"a table",
     {{"Gather", {"table", "i"}, "a", "cpu"}, {"Add", {"a", "x"}, "y", NULL}},
     {"y"},
     {1, 0, 0, 1, 0}},
    {"no kernel on the GPU",
     {{"Relu", {"x"}, "a", NULL}, {"Hardmax", {"a"}, "s", NULL}, {"Neg", {"s"}, "y", NULL}},
     {"y"},
     {1, 1, 0, 1, 0}},
    {"a shape that depends on data",
     {{"Relu", {"x"}, "a", NULL}, {"NonZero", {"a"}, "y", NULL}, {"Neg", {"a"}, "z", NULL}},
     {"y", "z"},
     {0, 1, 1, 1, 1}},
};

static void run_story(const story *s, const rondo_executor_options *options, bool waits) {
    rondo_program *program = build(s->nodes, s->outputs);
    rondo_executor *gpu;
    rondo_executor *host;
    OK(rondo_executor_create(program, g_gpu, options, &gpu));
    OK(rondo_executor_create(program, g_host, NULL, &host));
    compare(gpu, host, s->outputs, s->what, waits);
    expect_counts(gpu, &s->want, s->what);
    rondo_executor_destroy(gpu);
    rondo_executor_destroy(host);
    rondo_program_destroy(program);
}

static void test_executor_placement__stories(void **state) {
    (void)state;
    static const rondo_executor_options rows[] = {
        {.struct_size = sizeof rows[0]},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_OFF},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_ON, .op_by_op = true},
    };
    for (size_t i = 0; i < sizeof stories / sizeof *stories; ++i) {
        for (size_t o = 0; o < sizeof rows / sizeof *rows; ++o) {
            run_story(&stories[i], &rows[o], true);
        }
        run_story(&stories[i], NULL, false);
    }
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_executor_placement__stories, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
