// support/add_world.c — see add_world.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/add_world.h"

#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/on_devices.h"

add_world *add_world_open(rondo_graphs_mode graphs, bool is_on_stream) {
    static add_world w;
    rondo_executor_options options = {.struct_size = sizeof options, .op_by_op = true};
    w = (add_world){0};
    OK(rondo_device_open(on_devices_get_name(), &w.device));
    OK(rondo_stream_create(w.device, NULL, &w.stream));
    OK(rondo_graph_create(w.device, NULL, &w.graph));
    OK(add_program_build(&w.program));
    options.graphs = graphs;
    options.stream = is_on_stream ? w.stream : NULL;
    OK(rondo_executor_create(w.program, w.device, &options, &w.executor));
    rondo_tensor *const tensors[] = {&w.x, &w.y, &w.s};
    for (size_t i = 0; i < 3; ++i) {
        OK(rondo_tensor_init_device(w.device, RONDO_DTYPE_F32, &add_shape, tensors[i]));
        assert_ptr_equal(tensors[i]->device, w.device);
    }
    return &w;
}

void add_world_close(add_world *w) {
    rondo_graph_destroy(w->graph);
    rondo_executor_destroy(w->executor);
    rondo_program_destroy(w->program);
    rondo_tensor_deinit(&w->x);
    rondo_tensor_deinit(&w->y);
    rondo_tensor_deinit(&w->s);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
    assert_string_equal(fake_cuda_get_violations(), "");
}

void add_world_write(rondo_stream *stream, const rondo_tensor *to, float first) {
    float values[ADD_COUNT];
    add_program_fill(values, first);
    const rondo_tensor from = {.dtype = RONDO_DTYPE_F32, .shape = to->shape, .data = values};
    OK(rondo_tensor_copy(stream, &from, to));
    OK(rondo_stream_synchronize(stream));
}

void add_world_read(rondo_stream *stream, const rondo_tensor *from, float *values) {
    const rondo_tensor to = {.dtype = RONDO_DTYPE_F32, .shape = from->shape, .data = values};
    OK(rondo_tensor_copy(stream, from, &to));
    OK(rondo_stream_synchronize(stream));
}

void add_world_expect(rondo_stream *stream, const rondo_tensor *tensor, float first, bool is_y) {
    float values[ADD_COUNT] = {0};
    add_world_read(stream, tensor, values);
    assert_int_equal(add_program_check(values, first, is_y), ADD_COUNT);
}
