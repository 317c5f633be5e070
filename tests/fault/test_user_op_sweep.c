// Fail the nth for ops of the program's own and for the search of those that cannot be captured:
// every driver call (on the fake driver) and every allocation (there and on the host) fails once,
// in turn, while a chain with an op that waits in its launch is built, run, captured and replayed.
// Whatever fails: the failing call wrote a fresh record, nothing stays behind, what was computed is
// right, and the next run of the same executor works unless the device is lost.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/models.h"
#include "support/models/user_ops.h"
#include "support/sweep.h"

enum { LENGTH = 4, RUNS = 3 };

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
} world;

static rondo_status run_chain(rondo_executor *executor) {
    float y[USER_OPS_WIDTH];
    const rondo_status status = user_ops_run_chain(executor, y);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < USER_OPS_WIDTH; ++i) {
        assert_true(y[i] == (float)LENGTH);
    }
    return status;
}

static void work(world *w, const sweep_point *point) {
    const char *const faults[LENGTH] = {NULL, point->data, NULL, NULL};
    STEP(rondo_device_open(point->device_name, &w->device));
    STEP(user_ops_build_chain(LENGTH, faults, &w->program));
    STEP(rondo_executor_create(w->program, w->device, NULL, &w->executor));
    for (int run = 0; run < RUNS; ++run) {
        STEP(run_chain(w->executor));
    }
}

static void run_round(const sweep_point *point) {
    world w = {0};
    user_ops_reset();
    work(&w, point);
    (void)sweep_lift();
    for (int run = 0; w.executor != NULL && run < RUNS; ++run) {
        const rondo_status status = run_chain(w.executor);
        if (status == RONDO_STATUS_LOST) {
            break;
        }
        if (status != RONDO_STATUS_OK) {
            sweep_fail(point, "run %d afterwards: %s", run, rondo_error_get_last()->message);
        }
    }
    rondo_executor_destroy(w.executor);
    rondo_program_destroy(w.program);
    user_ops_reset();  // its streams
    rondo_device_release(w.device);
}

static const char *const faults[] = {"wait", "wait_silently", "once"};

TEST(test_user_op_sweep__fake_driver) {
    OK(user_ops_register());
    for (size_t f = 0; f < sizeof faults / sizeof *faults; ++f) {
        const sweep_subject subject = {.run = run_round, .data = faults[f]};
        const sweep_count count = sweep_on_fake(faults[f], &subject);
        assert_true(count.driver_calls > 50 && count.allocations > 20);
    }
}

TEST(test_user_op_sweep__host) {
    OK(user_ops_register());
    for (size_t f = 0; f < sizeof faults / sizeof *faults; ++f) {
        const sweep_subject subject = {.run = run_round, .data = faults[f]};
        assert_true(sweep_allocations(&subject, "host") > 20);
    }
}

int main(void) {
    rondo_log_set_sink(sweep_ignore_line, NULL);
    return RUN_TESTS(NULL, NULL);
}
