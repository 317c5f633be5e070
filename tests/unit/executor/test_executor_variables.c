// Variables of programs: where they lie, how they start, what a run makes of them in place, and that
// this is what copies would make.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rondo/models.h"
#include "support/on_devices.h"

enum { COUNT = 64 };

static const rondo_shape row = {.rank = 1, .extent = {COUNT}};

static rondo_tensor on_host(float *values) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = row, .data = values};
}

static void add_node(rondo_builder *b, const char *op, const char *x, const char *y, const char *out) {
    OK(rondo_builder_add_node(b, op, (const char *[]){x, y}, y != NULL ? 2 : 1,
                              (const char *[]){out}, 1, NULL));
}

static void add_variable(rondo_builder *b, const char *name, float start) {
    const rondo_port port = {.struct_size = sizeof port,
                             .name = name,
                             .dtype = RONDO_DTYPE_F32,
                             .rank = 1,
                             .extent = {COUNT}};
    const rondo_start constant = {
        .struct_size = sizeof constant, .kind = RONDO_START_CONSTANT, .a = start};
    OK(rondo_builder_add_variable(b, &port, &constant));
}

static void add_input(rondo_builder *b, const char *name) {
    const rondo_port port = {.struct_size = sizeof port,
                             .name = name,
                             .dtype = RONDO_DTYPE_F32,
                             .rank = 1,
                             .extent = {COUNT}};
    OK(rondo_builder_add_input(b, &port));
}

// The value of a variable, or of element 3 of it.
static void read_all(rondo_executor *executor, const char *name, float *values) {
    rondo_tensor now;
    const rondo_tensor to = on_host(values);
    OK(rondo_executor_get_variable(executor, name, &now));
    OK(rondo_tensor_copy(rondo_executor_get_stream(executor), &now, &to));
    OK(rondo_stream_synchronize(rondo_executor_get_stream(executor)));
    rondo_tensor_deinit(&now);
}

static float read_one(rondo_executor *executor, const char *name) {
    float values[COUNT];
    read_all(executor, name, values);
    return values[3];
}

static const void *get_address(rondo_executor *executor, const char *name) {
    rondo_tensor now;
    OK(rondo_executor_get_variable(executor, name, &now));
    const void *address = now.data;
    rondo_tensor_deinit(&now);
    return address;
}

static rondo_executor_stats get_stats(const rondo_executor *executor) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    return stats;
}

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
} world;

static void open_world(world *w, rondo_builder *b) {
    *w = (world){0};
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    OK(rondo_device_open(on_devices_get_name(), &w->device));
    OK(rondo_builder_finish(b, &w->program));
    OK(rondo_executor_create(w->program, w->device, &options, &w->executor));
    rondo_builder_destroy(b);
}

static void close_world(world *w) {
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
    assert_string_equal(fake_cuda_get_violations(), "");
}

// sum' = sum + x, in one place; the reader of the old value stands behind in the program.
static void test_executor_variables__a_sum_grows_where_it_lies(void **state) {
    (void)state;
    rondo_builder *b;
    world w;
    OK(rondo_builder_create(NULL, &b));
    add_input(b, "x");
    add_variable(b, "sum", 2);
    add_node(b, "Add", "sum", "x", "next");
    add_node(b, "Add", "sum", "sum", "twice");
    OK(rondo_builder_set_update(b, "sum", "next"));
    OK(rondo_builder_add_output(b, "twice", NULL));
    open_world(&w, b);
    float x[COUNT], twice[COUNT], next[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        x[i] = (float)i;
    }
    assert_true(read_one(w.executor, "sum") == 2);
    const void *place = get_address(w.executor, "sum");
    for (int i = 0; i < 6; ++i) {
        const rondo_binding feed = {"x", on_host(x)};
        rondo_binding fetches[] = {{"twice", on_host(twice)}, {"next", on_host(next)}};
        const size_t count = i % 2 == 0 ? 2 : 1;
        if (i == 3) {
            OK(rondo_executor_run_async(w.executor, &feed, 1, fetches, count, NULL));
            OK(rondo_executor_wait(w.executor));
        } else {
            OK(rondo_executor_run(w.executor, &feed, 1, fetches, count));
        }
        assert_true(twice[3] == 2 * (2 + 3.0f * (float)i));
        assert_true(count == 1 || next[3] == 2 + 3.0f * (float)(i + 1));
        assert_true(read_one(w.executor, "sum") == 2 + 3.0f * (float)(i + 1));
        assert_ptr_equal(get_address(w.executor, "sum"), place);
    }
    const rondo_executor_stats stats = get_stats(w.executor);
    assert_int_equal(stats.state_bytes, sizeof x);
    assert_true(stats.arena_bytes == 2 * sizeof x);  // x and twice
    assert_int_equal(stats.plan_miss_count, 1);
    assert_int_equal(stats.replay_run_count, 5);
    OK(rondo_executor_reset_variables(w.executor));
    assert_true(read_one(w.executor, "sum") == 2);
    close_world(&w);
}

