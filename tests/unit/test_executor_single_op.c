// Ops one by one, eagerly and inside a capture, on the host, a real GPU where there is one, and the
// fake driver, on which only additions run.
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
static bool is_fake;

static const rondo_shape add_shape = {.rank = 1, .extent = {ADD_COUNT}};
static const rondo_tensor add_info = {.dtype = RONDO_DTYPE_F32,
                                      .shape = {.rank = 1, .extent = {ADD_COUNT}}};

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_tensor a, b, c;  // on the device
} world;

static world *open_world(void) {
    static world w;
    w = (world){0};
    OK(rondo_device_open(device_name, &w.device));
    OK(rondo_stream_create(w.device, NULL, &w.stream));
    OK(rondo_graph_create(w.device, NULL, &w.graph));
    rondo_tensor *const tensors[] = {&w.a, &w.b, &w.c};
    for (size_t i = 0; i < 3; ++i) {
        OK(rondo_tensor_init_device(w.device, RONDO_DTYPE_F32, &add_shape, tensors[i]));
    }
    return &w;
}

static void close_world(world *w) {
    rondo_graph_destroy(w->graph);
    rondo_tensor_deinit(&w->a);
    rondo_tensor_deinit(&w->b);
    rondo_tensor_deinit(&w->c);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
    assert_string_equal(fake_cuda_get_violations(), "");
}

static void write_to(const world *w, const rondo_tensor *to, float first) {
    float values[ADD_COUNT];
    add_program_fill(values, first);
    const rondo_tensor from = {.dtype = RONDO_DTYPE_F32, .shape = to->shape, .data = values};
    OK(rondo_tensor_copy(w->stream, &from, to));
    OK(rondo_stream_synchronize(w->stream));
}

static void read_from(const world *w, const rondo_tensor *from, float *values) {
    const rondo_tensor to = {.dtype = RONDO_DTYPE_F32, .shape = from->shape, .data = values};
    OK(rondo_tensor_copy(w->stream, from, &to));
    OK(rondo_stream_synchronize(w->stream));
}

// Each element is `first` + its index + what the operands add.
static void expect_sum(const world *w, float first, float more) {
    float values[ADD_COUNT];
    read_from(w, &w->c, values);
    for (size_t i = 0; i < ADD_COUNT; ++i) {
        assert_true(values[i] == first + (float)i + more * (float)i);
    }
}

static void expect_message(rondo_status status, rondo_status wanted, const char *text) {
    assert_int_equal(status, wanted);
    if (strstr(rondo_error_get_last()->message, text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, rondo_error_get_last()->message);
    }
}

static void test_executor_single_op__eager_and_recorded(void **state) {
    (void)state;
    world *w = open_world();
    rondo_op *op;
    rondo_tensor info;
    const rondo_tensor infos[] = {add_info, add_info};
    OK(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &op));
    OK(rondo_op_get_output(op, 0, &info));
    assert_int_equal(info.dtype, RONDO_DTYPE_F32);
    assert_true(rondo_shape_is_equal(&info.shape, &add_shape) && info.data == NULL);
    const rondo_tensor inputs[] = {w->a, w->b};
    const rondo_tensor again[] = {w->c, w->b};
    rondo_tensor sum;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &sum));
    write_to(w, &w->b, 0);
    write_to(w, &w->a, 3);
    OK(rondo_op_put(op, w->stream, inputs, 2, &w->c, 1));
    expect_sum(w, 3, 1);
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_op_put(op, w->stream, inputs, 2, &w->c, 1));
    OK(rondo_op_put(op, w->stream, again, 2, &sum, 1));
    OK(rondo_graph_capture_end(w->graph));
    rondo_op_destroy(op);  // the graph keeps what it needs
    for (int round = 0; round < 3; ++round) {
        write_to(w, &w->a, (float)round);
        OK(rondo_graph_replay(w->graph, w->stream));
        expect_sum(w, (float)round, 1);
        float values[ADD_COUNT];
        read_from(w, &sum, values);
        assert_true(values[5] == (float)round + 15);
    }
    OK(rondo_graph_reset(w->graph));
    rondo_tensor_deinit(&sum);
    close_world(w);
}

static void test_executor_single_op__constants_are_kept(void **state) {
    (void)state;
    world *w = open_world();
    float values[ADD_COUNT];
    add_program_fill(values, 0);
    rondo_tensor infos[] = {add_info, add_info};
    infos[1].data = values;
    rondo_op *op;
    OK(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &op));
    memset(values, 0xFF, sizeof values);
    const rondo_tensor inputs[] = {w->a, {0}};
    write_to(w, &w->a, 2);
    for (int launch = 0; launch < 3; ++launch) {
        OK(rondo_op_put(op, w->stream, inputs, 2, &w->c, 1));
        expect_sum(w, 2, 1);
    }
    rondo_op_destroy(op);
    close_world(w);
}

