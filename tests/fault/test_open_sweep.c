// Fail the nth for executors inside a program's own work: every driver call (on the fake driver)
// and every allocation (there and on the host) fails once, in turn, while device tensors are fed
// and fetched, runs are not waited for, a model is recorded, states and weights change, and ops are
// called one by one. Whatever fails: the call wrote a fresh record, nothing stays behind, and where
// the device lives the next run is right.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"

// What a function returns when a STEP in it failed.
#define STEP_RESULT false
#include "support/models/add_program.h"
#include "support/sweep.h"

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_program *program;
    rondo_executor *executor;
    rondo_graph *graph;
    rondo_event *done;
    rondo_op *op;
    rondo_tensor x, y, s;
    float host_x[ADD_COUNT], host_y[ADD_COUNT], read[ADD_COUNT];
} world;

static bool open_world(world *w, const char *device_name) {
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    STEP(rondo_device_open(device_name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_graph_create(w->device, NULL, &w->graph));
    STEP(rondo_event_create(w->device, 0, &w->done));
    STEP(add_program_build(&w->program));
    options.stream = w->stream;
    STEP(rondo_executor_create(w->program, w->device, &options, &w->executor));
    STEP(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &w->x));
    STEP(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &w->y));
    STEP(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &w->s));
    return true;
}

static void close_world(world *w) {
    rondo_op_destroy(w->op);
    rondo_executor_destroy(w->executor);
    rondo_graph_destroy(w->graph);  // behind the executor, which its nodes need
    rondo_tensor_deinit(&w->x);
    rondo_tensor_deinit(&w->y);
    rondo_tensor_deinit(&w->s);
    rondo_event_destroy(w->done);
    rondo_stream_destroy(w->stream);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
}

static bool run_models(world *w) {
    const rondo_binding near_x = {"x", w->x};
    const rondo_binding far_x = {"x", add_program_on_host(w->host_x)};
    rondo_binding fetches[] = {{"y", w->y}, {"s", add_program_on_host(w->read)}};
    add_program_fill(w->host_x, 3);
    const rondo_tensor start = add_program_on_host(w->host_x);
    STEP(rondo_tensor_copy(w->stream, &start, &w->x));
    for (int run = 0; run < 5; ++run) {  // the fourth learns where addresses stand
        STEP(rondo_executor_run(w->executor, &near_x, 1, fetches, 2));
        assert_int_equal(add_program_check(w->read, 3, false), ADD_COUNT);
    }
    for (int run = 0; run < 3; ++run) {
        rondo_binding made[] = {{"y", add_program_on_host(w->host_y)}, {.name = "s"}};
        made[1].tensor.device = w->device;
        STEP(rondo_executor_run_async(w->executor, &far_x, 1, made, 2, w->done));
        rondo_event *const done = w->done;
        const uint64_t sequence = rondo_error_get_last()->sequence;
        const rondo_status status = rondo_event_synchronize(done);
        rondo_tensor_deinit(&made[1].tensor);
        if (!sweep_step(status, sequence, "rondo_event_synchronize")) {
            return false;
        }
    }
    STEP(rondo_executor_wait(w->executor));
    assert_int_equal(add_program_check(w->host_y, 3, true), ADD_COUNT);
    return true;
}

static bool record_model(world *w) {
    const rondo_binding feed = {"x", w->x};
    const rondo_binding fetches[] = {{"y", w->y}, {"s", w->s}};
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_executor_record(w->executor, w->stream, &feed, 1, fetches, 2));
    STEP(rondo_graph_capture_end(w->graph));
    STEP(rondo_graph_replay(w->graph, w->stream));
    STEP(rondo_stream_synchronize(w->stream));
    STEP(rondo_graph_reset(w->graph));
    return true;
}

