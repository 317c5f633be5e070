// Fail the nth for a bound run, and for runs by names that the executor binds: every driver call
// (on the fake driver) and every allocation (there and on the host) fails once while it runs,
// becomes one graph, and takes other tensors. Whatever
// fails: the failing call wrote a fresh record, runs that succeed are right, the next ones work,
// and nothing is left behind.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/models/add_program.h"
#include "support/sweep.h"

enum { RUNS = 12, PINNED_SECOND = 8 };

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_bound_run *run;
    rondo_tensor x[2], near, s;  // pinned, and of the device
    float y[ADD_COUNT];
} world;

static const rondo_shape shape = {.rank = 1, .extent = {ADD_COUNT}};

static rondo_tensor view(void *data) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = shape, .data = data};
}

static rondo_status run_once(world *w, const float *x, float first) {
    add_program_fill((float *)(uintptr_t)x, first);
    memset(w->y, 0, sizeof w->y);
    const rondo_status status = rondo_bound_run_run(w->run);
    if (status == RONDO_STATUS_OK) {
        assert_int_equal(add_program_check(w->y, first, true), ADD_COUNT);
    }
    return status;
}

// The same by names, with tensors of the device.
static rondo_status run_by_names(world *w, float first) {
    const rondo_binding feed = {"x", w->near};
    rondo_binding fetch = {"s", w->s};
    const rondo_tensor from = view(w->y);
    rondo_stream *stream = NULL;
    add_program_fill(w->y, first);
    rondo_status status = rondo_stream_create(w->device, NULL, &stream);
    status = status == RONDO_STATUS_OK ? rondo_tensor_copy(stream, &from, &w->near) : status;
    status = status == RONDO_STATUS_OK ? rondo_stream_synchronize(stream) : status;
    if (status == RONDO_STATUS_OK) {
        status = rondo_executor_run(w->executor, &feed, 1, &fetch, 1);
    }
    status = status == RONDO_STATUS_OK ? rondo_tensor_copy(stream, &w->s, &from) : status;
    status = status == RONDO_STATUS_OK ? rondo_stream_synchronize(stream) : status;
    if (status == RONDO_STATUS_OK) {
        assert_int_equal(add_program_check(w->y, first, false), ADD_COUNT);
    }
    rondo_stream_destroy(stream);
    return status;
}

static void work(world *w, const char *device_name) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .thread_count = 1, .graphs = RONDO_GRAPHS_ON};
    const rondo_tensor y = view(w->y);
    STEP(rondo_device_open(device_name, &w->device));
    for (int i = 0; i < 2; ++i) {
        w->x[i] = view(NULL);
        STEP(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, sizeof w->y, &w->x[i].data));
    }
    STEP(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &shape, &w->near));
    STEP(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &shape, &w->s));
    STEP(add_program_build(&w->program));
    STEP(rondo_executor_create(w->program, w->device, &options, &w->executor));
    STEP(rondo_bound_run_create(w->executor, &w->run));
    STEP(rondo_bound_run_set_feed(w->run, "x", &w->x[0]));
    STEP(rondo_bound_run_set_fetch(w->run, "y", &y));
    STEP(rondo_bound_run_set_fetch(w->run, "s", &w->s));
    for (int i = 0; i < RUNS; ++i) {
        if (i == PINNED_SECOND) {
            STEP(rondo_bound_run_set_feed(w->run, "x", &w->x[1]));
        }
        STEP(run_once(w, w->x[i >= PINNED_SECOND].data, (float)i));
    }
    for (int i = 0; i < RUNS; ++i) {
        STEP(run_by_names(w, (float)(20 + i)));
    }
}

static void recover(world *w, const sweep_point *point) {
    const rondo_tensor y = view(w->y);
    // A code that poisons the context leaves nothing that could run.
    const bool is_lost = point->code == RONDO__CU_ERROR_LAUNCH_FAILED;
    if (w->run == NULL || rondo_bound_run_set_feed(w->run, "x", &w->x[0]) != RONDO_STATUS_OK ||
        rondo_bound_run_set_fetch(w->run, "y", &y) != RONDO_STATUS_OK ||
        rondo_bound_run_set_fetch(w->run, "s", &w->s) != RONDO_STATUS_OK) {
        return;
    }
    for (int i = 0; i < 5; ++i) {
        const rondo_status status = run_once(w, w->x[0].data, (float)(100 + i));
        if (status != RONDO_STATUS_OK && !(is_lost && status == RONDO_STATUS_LOST)) {
            sweep_fail(point, "afterwards run %d: %s: %s", i, rondo_error_get_last()->op,
                       rondo_error_get_last()->message);
        }
    }
    for (int i = 0; i < 5 && !is_lost; ++i) {
        if (run_by_names(w, (float)(200 + i)) != RONDO_STATUS_OK) {
            sweep_fail(point, "afterwards run %d by names: %s: %s", i, rondo_error_get_last()->op,
                       rondo_error_get_last()->message);
        }
    }
}

static void run_round(const sweep_point *point) {
    world w = {.device = NULL};
    work(&w, point->device_name);
    (void)sweep_lift();
    recover(&w, point);
    rondo_bound_run_destroy(w.run);
    rondo_executor_destroy(w.executor);
    rondo_program_destroy(w.program);
    rondo_tensor_deinit(&w.near);
    rondo_tensor_deinit(&w.s);
    for (int i = 0; i < 2; ++i) {
        rondo_memory_free(w.device, w.x[i].data);
    }
    rondo_device_release(w.device);
}

TEST(test_bound_run_sweep__fake) {
    setenv("RONDO_CACHE_DIR", "", 1);
    const sweep_subject subject = {
        .run = run_round, .prepare = add_program_prepare_fake, .dense = 100};
    const sweep_count count = sweep_on_fake("bound run", &subject);
    assert_true(count.driver_calls > 100 && count.allocations > 100);
}

TEST(test_bound_run_sweep__host) {
    const sweep_subject subject = {.run = run_round, .dense = 100};
    assert_true(sweep_allocations(&subject, "host") > 50);
}

TEST_MAIN()
