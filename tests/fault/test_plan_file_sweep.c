// Fail the nth for plan files: every driver call (on the fake driver) and every allocation (there
// and on the host) fails once while an executor is saved, loaded and run again. Whatever fails: the
// failing call wrote a fresh record, a file is there whole or not at all, a run that succeeds gives
// the right result, and nothing is left behind.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rondo/models.h"
#include "support/models/add_program.h"
#include "support/sweep.h"

static char g_path[64];

typedef struct world {
    rondo_device *device;
    rondo_program *program, *loaded_program;
    rondo_executor *executor, *loaded;
} world;

static void work(world *w, const char *device_name) {
    STEP(rondo_device_open(device_name, &w->device));
    STEP(add_program_create(w->device, RONDO_GRAPHS_AUTO, &w->program, &w->executor));
    STEP(add_program_run(w->executor, 1.0f));
    STEP(rondo_executor_save(w->executor, g_path));
    const rondo_plan_options options = {.struct_size = sizeof options, .made_of = w->program};
    STEP(rondo_executor_load(g_path, w->device, NULL, &options, &w->loaded_program, &w->loaded));
    for (int i = 0; i < 3; ++i) {
        STEP(add_program_run(w->loaded, (float)i));
    }
}

static void run_round(const sweep_point *point) {
    world w = {0};
    (void)unlink(g_path);
    work(&w, point->device_name);
    (void)sweep_lift();
    if (access(g_path, F_OK) == 0) {  // whole
        rondo_program *program = NULL;
        OK(rondo_program_load_plan(g_path, NULL, &program));
        rondo_program_destroy(program);
    }
    rondo_executor_destroy(w.loaded);
    rondo_program_destroy(w.loaded_program);
    rondo_executor_destroy(w.executor);
    rondo_program_destroy(w.program);
    rondo_device_release(w.device);
}

static const sweep_subject subject = {
    .run = run_round, .prepare = add_program_prepare_fake, .dense = 150};

TEST(test_plan_file_sweep__fake_driver) {
    const sweep_count count = sweep_on_fake("plan files", &subject);
    assert_true(count.driver_calls > 10 && count.allocations > 100);
}

TEST(test_plan_file_sweep__host) {
    assert_true(sweep_allocations(&subject, "host") > 100);
}

static int choose_path(void **state) {
    (void)state;
    // In memory where that is possible: thousands of files are written.
    (void)snprintf(g_path, sizeof g_path, "%s/rondo_plan_sweep_XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    const int file = mkstemp(g_path);
    rondo_log_set_sink(sweep_ignore_line, NULL);
    return file >= 0 && close(file) == 0 ? 0 : -1;
}

static int remove_path(void **state) {
    (void)state;
    (void)unlink(g_path);
    return 0;
}

int main(void) {
    return RUN_TESTS(choose_path, remove_path);
}
