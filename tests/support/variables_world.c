// support/variables_world.c — see variables_world.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/variables_world.h"
#include "support/short_forms.h"

#include "support/on_devices.h"

rondo_tensor variables_on_host(float *values) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = variables_shape, .data = values};
}

void variables_add_variable(rondo_builder *b, const char *name, float start) {
    const rondo_start constant = {
        .struct_size = sizeof constant, .kind = RONDO_START_CONSTANT, .a = (double)start};
    OK(rondo_builder_add_variable(b, &PORT(name, RONDO_DTYPE_F32, VARIABLES_COUNT), &constant));
}

void variables_add_input(rondo_builder *b, const char *name) {
    OK(rondo_builder_add_input(b, &PORT(name, RONDO_DTYPE_F32, VARIABLES_COUNT)));
}

void variables_read_all(rondo_executor *executor, const char *name, float *values) {
    rondo_tensor now;
    OK(rondo_executor_get_variable(executor, name, &now));
    const rondo_tensor to = {.dtype = now.dtype, .shape = now.shape, .data = values};
    OK(rondo_tensor_copy(rondo_executor_get_stream(executor), &now, &to));
    OK(rondo_stream_synchronize(rondo_executor_get_stream(executor)));
    rondo_tensor_deinit(&now);
}

void variables_fill(uint32_t seed, size_t count, double scale, float *out) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)(((double)(seed >> 8) / 16777216.0 - 0.5) * 2.0 * scale);
    }
}

float variables_read_one(rondo_executor *executor, const char *name) {
    float values[VARIABLES_COUNT];
    variables_read_all(executor, name, values);
    return values[3];
}

const void *variables_get_address(rondo_executor *executor, const char *name) {
    rondo_tensor now;
    OK(rondo_executor_get_variable(executor, name, &now));
    const void *address = now.data;
    rondo_tensor_deinit(&now);
    return address;
}

rondo_executor_stats variables_get_stats(const rondo_executor *executor) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    return stats;
}

void variables_open(variables_world *w, rondo_builder *b) {
    *w = (variables_world){0};
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    OK(rondo_device_open(on_devices_get_name(), &w->device));
    OK(rondo_builder_finish(b, &w->program));
    OK(rondo_executor_create(w->program, w->device, &options, &w->executor));
    rondo_builder_destroy(b);
}

void variables_close(variables_world *w) {
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
    assert_string_equal(fake_cuda_get_violations(), "");
}
