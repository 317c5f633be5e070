// Self-checks on the host and on the fake driver: a planted op that fills its result with a number
// which it reads when it is launched computes something else once it is replayed. The check finds
// it wherever it stands, names it, and leaves the run's results and the generators as they should
// be.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/device_crew.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_flow.h"
#include "support/fake/fake_random.h"
#include "support/models/build_node.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { COUNT = 96, OPS = 9 };

static const char *const device_names[] = {"host", "cuda:0"};
static rondo_device *g_device;
static rondo_program *g_program;
static rondo_executor *g_executor;

// ---- a program whose values share their memory --------------------------------------------------

// x, then op after op on the one before: the names of nodes and values are n0, v0, n1, ...
static const char *const chain[OPS] = {"Neg", "Abs", "Neg", "Neg", "Abs",
                                       "Neg", "Abs", "Neg", "Neg"};

static void build_chain(bool is_random) {
    static char names[2 * OPS][8];
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    x.extent[0] = COUNT;
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &x));
    const char *last = "x";
    if (is_random) {
        rondo_builder_node_options options = {.struct_size = sizeof options, .name = "noise"};
        const char *const noise = "e";
        const char *const sum = "xe";
        const char *const both[] = {"x", "e"};
        OK(rondo_builder_add_node(builder, "RandomNormalLike", &last, 1, &noise, 1, &options));
        OK(rondo_builder_add_node(builder, "Add", both, 2, &sum, 1, NULL));
        last = sum;
    }
    for (int i = 0; i < OPS; ++i) {
        rondo_builder_node_options options = {.struct_size = sizeof options};
        (void)snprintf(names[2 * i], sizeof names[0], "n%d", i);
        (void)snprintf(names[2 * i + 1], sizeof names[0], "v%d", i);
        const char *const output = names[2 * i + 1];
        options.name = names[2 * i];
        OK(rondo_builder_add_node(builder, chain[i], &last, 1, &output, 1, &options));
        last = output;
    }
    OK(rondo_builder_add_output(builder, last, NULL));
    g_program = build_finish(builder);
}

// ---- a run --------------------------------------------------------------------------------------

static float g_x[COUNT];
static float g_y[COUNT];
static rondo_binding g_feed = {"x", {RONDO_DTYPE_F32, {1, {COUNT}}, g_x, NULL, NULL}};
static rondo_binding g_fetch = {"v8", {RONDO_DTYPE_F32, {1, {COUNT}}, g_y, NULL, NULL}};

static rondo_status run(void) {
    for (int i = 0; i < COUNT; ++i) {
        g_x[i] = (float)(i - COUNT / 2);
    }
    memset(g_y, 0, sizeof g_y);
    return rondo_executor_run(g_executor, &g_feed, 1, &g_fetch, 1);
}

static void prepare_fake(void) {
    fake_cuda_reset(NULL);
    fake_cuda_install();
    fake_cuda_install_compiler();
    fake_random_set_kernels();
    fake_flow_set_kernels();
}

static void open_executor(const char *name, bool is_random, const rondo_executor_options *options) {
    prepare_fake();
    OK(rondo_device_open(name, &g_device));
    build_chain(is_random);
    OK(rondo_executor_create(g_program, g_device, options, &g_executor));
    OK(rondo_executor_describe(g_executor, RONDO_TEXT_JSON, text_sink_ignore,
                               NULL));  // makes the plan
}

