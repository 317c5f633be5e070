// Training steps whose graphs have branches come to the bits of eager steps: variables in their own
// memory, random numbers, and feeds that stay where they are on the device.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/models.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/variables_world.h"

enum { ROWS = 4, WIDTH = 16, FORMS = 4, BOUND = 3, RUNS = 40, NEAR_RUNS = 6 };

static void add_weights(rondo_builder *b, const char *name) {
    float values[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; ++i) {
        values[i] = (float)(i * 7 % 13 - 6) / 32.0f;
    }
    OK(rondo_builder_add_constant(b, name, RONDO_DTYPE_F32, &(rondo_shape){2, {WIDTH, WIDTH}},
                                  values));
}

// loss = mean((x a + relu(x b) c)^2), where `draws` the first term after a Dropout.
static rondo_program *make_step(bool draws) {
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .optimizer = RONDO_OPTIMIZER_SGD,
                                            .learning_rate = 0.05,
                                            .momentum = 0.9};
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, ROWS, WIDTH)));
    add_weights(b, "a");
    add_weights(b, "b");
    add_weights(b, "c");
    build_op(b, "MatMul", "x", "a", "first");
    if (draws) {
        build_op(b, "Dropout", "first", NULL, "kept");
    }
    build_op(b, "MatMul", "x", "b", "inner");
    build_op(b, "Relu", "inner", NULL, "shown");
    build_op(b, "MatMul", "shown", "c", "second");
    build_op(b, "Add", draws ? "kept" : "first", "second", "sum");
    build_op(b, "Mul", "sum", "sum", "squares");
    OK(rondo_builder_add_mean(b, "squares", "loss"));
    OK(rondo_builder_add_output(b, "loss", NULL));
    OK(rondo_builder_minimize(b, "loss", &options));
    return build_finish(b);
}

static float run(rondo_executor *executor, const rondo_tensor *x) {
    float loss = 0.0f;
    const rondo_binding feed = {.name = "x", .tensor = *x};
    rondo_binding fetch = BIND("loss", RONDO_DTYPE_F32, &loss);
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    return loss;
}

// A bound run on tensors of the device, each third one not waited for.
static float run_bound(rondo_executor *executor, rondo_bound_run *bound, const rondo_tensor *loss,
                       int n) {
    float value = 0.0f;
    const rondo_tensor to = {.dtype = RONDO_DTYPE_F32, .data = &value};
    OK(n % 3 == 2 ? rondo_bound_run_run_async(bound, NULL) : rondo_bound_run_run(bound));
    OK(rondo_tensor_copy(rondo_executor_get_stream(executor), loss, &to));
    OK(rondo_executor_wait(executor));
    OK(rondo_stream_synchronize(rondo_executor_get_stream(executor)));
    return value;
}

static void compare_forms(bool draws) {
    rondo_program *program = make_step(draws);
    rondo_device *device;
    rondo_executor *executors[FORMS];  // eager, one of both graphs, with branches, and bound
    rondo_bound_run *bound;
    rondo_tensor near, near_loss;
    float values[ROWS * WIDTH];
    const rondo_tensor far = {
        .dtype = RONDO_DTYPE_F32, .shape = {2, {ROWS, WIDTH}}, .data = values};
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_tensor_init_device(device, far.dtype, &far.shape, &near));
    OK(rondo_tensor_init_device(device, far.dtype, &(rondo_shape){0}, &near_loss));
    for (size_t k = 0; k < FORMS; ++k) {
        const rondo_executor_options options = {
            .struct_size = sizeof options,
            .graphs = k == 0 ? RONDO_GRAPHS_OFF : RONDO_GRAPHS_AUTO,
            .branches = k >= 2 ? RONDO_BRANCHES_ON : RONDO_BRANCHES_AUTO,
            .seed = 3};
        OK(rondo_executor_create(program, device, &options, &executors[k]));
    }
    OK(rondo_bound_run_create(executors[BOUND], &bound));
    OK(rondo_bound_run_set_feed(bound, "x", &near));
    OK(rondo_bound_run_set_fetch(bound, "loss", &near_loss));
    for (int n = 0; n < RUNS; ++n) {
        float losses[FORMS];
        for (int i = 0; i < ROWS * WIDTH; ++i) {
            values[i] = (float)((i * 5 + n) % 11 - 5) / 8.0f;
        }
        for (size_t k = 0; k < FORMS; ++k) {
            const bool is_near = k == BOUND || n >= RUNS - NEAR_RUNS;
            if (is_near) {
                OK(rondo_tensor_copy(rondo_executor_get_stream(executors[k]), &far, &near));
                OK(rondo_stream_synchronize(rondo_executor_get_stream(executors[k])));
            }
            losses[k] = k == BOUND ? run_bound(executors[k], bound, &near_loss, n)
                                   : run(executors[k], is_near ? &near : &far);
            assert_memory_equal(&losses[0], &losses[k], sizeof *losses);
        }
    }
    for (size_t k = 0; k < FORMS; ++k) {
        float first[WIDTH * WIDTH], own[WIDTH * WIDTH];
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        variables_read_all(executors[0], "b", first);
        variables_read_all(executors[k], "b", own);
        assert_memory_equal(first, own, sizeof own);
        OK(rondo_executor_get_stats(executors[k], &stats));
        assert_true(k < 2 || rondo_device_is_host(device) || stats.branch_count > 1);
        assert_true(k != BOUND || stats.in_place_run_count > RUNS / 2);
    }
    rondo_bound_run_destroy(bound);
    rondo_tensor_deinit(&near_loss);
    for (size_t k = 0; k < FORMS; ++k) {
        rondo_executor_destroy(executors[k]);
    }
    rondo_tensor_deinit(&near);
    rondo_device_release(device);
    rondo_program_destroy(program);
}

TEST(steps_with_branches_are_eager_steps) {
    compare_forms(false);
}

TEST(branches_draw_the_same_numbers) {
    compare_forms(true);
}

int main(void) {
    return ON_DEVICES();
}
