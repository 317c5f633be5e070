// Executors of one program on two GPUs of the fake driver and on the host at once, from several
// threads; copies between the GPUs; a run that another thread cancels while it is compiled, runs or
// checks itself.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/device_crew.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_flow.h"
#include "support/fake/fake_random.h"
#include "support/test.h"

enum { DEVICES = 3, THREADS = 3 };

static rondo_device *g_devices[DEVICES];
static rondo_program *g_program;

static int open_all(void **state) {
    static const char *const names[DEVICES] = {"cuda:0", "host", "cuda:1"};
    static const fake_cuda_options options = {
        .device_count = 2, .driver_version = 13000, .has_get_proc_address = true};
    (void)state;
    fake_cuda_reset(&options);
    fake_cuda_install();
    fake_cuda_install_compiler();
    fake_random_set_kernels();
    fake_flow_set_kernels();
    for (int i = 0; i < DEVICES; ++i) {
        OK(rondo_device_open(names[i], &g_devices[i]));
    }
    OK(device_crew_build(&g_program));
    return 0;
}

static int close_all(void **state) {
    (void)state;
    rondo_program_destroy(g_program);
    for (int i = 0; i < DEVICES; ++i) {
        rondo_device_release(g_devices[i]);
    }
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
    return 0;
}

TEST(test_executor_devices__at_once) {
    device_crew_run(g_program, g_devices, DEVICES, THREADS, 4, RONDO_DTYPE_F32);
}

TEST(test_executor_devices__at_once_in_half_precision) {
    device_crew_run(g_program, g_devices, DEVICES, THREADS, 3, RONDO_DTYPE_F16);
}

TEST(test_executor_devices__bytes_go_round) {
    device_crew_pass_round(g_devices, DEVICES);
}

// ---- cancelling ---------------------------------------------------------------------------------

typedef struct canceller {
    rondo_executor *executor;
    atomic_bool is_over;
} canceller;

static void *cancel(void *data) {
    canceller *c = data;
    while (!atomic_load(&c->is_over)) {
        (void)!rondo_executor_cancel(c->executor);
    }
    return NULL;
}

// The run ends by itself or by the word of the other thread, and the next one works.
TEST(test_executor_devices__cancelled_by_another_thread) {
    for (int d = 0; d < DEVICES; ++d) {
        for (int64_t batch = 1; batch < 12; ++batch) {  // each is compiled
            rondo_executor_options options = {.struct_size = sizeof options, .thread_count = 1};
            float x[12 * 8] = {1};
            rondo_binding feed = {"x", {RONDO_DTYPE_F32, {2, {batch, 8}}, x, NULL, NULL}};
            options.self_check_every = (uint64_t)(batch % 3);
            canceller c = {.is_over = false};
            OK(rondo_executor_create(g_program, g_devices[d], &options, &c.executor));
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, cancel, &c), 0);
            for (int i = 0; i < 4; ++i) {
                const rondo_status status = rondo_executor_run(c.executor, &feed, 1, NULL, 0);
                assert_true(status == RONDO_STATUS_OK || status == RONDO_STATUS_CANCELLED);
            }
            atomic_store(&c.is_over, true);
            pthread_join(thread, NULL);
            OK(rondo_executor_run(c.executor, &feed, 1, NULL, 0));
            OK(rondo_executor_run(c.executor, &feed, 1, NULL, 0));
            rondo_executor_destroy(c.executor);
        }
    }
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return test_run("tests", g_listed, open_all, close_all, NULL, NULL);
}
