// A model inside a program's own work:  larger_step [DEVICE]
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/models.h>

#define CHECK(call)                                                          \
    if ((call) != RONDO_STATUS_OK) {                                         \
        fprintf(stderr, "%s: %s\n", #call, rondo_error_get_last()->message); \
        return EXIT_FAILURE;                                                 \
    }

int main(int argc, char **argv) {
    // y = Relu(x + b), built in code.
    rondo_port x = {.struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1};
    x.extent[0] = 4;
    const rondo_shape shape = {1, {4}};
    const float b[4] = {1, -2, 3, -4};
    const char *const operands[] = {"x", "b"}, *const h = "h", *const y = "y";
    rondo_builder *builder;
    rondo_program *program;
    CHECK(rondo_builder_create(NULL, &builder));
    CHECK(rondo_builder_add_input(builder, &x));
    CHECK(rondo_builder_add_constant(builder, "b", RONDO_DTYPE_F32, &shape, b));
    CHECK(rondo_builder_add_node(builder, "Add", operands, 2, &h, 1, NULL));
    CHECK(rondo_builder_add_node(builder, "Relu", &h, 1, &y, 1, NULL));
    CHECK(rondo_builder_add_output(builder, "y", NULL));
    CHECK(rondo_builder_finish(builder, &program));
    rondo_builder_destroy(builder);

    rondo_device *device;
    rondo_stream *stream;
    rondo_executor *executor;
    CHECK(rondo_device_open(argc > 1 ? argv[1] : "auto", &device));
    CHECK(rondo_stream_create(device, NULL, &stream));
    rondo_executor_options options = {.struct_size = sizeof options, .stream = stream};
    CHECK(rondo_executor_create(program, device, &options, &executor));
    rondo_binding in = {.name = "x"}, out = {.name = "y"};
    CHECK(rondo_tensor_init_device(device, RONDO_DTYPE_F32, &shape, &in.tensor));
    CHECK(rondo_tensor_init_device(device, RONDO_DTYPE_F32, &shape, &out.tensor));
    float *results;  // pinned, so that a graph may copy to them
    CHECK(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 2 * sizeof b, (void **)&results));
    const rondo_tensor first = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = results};
    const rondo_tensor last = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = results + 4};

    // Work of ours, the model, work of ours: on one stream, and nothing waits in between.
    CHECK(rondo_stream_fill(stream, in.tensor.data, 0, 4, 4));
    CHECK(rondo_executor_run_async(executor, &in, 1, &out, 1, NULL));
    CHECK(rondo_tensor_copy(stream, &out.tensor, &first));

    // The same as one graph, with the model twice: what it makes is its input again.
    const rondo_binding next_in = {"x", out.tensor}, next_out = {"y", in.tensor};
    rondo_graph *graph;
    CHECK(rondo_graph_create(device, NULL, &graph));
    CHECK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    CHECK(rondo_executor_record(executor, stream, &in, 1, &out, 1));
    CHECK(rondo_executor_record(executor, stream, &next_in, 1, &next_out, 1));
    CHECK(rondo_tensor_copy(stream, &in.tensor, &last));
    CHECK(rondo_graph_capture_end(graph));
    CHECK(rondo_graph_replay(graph, stream));
    CHECK(rondo_graph_replay(graph, stream));
    CHECK(rondo_stream_synchronize(stream));
    const float expected[8] = {1, 0, 3, 0, 4, 0, 12, 0};
    const int is_right = memcmp(results, expected, sizeof expected) == 0;
    printf("y is %g %g, and after four times %g %g\n", (double)results[0], (double)results[2],
           (double)results[4], (double)results[6]);

    rondo_graph_destroy(graph);
    rondo_tensor_deinit(&in.tensor);
    rondo_tensor_deinit(&out.tensor);
    rondo_memory_free(device, results);
    rondo_executor_destroy(executor);
    rondo_stream_destroy(stream);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