static bool keep_things(world *w) {
    rondo_binding fetch = {"s", add_program_on_host(w->read)};
    const rondo_binding feed = {"x", add_program_on_host(w->host_x)};
    STEP(rondo_executor_bind(w->executor, "s", "x"));
    for (int run = 0; run < 3; ++run) {
        STEP(rondo_executor_run(w->executor, &feed, run == 0, &fetch, 1));
    }
    assert_true(w->read[10] == 13 + 3 * 5);
    STEP(rondo_executor_reserve_variable(w->executor, "x", 4096));
    STEP(rondo_executor_run(w->executor, NULL, 0, &fetch, 1));
    assert_true(w->read[10] == 13 + 4 * 5);
    const rondo_binding onto = {"s", w->s};
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_executor_record(w->executor, w->stream, NULL, 0, &onto, 1));
    STEP(rondo_graph_capture_end(w->graph));
    STEP(rondo_graph_replay(w->graph, w->stream));
    STEP(rondo_stream_synchronize(w->stream));
    STEP(rondo_graph_reset(w->graph));
    STEP(rondo_executor_run(w->executor, NULL, 0, &fetch, 1));
    assert_true(w->read[10] == 13 + 6 * 5);
    STEP(rondo_executor_set_training(w->executor, true));
    STEP(rondo_executor_run(w->executor, NULL, 0, &fetch, 1));
    STEP(rondo_executor_set_training(w->executor, false));
    STEP(rondo_executor_bind(w->executor, NULL, "x"));
    float fresh[ADD_COUNT];
    for (size_t i = 0; i < ADD_COUNT; ++i) {
        fresh[i] = (float)i / 2;  // what they were
    }
    const rondo_tensor weights = add_program_on_host(fresh);
    STEP(rondo_executor_set_variable(w->executor, "w", &weights));
    STEP(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    return true;
}

static bool call_ops(world *w) {
    const rondo_tensor infos[] = {{.dtype = RONDO_DTYPE_F32, .shape = add_shape},
                                  add_program_on_host(w->host_x)};
    const rondo_tensor inputs[] = {w->x, {0}};
    STEP(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &w->op));
    STEP(rondo_op_put(w->op, w->stream, inputs, 2, &w->s, 1));
    STEP(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    STEP(rondo_op_put(w->op, w->stream, inputs, 2, &w->s, 1));
    STEP(rondo_graph_capture_end(w->graph));
    STEP(rondo_graph_replay(w->graph, w->stream));
    STEP(rondo_stream_synchronize(w->stream));
    return true;
}

// Failures are over: what records gives up, and a run is right.
static void check_recovery(world *w) {
    rondo_graph_capture_abort(w->graph);
    OK(rondo_graph_reset(w->graph));
    OK(rondo_executor_set_training(w->executor, false));
    (void)!rondo_executor_bind(w->executor, NULL, "x");
    (void)!rondo_executor_wait(w->executor);  // what the failed call left
    const rondo_binding feed = {"x", add_program_on_host(w->host_x)};
    rondo_binding fetch = {"y", add_program_on_host(w->read)};
    add_program_fill(w->host_x, 8);
    OK(rondo_executor_run(w->executor, &feed, 1, &fetch, 1));
    assert_int_equal(add_program_check(w->read, 8, true), ADD_COUNT);
}

static void run_round(const sweep_point *point) {
    static world w;
    memset(&w, 0, sizeof w);
    const bool is_open = open_world(&w, point->device_name);
    const bool is_done =
        is_open && run_models(&w) && record_model(&w) && keep_things(&w) && call_ops(&w);
    const bool has_failed = sweep_lift();
    assert_true(is_done || has_failed);
    // After a failing driver call the device may be lost, so there only what was made goes.
    if (is_open && point->code == RONDO__CU_SUCCESS) {
        check_recovery(&w);
    }
    close_world(&w);
}

TEST(test_open_sweep__fake_driver) {
    const sweep_subject subject = {
        .run = run_round,
        .prepare = add_program_prepare_fake,
        .codes = {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO__CU_ERROR_LAUNCH_FAILED}};
    setenv("RONDO_CACHE_DIR", "", 1);
    const sweep_count count = sweep_on_fake("open executors", &subject);
    assert_true(count.driver_calls > 300 && count.allocations > 300);
}

TEST(test_open_sweep__host) {
    const sweep_subject subject = {.run = run_round};
    assert_true(sweep_allocations(&subject, "host") > 300);
}

int main(void) {
    rondo_log_set_level(RONDO_LOG_ERROR);
    return RUN_TESTS(NULL, NULL);
}