static void close_executor(void) {
    rondo_executor_destroy(g_executor);
    rondo_program_destroy(g_program);
    rondo_device_release(g_device);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

// ---- the planted op -----------------------------------------------------------------------------

static uint32_t g_planted_bits;
static rondo_status (*g_launch)(rondo__kernel *kernel, rondo_stream *stream,
                                const void *const *inputs, void *const *outputs, void *workspace);

// Does its work, and then writes the number over element 1.
static rondo_status launch_planted(rondo__kernel *kernel, rondo_stream *stream,
                                   const void *const *inputs, void *const *outputs,
                                   void *workspace) {
    rondo_status status = g_launch(kernel, stream, inputs, outputs, workspace);
    return status == RONDO_STATUS_OK
               ? rondo_stream_fill(stream, (uint32_t *)outputs[0] + 1, g_planted_bits, 4, 1)
               : status;
}

static void plant(size_t item, float value) {
    rondo__plan *plan = rondo__unit_next_plan(&g_executor->main, NULL);
    assert_non_null(plan);
    assert_true(item < plan->item_count);
    memcpy(&g_planted_bits, &value, 4);
    g_launch = plan->items[item].kernel->launch;
    plan->items[item].kernel->launch = launch_planted;
    plan->items[item].kernel->visit_nodes = NULL;
    plan->items[item].kernel->run = NULL;
}

static void set_planted(uint32_t bits) {
    g_planted_bits = bits;
}

// ---- tests --------------------------------------------------------------------------------------

typedef struct row {
    size_t item;
    bool was_captured_before;  // by a run that no check was expected of
    bool is_first;
    const char *node;
    const char *value;
    const char *eager;
    const char *replayed;
} row;

static const row rows[] = {
    {0, false, true, "n0", "v0", "2 (0x40000000)", "1 (0x3f800000)"},
    {3, false, true, "n3", "v3", "2 (0x40000000)", "1 (0x3f800000)"},
    {5, false, true, "n5", "v5", "2 (0x40000000)", "1 (0x3f800000)"},
    {8, false, true, "n8", "v8", "2 (0x40000000)", "1 (0x3f800000)"},
    // What was captured without marks can be looked at from its end only.
    {3, true, false, NULL, NULL, NULL, NULL},
};

TEST(test_executor_self_check__names_the_op) {
    for (size_t d = 0; d < 2; ++d) {
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
            const row *o = &rows[r];
            rondo_self_check_report report = {.struct_size = sizeof report};
            rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
            options.self_check_every = o->was_captured_before ? 0 : 1000;
            open_executor(device_names[d], false, &options);
            plant(o->item, 1.0f);
            OK(run());
            OK(run());
            float two = 2.0f;
            memcpy(&g_planted_bits, &two, 4);
            OK(rondo_executor_self_check(g_executor, &g_feed, 1, &g_fetch, 1, &report));
            assert_int_equal(report.segment_count, 1);
            assert_true(report.is_different);
            assert_int_equal(report.is_first, o->is_first);
            if (o->node != NULL) {
                assert_string_equal(report.op, chain[o->item]);
                assert_string_equal(report.node, o->node);
                assert_string_equal(report.value, o->value);
                assert_string_equal(report.eager, o->eager);
                assert_string_equal(report.replayed, o->replayed);
            }
            assert_int_equal(report.element, 1);
            assert_int_equal(report.different_count, 1);
            assert_int_equal(report.dtype, RONDO_DTYPE_F32);
            // The results are the eager ones; the segment has lost its graph.
            assert_true(fabsf(g_y[1]) == 2.0f);
            OK(run());
            assert_true(fabsf(g_y[1]) == 2.0f);
            rondo_run_times times = {.struct_size = sizeof times};
            OK(rondo_executor_get_times(g_executor, &times));
            assert_false(times.was_replayed);
            close_executor();
        }
    }
}

// One run in n is checked, and fails or goes on eagerly.
TEST(test_executor_self_check__one_run_in_n) {
    for (size_t d = 0; d < 2; ++d) {
        for (int action = RONDO_SELF_CHECK_FAIL; action <= RONDO_SELF_CHECK_KEEP_EAGER; ++action) {
            rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
            rondo_self_check_report report = {.struct_size = sizeof report};
            options.self_check_every = 4;
            options.self_check_action = action;
            open_executor(device_names[d], false, &options);
            plant(4, 1.0f);
            OK(run());
            OK(run());
            set_planted(0x40000000);
            OK(run());  // the third: a replay, which nobody looks at
            assert_true(fabsf(g_y[1]) == 1.0f);
            assert_int_equal(rondo_executor_get_self_check(g_executor, &report),
                             RONDO_STATUS_STATE);
            rondo_status status = run();
            if (action == RONDO_SELF_CHECK_FAIL) {
                assert_int_equal(status, RONDO_STATUS_MISMATCH);
                assert_non_null(strstr(rondo_error_get_last()->message, "\"v4\" of Abs"));
                assert_string_equal(rondo_error_get_last()->op, "n4");
                assert_true(g_y[1] == 0.0f);  // nothing was fetched
            } else {
                assert_int_equal(status, RONDO_STATUS_OK);
                assert_true(fabsf(g_y[1]) == 2.0f);
            }
            OK(rondo_executor_get_self_check(g_executor, &report));
            assert_string_equal(report.node, "n4");
            assert_true(report.is_first);
            OK(run());  // whichever way, it works
            close_executor();
        }
    }
}

