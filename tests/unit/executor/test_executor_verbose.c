// What RONDO_GRAPHS_VERBOSE tells, and how much of it; nodes named after their ops; and what a run
// says of itself when only a part of it was replayed.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/models/add_program.h"
#include "support/models/user_ops.h"
#include "support/test.h"

static char told[16384];  // the log's lines
static size_t told_length;

static void keep_line(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    const int length = snprintf(told + told_length, sizeof told - told_length, "%s\n", message);
    told_length += length > 0 && (size_t)length < sizeof told - told_length ? (size_t)length : 0;
}

static size_t count(const char *text) {
    size_t found = 0;
    for (const char *at = strstr(told, text); at != NULL; at = strstr(at + 1, text)) {
        found += 1;
    }
    return found;
}

static void expect(const char *text, size_t times) {
    if (count(text) != times) {
        fail_msg("\"%s\" stands %zu times, not %zu, in:\n%s", text, count(text), times, told);
    }
}

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
} world;

static void open_world(world *w, const char *level, const char *limit, size_t length,
                       const char *const *faults) {
    user_ops_reset();
    OK(user_ops_register());
    told_length = 0;
    told[0] = '\0';
    rondo_log_set_sink(keep_line, NULL);
    rondo_log_set_level(RONDO_LOG_ERROR);
    assert_int_equal(
        level != NULL ? setenv("RONDO_GRAPHS_VERBOSE", level, 1) : unsetenv("RONDO_GRAPHS_VERBOSE"),
        0);
    assert_int_equal(limit != NULL ? setenv("RONDO_GRAPHS_MAX_LOG_ENTRIES", limit, 1)
                                   : unsetenv("RONDO_GRAPHS_MAX_LOG_ENTRIES"),
                     0);
    OK(rondo_device_open("host", &w->device));
    OK(user_ops_build_chain(length, faults, &w->program));
    OK(rondo_executor_create(w->program, w->device, NULL, &w->executor));
}

static void run(world *w, int times) {
    float y[USER_OPS_WIDTH];
    for (int i = 0; i < times; ++i) {
        OK(user_ops_run_chain(w->executor, y));
    }
}

static void close_world(world *w) {
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
    rondo_log_set_sink(NULL, NULL);
    (void)unsetenv("RONDO_GRAPHS_VERBOSE");
    (void)unsetenv("RONDO_GRAPHS_MAX_LOG_ENTRIES");
}

static const char *const faults[] = {NULL, NULL, "wait", NULL, NULL};

TEST(test_executor_verbose__graphs_and_bypasses) {
    world w;
    open_world(&w, "1", NULL, 5, faults);
    run(&w, 4);
    expect("graphs: graph 0 made of segment 0: 2 nodes, 2 ops, Step \"step_0\" to Step \"step_1\"",
           1);
    expect("graphs: graph 1 made of segment 2: 2 nodes, 2 ops", 1);
    expect("graphs: bypassed, step 1: Step \"step_2\": a call waited for", 1);
    expect("It would be captured with a launch that neither waits", 1);
    expect("graphs: run: 0 graphs, 0 ops bypassed", 1);
    expect("graphs: run: 2 graphs, 1 op bypassed", 3);
    expect("node 0", 0);
    close_world(&w);
}

static bool keep_text(void *user_data, const char *text, size_t bytes) {
    (void)bytes;
    keep_line(user_data, RONDO_LOG_INFO, text);
    return true;
}

// The description of a plan says it, too: once as text, at the bypass; as data for each step that a
// bypass is the end of.
TEST(test_executor_verbose__descriptions_say_what_would_help) {
    world w;
    open_world(&w, NULL, NULL, 5, faults);
    run(&w, 4);
    told_length = 0;
    OK(rondo_executor_describe(w.executor, RONDO_TEXT_PLAIN, keep_text, NULL));
    expect("a call waited for", 2);
    expect("It would be captured with a launch that neither waits", 1);
    told_length = 0;
    OK(rondo_executor_describe(w.executor, RONDO_TEXT_JSON, keep_text, NULL));
    expect("\"remedy\": \"a launch that neither waits", 2);
    expect("\"remedy\": \"\"", 1);
    close_world(&w);
}