// a' = b, b' = a, c' = a + c, where each old value is read late.
static void test_executor_variables__two_change_places(void **state) {
    (void)state;
    rondo_builder *b;
    world w;
    OK(rondo_builder_create(NULL, &b));
    add_variable(b, "a", 1);
    add_variable(b, "b", 10);
    add_variable(b, "c", 100);
    add_node(b, "Identity", "b", NULL, "a.next");
    add_node(b, "Identity", "a", NULL, "b.next");
    add_node(b, "Add", "c", "a", "c.next");
    OK(rondo_builder_set_update(b, "a", "a.next"));
    OK(rondo_builder_set_update(b, "b", "b.next"));
    OK(rondo_builder_set_update(b, "c", "c.next"));
    open_world(&w, b);
    const float a[] = {1, 10};
    float c = 100;
    for (int i = 0; i < 5; ++i) {
        rondo_binding fetch = {.name = "c.next"};
        c += a[i % 2];
        OK(rondo_executor_run(w.executor, NULL, 0, &fetch, 1));
        assert_true(((const float *)fetch.tensor.data)[3] == c);
        rondo_tensor_deinit(&fetch.tensor);
        assert_true(read_one(w.executor, "a") == a[(i + 1) % 2]);
        assert_true(read_one(w.executor, "b") == a[i % 2]);
        assert_true(read_one(w.executor, "c") == c);
    }
    close_world(&w);
}

// A variable without an update is a weight that a call replaces: by a copy, under all plans.
static void test_executor_variables__a_weight_is_replaced_by_a_copy(void **state) {
    (void)state;
    rondo_builder *b;
    world w;
    OK(rondo_builder_create(NULL, &b));
    add_input(b, "x");
    add_variable(b, "w", 5);
    add_node(b, "Add", "x", "w", "y");
    OK(rondo_builder_add_output(b, "y", NULL));
    open_world(&w, b);
    float x[COUNT] = {0}, y[COUNT], weight[COUNT];
    for (int i = 0; i < 6; ++i) {
        const rondo_binding feed = {"x", on_host(x)};
        rondo_binding fetch = {"y", on_host(y)};
        OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
        assert_true(y[3] == (i == 0 ? 5 : 100.0f * (float)(i - 1)));
        for (int k = 0; k < COUNT; ++k) {
            weight[k] = 100.0f * (float)i;
        }
        const rondo_tensor tensor = on_host(weight);
        OK(rondo_executor_set_variable(w.executor, "w", &tensor));
    }
    const rondo_executor_stats stats = get_stats(w.executor);
    assert_int_equal(stats.plan_miss_count, 1);
    assert_int_equal(stats.replay_run_count, 5);
    rondo_tensor wrong = on_host(weight);
    wrong.shape.extent[0] = 3;
    EXPECT(INVALID, "\"w\"", rondo_executor_set_variable(w.executor, "w", &wrong));
    close_world(&w);
}