// Runs that are not waited for count and are checked like others, also behind some that are still
// under way, whose inputs and results stay what they were.
TEST(test_executor_self_check__runs_that_do_not_wait) {
    enum { RUNS = 4 };
    static float x[RUNS][COUNT];
    static float y[RUNS][COUNT];
    (void)state;
    for (size_t d = 0; d < 2; ++d) {
        for (int action = RONDO_SELF_CHECK_FAIL; action <= RONDO_SELF_CHECK_KEEP_EAGER; ++action) {
            rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
            rondo_self_check_report report = {.struct_size = sizeof report};
            options.self_check_every = RUNS;
            options.self_check_action = action;
            open_executor(device_names[d], false, &options);
            plant(4, 1.0f);
            memset(y, 0, sizeof y);
            for (int r = 0; r < RUNS; ++r) {
                rondo_binding feed = g_feed;
                rondo_binding fetch = g_fetch;
                for (int i = 0; i < COUNT; ++i) {
                    x[r][i] = (float)(10 * r + i + 3);
                }
                feed.tensor.data = x[r];
                fetch.tensor.data = y[r];
                set_planted(r < 2 ? 0x3f800000 : 0x40000000);
                const rondo_status expected = r == RUNS - 1 && action == RONDO_SELF_CHECK_FAIL
                                                  ? RONDO_STATUS_MISMATCH
                                                  : RONDO_STATUS_OK;
                assert_int_equal(rondo_executor_run_async(g_executor, &feed, 1, &fetch, 1, NULL),
                                 expected);
            }
            OK(rondo_executor_wait(g_executor));
            for (int r = 0; r < RUNS; ++r) {
                const bool is_refused = r == RUNS - 1 && action == RONDO_SELF_CHECK_FAIL;
                const float planted = r < RUNS - 1 ? 1.0f : 2.0f;
                assert_true(fabsf(y[r][0]) == (is_refused ? 0.0f : x[r][0]));
                assert_true(fabsf(y[r][1]) == (is_refused ? 0.0f : planted));
            }
            OK(rondo_executor_get_self_check(g_executor, &report));
            assert_string_equal(report.node, "n4");
            assert_true(report.is_first);
            close_executor();
        }
    }
}

// A graph that no capture made is told apart by ops, too.
TEST(test_executor_self_check__knows_the_nodes_of_ops) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .op_by_op = true, .self_check_every = 2};
    open_executor("cuda:0", false, &options);
    for (int i = 0; i < 4; ++i) {
        OK(run());
    }
    const rondo__plan *plan = rondo__unit_next_plan(&g_executor->main, NULL);
    assert_int_equal(plan->step_count, 1);
    assert_non_null(plan->steps[0].run.graph);
    for (size_t i = 0; i < plan->item_count; ++i) {
        size_t index = SIZE_MAX;
        assert_non_null(plan->items[i].kernel->visit_nodes);
        OK(rondo_graph_get_node_index(plan->steps[0].run.graph, plan->items[i].last_node, &index));
        assert_int_equal(index, i);
    }
    close_executor();
}

// NaNs are compared by their bits.
TEST(test_executor_self_check__compares_bits) {
    static const struct {
        uint32_t captured;
        uint32_t now;
        bool is_different;
    } cases[] = {
        {0x7fc00000, 0x7fc00000, false},
        {0x7fc00000, 0x7fc00001, true},
        {0x00000000, 0x80000000, true},
    };
    (void)state;
    for (size_t d = 0; d < 2; ++d) {
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
            rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
            rondo_self_check_report report = {.struct_size = sizeof report};
            open_executor(device_names[d], false, &options);
            plant(OPS - 1, 0.0f);
            set_planted(cases[c].captured);
            OK(run());
            OK(run());
            set_planted(cases[c].now);
            OK(rondo_executor_self_check(g_executor, &g_feed, 1, &g_fetch, 1, &report));
            assert_int_equal(report.is_different, cases[c].is_different);
            uint32_t bits;
            memcpy(&bits, &g_y[1], 4);
            assert_int_equal(bits, cases[c].now);
            close_executor();
        }
    }
}

