// What an executor keeps from run to run: states (outputs bound to inputs) and weights by name, on
// the host, a real GPU where there is one, and the fake driver.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rondo/rondo.h"
#include "support/add_program.h"
#include "support/expect_ok.h"
#include "support/fake_cuda.h"

static const char *device_name = "host";

static const rondo_shape add_shape = {.rank = 1, .extent = {ADD_COUNT}};

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    float x[ADD_COUNT], y[ADD_COUNT], s[ADD_COUNT];
} world;

static world *open_world(void) {
    static world w;
    w = (world){0};
    OK(rondo_device_open(device_name, &w.device));
    OK(add_program_build(&w.program));
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    OK(rondo_executor_create(w.program, w.device, &options, &w.executor));
    return &w;
}

static void close_world(world *w) {
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
    assert_string_equal(fake_cuda_get_violations(), "");
}

static rondo_tensor on_host(float *values) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = add_shape, .data = values};
}

static void expect_message(rondo_status status, rondo_status wanted, const char *text) {
    assert_int_equal(status, wanted);
    if (strstr(rondo_error_get_last()->message, text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, rondo_error_get_last()->message);
    }
}

static rondo_status run(world *w, bool feeds_x, bool waits) {
    const rondo_binding feed = {"x", on_host(w->x)};
    rondo_binding fetches[] = {{"y", on_host(w->y)}, {"s", on_host(w->s)}};
    const size_t count = feeds_x ? 1 : 0;
    if (waits) {
        return rondo_executor_run(w->executor, &feed, count, fetches, 2);
    }
    const rondo_status status =
        rondo_executor_run_async(w->executor, &feed, count, fetches, 2, NULL);
    return status != RONDO_STATUS_OK ? status : rondo_executor_wait(w->executor);
}

// Element 10 of x after so many runs with s = x + w bound to x.
static float get_tenth(float first, int runs) {
    return first + 10 + 5.0f * (float)runs;
}

static void test_executor_states__an_output_is_the_next_input(void **state) {
    (void)state;
    for (int waits = 0; waits < 2; ++waits) {
        world *w = open_world();
        OK(rondo_executor_bind(w->executor, "s", "x"));
        expect_message(run(w, false, waits != 0), RONDO_STATUS_INVALID,
                       "\"x\" is not fed, and its state has no value yet");
        add_program_fill(w->x, 2);
        OK(run(w, true, waits != 0));  // starts it
        assert_int_equal(add_program_check(w->s, 2, false), ADD_COUNT);
        for (int i = 2; i < 7; ++i) {
            OK(run(w, false, waits != 0));
            assert_true(w->s[10] == get_tenth(2, i));
            assert_true(w->y[10] == get_tenth(2, i) + get_tenth(2, i - 1));
        }
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        OK(rondo_executor_get_stats(w->executor, &stats));
        assert_true(stats.in_place_run_count >= 2);
        // Set, read, and fed again.
        add_program_fill(w->x, 40);
        const rondo_tensor start = on_host(w->x);
        OK(rondo_executor_set_variable(w->executor, "x", &start));
        OK(run(w, false, waits != 0));
        assert_int_equal(add_program_check(w->s, 40, false), ADD_COUNT);
        rondo_tensor now;
        OK(rondo_executor_get_variable(w->executor, "x", &now));
        assert_ptr_equal(now.device, w->device);
        float values[ADD_COUNT];
        const rondo_tensor to = on_host(values);
        OK(rondo_tensor_copy(rondo_executor_get_stream(w->executor), &now, &to));
        OK(rondo_stream_synchronize(rondo_executor_get_stream(w->executor)));
        assert_memory_equal(values, w->s, sizeof values);
        rondo_tensor_deinit(&now);
        add_program_fill(w->x, 1);
        OK(run(w, true, waits != 0));
        assert_int_equal(add_program_check(w->y, 1, true), ADD_COUNT);
        // A run that fails leaves it.
        rondo_binding bad = {"y", on_host(w->y)};
        bad.tensor.dtype = RONDO_DTYPE_I32;
        assert_int_equal(rondo_executor_run(w->executor, NULL, 0, &bad, 1), RONDO_STATUS_INVALID);
        OK(run(w, false, waits != 0));
        assert_true(w->s[10] == get_tenth(1, 2));
        OK(rondo_executor_bind(w->executor, NULL, "x"));
        expect_message(run(w, false, waits != 0), RONDO_STATUS_INVALID, "\"x\" is not fed");
        close_world(w);
    }
}

static void test_executor_states__wrong_bindings_are_named(void **state) {
    (void)state;
    world *w = open_world();
    expect_message(rondo_executor_bind(NULL, "s", "x"), RONDO_STATUS_INVALID, "executor");
    expect_message(rondo_executor_bind(w->executor, "s", "w"), RONDO_STATUS_INVALID,
                   "no input without a default \"w\"");
    expect_message(rondo_executor_bind(w->executor, "x", "x"), RONDO_STATUS_INVALID,
                   "no output \"x\"");
    OK(rondo_executor_bind(w->executor, "s", "x"));
    expect_message(rondo_executor_bind(w->executor, "y", "x"), RONDO_STATUS_INVALID,
                   "bound already");
    rondo_tensor tensor;
    expect_message(rondo_executor_get_variable(w->executor, "x", &tensor), RONDO_STATUS_STATE,
                   "no value yet");
    tensor = on_host(w->x);
    tensor.dtype = RONDO_DTYPE_I32;
    expect_message(rondo_executor_set_variable(w->executor, "x", &tensor), RONDO_STATUS_INVALID,
                   "\"x\" is f32, the tensor i32");
    close_world(w);
}

