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

#include "rondo/models.h"
#include "support/models/add_program.h"
#include "support/on_devices.h"

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    float x[ADD_COUNT], y[ADD_COUNT], s[ADD_COUNT];
} world;

static world *open_world(void) {
    static world w;
    w = (world){0};
    OK(rondo_device_open(on_devices_get_name(), &w.device));
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

static rondo_status run(world *w, bool feeds_x, bool waits) {
    const rondo_binding feed = {"x", add_program_on_host(w->x)};
    rondo_binding fetches[] = {{"y", add_program_on_host(w->y)}, {"s", add_program_on_host(w->s)}};
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
        EXPECT(INVALID, "\"x\" is not fed, and its state has no value yet",
               run(w, false, waits != 0));
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
        assert_int_equal(stats.state_bytes, ADD_COUNT * sizeof(float));
        assert_int_equal(stats.in_place_run_count, 0);
        // Set, read, and fed again.
        add_program_fill(w->x, 40);
        const rondo_tensor start = add_program_on_host(w->x);
        OK(rondo_executor_set_variable(w->executor, "x", &start));
        OK(run(w, false, waits != 0));
        assert_int_equal(add_program_check(w->s, 40, false), ADD_COUNT);
        rondo_tensor now;
        OK(rondo_executor_get_variable(w->executor, "x", &now));
        assert_ptr_equal(now.device, w->device);
        float values[ADD_COUNT];
        const rondo_tensor to = add_program_on_host(values);
        OK(rondo_tensor_copy(rondo_executor_get_stream(w->executor), &now, &to));
        OK(rondo_stream_synchronize(rondo_executor_get_stream(w->executor)));
        assert_memory_equal(values, w->s, sizeof values);
        rondo_tensor_deinit(&now);
        add_program_fill(w->x, 1);
        OK(run(w, true, waits != 0));
        assert_int_equal(add_program_check(w->y, 1, true), ADD_COUNT);
        // A run that fails leaves it.
        rondo_binding bad = {"y", add_program_on_host(w->y)};
        bad.tensor.dtype = RONDO_DTYPE_I32;
        assert_int_equal(rondo_executor_run(w->executor, NULL, 0, &bad, 1), RONDO_STATUS_INVALID);
        OK(run(w, false, waits != 0));
        assert_true(w->s[10] == get_tenth(1, 2));
        OK(rondo_executor_bind(w->executor, NULL, "x"));
        EXPECT(INVALID, "\"x\" is not fed", run(w, false, waits != 0));
        close_world(w);
    }
}

static void test_executor_states__wrong_bindings_are_named(void **state) {
    (void)state;
    world *w = open_world();
    EXPECT(INVALID, "executor", rondo_executor_bind(NULL, "s", "x"));
    EXPECT(INVALID, "no input without a default \"w\"", rondo_executor_bind(w->executor, "s", "w"));
    EXPECT(INVALID, "no output \"x\"", rondo_executor_bind(w->executor, "x", "x"));
    OK(rondo_executor_bind(w->executor, "s", "x"));
    EXPECT(INVALID, "bound already", rondo_executor_bind(w->executor, "y", "x"));
    rondo_tensor tensor;
    EXPECT(STATE, "no value yet", rondo_executor_get_variable(w->executor, "x", &tensor));
    tensor = add_program_on_host(w->x);
    tensor.dtype = RONDO_DTYPE_I32;
    EXPECT(INVALID, "\"x\" is f32, the tensor i32",
           rondo_executor_set_variable(w->executor, "x", &tensor));
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
        const rondo_tensor tensor = add_program_on_host(fresh);
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
    rondo_tensor wrong = add_program_on_host(w->x);
    wrong.shape.extent[0] = 3;
    EXPECT(INVALID, "\"w\" is f32 [64], the tensor f32 [3]",
           rondo_executor_set_variable(w->executor, "w", &wrong));
    wrong = add_program_on_host(NULL);
    EXPECT(INVALID, "no data", rondo_executor_set_variable(w->executor, "w", &wrong));
    wrong = add_program_on_host(w->x);
    EXPECT(INVALID, "no parameter, constant or bound input \"nothing\"",
           rondo_executor_set_variable(w->executor, "nothing", &wrong));
    EXPECT(INVALID, "\"x\"", rondo_executor_set_variable(w->executor, "x", &wrong));
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
    const rondo_tensor tensor = add_program_on_host(w->x);
    const float weight = w->x[10];
    EXPECT(STATE, "reset or destroy the graph first",
           rondo_executor_set_variable(w->executor, "w", &tensor));
    OK(rondo_graph_reset(graph));
    OK(rondo_executor_set_variable(w->executor, "w", &tensor));
    OK(rondo_executor_bind(w->executor, "s", "x"));
    OK(run(w, true, true));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_executor_record(w->executor, stream, NULL, 0, &fetch, 1));
    OK(rondo_graph_capture_end(graph));
    EXPECT(STATE, "a graph that recorded a run", rondo_executor_bind(w->executor, NULL, "x"));
    add_program_fill(w->x, 7);
    const rondo_tensor start = add_program_on_host(w->x);
    OK(rondo_executor_set_variable(w->executor, "x", &start));
    for (int i = 1; i < 4; ++i) {  // w is what add_program_fill(1) had put into x
        OK(rondo_graph_replay(graph, stream));
        OK(rondo_stream_synchronize(stream));
        float values[ADD_COUNT];
        const rondo_tensor to = add_program_on_host(values);
        rondo_tensor now;
        OK(rondo_executor_get_variable(w->executor, "x", &now));
        OK(rondo_tensor_copy(stream, &now, &to));
        OK(rondo_stream_synchronize(stream));
        rondo_tensor_deinit(&now);
        assert_true(values[10] == 17 + (float)i * weight);
    }
    OK(rondo_graph_reset(graph));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
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
    return ON_DEVICES(tests) + OVER_THE_FAKE(tests, NULL);
}
