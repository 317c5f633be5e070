// Training in half precision: weights, states and scales of a program that an executor computes in
// f16 are those of f32.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka wants the four above first
#include <cmocka.h>

#include "rondo/models.h"
#include "support/on_devices.h"

enum { COUNT = 32, STEPS = 24 };

static const rondo_shape shape = {1, {COUNT}};

// loss = sum(w x): the gradient of w is x.
static rondo_builder *begin_sum(float *start) {
    rondo_builder *b;
    const rondo_port x = {.struct_size = sizeof x,
                          .name = "x",
                          .dtype = RONDO_DTYPE_F32,
                          .rank = 1,
                          .extent = {COUNT}};
    OK(rondo_builder_create(NULL, &b));
    OK(rondo_builder_add_input(b, &x));
    OK(rondo_builder_add_constant(b, "w", RONDO_DTYPE_F32, &shape, start));
    OK(rondo_builder_add_node(b, "Mul", (const char *[]){"w", "x"}, 2, (const char *[]){"p"}, 1,
                              NULL));
    const rondo_attribute keep = {.name = "keepdims", .kind = RONDO_ATTRIBUTE_INT};
    const rondo_builder_node_options options = {
        .struct_size = sizeof options, .attributes = &keep, .attribute_count = 1};
    OK(rondo_builder_add_node(b, "ReduceSum", (const char *[]){"p"}, 1, (const char *[]){"loss"}, 1,
                              &options));
    OK(rondo_builder_add_output(b, "loss", NULL));
    return b;
}

static void read_variable(rondo_executor *executor, const char *name, float *values) {
    rondo_tensor now;
    OK(rondo_executor_get_variable(executor, name, &now));
    assert_int_equal(now.dtype, RONDO_DTYPE_F32);
    const rondo_tensor to = {.dtype = now.dtype, .shape = now.shape, .data = values};
    OK(rondo_tensor_copy(rondo_executor_get_stream(executor), &now, &to));
    OK(rondo_stream_synchronize(rondo_executor_get_stream(executor)));
    rondo_tensor_deinit(&now);
}

// Trains in `dtype`; the weight and the scale after STEPS.
static void train(const rondo_minimize_options *how, rondo_dtype dtype, float *weight,
                  float *scale) {
    float values[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        values[i] = 1.0f + (float)i;
    }
    const rondo_executor_options options = {.struct_size = sizeof options, .dtype = dtype};
    rondo_builder *b = begin_sum(values);
    rondo_program *program;
    rondo_device *device;
    rondo_executor *executor;
    OK(rondo_builder_minimize(b, "loss", how));
    OK(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, &options, &executor));
    for (int i = 0; i < COUNT; ++i) {
        values[i] = i % 2 == 0 ? 1.0f : -1.0f;
    }
    const rondo_binding feed = {
        .name = "x", .tensor = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = values}};
    for (int step = 0; step < STEPS; ++step) {
        OK(rondo_executor_run(executor, &feed, 1, NULL, 0));
    }
    read_variable(executor, "w", weight);
    read_variable(executor, "train.scale", scale);
    rondo_executor_destroy(executor);
    rondo_device_release(device);
    rondo_program_destroy(program);
}

// Each step is far below what f16 resolves beside the weight, and the scale is beyond its range.
static void small_steps_add_up(void **state) {
    (void)state;
    const rondo_minimize_options cases[] = {
        {.struct_size = sizeof *cases, .learning_rate = 1e-5},
        {.struct_size = sizeof *cases, .learning_rate = 1e-6, .momentum = 0.9},
        {.struct_size = sizeof *cases, .optimizer = RONDO_OPTIMIZER_ADAMW, .learning_rate = 1e-5},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        rondo_minimize_options how = cases[c];
        float half[COUNT], single[COUNT], scale[2];
        how.scale_loss = true;
        how.scale_interval = STEPS;
        train(&how, RONDO_DTYPE_F16, half, &scale[0]);
        train(&how, RONDO_DTYPE_F32, single, &scale[1]);
        assert_true(scale[0] == 131072.0f && scale[1] == 131072.0f);
        for (int i = 0; i < COUNT; ++i) {
            assert_true(fabsf(single[i] - (1.0f + (float)i)) > 5e-5f);
            assert_true(fabsf(half[i] - single[i]) <= 1e-6f * single[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_steps_add_up),
    };
    return ON_DEVICES(tests);
}