// Each node says which op it is of.
TEST(test_executor_verbose__nodes) {
    world w;
    open_world(&w, "2", NULL, 5, faults);
    run(&w, 2);
    expect("  node 0: host function step of Step step_0", 1);
    expect("  node 1: host function step of Step step_4", 1);
    close_world(&w);
}

// On the fake driver: the first addition on the processor, so that its sum crosses. Each op and
// copy of a replay has a line, and the nodes of the graph say what the driver does.
TEST(test_executor_verbose__each_replay_is_logged) {
    static const char *const place[] = {"Add_0=cpu"};
    const rondo_executor_options options = {
        .struct_size = sizeof options, .op_by_op = true, .place = place, .place_count = 1};
    world w = {0};
    float values[ADD_COUNT] = {1};
    fake_cuda_reset(NULL);
    fake_cuda_install();
    add_program_prepare_fake();
    assert_int_equal(setenv("RONDO_GRAPHS_VERBOSE", "2", 1), 0);
    told_length = 0;
    told[0] = '\0';
    rondo_log_set_sink(keep_line, NULL);
    rondo_log_set_level(RONDO_LOG_DEBUG);
    OK(rondo_device_open("cuda:0", &w.device));
    OK(add_program_create(w.device, RONDO_GRAPHS_ON, &w.program, &w.executor));
    rondo_executor_destroy(w.executor);
    OK(rondo_executor_create(w.program, w.device, &options, &w.executor));
    for (int run = 0; run < 4; ++run) {
        const rondo_binding feed = {"x", {RONDO_DTYPE_F32, add_shape, values, NULL, NULL}};
        rondo_binding fetch = {.name = "y"};
        OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
        rondo_tensor_deinit(&fetch.tensor);
    }
    expect("op: Add \"Add_0\" on the processor, run", 4);
    expect("op: Add \"Add_1\" on cuda:0, in a graph", 3);
    expect("transfer: Add \"Add_1\" takes \"s\" f32 [64] from the host to cuda:0, 256 bytes", 4);
    expect("256 bytes, in a graph", 3);
    expect(", grid 1 x 1 x 1, block ", 1);
    expect(", host to device, 256 bytes", 1);
    close_world(&w);
    fake_cuda_uninstall();
}

TEST(test_executor_verbose__limit) {
    world w;
    open_world(&w, "1", "3", 5, faults);
    run(&w, 8);
    expect("graphs: ", 4);
    expect("that is all of this executor: RONDO_GRAPHS_MAX_LOG_ENTRIES is 3", 1);
    close_world(&w);
}

TEST(test_executor_verbose__quiet) {
    static const char *const levels[] = {NULL, "", "0"};
    for (size_t i = 0; i < 3; ++i) {
        world w;
        open_world(&w, levels[i], NULL, 5, NULL);
        run(&w, 3);
        expect("graphs: ", 0);
        close_world(&w);
    }
}

// A run counts as replayed when most of it was.
TEST(test_executor_verbose__share) {
    static const char *const mostly[] = {"wait", NULL, NULL, NULL, NULL};
    static const char *const hardly[] = {"wait", "wait", "wait", "wait", NULL};
    const struct {
        const char *const *faults;
        uint64_t replayed;
    } rows[] = {{NULL, 5}, {mostly, 4}, {hardly, 1}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
        world w;
        rondo_run_times times = {.struct_size = sizeof times};
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        open_world(&w, NULL, NULL, 5, rows[r].faults);
        run(&w, 1);
        OK(rondo_executor_get_times(w.executor, &times));
        assert_int_equal(times.ran_op_count, 5);
        assert_int_equal(times.replayed_op_count, 0);
        assert_false(times.was_replayed);
        run(&w, 2);
        OK(rondo_executor_rerun(w.executor));
        OK(rondo_executor_get_times(w.executor, &times));
        OK(rondo_executor_get_stats(w.executor, &stats));
        assert_int_equal(times.ran_op_count, 5);
        assert_int_equal(times.replayed_op_count, rows[r].replayed);
        assert_int_equal(times.was_replayed, rows[r].replayed > 2);
        assert_int_equal(stats.replay_run_count, rows[r].replayed > 2 ? 3 : 0);
        close_world(&w);
    }
}

TEST_MAIN()