// A sound program draws, in checked runs and in others, what it draws without any check.
TEST(test_executor_self_check__keeps_what_runs_advance) {
    enum { RUNS = 7 };
    static float expected[RUNS][COUNT];
    (void)state;
    for (size_t d = 0; d < 2; ++d) {
        for (uint64_t every = 0; every < 4; ++every) {
            rondo_executor_options options = {.struct_size = sizeof options, .seed = 5};
            rondo_self_check_report report = {.struct_size = sizeof report};
            options.self_check_every = every;
            open_executor(device_names[d], true, &options);
            for (uint64_t i = 0; i < RUNS; ++i) {
                OK(run());
                if (every == 0) {
                    memcpy(expected[i], g_y, sizeof g_y);
                    continue;
                }
                assert_memory_equal(expected[i], g_y, sizeof g_y);
                if ((i + 1) % every == 0) {
                    OK(rondo_executor_get_self_check(g_executor, &report));
                    assert_false(report.is_different);
                    assert_true(report.segment_count > 0);
                    assert_true(report.value_count > 0);
                }
            }
            assert_true(memcmp(expected[0], expected[1], sizeof g_y) != 0);
            OK(rondo_executor_rerun(g_executor));
            close_executor();
        }
    }
}

// Each op of a program that draws, with a loop on the device and an op between segments. A graph
// with a loop cannot be replayed up to any op; then a later one may be named.
TEST(test_executor_self_check__each_op_of_a_larger_program) {
    for (size_t d = 0; d < 2; ++d) {
        for (size_t item = 0;; ++item) {
            rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
            rondo_self_check_report report = {.struct_size = sizeof report};
            rondo_binding feed = {"x", {RONDO_DTYPE_F32, {2, {1, 8}}, g_x, NULL, NULL}};
            options.self_check_every = 100;
            prepare_fake();
            OK(rondo_device_open(device_names[d], &g_device));
            OK(device_crew_build(&g_program));
            OK(rondo_executor_create(g_program, g_device, &options, &g_executor));
            OK(rondo_executor_describe(g_executor, RONDO_TEXT_JSON, text_sink_ignore, NULL));
            const rondo__plan *plan = rondo__unit_next_plan(&g_executor->main, NULL);
            const bool is_over = item >= plan->item_count;
            const rondo__op *op = is_over ? NULL : &plan->program->nodes[plan->items[item].node].op;
            // What is planted makes floats; a count decides what there is to compare.
            const bool is_float =
                !is_over &&
                plan->slots[plan->program->nodes[plan->items[item].node].outputs[0]].dtype ==
                    RONDO_DTYPE_F32;
            if (is_float && strcmp(op->def->name, "Loop") != 0) {
                plant(item, 1.0f);
                OK(rondo_executor_run(g_executor, &feed, 1, NULL, 0));
                OK(rondo_executor_run(g_executor, &feed, 1, NULL, 0));
                set_planted(0);  // NonZero, which may be all that is left of it, sees no other one
                OK(rondo_executor_self_check(g_executor, &feed, 1, NULL, 0, &report));
                assert_true(report.is_different);
                assert_true(!report.is_first || strcmp(report.node, op->name) == 0);
                OK(rondo_executor_self_check(g_executor, &feed, 1, NULL, 0, &report));
                assert_false(report.is_different);  // the segment has no graph any more
            }
            close_executor();
            if (is_over) {
                break;
            }
        }
    }
}

TEST(test_executor_self_check__what_is_refused) {
    rondo_executor_options options = {.struct_size = sizeof options, .graphs = RONDO_GRAPHS_OFF};
    rondo_self_check_report report = {.struct_size = sizeof report};
    open_executor("host", false, &options);
    assert_int_equal(rondo_executor_self_check(g_executor, &g_feed, 1, &g_fetch, 1, &report),
                     RONDO_STATUS_STATE);
    assert_int_equal(rondo_executor_get_self_check(g_executor, &report), RONDO_STATUS_STATE);
    assert_int_equal(rondo_executor_get_self_check(NULL, &report), RONDO_STATUS_INVALID);
    rondo_executor *other;
    options.self_check_action = 7;
    assert_int_equal(rondo_executor_create(g_program, g_device, &options, &other),
                     RONDO_STATUS_INVALID);
    close_executor();
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return RUN_TESTS(NULL, NULL);
}