// Attributes, views, products with packed weights, random numbers: what the fake driver has no
// kernels for.
static void test_executor_single_op__all_kinds_of_ops(void **state) {
    (void)state;
    if (is_fake) {
        return;
    }
    world *w = open_world();
    rondo_op *op;
    write_to(w, &w->a, 0);
    float values[ADD_COUNT];
    rondo_tensor info;
    // Reshape: a view in programs, a copy here.
    int64_t extents[] = {4, -1};
    const rondo_tensor reshape[] = {add_info,
                                    {.dtype = RONDO_DTYPE_I64, .shape = {1, {2}}, .data = extents}};
    OK(rondo_op_prepare(w->device, "Reshape", NULL, reshape, 2, 1, &op));
    OK(rondo_op_get_output(op, 0, &info));
    assert_int_equal(info.shape.extent[1], ADD_COUNT / 4);
    rondo_tensor inputs[] = {w->a, {0}};
    rondo_tensor output = w->c;
    output.shape = info.shape;
    OK(rondo_op_put(op, w->stream, inputs, 2, &output, 1));
    read_from(w, &w->c, values);
    assert_true(values[ADD_COUNT - 1] == ADD_COUNT - 1);
    rondo_op_destroy(op);
    // An attribute, and an input left out.
    const rondo_attribute axis = {.name = "axis", .kind = RONDO_ATTRIBUTE_INT, .int_value = 0};
    rondo_op_options options = {
        .struct_size = sizeof options, .attributes = &axis, .attribute_count = 1};
    OK(rondo_op_prepare(w->device, "Softmax", &options, &add_info, 1, 1, &op));
    OK(rondo_op_put(op, w->stream, &w->a, 1, &w->c, 1));
    read_from(w, &w->c, values);
    assert_true(values[ADD_COUNT - 1] > 0.6f && values[0] < 1e-6f);
    rondo_op_destroy(op);
    // Random numbers go on from launch to launch, also in a graph.
    const rondo_attribute shape[] = {
        {.name = "shape", .kind = RONDO_ATTRIBUTE_INTS, .count = 1, .ints = add_shape.extent}};
    options = (rondo_op_options){.struct_size = sizeof options, .seed = 7};
    options.attributes = shape;
    options.attribute_count = 1;
    OK(rondo_op_prepare(w->device, "RandomUniform", &options, NULL, 0, 1, &op));
    float drawn[3][ADD_COUNT];
    OK(rondo_op_put(op, w->stream, NULL, 0, &w->c, 1));
    read_from(w, &w->c, drawn[0]);
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_op_put(op, w->stream, NULL, 0, &w->c, 1));
    OK(rondo_graph_capture_end(w->graph));
    for (int i = 1; i < 3; ++i) {
        OK(rondo_graph_replay(w->graph, w->stream));
        read_from(w, &w->c, drawn[i]);
    }
    assert_true(drawn[0][0] != drawn[1][0] && drawn[1][0] != drawn[2][0]);
    OK(rondo_graph_reset(w->graph));
    rondo_op_destroy(op);
    close_world(w);
}

static void test_executor_single_op__refusals(void **state) {
    (void)state;
    world *w = open_world();
    rondo_op *op;
    rondo_tensor infos[] = {add_info, add_info};
    expect_message(rondo_op_prepare(w->device, "Sum2", NULL, infos, 2, 1, &op),
                   RONDO_STATUS_UNSUPPORTED, "Sum2");
    infos[1].shape.extent[0] = 3;
    expect_message(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &op),
                   RONDO_STATUS_BAD_DATA, "Add");
    expect_message(rondo_op_prepare(w->device, "NonZero", NULL, infos, 1, 1, &op),
                   RONDO_STATUS_UNSUPPORTED, "NonZero");
    expect_message(rondo_op_prepare(NULL, "Add", NULL, infos, 2, 1, &op), RONDO_STATUS_INVALID,
                   "device");
    expect_message(rondo_op_prepare(w->device, NULL, NULL, infos, 2, 1, &op), RONDO_STATUS_INVALID,
                   "name");
    infos[1] = add_info;
    OK(rondo_op_prepare(w->device, "Add", NULL, infos, 2, 1, &op));
    rondo_tensor inputs[] = {w->a, w->b};
    expect_message(rondo_op_put(op, w->stream, inputs, 1, &w->c, 1), RONDO_STATUS_INVALID,
                   "Add was prepared for 2 and 1");
    inputs[1].shape.extent[0] = 3;
    expect_message(rondo_op_put(op, w->stream, inputs, 2, &w->c, 1), RONDO_STATUS_INVALID,
                   "input 1 of Add is f32 [3], it was prepared as f32 [64]");
    inputs[1] = w->b;
    inputs[1].data = NULL;
    expect_message(rondo_op_put(op, w->stream, inputs, 2, &w->c, 1), RONDO_STATUS_INVALID,
                   "input 1 of Add: its data is NULL");
    inputs[1] = w->b;
    if (!rondo_device_is_host(w->device)) {
        inputs[1].device = NULL;
        expect_message(rondo_op_put(op, w->stream, inputs, 2, &w->c, 1), RONDO_STATUS_INVALID,
                       "input 1 of Add lies in host memory, the op was prepared for cuda:0");
        inputs[1] = w->b;
    }
    rondo_tensor info;
    expect_message(rondo_op_get_output(op, 1, &info), RONDO_STATUS_INVALID, "no output 1");
    // A refusal in a capture breaks it: the graph would lack the op.
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    expect_message(rondo_op_put(op, w->stream, NULL, 2, &w->c, 1), RONDO_STATUS_INVALID, "inputs");
    assert_int_equal(rondo_graph_capture_end(w->graph), RONDO_STATUS_STATE);
    write_to(w, &w->a, 1);
    write_to(w, &w->b, 0);
    OK(rondo_op_put(op, w->stream, inputs, 2, &w->c, 1));
    expect_sum(w, 1, 1);
    rondo_op_destroy(op);
    rondo_op_destroy(NULL);
    close_world(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_single_op__eager_and_recorded),
        cmocka_unit_test(test_executor_single_op__constants_are_kept),
        cmocka_unit_test(test_executor_single_op__all_kinds_of_ops),
        cmocka_unit_test(test_executor_single_op__refusals),
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
    is_fake = true;
    fake_cuda_install();
    add_program_prepare_fake();
    failed_count += cmocka_run_group_tests_name("fake", tests, NULL, NULL);
    fake_cuda_uninstall();
    return failed_count;
}
