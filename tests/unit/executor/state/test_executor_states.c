// What an executor keeps from run to run: states (outputs bound to inputs) and weights by name, on
// the host, a real GPU where there is one, and the fake driver.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/models/add_program.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/variables_world.h"

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

TEST(test_executor_states__an_output_is_the_next_input) {
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

TEST(test_executor_states__wrong_bindings_are_named) {
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

TEST(test_executor_states__weights_are_read_and_replaced) {
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

TEST(test_executor_states__recorded_runs_keep_their_weights) {
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

// ---- variables of a program
// ----------------------------------------------------------------------

// sum' = sum + x, in one place; the reader of the old value stands behind in the program.
TEST(test_executor_states__a_sum_grows_where_it_lies) {
    variables_world w;
    rondo_builder *b = build_begin();
    variables_add_input(b, "x");
    variables_add_variable(b, "sum", 2);
    build_node(b, "Add", "sum x", "next", NULL);
    build_node(b, "Add", "sum sum", "twice", NULL);
    OK(rondo_builder_set_update(b, "sum", "next"));
    OK(rondo_builder_add_output(b, "twice", NULL));
    variables_open(&w, b);
    float x[VARIABLES_COUNT], twice[VARIABLES_COUNT], next[VARIABLES_COUNT];
    for (int i = 0; i < VARIABLES_COUNT; ++i) {
        x[i] = (float)i;
    }
    assert_true(variables_read_one(w.executor, "sum") == 2);
    const void *place = variables_get_address(w.executor, "sum");
    for (int i = 0; i < 6; ++i) {
        const rondo_binding feed = {"x", variables_on_host(x)};
        rondo_binding fetches[] = {{"twice", variables_on_host(twice)},
                                   {"next", variables_on_host(next)}};
        const size_t count = i % 2 == 0 ? 2 : 1;
        if (i == 3) {
            OK(rondo_executor_run_async(w.executor, &feed, 1, fetches, count, NULL));
            OK(rondo_executor_wait(w.executor));
        } else {
            OK(rondo_executor_run(w.executor, &feed, 1, fetches, count));
        }
        assert_true(twice[3] == 2 * (2 + 3.0f * (float)i));
        assert_true(count == 1 || next[3] == 2 + 3.0f * (float)(i + 1));
        assert_true(variables_read_one(w.executor, "sum") == 2 + 3.0f * (float)(i + 1));
        assert_ptr_equal(variables_get_address(w.executor, "sum"), place);
    }
    const rondo_executor_stats stats = variables_get_stats(w.executor);
    assert_int_equal(stats.state_bytes, sizeof x);
    assert_true(stats.arena_bytes == 2 * sizeof x);  // x and twice
    assert_int_equal(stats.plan_miss_count, 1);
    assert_int_equal(stats.replay_run_count, 5);
    OK(rondo_executor_reset_variables(w.executor));
    assert_true(variables_read_one(w.executor, "sum") == 2);
    variables_close(&w);
}

// An output that is the old value, by another name.
TEST(test_executor_states__the_old_value_is_given_out) {
    variables_world w;
    rondo_builder *b = build_begin();
    variables_add_input(b, "x");
    variables_add_variable(b, "sum", 2);
    build_node(b, "Identity", "sum", "old", NULL);
    build_node(b, "Add", "sum x", "next", NULL);
    OK(rondo_builder_set_update(b, "sum", "next"));
    OK(rondo_builder_add_output(b, "old", NULL));
    variables_open(&w, b);
    float x[VARIABLES_COUNT] = {0}, old[VARIABLES_COUNT];
    x[3] = 1;
    for (int i = 0; i < 6; ++i) {
        const rondo_binding feed = {"x", variables_on_host(x)};
        rondo_binding fetch = {"old", variables_on_host(old)};
        memset(old, 0, sizeof old);
        if (i % 3 == 2) {
            OK(rondo_executor_run_async(w.executor, &feed, 1, &fetch, 1, NULL));
            OK(rondo_executor_wait(w.executor));
        } else {
            OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
        }
        assert_true(old[3] == 2 + (float)i);
    }
    variables_close(&w);
}

// a' = b, b' = a, c' = a + c, where each old value is read late.
TEST(test_executor_states__two_change_places) {
    variables_world w;
    rondo_builder *b = build_begin();
    variables_add_variable(b, "a", 1);
    variables_add_variable(b, "b", 10);
    variables_add_variable(b, "c", 100);
    build_node(b, "Identity", "b", "a.next", NULL);
    build_node(b, "Identity", "a", "b.next", NULL);
    build_node(b, "Add", "c a", "c.next", NULL);
    OK(rondo_builder_set_update(b, "a", "a.next"));
    OK(rondo_builder_set_update(b, "b", "b.next"));
    OK(rondo_builder_set_update(b, "c", "c.next"));
    variables_open(&w, b);
    const float a[] = {1, 10};
    float c = 100;
    for (int i = 0; i < 5; ++i) {
        rondo_binding fetch = {.name = "c.next"};
        c += a[i % 2];
        OK(rondo_executor_run(w.executor, NULL, 0, &fetch, 1));
        assert_true(((const float *)fetch.tensor.data)[3] == c);
        rondo_tensor_deinit(&fetch.tensor);
        assert_true(variables_read_one(w.executor, "a") == a[(i + 1) % 2]);
        assert_true(variables_read_one(w.executor, "b") == a[i % 2]);
        assert_true(variables_read_one(w.executor, "c") == c);
    }
    variables_close(&w);
}

// A variable without an update is a weight that a call replaces: by a copy, under all plans.
TEST(test_executor_states__a_weight_is_replaced_by_a_copy) {
    variables_world w;
    rondo_builder *b = build_begin();
    variables_add_input(b, "x");
    variables_add_variable(b, "w", 5);
    build_node(b, "Add", "x w", "y", NULL);
    OK(rondo_builder_add_output(b, "y", NULL));
    variables_open(&w, b);
    float x[VARIABLES_COUNT] = {0}, y[VARIABLES_COUNT], weight[VARIABLES_COUNT];
    for (int i = 0; i < 6; ++i) {
        const rondo_binding feed = {"x", variables_on_host(x)};
        rondo_binding fetch = {"y", variables_on_host(y)};
        OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
        assert_true(y[3] == (i == 0 ? 5 : 100.0f * (float)(i - 1)));
        for (int k = 0; k < VARIABLES_COUNT; ++k) {
            weight[k] = 100.0f * (float)i;
        }
        const rondo_tensor tensor = variables_on_host(weight);
        OK(rondo_executor_set_variable(w.executor, "w", &tensor));
    }
    const rondo_executor_stats stats = variables_get_stats(w.executor);
    assert_int_equal(stats.plan_miss_count, 1);
    assert_int_equal(stats.replay_run_count, 5);
    rondo_tensor wrong = variables_on_host(weight);
    wrong.shape.extent[0] = 3;
    EXPECT(INVALID, "\"w\"", rondo_executor_set_variable(w.executor, "w", &wrong));
    variables_close(&w);
}

TEST(test_executor_states__what_does_not_fit_is_told) {
    rondo_builder *b = build_begin();
    const rondo_port port = PORT("v", RONDO_DTYPE_F32, VARIABLES_COUNT);
    rondo_port other = port;
    rondo_start start = {.struct_size = sizeof start, .kind = RONDO_START_NORMAL, .b = -1};
    EXPECT(INVALID, "deviation", rondo_builder_add_variable(b, &port, &start));
    start = (rondo_start){.struct_size = sizeof start, .kind = 99};
    EXPECT(INVALID, "kind 99", rondo_builder_add_variable(b, &port, &start));
    start.kind = RONDO_START_TENSOR;
    EXPECT(INVALID, "its dtype and shape", rondo_builder_add_variable(b, &port, &start));
    start.kind = RONDO_START_HE_NORMAL;
    other.dtype = RONDO_DTYPE_I32;
    EXPECT(INVALID, "i32 is not drawn", rondo_builder_add_variable(b, &other, &start));
    other = port;
    other.extent[0] = -1;
    EXPECT(INVALID, "numbers", rondo_builder_add_variable(b, &other, &start));
    other.dtype = RONDO_DTYPE_STRING;
    EXPECT(INVALID, "tensor of numbers", rondo_builder_add_variable(b, &other, NULL));
    EXPECT(INVALID, "NULL", rondo_builder_add_variable(b, NULL, NULL));
    OK(rondo_builder_add_variable(b, &port, NULL));
    EXPECT(INVALID, "no variable", rondo_builder_set_update(b, "w", "v"));
    EXPECT(INVALID, "\"nobody\"", rondo_builder_set_update(b, "v", "nobody"));
    build_node(b, "Add", "v v", "v2", NULL);
    OK(rondo_builder_set_update(b, "v", "v2"));
    EXPECT(INVALID, "an update already", rondo_builder_set_update(b, "v", "v2"));
    rondo_program *program;
    program = build_finish(b);
    size_t count = 0;
    rondo_variable listed;
    OK(rondo_program_list_variables(program, 1, &listed, &count));
    assert_int_equal(count, 1);
    assert_string_equal(listed.name, "v");
    assert_string_equal(listed.update, "v2");
    assert_int_equal(listed.start->kind, RONDO_START_NONE);
    EXPECT(INVALID, "no output", rondo_program_set_update(program, "v", "v"));
    EXPECT(INVALID, "no input", rondo_program_set_update(program, "v2", "v2"));
    EXPECT(INVALID, "already", rondo_program_set_update(program, "v", "v2"));
    rondo_program_destroy(program);
}

// A run that fails leaves what its ops may have written without a value.
TEST(test_executor_states__a_failure_is_remembered) {
    variables_world w;
    rondo_builder *b = build_begin();
    variables_add_input(b, "x");
    variables_add_variable(b, "sum", 2);
    build_node(b, "Add", "sum x", "next", NULL);
    OK(rondo_builder_set_update(b, "sum", "next"));
    variables_open(&w, b);
    float x[VARIABLES_COUNT] = {0};
    const rondo_binding feed = {"x", variables_on_host(x)};
    rondo_binding wrong = {"next", variables_on_host(x)};
    wrong.tensor.dtype = RONDO_DTYPE_I32;
    OK(rondo_executor_run(w.executor, &feed, 1, NULL, 0));
    // Refused before it begins.
    EXPECT(INVALID, "next", rondo_executor_run(w.executor, &feed, 1, &wrong, 1));
    assert_true(variables_read_one(w.executor, "sum") == 2);
    for (int i = 0; i < VARIABLES_COUNT; ++i) {
        x[i] = 1;
    }
    // Each driver call of a run fails once, eager and replayed.
    int lost_count = 0;
    for (int mode = 0; mode < 2 && on_devices_is_fake(); ++mode) {
        OK(rondo_executor_set_graphs(w.executor, mode == 0 ? RONDO_GRAPHS_OFF : RONDO_GRAPHS_ON));
        bool has_failed = true;
        for (long n = 0; has_failed; ++n) {
            rondo_tensor now;
            OK(rondo_executor_reset_variables(w.executor));
            fake_cuda_fail_nth(n, 999);
            const rondo_status status = rondo_executor_run(w.executor, &feed, 1, NULL, 0);
            has_failed = fake_cuda_has_failed();
            fake_cuda_fail_nth(-1, 0);
            if (rondo_executor_get_variable(w.executor, "sum", &now) != RONDO_STATUS_OK) {
                EXPECT(STATE, "may have written",
                       rondo_executor_run(w.executor, &feed, 1, NULL, 0));
                lost_count += 1;
                continue;
            }
            rondo_tensor_deinit(&now);
            assert_true(variables_read_one(w.executor, "sum") ==
                        (status == RONDO_STATUS_OK ? 3 : 2));
        }
    }
    assert_true(lost_count >= 2 || fake_cuda_count_calls(NULL) == 0);  // 0: another driver
    variables_close(&w);
}

enum { OUT_OF_MEMORY = 2 };  // CUDA_ERROR_OUT_OF_MEMORY

// What is refused by the limit, or by the GPU, names who holds the most.
TEST(test_executor_states__a_refusal_names_the_largest_owner) {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    float values[ADD_COUNT] = {0};
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(add_program_build(&program));
    OK(rondo_program_set_update(program, "x", "s"));
    rondo_executor_options options = {.struct_size = sizeof options, .memory_limit_bytes = 1 << 20};
    OK(rondo_executor_create(program, device, &options, &executor));
    const rondo_binding feed = {"x", add_program_on_host(values)};
    rondo_binding fetch = {"y", add_program_on_host(values)};
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    OK(rondo_executor_reserve_variable(executor, "x", 500000));
    EXPECT(NO_MEMORY, "; the largest owner is states with 50",
           rondo_executor_reserve_variable(executor, "x", 600000));
    if (on_devices_is_fake() && fake_cuda_count_calls(NULL) > 0) {
        bool is_named = false;
        for (long n = 0; n < 10 && !is_named; ++n) {  // one of them asks for memory
            fake_cuda_fail_nth(n, OUT_OF_MEMORY);
            is_named = rondo_executor_reserve_variable(executor, "x", 500001 + (size_t)n) ==
                           RONDO_STATUS_NO_DEVICE_MEMORY &&
                       strstr(rondo_error_get_last()->message,
                              "; the largest owner is states with 50000") != NULL;
        }
        fake_cuda_fail_nth(-1, 0);
        assert_true(is_named);
    }
    OK(rondo_executor_run(executor, NULL, 0, &fetch, 1));
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// ---- what is counted --------------------------------------------------------------------------

typedef struct counted {
    size_t device, pinned;  // before the executor was there
    rondo_executor *executor;
} counted;

// What the driver has given out since is what the executor says that it holds, to the byte.
static void expect_counted(const counted *c) {
    const rondo_executor_stats stats = variables_get_stats(c->executor);
    assert_int_equal(stats.device_memory_bytes, fake_cuda_count_bytes(false) - c->device);
    assert_int_equal(stats.memory_bytes, fake_cuda_count_bytes(true) - c->pinned);
}

TEST(test_executor_states__memory_is_counted_to_the_byte) {
    if (!on_devices_is_fake() || fake_cuda_count_calls(NULL) == 0) {
        return;  // nobody counts what other drivers give out
    }
    rondo_device *device;
    rondo_program *program;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_tensor x, y;
    float values[ADD_COUNT] = {0};
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(add_program_build(&program));
    OK(rondo_program_set_update(program, "x", "s"));
    OK(rondo_stream_create(device, NULL, &stream));
    OK(rondo_graph_create(device, NULL, &graph));
    OK(rondo_tensor_init_device(device, RONDO_DTYPE_F32, &add_shape, &x));
    OK(rondo_tensor_init_device(device, RONDO_DTYPE_F32, &add_shape, &y));
    counted c = {fake_cuda_count_bytes(false), fake_cuda_count_bytes(true), NULL};
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    OK(rondo_executor_create(program, device, &options, &c.executor));
    const rondo_binding feed = {"x", add_program_on_host(values)};
    rondo_binding fetch = {"y", add_program_on_host(values)};
    for (int run = 0; run < 3; ++run) {
        OK(rondo_executor_run(c.executor, &feed, run == 0 ? 1 : 0, &fetch, 1));
        expect_counted(&c);
    }
    OK(rondo_executor_reserve_variable(c.executor, "x", 10000));
    OK(rondo_executor_run(c.executor, NULL, 0, &fetch, 1));
    expect_counted(&c);
    const rondo_binding onto = {"y", y};
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_executor_record(c.executor, stream, NULL, 0, &onto, 1));
    OK(rondo_graph_capture_end(graph));
    expect_counted(&c);
    OK(rondo_graph_reset(graph));
    expect_counted(&c);
    OK(rondo_executor_run_async(c.executor, &feed, 1, &fetch, 1, NULL));
    OK(rondo_executor_wait(c.executor));
    expect_counted(&c);
    OK(rondo_executor_bind(c.executor, NULL, "x"));
    OK(rondo_executor_run_async(c.executor, &feed, 1, &fetch, 1, NULL));
    OK(rondo_executor_wait(c.executor));
    expect_counted(&c);
    rondo_executor_destroy(c.executor);
    assert_int_equal(fake_cuda_count_bytes(false), c.device);
    assert_int_equal(fake_cuda_count_bytes(true), c.pinned);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    rondo_tensor_deinit(&x);
    rondo_tensor_deinit(&y);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

int main(void) {
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
