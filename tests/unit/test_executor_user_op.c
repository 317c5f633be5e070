// Ops that the program registers, on the host and on the fake driver: right in every run, whatever
// they do in a capture; found, bypassed and remembered where they cannot be captured; from models
// and from the builder; bad definitions and bad functions.
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

#include "executor/verdict.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake_cuda.h"
#include "support/user_ops.h"

enum { CHAIN = 100 };

static rondo_device *device;

static int open_host(void **state) {
    (void)state;
    user_ops_reset();
    OK(user_ops_register());
    OK(rondo_device_open("host", &device));
    return 0;
}

static int open_fake(void **state) {
    (void)state;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    user_ops_reset();
    OK(user_ops_register());
    OK(rondo_device_open("cuda:0", &device));
    return 0;
}

static int close_host(void **state) {
    (void)state;
    user_ops_reset();
    rondo_device_release(device);
    return 0;
}

static int close_fake(void **state) {
    (void)close_host(state);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
    return 0;
}

// ---- chains -----------------------------------------------------------------------------------

typedef struct chain {
    rondo_program *program;
    rondo_executor *executor;
    size_t count;
} chain;

static void open_chain(chain *c, size_t count, const char *const *faults,
                       rondo_graphs_mode graphs) {
    const rondo_executor_options options = {.struct_size = sizeof options, .graphs = graphs};
    c->count = count;
    OK(user_ops_build_chain(count, faults, &c->program));
    OK(rondo_executor_create(c->program, device, &options, &c->executor));
}

static void close_chain(chain *c) {
    rondo_executor_destroy(c->executor);
    rondo_program_destroy(c->program);
}

static void run_chain(chain *c) {
    float y[USER_OPS_WIDTH];
    OK(user_ops_run_chain(c->executor, y));
    for (size_t i = 0; i < USER_OPS_WIDTH; ++i) {
        assert_true(y[i] == (float)c->count);
    }
}

static rondo_executor_stats get_stats(const chain *c) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(c->executor, &stats));
    return stats;
}

static void expect_counts(const chain *c, size_t segments, size_t bypassed) {
    const rondo_executor_stats stats = get_stats(c);
    if (stats.segment_count != segments || stats.bypassed_count != bypassed) {
        fail_msg("%zu segments and %zu bypassed, not %zu and %zu", (size_t)stats.segment_count,
                 (size_t)stats.bypassed_count, segments, bypassed);
    }
    assert_int_equal(stats.op_count, c->count);
    assert_int_equal(stats.node_count, c->count - bypassed);  // all else is in graphs
}

// A fault at each place of a long chain: found, bypassed, and known to the next executor.
static void plant_everywhere(const char *fault) {
    for (size_t at = 0; at < CHAIN; ++at) {
        const char *faults[CHAIN] = {NULL};
        const size_t segments = at == 0 || at == CHAIN - 1 ? 1 : 2;
        faults[at] = fault;
        user_ops_reset();
        chain c;
        open_chain(&c, CHAIN, faults, RONDO_GRAPHS_AUTO);
        for (int run = 0; run < 4; ++run) {
            run_chain(&c);
        }
        expect_counts(&c, segments, 1);
        chain again;
        open_chain(&again, CHAIN, faults, RONDO_GRAPHS_ON);
        run_chain(&again);
        const size_t before = user_ops_count_launches();
        run_chain(&again);
        assert_int_equal(user_ops_count_launches() - before, CHAIN);  // nothing is tried in vain
        run_chain(&again);
        assert_int_equal(user_ops_count_launches() - before, CHAIN + 1);
        expect_counts(&again, segments, 1);
        close_chain(&again);
        close_chain(&c);
    }
}

static void test_executor_user_op__planted_everywhere(void **state) {
    (void)state;
    static const char *const faults[] = {"wait", "wait_silently", "refuse", "fork"};
    for (size_t f = 0; f < sizeof faults / sizeof *faults; ++f) {
        plant_everywhere(faults[f]);
    }
}

// What comes of a chain of eight after some runs.
typedef struct story {
    const char *text;
    const char *faults[8];
    int runs;
    size_t segments;
    size_t bypassed;
} story;

static void test_executor_user_op__stories(void **state) {
    (void)state;
    static const story stories[] = {
        {"nothing is wrong", {NULL}, 2, 1, 0},
        {"two at once", {NULL, "wait", NULL, NULL, "refuse", NULL, NULL, NULL}, 2, 3, 2},
        {"two beside each other", {NULL, NULL, "wait", "fork", NULL, NULL, NULL, NULL}, 2, 2, 2},
        {"all of them", {"wait", "wait", "wait", "wait", "wait", "wait", "wait", "wait"}, 2, 0, 8},
        {"one that fails once", {NULL, NULL, NULL, "once", NULL, NULL, NULL, NULL}, 2, 1, 0},
        {"by its neighbour",
         {NULL, NULL, "neighbour", "neighbour", NULL, NULL, NULL, NULL},
         2,
         2,
         0},
        {"no memory, once", {NULL, NULL, "memory_once", NULL, NULL, NULL, NULL, NULL}, 6, 1, 0},
        {"no memory, always",
         {NULL, NULL, "allocate_in_vain", NULL, NULL, NULL, NULL, NULL},
         12,
         2,
         1},
    };
    for (size_t s = 0; s < sizeof stories / sizeof *stories; ++s) {
        user_ops_reset();
        chain c;
        print_message("%s\n", stories[s].text);
        open_chain(&c, 8, stories[s].faults, RONDO_GRAPHS_AUTO);
        for (int run = 0; run < stories[s].runs; ++run) {
            run_chain(&c);
        }
        expect_counts(&c, stories[s].segments, stories[s].bypassed);
        run_chain(&c);
        close_chain(&c);
    }
}

// An op that fails in every launch fails the run, by its name and its tensor's; the next run works.
static void test_executor_user_op__failure(void **state) {
    (void)state;
    const char *const faults[5] = {NULL, NULL, "always", NULL, NULL};
    chain c;
    float y[USER_OPS_WIDTH];
    open_chain(&c, 5, faults, RONDO_GRAPHS_AUTO);
    for (int round = 0; round < 3; ++round) {
        user_ops_set_failing(true);
        // Once it is in a graph, nobody asks it.
        if (round == 0) {
            assert_int_equal(user_ops_run_chain(c.executor, y), RONDO_STATUS_DRIVER);
            assert_non_null(strstr(rondo_error_get_last()->message, "step_2"));
            assert_non_null(strstr(rondo_error_get_last()->message, "\"t3\""));
            assert_string_equal(rondo_error_get_last()->op, "step_2");
        }
        user_ops_set_failing(false);
        run_chain(&c);
    }
    close_chain(&c);
}

int main(void) {
    const struct CMUnitTest host[] = {
        cmocka_unit_test_setup_teardown(test_executor_user_op__planted_everywhere, open_host,
                                        close_host),
        cmocka_unit_test_setup_teardown(test_executor_user_op__stories, open_host, close_host),
        cmocka_unit_test_setup_teardown(test_executor_user_op__failure, open_host, close_host),
    };
    const struct CMUnitTest fake[] = {
        cmocka_unit_test_setup_teardown(test_executor_user_op__planted_everywhere, open_fake,
                                        close_fake),
        cmocka_unit_test_setup_teardown(test_executor_user_op__stories, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(test_executor_user_op__failure, open_fake, close_fake),
    };
    rondo_log_set_level(RONDO_LOG_ERROR);
    const int failures = cmocka_run_group_tests_name("host", host, NULL, NULL);
    return failures + cmocka_run_group_tests_name("fake", fake, NULL, NULL);
}
