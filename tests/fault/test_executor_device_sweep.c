// Fail the nth for two executors that share a program with ops that draw, a bypassed op and a loop:
// every driver call (on the fake driver) and every allocation (there and on the host) fails once
// while they compile, run eagerly, capture, replay and check themselves. Whatever fails: the
// failing call wrote a fresh record, runs that succeed give results that agree with each other, the
// next runs of both work, and nothing is left behind.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/device_crew.h"
#include "support/fake/fake_flow.h"
#include "support/fake/fake_random.h"
#include "support/sweep.h"

enum { EXECUTORS = 2, BATCH = 3, WIDTH = 8, COUNT = BATCH * WIDTH };

typedef struct row {
    const char *name;
    rondo_dtype dtype;
    uint64_t self_check_every;
    rondo_graphs_mode graphs;
} row;

typedef struct world {
    const row *row;
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executors[EXECUTORS];
} world;

// What the loop makes is eight times what goes in, exactly.
static rondo_status run_once(rondo_executor *executor) {
    float x[COUNT];
    float y[COUNT];
    float sum[COUNT];
    rondo_binding feed = {"x", {RONDO_DTYPE_F32, {2, {BATCH, WIDTH}}, x, NULL, NULL}};
    rondo_binding fetches[] = {{"y", {RONDO_DTYPE_F32, {2, {BATCH, WIDTH}}, y, NULL, NULL}},
                               {"sum", {RONDO_DTYPE_F32, {2, {BATCH, WIDTH}}, sum, NULL, NULL}},
                               {.name = "places"}};
    for (int i = 0; i < COUNT; ++i) {
        x[i] = (float)(i % 5) - 2.0f;
    }
    rondo_status status = rondo_executor_run(executor, &feed, 1, fetches, 3);
    for (int i = 0; i < COUNT && status == RONDO_STATUS_OK; ++i) {
        assert_true(y[i] > 0.0f && sum[i] == 8.0f * y[i]);
    }
    rondo_tensor_deinit(&fetches[2].tensor);
    return status;
}

static void work(world *w, const char *device_name) {
    rondo_executor_options options = {.struct_size = sizeof options, .thread_count = 1};
    options.dtype = w->row->dtype;
    options.graphs = w->row->graphs;
    options.self_check_every = w->row->self_check_every;
    STEP(rondo_device_open(device_name, &w->device));
    STEP(device_crew_build(&w->program));
    for (int e = 0; e < EXECUTORS; ++e) {
        STEP(rondo_executor_create(w->program, w->device, &options, &w->executors[e]));
    }
    for (int run = 0; run < 3; ++run) {
        for (int e = 0; e < EXECUTORS; ++e) {
            STEP(run_once(w->executors[e]));
        }
    }
}

static void recover(world *w, const sweep_point *point) {
    for (int run = 0; run < 2; ++run) {
        for (int e = 0; e < EXECUTORS; ++e) {
            const rondo_status status =
                w->executors[e] != NULL ? run_once(w->executors[e]) : RONDO_STATUS_OK;
            // A code that poisons the context leaves nothing that could run.
            const bool is_lost = point->code == RONDO__CU_ERROR_LAUNCH_FAILED;
            if (status != RONDO_STATUS_OK && !(is_lost && status == RONDO_STATUS_LOST)) {
                sweep_fail(point, "afterwards run %d of executor %d: %s: %s", run, e,
                           rondo_error_get_last()->op, rondo_error_get_last()->message);
            }
        }
    }
}

static void run_round(const sweep_point *point) {
    world w = {.row = point->data};
    work(&w, point->device_name);
    (void)sweep_lift();
    recover(&w, point);
    for (int e = 0; e < EXECUTORS; ++e) {
        rondo_executor_destroy(w.executors[e]);
    }
    rondo_program_destroy(w.program);
    rondo_device_release(w.device);
}

static void prepare_fake(void) {
    fake_random_set_kernels();
    fake_flow_set_kernels();
    fake_cuda_install_compiler();
}

static const row rows[] = {
    {"f32", RONDO_DTYPE_F32, 0, RONDO_GRAPHS_AUTO},
    {"f32, graphs on", RONDO_DTYPE_F32, 0, RONDO_GRAPHS_ON},
    {"f16", RONDO_DTYPE_F16, 0, RONDO_GRAPHS_AUTO},
    {"f32, checked", RONDO_DTYPE_F32, 2, RONDO_GRAPHS_AUTO},
};

TEST(test_executor_device_sweep__fake) {
    setenv("RONDO_CACHE_DIR", "", 1);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        const sweep_subject subject = {
            .run = run_round, .data = &rows[r], .prepare = prepare_fake, .dense = 60};
        const sweep_count count = sweep_on_fake(rows[r].name, &subject);
        assert_true(count.driver_calls > 100 && count.allocations > 100);
    }
}

TEST(test_executor_device_sweep__host) {
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        const sweep_subject subject = {.run = run_round, .data = &rows[r], .dense = 60};
        const size_t points = sweep_allocations(&subject, "host");
        print_message("%s on the host: swept %zu allocations\n", rows[r].name, points);
        assert_true(points > 100);
    }
}

TEST_MAIN()