static void test_executor_variables__what_does_not_fit_is_told(void **state) {
    (void)state;
    rondo_builder *b;
    OK(rondo_builder_create(NULL, &b));
    const rondo_port port = {.struct_size = sizeof port,
                             .name = "v",
                             .dtype = RONDO_DTYPE_F32,
                             .rank = 1,
                             .extent = {COUNT}};
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
    add_node(b, "Add", "v", "v", "v2");
    OK(rondo_builder_set_update(b, "v", "v2"));
    EXPECT(INVALID, "an update already", rondo_builder_set_update(b, "v", "v2"));
    rondo_program *program;
    OK(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    size_t count = 0;
    rondo_variable listed;
    OK(rondo_program_list_variables(program, 1, &listed, &count));
    assert_int_equal(count, 1);
    assert_string_equal(listed.name, "v");
    assert_string_equal(listed.update, "v2");
    assert_int_equal(listed.start.kind, RONDO_START_NONE);
    EXPECT(INVALID, "no output", rondo_program_set_update(program, "v", "v"));
    EXPECT(INVALID, "no input", rondo_program_set_update(program, "v2", "v2"));
    EXPECT(INVALID, "already", rondo_program_set_update(program, "v", "v2"));
    rondo_program_destroy(program);
}

// A run that fails leaves what its ops may have written without a value.
static void test_executor_variables__a_failure_is_remembered(void **state) {
    (void)state;
    rondo_builder *b;
    world w;
    OK(rondo_builder_create(NULL, &b));
    add_input(b, "x");
    add_variable(b, "sum", 2);
    add_node(b, "Add", "sum", "x", "next");
    OK(rondo_builder_set_update(b, "sum", "next"));
    open_world(&w, b);
    float x[COUNT] = {0};
    const rondo_binding feed = {"x", on_host(x)};
    rondo_binding wrong = {"next", on_host(x)};
    wrong.tensor.dtype = RONDO_DTYPE_I32;
    OK(rondo_executor_run(w.executor, &feed, 1, NULL, 0));
    // Refused before it begins.
    EXPECT(INVALID, "next", rondo_executor_run(w.executor, &feed, 1, &wrong, 1));
    assert_true(read_one(w.executor, "sum") == 2);
    for (int i = 0; i < COUNT; ++i) {
        x[i] = 1;
    }
    // Each driver call of a run fails once, eager and replayed.
    int lost_count = 0;
    for (int mode = 0; mode < 2 && on_devices_is_fake(); ++mode) {
        OK(rondo_executor_set_graphs(w.executor, mode == 0 ? RONDO_GRAPHS_OFF : RONDO_GRAPHS_ON));
        rondo_status status = RONDO_STATUS_DRIVER;
        for (long n = 1; status != RONDO_STATUS_OK; ++n) {
            rondo_tensor now;
            OK(rondo_executor_reset_variables(w.executor));
            fake_cuda_fail_nth(n, 999);
            status = rondo_executor_run(w.executor, &feed, 1, NULL, 0);
            fake_cuda_fail_nth(0, 0);
            if (rondo_executor_get_variable(w.executor, "sum", &now) != RONDO_STATUS_OK) {
                EXPECT(STATE, "may have written",
                       rondo_executor_run(w.executor, &feed, 1, NULL, 0));
                lost_count += 1;
                continue;
            }
            rondo_tensor_deinit(&now);
            assert_true(read_one(w.executor, "sum") == (status == RONDO_STATUS_OK ? 3 : 2));
        }
    }
    assert_true(lost_count >= 2 || !on_devices_is_fake());
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_variables__a_sum_grows_where_it_lies),
        cmocka_unit_test(test_executor_variables__two_change_places),
        cmocka_unit_test(test_executor_variables__a_weight_is_replaced_by_a_copy),
        cmocka_unit_test(test_executor_variables__what_does_not_fit_is_told),
        cmocka_unit_test(test_executor_variables__a_failure_is_remembered),
    };
    return ON_DEVICES(tests) + OVER_THE_FAKE(tests, NULL);
}