static void test_executor_states__weights_are_read_and_replaced(void **state) {
    (void)state;
    world *w = open_world();
    rondo_executor *other;  // of the same program: keeps its weights
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    OK(rondo_executor_create(w->program, w->device, &options, &other));
    rondo_tensor weights;
    OK(rondo_executor_get_variable(w->executor, "w", &weights));
    assert_true(((const float *)weights.data)[10] == 5);
    rondo_tensor_deinit(&weights);
    for (int round = 0; round < 3; ++round) {
        float fresh[ADD_COUNT];
        add_program_fill(fresh, (float)(100 * round));
        const rondo_tensor tensor = on_host(fresh);
        OK(rondo_executor_set_variable(w->executor, "w", &tensor));
        memset(fresh, 0xFF, sizeof fresh);
        add_program_fill(w->x, 1);
        for (int i = 0; i < 3; ++i) {
            OK(run(w, true, i != 1));
            assert_true(w->s[10] == 11 + 100.0f * (float)round + 10);
        }
        OK(rondo_executor_get_variable(w->executor, "w", &weights));
        assert_true(((const float *)weights.data)[10] == 100.0f * (float)round + 10);
        rondo_tensor_deinit(&weights);
        rondo_executor *own = w->executor;
        w->executor = other;
        OK(run(w, true, true));
        assert_int_equal(add_program_check(w->y, 1, true), ADD_COUNT);
        w->executor = own;
    }
    rondo_tensor wrong = on_host(w->x);
    wrong.shape.extent[0] = 3;
    expect_message(rondo_executor_set_variable(w->executor, "w", &wrong), RONDO_STATUS_INVALID,
                   "\"w\" is f32 [64], the tensor f32 [3]");
    wrong = on_host(NULL);
    expect_message(rondo_executor_set_variable(w->executor, "w", &wrong), RONDO_STATUS_INVALID,
                   "no data");
    wrong = on_host(w->x);
    expect_message(rondo_executor_set_variable(w->executor, "nothing", &wrong),
                   RONDO_STATUS_INVALID, "no parameter, constant or bound input \"nothing\"");
    expect_message(rondo_executor_set_variable(w->executor, "x", &wrong), RONDO_STATUS_INVALID,
                   "\"x\"");
    OK(run(w, true, true));
    assert_true(w->s[10] == 221);
    rondo_executor_destroy(other);
    close_world(w);
}

static void test_executor_states__recorded_runs_keep_their_weights(void **state) {
    (void)state;
    world *w = open_world();
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_tensor x, y;
    OK(rondo_stream_create(w->device, NULL, &stream));
    OK(rondo_graph_create(w->device, NULL, &graph));
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &x));
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &y));
    OK(run(w, true, true));
    const rondo_binding feed = {"x", x};
    const rondo_binding fetch = {"y", y};
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_executor_record(w->executor, stream, &feed, 1, &fetch, 1));
    OK(rondo_graph_capture_end(graph));
    const rondo_tensor tensor = on_host(w->x);
    expect_message(rondo_executor_set_variable(w->executor, "w", &tensor), RONDO_STATUS_STATE,
                   "reset or destroy the graph first");
    OK(rondo_graph_reset(graph));
    OK(rondo_executor_set_variable(w->executor, "w", &tensor));
    OK(rondo_executor_bind(w->executor, "s", "x"));
    OK(run(w, true, true));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    expect_message(rondo_executor_record(w->executor, stream, NULL, 0, &fetch, 1),
                   RONDO_STATUS_INVALID, "input \"x\" is bound to an output");
    OK(rondo_executor_record(w->executor, stream, &feed, 1, &fetch, 1));
    OK(rondo_graph_capture_end(graph));
    rondo_graph_destroy(graph);
    rondo_tensor_deinit(&x);
    rondo_tensor_deinit(&y);
    rondo_stream_destroy(stream);
    close_world(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_states__an_output_is_the_next_input),
        cmocka_unit_test(test_executor_states__wrong_bindings_are_named),
        cmocka_unit_test(test_executor_states__weights_are_read_and_replaced),
        cmocka_unit_test(test_executor_states__recorded_runs_keep_their_weights),
    };
    fake_cuda_reset(NULL);
    int failed_count = cmocka_run_group_tests_name("host", tests, NULL, NULL);
    rondo_device *gpu;
    device_name = "cuda:0";
    if (rondo_device_open(device_name, &gpu) == RONDO_STATUS_OK) {
        failed_count += cmocka_run_group_tests_name("cuda:0", tests, NULL, NULL);
        rondo_device_release(gpu);
    }
    setenv("RONDO_CACHE_DIR", "", 1);
    fake_cuda_install();
    add_program_prepare_fake();
    failed_count += cmocka_run_group_tests_name("fake", tests, NULL, NULL);
    fake_cuda_uninstall();
    return failed_count;
}
